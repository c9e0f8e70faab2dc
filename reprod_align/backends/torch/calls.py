"""Hears every PyTorch function that is called. `backends.paddle.calls` is the twin."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reprod_align.model.recorder import OperationRecorder

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
