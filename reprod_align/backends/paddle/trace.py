"""Records the calls of a Paddle model into a file. `backends.torch.trace` is the twin.

`record_trace` is for users; the rest is what the recorder needs of Paddle, `sketch.Ops` first.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from reprod_align.backends.paddle import linear_weights, side
from reprod_align.backends.paddle.side import array
from reprod_align.base.blocks import Array
from reprod_align.traces import Rank
from reprod_align.traces.recorder import record_model
from reprod_align.traces.sketch import NUMPY, Sums, Vector, list_quarters, signs

import numpy as np
import paddle
from paddle import distributed, nn


@contextmanager
def record_trace(
    model: nn.Layer,
    path: str | os.PathLike[str],
    mode: str = "whole",
    *,
    forward: bool = True,
    backward: bool = True,
) -> Iterator[None]:
    """Record every module call in the block, and write it to `path` when the block ends well.

    mode: "whole" keeps every tensor, "sketch" 8 KB of each, whatever its size.
    forward: inputs and outputs. backward: the gradients of outputs and of parameters; run the
    backward pass inside the block. Results are the same, to the last bit, as without recording.

        with record_trace(model, "run.trace", mode="sketch"):
            model(inputs).sum().backward()

    In a parallel run each rank records its own part, into a file of its own; the file says which rank it
    is, and `reprod-align diff` takes the folder. Wrappers such as DataParallel are left out of the names.
    Raises ReprodError if nothing was recorded, or the file cannot be written.
    """
    model, rank = _read_rank(model)
    with record_model(side, sys.modules[__name__], model, path, mode, forward, backward, rank):
        yield


def _read_rank(model: nn.Layer) -> tuple[nn.Layer, Rank | None]:
    """Return the model without what wraps it in a parallel run, and which rank this process is."""
    if not distributed.is_initialized() or distributed.get_world_size() == 1:
        return model, None
    from reprod_align.backends.paddle import (
        parallel,  # the engine's modules, which one process has no use for
    )

    return parallel.unwrap(model), Rank(*parallel.read_rank())


_WIDE = {paddle.float16: paddle.float32, paddle.bfloat16: paddle.float32}


def flat(tensor: paddle.Tensor) -> paddle.Tensor | Array:
    """Return the elements in C order, 1-D float32 or float64; complex as pairs.

    An array if they are in the host's memory, and on the tensor's own if they lie in that order.
    """
    real = _widen(tensor)
    if not real.place.is_cpu_place():
        return real.reshape([-1])
    readable = hasattr(real, "__dlpack__")  # Paddle 2.6 has none: its values are copied
    return NUMPY.flat(np.from_dlpack(real) if readable else real.numpy())


def on_device(tensor: paddle.Tensor) -> paddle.Tensor:
    """Return the elements as `flat` does, always as a tensor."""
    return _widen(tensor).reshape([-1])


def _widen(tensor: paddle.Tensor) -> paddle.Tensor:
    """Return the tensor as float32 or float64; complex as pairs."""
    real = tensor.detach()
    if real.is_complex():
        real = paddle.as_real(real)
    if real.dtype not in (paddle.float32, paddle.float64):
        real = real.astype(_WIDE.get(real.dtype, paddle.float64))
    return real


def measure(slab: paddle.Tensor, start: int, width: int) -> tuple[Vector, Sums]:
    """Return sum, sum of squares, min and max; and the signed sums of whole rows, as `Ops` says."""
    whole = slab.shape[0] // width * width
    return _sum_moments(slab), _sum_signed(slab[:whole], start, width)


def measure_rows(slab: paddle.Tensor, width: int) -> Vector:
    """Return the signed sums of the quarters of rows, as `Ops` says."""
    rows, own = slab.reshape([-1, width]), _make_signs(slab.dtype, _name_device(slab))
    with paddle.amp.auto_cast(enable=False):  # sum(1) of long rows is off by 1e-5 on a CPU
        sums = [paddle.matmul(rows[:, part], own[part]) for part in list_quarters(width)]
    return array(paddle.stack(sums)).astype(np.float64)


def _sum_moments(slab: paddle.Tensor) -> Vector:
    with paddle.amp.auto_cast(enable=False):  # it would round the factors of a product
        squares = paddle.matmul(slab, slab)
    # amin, amax: Paddle 3.2 warns of min and max that PyTorch's differ
    four = paddle.stack([slab.sum(), squares, slab.amin(), slab.amax()])
    return array(four).astype(np.float64)


def _sum_signed(slab: paddle.Tensor, start: int, width: int) -> Sums:
    own = _make_signs(slab.dtype, _name_device(slab))[start : start + slab.shape[0]]
    rows = (slab * own).reshape([-1, width])
    return array(paddle.concat([_sum_columns(rows), rows.sum(1)])).astype(np.float64)


def _name_device(tensor: paddle.Tensor) -> str:
    place = tensor.place
    return "cpu" if place.is_cpu_place() else f"gpu:{place.gpu_device_id()}"


def _sum_columns(matrix: paddle.Tensor) -> paddle.Tensor:
    if not matrix.place.is_cpu_place():
        return matrix.sum(0)
    ones = paddle.ones([1, matrix.shape[0]], dtype=matrix.dtype)
    with paddle.amp.auto_cast(enable=False):
        return paddle.matmul(ones, matrix)[0]  # on a CPU ten times as fast as sum(0)


@cache
def _make_signs(dtype: paddle.dtype, place: str) -> paddle.Tensor:
    return paddle.to_tensor(signs(), place=place).astype(dtype)


def is_leaf(tensor: paddle.Tensor) -> bool:
    """Tell whether the tensor was computed from nothing, as parameters are."""
    return bool(tensor.is_leaf)


def gradient(parameter: paddle.Tensor) -> paddle.Tensor | None:
    """Return the parameter's gradient itself, None if it has none."""
    return None if parameter.stop_gradient else parameter.grad


def transposed_parameters(model: nn.Layer) -> set[str]:
    """Names of the parameters that lie transposed to PyTorch's layout: Linear weights, the engine's too."""
    if not distributed.is_initialized():
        return linear_weights(model)
    from reprod_align.backends.paddle.parallel import list_turned

    return linear_weights(model) | list_turned(model)
