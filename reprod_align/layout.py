"""How a tensor of the PyTorch model lies in the Paddle model: as it is, transposed, cut, joined.

`paddle.nn.Linear` keeps (in, out) where PyTorch keeps (out, in); everything else keeps one order.
The kind of the layer decides, never the shape, since a square matrix can't tell; only where a layer
of a known kind meets a bare parameter is there a choice, and then both are candidates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Lay:
    """Turns an array of PyTorch's into Paddle's: transposes it if so, then gives it the shape."""

    transposed: bool
    shape: Shape
    """of the Paddle tensor"""

    def __call__(self, array: Array) -> Array:
        """Return the array as Paddle keeps it."""
        turned = array.reshape(_slim(array.shape)).T if self.transposed else array
        return np.ascontiguousarray(turned).reshape(self.shape)

    @property
    def words(self) -> str:
        """What it does, in words; "" if nothing."""
        return "transposed" if self.transposed else ""


def lays(torch: Shape, paddle: Shape, torch_axes: str, paddle_axes: str) -> list[Lay]:
    """Return the ways in which a tensor of one shape can lie in the other, the likeliest first.

    The axes of a matrix are "oi" (a torch Linear, a 1x1 convolution), "io" (a Paddle Linear), or
    "" where nothing tells (a bare parameter). Empty: the tensor does not fit.
    """
    slim, wanted = _slim(torch), _slim(paddle)
    flat = len(slim) == 1 or len(wanted) == 1  # Paddle's LayerNorm keeps its weight flat
    same = slim == wanted or (flat and math.prod(slim) == math.prod(wanted))
    straight = [Lay(False, paddle)] if same else []
    if len(slim) != 2 or not (torch_axes or paddle_axes):
        return straight
    turned = [Lay(True, paddle)] if slim == wanted[::-1] else []
    if torch_axes and paddle_axes:
        return straight if torch_axes == paddle_axes else turned
    return turned + straight if torch_axes == "oi" and paddle_axes else straight + turned


def _slim(shape: Shape) -> Shape:
    """Return the shape without axes of length 1, so that a 1x1 convolution fits a Linear."""
    return tuple(length for length in shape if length != 1)


def cut(array: Array, sizes: Sequence[int]) -> list[Array]:
    """Return the array cut along its first axis into parts of these lengths."""
    return np.split(array, np.cumsum(sizes)[:-1], axis=0)


def interleaved(array: Array, heads: int, parts: int) -> Array:
    """Return rows stored head by head, (heads, parts, d), in order part by part, (parts, heads, d)."""
    grouped = array.reshape(heads, parts, -1, *array.shape[1:])
    return np.ascontiguousarray(grouped.swapaxes(0, 1)).reshape(array.shape)
