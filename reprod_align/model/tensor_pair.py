"""Which tensors of two models hold the same numbers, and how the one becomes the other.

`paddle.nn.Linear` keeps (in, out) where PyTorch keeps (out, in); everything else keeps one order.
The kind of the layer decides, never the shape, since a square matrix can't tell; only where a layer
of a known kind meets a bare parameter is there a choice, and then both are candidates.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reprod_align.base.blocks import transpose
from reprod_align.model.trace import Array

import numpy as np

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Lay:
    """Turns an array of PyTorch's into Paddle's: transposes it if so, then gives it the shape."""

    transposed: bool
    shape: Shape
    """of the Paddle tensor"""

    def __call__(self, array: Array) -> Array:
        """Return the array as Paddle keeps it."""
        turned = transpose(array.reshape(matrix_shape(array.shape))) if self.transposed else array
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
    turned = [Lay(True, paddle)] if _is_merged(matrix_shape(slim)[::-1], wanted) else []
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


def matrix_shape(shape: Shape) -> Shape:
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


@dataclass(frozen=True)
class TensorPair:
    """Tensors of the two models that hold the same numbers; mostly one on each side.

    Several on the Paddle side: the PyTorch tensor is cut along its first axis, and the other way.
    """

    torch: tuple[str, ...]
    paddle: tuple[str, ...]
    lay: tuple[Lay, ...]
    """one per Paddle tensor: how it lies there"""
    sizes: tuple[int, ...] = ()
    """lengths of the parts along the first axis, if the tensor is cut or joined"""
    turned: bool = False
    """PyTorch's tensors are (in, out), as GPT-2's Conv1D keeps them, and are cut or joined by outputs"""
    groups: int = 1
    """into how many groups the whole's rows fall, each with its share of every part: head by head"""
    choices: tuple[tuple[Lay, ...], ...] = ()
    """other ways it could lie, where nothing but the numbers can tell"""

    @property
    def is_fused(self) -> bool:
        """Whether one side keeps whole what the other keeps in parts."""
        return bool(self.sizes)

    def to_paddle(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return what the Paddle tensors hold, given PyTorch's by name; also right for gradients."""
        ours = [arrays[name].T if self.turned else arrays[name] for name in self.torch]
        if len(self.torch) > 1:
            return {self.paddle[0]: self.lay[0](join(ours, self.groups))}
        parts = cut(ours[0], self.sizes, self.groups) if self.sizes else ours
        return {
            name: lay(part) for name, lay, part in zip(self.paddle, self.lay, parts, strict=True)
        }


@dataclass
class Match:
    """The pairing, and what is left over."""

    pairs: list[TensorPair] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    """modules that hold tensors: PyTorch's name -> Paddle's"""
    modules: Mapping[str, str] = field(default_factory=dict)
    """further modules that are known to stand for each other"""
    torch_left: list[str] = field(default_factory=list)
    paddle_left: list[str] = field(default_factory=list)
    doubts: list[tuple[tuple[str, ...], ...]] = field(default_factory=list)
    """groups of PyTorch owners whose partners could be exchanged, all groups of a pattern alike:
    names and order don't tell"""
    layouts: list[dict[TensorPair, TensorPair]] = field(default_factory=list)
    """other ways in which pairs could be laid out, all pairs of a pattern alike: {pair: instead}"""

    def by_torch(self) -> dict[str, TensorPair]:
        """Return the pair of every PyTorch tensor."""
        return {name: pair for pair in self.pairs for name in pair.torch}

    def paired_names(self) -> set[str]:
        """Return the names of the tensors of both sides that have a partner."""
        return {name for pair in self.pairs for name in (*pair.torch, *pair.paddle)}
