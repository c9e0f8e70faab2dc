"""How a tensor of the PyTorch model lies in the Paddle model: as it is, transposed, cut, joined.

`paddle.nn.Linear` keeps (in, out) where PyTorch keeps (out, in); everything else keeps one order.
The kind of the layer decides, never the shape, since a square matrix can't tell; only where a layer
of a known kind meets a bare parameter is there a choice, and then both are candidates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reprod_align.base.blocks import transpose

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
        turned = transpose(array.reshape(_matrix(array.shape))) if self.transposed else array
        return np.ascontiguousarray(turned).reshape(self.shape)

    @property
    def words(self) -> str:
        """What it does, in words; "" if nothing."""
        return "transposed" if self.transposed else ""


def find_lays(torch: Shape, paddle: Shape, torch_axes: str, paddle_axes: str) -> list[Lay]:
    """Return the ways in which a tensor of one shape can lie in the other, the likeliest first.

    The axes are "oi" (a torch Linear, a convolution), "io" (a Paddle Linear), either with "?" where
    a class of the user's own may do otherwise, or "" where nothing tells (a bare parameter). Empty:
    the tensor does not fit.
    """
    slim, wanted = _slim(torch), _slim(paddle)
    straight = [Lay(False, paddle)] if _is_merged(slim, wanted) else []
    if min(len(slim), len(wanted)) < 2 or not (torch_axes or paddle_axes):
        return straight
    turned = [Lay(True, paddle)] if _is_merged(_matrix(slim)[::-1], wanted) else []
    if not (torch_axes and paddle_axes):
        return straight + turned
    alike = torch_axes[:2] == paddle_axes[:2]
    likely, other = (straight, turned) if alike else (turned, straight)
    return likely + other if "?" in torch_axes + paddle_axes else likely


def _is_merged(first: Shape, second: Shape) -> bool:
    """Tell whether the shapes are equal but for neighbouring axes that one of them has as one.

    So a weight of (in, heads, d) fits one of (in, heads * d), and a LayerNorm's of any shape fits
    Paddle's, which is flat.
    """
    if len(first) < len(second):
        first, second = second, first
    ends = {math.prod(first[:length]) for length in range(len(first) + 1)}
    return math.prod(first) == math.prod(second) and all(
        math.prod(second[:length]) in ends for length in range(len(second))
    )


def _slim(shape: Shape) -> Shape:
    """Return the shape without axes of length 1, so that a 1x1 convolution fits a Linear."""
    return tuple(length for length in shape if length != 1)


def _matrix(shape: Shape) -> Shape:
    """Return the shape with all axes but the first as one, so that a kernel fits a Linear."""
    slim = _slim(shape) or (1,)
    return slim[0], math.prod(slim[1:])


def cut(array: Array, sizes: Sequence[int], groups: int = 1) -> list[Array]:
    """Return the array cut along its first axis into parts of these lengths.

    groups: the rows fall into so many, and each holds its share of every part in order, as where
    q, k and v are stored head by head: row (group, part, ...) of the array, (part, group, ...) after.
    """
    grouped = array.reshape(groups, -1, *array.shape[1:])
    ends = np.cumsum([size // groups for size in sizes])[:-1]
    parts = np.split(grouped, ends, axis=1)
    return [np.ascontiguousarray(part).reshape(-1, *array.shape[1:]) for part in parts]


def join(parts: Sequence[Array], groups: int = 1) -> Array:
    """Return what `cut` makes these parts of."""
    grouped = [part.reshape(groups, -1, *part.shape[1:]) for part in parts]
    return np.concatenate(grouped, axis=1).reshape(-1, *parts[0].shape[1:])
