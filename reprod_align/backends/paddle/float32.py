"""Where a Paddle model asks for float32 while float64 is at work. `backends.torch.float32` is the twin.

Norms, softmaxes and rotary tables often compute in float32 for an input of any dtype. Its rounding
hides small differences; with float64 in its place, the same code shows them.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from reprod_align.backends.replacing import replace_attribute

import paddle
from paddle import _C_ops

_FLOAT32 = paddle.float32, "float32", "paddle.float32"
_OPERATORS = ("cast", "cast_", "full", "full_", "full_like", "arange", "linspace", "eye", "empty")


@contextmanager
def float32_requests(note: Callable[[], None], answered: bool) -> Iterator[None]:
    """Call `note` at each request for float32 in the block; `answered`: give float64 in its place.

    Seen are dtypes handed to the operators that all casts and new tensors come from, and to
    `paddle.to_tensor`.
    """
    with ExitStack() as stack:
        for owner, name in (*((_C_ops, name) for name in _OPERATORS), (paddle, "to_tensor")):
            seen = partial(_see, getattr(owner, name), note, answered)
            stack.enter_context(replace_attribute(owner, name, seen))
        yield


def _see(
    function: Callable[..., Any],
    note: Callable[[], None],
    answered: bool,
    *args: Any,
    **kwargs: Any,
) -> Any:
    if not any(_is_float32(value) for value in (*args, *kwargs.values())):
        return function(*args, **kwargs)
    note()
    if not answered:
        return function(*args, **kwargs)
    return function(*map(_wide, args), **{name: _wide(value) for name, value in kwargs.items()})


def _wide(value: Any) -> Any:
    return paddle.float64 if _is_float32(value) else value


def _is_float32(value: Any) -> bool:
    return isinstance(value, (str, paddle.dtype)) and value in _FLOAT32
