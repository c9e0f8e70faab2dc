"""Paddle's dropouts with masks from a shared stream.

They are computed anew, for Paddle's own draw their masks in float32 or round 1 - p to it.
"""

from collections.abc import Sequence
from functools import cache
from inspect import signature
from typing import Any

from reprod_align.backends.paddle.private import ALPHA_DROPOUT, OPERATORS
from reprod_align.backends.private_names import look_up
from reprod_align.randomness import Draws, Shape, UnsharedDrawError, bernoulli

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle.nn.functional import common

Array = NDArray[np.generic]
Tensor = Any

_own_dropout = look_up(OPERATORS, "dropout")
_own_dropout_ = look_up(OPERATORS, "dropout_")
_own_dropout_function = common.dropout
_TAKES_INPLACE = "inplace" in signature(common.dropout).parameters
"""Paddle 3.3 and later"""
_own_alpha_dropout = look_up(*ALPHA_DROPOUT)


def dropout(
    draws: Draws, x: Tensor, seed: Any, p: float, is_test: bool, mode: str, *options: Any
) -> Tensor:
    """Do what Paddle's operator does, out of place."""
    if x.size == 0 or (is_test and mode == "upscale_in_train"):
        return _own_dropout(x, seed, p, is_test, mode, *options)
    factor = _factor(draws, x, float(p), is_test, mode)
    return (x * factor, factor) if _gives_mask() else x * factor


@cache
def _gives_mask() -> bool:
    """Tell whether Paddle's operator returns the mask too: 2.6 does."""
    one = paddle.ones([1])
    return isinstance(_own_dropout(one, None, 0.5, True, "upscale_in_train", 0, False), tuple)


def dropout_(
    draws: Draws, x: Tensor, seed: Any, p: float, is_test: bool, mode: str, *options: Any
) -> Tensor:
    """Do what Paddle's operator does, in place."""
    if x.size == 0 or (is_test and mode == "upscale_in_train"):
        return _own_dropout_(x, seed, p, is_test, mode, *options)
    return x.multiply_(_factor(draws, x, float(p), is_test, mode))


def _factor(draws: Draws, x: Tensor, p: float, is_test: bool, mode: str) -> Tensor:
    if is_test:  # downscale_in_infer, where Paddle's own rounds 1 - p to float32
        return paddle.full([], 1.0 - p, x.dtype)
    return draw_mask(draws, tuple(x.shape), p, mode, x.dtype)


def draw_mask(draws: Draws, shape: Shape, p: float, mode: str, dtype: Any) -> Tensor:
    """Return a mask: 0 where an element is dropped; 1, or 1 / (1 - p), where it is kept."""
    if p in (0.0, 1.0):
        return paddle.full(shape, 1.0 - p, dtype)
    return scale(bernoulli(draws.uniform(shape), 1.0 - p), p, mode, dtype)


def scale(keep: Array, p: float, mode: str, dtype: Any) -> Tensor:
    """Return what to multiply with: `keep` as a tensor, divided by 1 - p to scale up in training."""
    mask = create(keep, dtype)
    return mask / (1.0 - p) if mode == "upscale_in_train" else mask


def dropout_function(
    draws: Draws,
    x: Tensor,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    inplace: bool | str = False,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """Paddle's F.dropout, whose mask is drawn in float32 where it has an `axis`."""
    if isinstance(inplace, str):  # Paddle before 3.3: the mode is its fifth argument
        mode, inplace = inplace, False
    axes = [axis] if isinstance(axis, int) else list(axis or ())
    if x.size == 0:
        return x
    own = not axes or not training or inplace or p == 0
    if own or not all(0 <= one < x.ndim for one in axes):
        options = {"inplace": inplace} if _TAKES_INPLACE else {}
        return _own_dropout_function(x, p, axis, training, mode=mode, name=name, **options)
    shape = tuple(size if one in axes else 1 for one, size in enumerate(x.shape))
    return x * draw_mask(draws, shape, float(p), mode, x.dtype)


def alpha_dropout(
    draws: Draws,
    x: Tensor,
    feature_dropout: bool,
    p: float,
    training: bool = True,
    name: str | None = None,
) -> Tensor:
    """Both alpha dropouts of Paddle, whose mask is drawn in float32."""
    if p == 0 or x.size == 0:
        return x
    if not training or not 0 < p < 1 or (feature_dropout and x.ndim < 2):
        return _own_alpha_dropout(x, feature_dropout, p, training, name)
    shape = (*x.shape[:2], *(1 for _ in x.shape[2:])) if feature_dropout else tuple(x.shape)
    keep = draw_mask(draws, shape, p, "downscale_in_infer", x.dtype)
    dropped = -1.6732632423543772 * 1.0507009873554805  # SELU's value at minus infinity
    a = ((1.0 - p) * (1.0 + p * dropped**2)) ** -0.5
    return (x * keep + (1.0 - keep) * dropped) * a + -a * dropped * p


def create(values: Array, dtype: Any, place: Any = None) -> Tensor:
    """Return the values as a tensor. Raises UnsharedDrawError for a complex dtype."""
    if dtype in (paddle.complex64, paddle.complex128):
        raise UnsharedDrawError(f"draws of {dtype} cannot be shared with the other framework")
    return paddle.to_tensor(np.asarray(values), place=place).astype(dtype)
