"""Records the calls of a PyTorch model into a file. `backends.paddle.trace` is the twin.

`record_trace` is for users; the rest is what the recorder needs of PyTorch, `sketch.Ops` first.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from reprod_align.backends.torch import side
from reprod_align.backends.torch.side import array
from reprod_align.base.blocks import Array
from reprod_align.traces.recorder import record_model
from reprod_align.traces.sketch import NUMPY, Sums, Vector, list_quarters, signs

import numpy as np
import torch
from torch import nn


@contextmanager
def record_trace(
    model: nn.Module,
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

    Raises ReprodError if nothing was recorded, or the file cannot be written.
    """
    with record_model(side, sys.modules[__name__], model, path, mode, forward, backward):
        yield


_WIDE = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def flat(tensor: torch.Tensor) -> torch.Tensor | Array:
    """Return the elements in C order, 1-D float32 or float64; complex as pairs.

    An array if they are in the host's memory, and on the tensor's own if they lie in that order.
    """
    real = _widen(tensor)
    return NUMPY.flat(real.numpy()) if real.device.type == "cpu" else real.reshape([-1])


def on_device(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements as `flat` does, always as a tensor."""
    return _widen(tensor).reshape([-1])


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor as float32 or float64; complex as pairs."""
    real = tensor.detach()
    if real.layout != torch.strided:
        real = real.to_dense()
    if real.is_complex():
        real = torch.view_as_real(real.resolve_conj())
    if real.dtype not in (torch.float32, torch.float64):
        real = real.to(_WIDE.get(real.dtype, torch.float64))
    return real


def measure(slab: torch.Tensor, start: int, width: int) -> tuple[Vector, Sums]:
    """Return sum, sum of squares, min and max; and the signed sums of whole rows, as `Ops` says."""
    whole = slab.shape[0] // width * width
    return _sum_moments(slab), _sum_signed(slab[:whole], start, width)


def measure_rows(slab: torch.Tensor, width: int) -> Vector:
    """Return the signed sums of the quarters of rows, as `Ops` says."""
    rows, own = slab.reshape([-1, width]), _make_signs(slab.dtype, slab.device)
    sums = [(rows[:, part] * own[part]).sum(1) for part in list_quarters(width)]
    return array(torch.stack(sums)).astype(np.float64)


def _sum_moments(slab: torch.Tensor) -> Vector:
    low, high = torch.aminmax(slab)
    four = torch.stack([slab.sum(), torch.dot(slab, slab), low, high])
    return array(four).astype(np.float64)


def _sum_signed(slab: torch.Tensor, start: int, width: int) -> Sums:
    own = _make_signs(slab.dtype, slab.device)[start : start + slab.shape[0]]
    rows = (slab * own).reshape([-1, width])
    return array(torch.concat([rows.sum(0), rows.sum(1)])).astype(np.float64)


@cache
def _make_signs(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(signs()).to(device, dtype)


def is_leaf(tensor: torch.Tensor) -> bool:
    """Tell whether the tensor was computed from nothing, as parameters are."""
    return bool(tensor.is_leaf)


def gradient(parameter: torch.Tensor) -> torch.Tensor | None:
    """Return the parameter's gradient itself, None if it has none."""
    return parameter.grad


def transposed_parameters(model: nn.Module) -> set[str]:
    """Names of the parameters that lie transposed to PyTorch's layout: none."""
    return set()
