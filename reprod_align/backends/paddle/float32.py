"""Where a Paddle model asks for float32 while float64 is at work. `backends.torch.float32` is the twin.

Norms, softmaxes and rotary tables often compute in float32 for an input of any dtype. Its rounding
hides small differences; with float64 in its place, the same code shows them.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from reprod_align.backends.paddle.private import OPERATORS
from reprod_align.backends.private_names import look_up
from reprod_align.backends.replacing import replace_attribute

import numpy as np
import paddle

_FLOAT32 = paddle.float32, "float32", "paddle.float32"
_OPERATORS = ("cast", "cast_", "full", "full_", "full_like", "arange", "linspace", "eye", "empty")
_OF_INTEGERS = (
    *((paddle.Tensor, f"__{side}{name}__") for name in ("add", "sub", "mul", "div", "truediv", "pow",
      "mod", "floordiv") for side in ("", "r")),
    *((OPERATORS, name) for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "clip", "cos",
      "cosh", "digamma", "divide", "erf", "erfinv", "exp", "expm1", "lgamma", "log", "log10", "log1p",
      "log2", "logsumexp", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh")),
)  # fmt: skip
"""what Paddle computes in float32 for integers, whatever the default dtype is; PyTorch asks the default"""
_EXACT = "one_hot"
"""its numbers are float32 whatever the default dtype is, and nothing in them is rounded"""


@contextmanager
def float32_requests(note: Callable[[], None], answered: bool) -> Iterator[None]:
    """Call `note` at each request for float32 in the block; `answered`: give float64 in its place.

    Seen are dtypes handed to the operators that all casts and new tensors come from, and to
    `paddle.to_tensor`, and operators that make float32 of integers and round on the way. Zeros and
    ones are float64 in any case: it is no other number, and float64 beside it would raise.
    """
    with ExitStack() as stack:
        for owner, name in (*((OPERATORS, name) for name in _OPERATORS), (paddle, "to_tensor")):
            if (own := look_up(owner, name)) is None:
                continue  # a later version's operator
            seen = partial(_see, own, note, answered)
            stack.enter_context(replace_attribute(owner, name, seen))
        for owner, name in _OF_INTEGERS:
            if (own := look_up(owner, name)) is None:
                continue
            made = _see_integers(own, note, answered)
            stack.enter_context(replace_attribute(owner, name, made))
        if (exact := look_up(OPERATORS, _EXACT)) is not None:
            stack.enter_context(
                replace_attribute(OPERATORS, _EXACT, lambda *args: _make_float64(exact(*args)))
            )
        yield


def _see_integers(
    function: Callable[..., Any], note: Callable[[], None], answered: bool
) -> Callable[..., Any]:
    """Return the function as a method too, which `partial` is not."""

    def compute(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        if not _is_of_integers(made, args):
            return made
        wide = function(*map(_make_float64, args), **kwargs)
        if not np.array_equal(made.numpy(), wide.numpy(), equal_nan=True):
            note()
        return wide if answered else made

    return compute


def _is_of_integers(made: Any, args: tuple[Any, ...]) -> bool:
    """Tell whether a float32 was made of integers alone; numbers that are no tensors have no dtype."""
    if not isinstance(made, paddle.Tensor) or made.dtype != paddle.float32:
        return False
    return not any(isinstance(one, paddle.Tensor) and one.is_floating_point() for one in args)


def _make_float64(value: Any) -> Any:
    return value.astype("float64") if isinstance(value, paddle.Tensor) else value


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
