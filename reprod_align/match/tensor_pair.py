"""Which tensors of two models hold the same numbers, and how the one becomes the other.

`paddle.nn.Linear` keeps (in, out) where PyTorch keeps (out, in); everything else keeps one order.
The kind of the layer decides, never the shape, since a square matrix can't tell; only where a layer
of a known kind meets a bare parameter is there a choice, and then both are candidates.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reprod_align.base.blocks import Array, transpose
from reprod_align.errors import WeightsError
from reprod_align.randomness import Shape

import numpy as np


def find_turns(torch: Shape, paddle: Shape, torch_axes: str, paddle_axes: str) -> list[bool]:
    """Return in which ways a tensor can lie in the other, the likeliest first: transposed (True) or not.

    The axes are "oi" (a torch Linear, a convolution), "io" (a Paddle Linear), either with "?" where
    a class of the user's own may do otherwise, or "" where nothing tells (a bare parameter). Empty:
    the tensor does not fit.
    """
    slim, wanted = _slim(torch), _slim(paddle)
    straight = [False] if _is_merged(slim, wanted) else []
    if min(len(slim), len(wanted)) < 2 or not (torch_axes or paddle_axes):
        return straight
    turned = [True] if _is_merged(matrix_shape(slim)[::-1], wanted) else []
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

    Several on one side: the other side's tensor is cut along its outputs, or joined of theirs. In a map of
    weights one side may be empty: PyTorch's counter of batches has no counterpart, and buffers that a model
    computes may stand on one side alone.
    """

    torch: tuple[str, ...]
    paddle: tuple[str, ...]
    transposed: tuple[bool, ...] = ()
    """one per Paddle tensor: whether it lies there as (in, out)"""
    parts: tuple[int, ...] = ()
    """lengths, or shares, of the parts along the outputs, if a tensor is cut or joined"""
    turned: bool = False
    """PyTorch's tensors are (in, out), as GPT-2's Conv1D keeps them, and are cut or joined by outputs"""
    groups: int = 1
    """into how many groups the whole's rows fall, each with its share of every part: head by head"""
    torch_shapes: tuple[Shape, ...] = ()
    """of PyTorch's tensors; () in a map that holds for models of any size"""
    paddle_shapes: tuple[Shape, ...] = ()
    either_way: bool = False
    """whether the tensor could also lie the other way, where nothing but the numbers can tell"""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of both sides."""
        return *self.torch, *self.paddle

    @property
    def name(self) -> str:
        """What messages call it: PyTorch's names, or Paddle's where PyTorch has none."""
        return " + ".join(self.torch or self.paddle)

    @property
    def is_fused(self) -> bool:
        """Whether one side keeps whole what the other keeps in parts."""
        return bool(self.parts)

    @property
    def is_stack(self) -> bool:
        """Whether PyTorch's tensor has an axis in front, along which the parts lie: a layer's experts."""
        shapes = self.torch_shapes[:1] if len(self.paddle) > 1 else ()
        return any(len(shape) == 3 and sum(self.parts) == shape[0] * shape[1] for shape in shapes)

    @property
    def words(self) -> str:
        """What happens to the numbers."""
        words = ["transposed"] if any(self.transposed) != self.turned else []
        if len(self.paddle) > 1:
            words.append(f"cut into {len(self.paddle)}")
        if len(self.torch) > 1:
            words.append(f"{len(self.torch)} joined")
        if self.groups > 1:
            words.append(f"in {self.groups} groups")
        if self.torch_shapes and not words:
            words.append("reshaped" if self.torch_shapes != self.paddle_shapes else "")
        return ", ".join(filter(None, words)) or "as it is"

    def lay_other_way(self) -> "TensorPair":
        """Return the pair with its tensor transposed where it was straight, and the other way round."""
        return replace(self, transposed=tuple(not turned for turned in self.transposed))

    def drop_shapes(self) -> "TensorPair":
        """Return the pair for models of any size; with its shapes where the numbers depend on them."""
        if self._depends_on_shapes():
            return replace(self, either_way=False)
        shares = (1,) * len(self.parts)
        return replace(self, parts=shares, torch_shapes=(), paddle_shapes=(), either_way=False)

    def _depends_on_shapes(self) -> bool:
        if self.groups > 1 or len(set(self.parts)) > 1 or self.is_stack:
            return True
        if any(self.transposed):
            return any(len(shape) != 2 for shape in (*self.torch_shapes, *self.paddle_shapes))
        return not self.parts and self.torch_shapes != self.paddle_shapes

    def to_paddle(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return what the Paddle tensors hold, given PyTorch's by name; also right for gradients."""
        made = self.make([arrays[name] for name in self.torch], "paddle")
        return dict(zip(self.paddle, made, strict=True))

    def to_torch(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return what the PyTorch tensors hold, given Paddle's by name: undoes `to_paddle`."""
        made = self.make([arrays[name] for name in self.paddle], "torch")
        return dict(zip(self.torch, made, strict=True))

    def make(self, arrays: Sequence[Array], to: str) -> list[Array]:
        """Return what the tensors of the framework `to` hold, given the other's in their order.

        Both ways are exact inverses, bit for bit. Raises WeightsError if the arrays do not fit.
        """
        return self._make_paddle(arrays) if to == "paddle" else self._make_torch(arrays)

    def _make_paddle(self, arrays: Sequence[Array]) -> list[Array]:
        self._check(arrays, self.torch, self.torch_shapes)
        whole = self._join([array.T if self.turned else array for array in arrays])
        if self.is_stack:
            whole = whole.reshape(-1, *whole.shape[2:])
        parts = self._cut(whole, len(self.paddle))
        shapes = self.paddle_shapes or (None,) * len(parts)
        return [
            _lay(part, turned, shape)
            for part, turned, shape in zip(parts, self.transposed, shapes, strict=True)
        ]

    def _make_torch(self, arrays: Sequence[Array]) -> list[Array]:
        self._check(arrays, self.paddle, self.paddle_shapes)
        shapes = self._find_inner_shapes()
        straight = [
            _unlay(array, turned, shape, bool(self.parts))
            for array, turned, shape in zip(arrays, self.transposed, shapes, strict=True)
        ]
        whole = self._join(straight)
        if self.is_stack:
            return [whole.reshape(self.torch_shapes[0])]
        parts = self._cut(whole, len(self.torch))
        return [transpose(part) if self.turned else part for part in parts]

    def _find_inner_shapes(self) -> tuple[Shape | None, ...]:
        """Return the shapes, outputs first, of what lies behind each Paddle tensor."""
        if not self.torch_shapes:
            return (None,) * len(self.paddle)
        first = self.torch_shapes[0][::-1] if self.turned else self.torch_shapes[0]
        if not self.parts:
            return (first,)
        lengths = self.parts if len(self.paddle) > 1 else (sum(self.parts),)
        inner = first[2:] if self.is_stack else first[1:]
        return tuple((length, *inner) for length in lengths)

    def _join(self, arrays: Sequence[Array]) -> Array:
        return arrays[0] if len(arrays) == 1 else join(arrays, self.groups)

    def _cut(self, whole: Array, count: int) -> list[Array]:
        if count == 1:
            return [whole]
        share, rest = divmod(len(whole), sum(self.parts))
        if rest:
            raise WeightsError(
                f"{self.name}: {len(whole)} rows can't be cut into {count} equal parts"
            )
        return cut(whole, [share * length for length in self.parts], self.groups)

    def _check(
        self, arrays: Sequence[Array], names: Sequence[str], shapes: Sequence[Shape]
    ) -> None:
        for array, name, shape in zip(arrays, names, shapes, strict=False):
            if array.shape != shape:
                raise WeightsError(
                    f"{name}: expected the shape {shape}, got {array.shape}: the map holds for models "
                    "of that shape alone"
                )
        if not shapes and any(self.transposed) and any(array.ndim != 2 for array in arrays):
            raise WeightsError(
                f"{self.name}: only a matrix can be transposed, got {arrays[0].shape}"
            )


def _lay(array: Array, turned: bool, shape: Shape | None) -> Array:
    """Return the array as Paddle keeps it; without a shape a view, which becomes dense when written."""
    if shape is None:
        return array.T if turned else array
    if turned:
        array = transpose(array.reshape(matrix_shape(array.shape)))
    return np.ascontiguousarray(array).reshape(shape)


def _unlay(array: Array, turned: bool, shape: Shape | None, is_part: bool) -> Array:
    """Return what `_lay` was given; shape: its own, None where a matrix was."""
    if not turned:
        return array if shape is None else array.reshape(shape)
    if shape is None:
        return transpose(array) if is_part else array.T
    return transpose(array.reshape(math.prod(matrix_shape(shape)[1:]), -1)).reshape(shape)


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
    layouts: list[Mapping[TensorPair, TensorPair]] = field(default_factory=list)
    """other ways in which pairs could be laid out, all pairs of a pattern alike: {pair: instead}"""
    spare: list[TensorPair] = field(default_factory=list)
    """what is left over on both sides, in the order of its definition: its names say nothing"""

    @property
    def is_doubtful(self) -> bool:
        """Whether anything could be paired, or laid out, otherwise."""
        return bool(self.doubts or self.layouts or self.spare)

    def by_torch(self) -> dict[str, TensorPair]:
        """Return the pair of every PyTorch tensor."""
        return {name: pair for pair in self.pairs for name in pair.torch}

    def paired_names(self) -> set[str]:
        """Return the names of the tensors of both sides that have a partner."""
        return {name for pair in self.pairs for name in (*pair.torch, *pair.paddle)}
