"""Where a PyTorch model asks for float32 while float64 is at work. `backends.paddle.float32` is the twin.

Norms, softmaxes and rotary tables often compute in float32 for an input of any dtype. Its rounding
hides small differences; with float64 in its place, the same code shows them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@contextmanager
def float32_requests(note: Callable[[], None], answered: bool) -> Iterator[None]:
    """Call `note` at each request for float32 in the block; `answered`: give float64 in its place.

    Seen are dtypes handed to PyTorch's functions and tensor methods, and `Tensor.float()`.
    """
    with _Seen(note, answered):
        yield


class _Seen(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, note: Callable[[], None], answered: bool) -> None:
        super().__init__()
        self._note, self._answered = note, answered

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        narrow = function is torch.Tensor.float
        if not narrow and not any(value is torch.float32 for value in (*args, *given.values())):
            return function(*args, **given)
        self._note()
        if not self._answered:
            return function(*args, **given)
        function = torch.Tensor.double if narrow else function
        return function(*map(_wide, args), **{name: _wide(value) for name, value in given.items()})


def _wide(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value
