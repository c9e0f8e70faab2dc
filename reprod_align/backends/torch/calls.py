"""Hears every PyTorch function that is called, and requests for float32. `backends.paddle.calls` is the twin.

Norms, softmaxes and rotary tables often compute in float32 for an input of any dtype. Its rounding
hides small differences; with float64 in its place, the same code shows them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reprod_align.backends.torch import private
from reprod_align.model.recorder import OperationRecorder

import torch
from torch.overrides import TorchFunctionMode


@contextmanager
def intercept_calls(recorder: OperationRecorder) -> Iterator[None]:
    """Let `recorder.record` make every call of a PyTorch function in the block: the outermost ones."""
    with _Mode(recorder):
        yield


class _Mode(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, recorder: OperationRecorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = str(getattr(function, "__name__", function))
        if name == "__get__":  # an attribute: x.T, x.shape
            name = str(getattr(getattr(function, "__self__", None), "__name__", name))
        return self._recorder.record(name, function, args, kwargs or {})


@contextmanager
def float32_requests(note: Callable[..., None], answered: bool) -> Iterator[None]:
    """Call `note` at each request for float32 in the block; `answered`: give float64 in its place.

    `note` gets what the call returns, and what it takes.

    Seen are dtypes handed to PyTorch's functions and tensor methods, and `Tensor.float()`.
    """
    with _FunctionListener(note, answered):
        yield


class _FunctionListener(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, note: Callable[..., None], answered: bool) -> None:
        super().__init__()
        self._note, self._answered = note, answered

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if function is torch.Tensor.backward and _is_from_scalar(args, given):
            engine = private.find_engine()
            if engine is not None:
                with self:  # a checkpointed block asks again as it runs again
                    return engine(args[0])
        narrow = function is torch.Tensor.float
        if not narrow and not any(value is torch.float32 for value in (*args, *given.values())):
            return function(*args, **given)
        if self._answered:
            function = torch.Tensor.double if narrow else function
            args = tuple(map(_widen, args))
            given = {name: _widen(value) for name, value in given.items()}
        made = function(*args, **given)
        self._note(made, *args)
        return made


def _is_from_scalar(args: Any, given: Mapping[str, Any]) -> bool:
    """Tell whether a backward pass begins at one number, and nothing else is asked of it."""
    asked = [value for value in given.values() if value is not None and value is not False]
    return len(args) == 1 and args[0].ndim == 0 and not asked


def _widen(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value
