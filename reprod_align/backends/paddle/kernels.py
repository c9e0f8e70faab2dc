"""Interpolates float64 tensors with float64 weights: Paddle's kernels compute places and weights in float32.

Between 500 rows that moves a value by 1e-4 (Paddle 3.3.0 on CPUs), far more than a float64 verdict allows.
Each setting is first held against the kernel, forward and backward: one that differs by more than rounding
is left to the kernel, as is float32. `backends.torch.kernels` mends PyTorch's.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, wraps
from typing import Any, Final

from reprod_align.backends import replace_attribute
from reprod_align.backends.paddle.private import OPERATORS
from reprod_align.backends.versions import look_up
from reprod_align.base.blocks import Array

import numpy as np
import paddle

_CUBIC: Final = -0.75
"""of Keys' cubic, as both frameworks take it"""
_TAPS: Final = {"linear": (0, 1), "cubic": (-1, 0, 1, 2)}
_KERNELS: Final = {
    "linear_interp": "linear", "bilinear_interp": "linear", "trilinear_interp": "linear",
    "bicubic_interp": "cubic",
}  # fmt: skip
_ROUNDING: Final = 16 * 2.0**-24
"""of the size of an axis: a place in float32 is off by three roundings, a slope is four values at most"""
_Weights = Sequence[tuple[int, Array, Array]]
"""an axis; for each tap of each place on it, the index (P, T) and the weight (P, T)"""


@contextmanager
def exact_kernels() -> Iterator[None]:
    """Let float64 tensors be interpolated with float64 weights in the block."""
    with ExitStack() as stack:
        for name, kind in _KERNELS.items():
            if (own := look_up(OPERATORS, name)) is not None:
                stack.enter_context(replace_attribute(OPERATORS, name, _make_exact(own, kind)))
        yield


def _make_exact(own: Callable[..., Any], kind: str) -> Callable[..., Any]:
    @wraps(own)
    def interpolate(x: Any, *settings: Any, **named: Any) -> Any:
        weights = None
        if isinstance(x, paddle.Tensor) and x.dtype == paddle.float64 and not named:
            tensors, (layout, *wanted, scale, method, corners, mode) = settings[:3], settings[3:]
            if all(one is None for one in tensors):
                known = (layout, *wanted, tuple(scale), method, corners, mode)
                sizes = tuple(x.shape[axis] for axis in _find_axes(layout, x.ndim))
                weights = _find_weights(own, kind, sizes, known)
        return own(x, *settings) if weights is None else _sum_taps(x, weights)

    return interpolate


def _find_axes(layout: str, count: int) -> range:
    """Return the axes that are interpolated, of `count`."""
    return range(1, count - 1) if layout.endswith("C") else range(2, count)


@lru_cache(maxsize=256)
def _find_weights(
    own: Callable[..., Any], kind: str, sizes: tuple[int, ...], known: tuple[Any, ...]
) -> _Weights | None:
    """Return float64 weights for a setting; None where they differ from the kernel by more than rounding.

    sizes: of the axes that are interpolated, such as (H, W). known: the settings, the scale as a tuple.
    """
    layout, *wanted, scale, method, corners, mode = known
    settings = (None, None, None, layout, *wanted, list(scale), method, corners, mode)
    axes = _find_axes(layout, len(sizes) + 2)
    shape = (1, *sizes, 1) if axes.start == 1 else (1, 1, *sizes)
    draw = np.random.default_rng(0).uniform(-1.0, 1.0, shape)
    with paddle.enable_grad():
        first, second = (paddle.to_tensor(draw, stop_gradient=False) for _ in range(2))
        made = own(first, *settings)
        given = scale if len(scale) == len(axes) else (0.0,) * len(axes)
        weights = [
            (axis, *_weigh(kind, shape[axis], made.shape[axis], factor, corners, mode))
            for axis, factor in zip(axes, given, strict=True)
        ]
        summed = _sum_taps(second, weights)
        back = paddle.cos(paddle.arange(made.size, dtype="float64")).reshape(made.shape)
        gradients = [paddle.grad(one, x, back)[0].numpy()
                     for one, x in ((made, first), (summed, second))]  # fmt: skip
    limit = _ROUNDING * sum(size + 8 for size in sizes)
    terms = max(made.size / first.size, 1.0) * 2 ** len(axes)  # a gradient is a sum of so many
    outputs_agree = np.abs(made.numpy() - summed.numpy()).max() <= limit
    gradients_agree = np.abs(gradients[0] - gradients[1]).max() <= limit * terms
    return weights if outputs_agree and gradients_agree else None


def _weigh(
    kind: str, before: int, after: int, factor: float, corners: bool, mode: int
) -> tuple[Array, Array]:
    """Return for each place of an axis the indices and the weights of what it is a sum of, (P, T) each."""
    places = np.arange(after, dtype=np.float64)
    if corners:
        places = places * ((before - 1) / (after - 1) if after > 1 else 0.0)
    else:
        step = 1 / factor if factor > 0 else before / after
        halves = kind == "cubic" or mode == 0
        places = (places + 0.5) * step - 0.5 if halves else places * step
    if kind == "linear":
        places = np.clip(places, 0, before - 1)
    first = np.floor(places)
    index = first[:, None] + np.array(_TAPS[kind])
    far = np.abs(places[:, None] - index)
    if kind == "linear":
        weights = 1 - far
    else:
        near = ((_CUBIC + 2) * far - (_CUBIC + 3)) * far**2 + 1
        weights = np.where(far < 1, near, _CUBIC * (((far - 5) * far + 8) * far - 4))
    return np.clip(index, 0, before - 1).astype(np.int64), weights


def _sum_taps(x: paddle.Tensor, weights: _Weights) -> paddle.Tensor:
    """Sum the taps of each place, axis by axis."""
    for axis, index, shares in weights:
        shape = [-1 if at == axis else 1 for at in range(x.ndim)]
        terms = [
            x.index_select(paddle.to_tensor(rows), axis) * paddle.to_tensor(share).reshape(shape)
            for rows, share in zip(index.T, shares.T, strict=True)
        ]
        x = sum(terms[1:], terms[0])
    return x
