"""How tensors of one framework become those of the other, both ways and bit for bit.

A rule holds no shapes where it needs none, so that a map made with a small model of an architecture fits
a large one. Where the result hangs on shapes (parts of different lengths, heads, merged axes), the
rule keeps them, and another shape is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from reprod_align.base.large.transpose import transpose
from reprod_align.errors import WeightsError
from reprod_align.model.layout import cut, join
from reprod_align.model.tensor_pair import TensorPair
from reprod_align.weights.stored import Array

import numpy as np

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Rule:
    """Tensors that hold the same numbers; mostly one on each side.

    One side may be empty: PyTorch's counter of batches has no counterpart, and buffers that a model
    computes may stand on one side alone.
    """

    torch: tuple[str, ...]
    paddle: tuple[str, ...]
    transposed: tuple[bool, ...] = ()
    """one per Paddle tensor: whether it lies there as (in, out)"""
    parts: tuple[int, ...] = ()
    """lengths, or shares, of the parts along the outputs, if a tensor is cut or joined"""
    turned: bool = False
    """PyTorch's tensors are (in, out) and are cut or joined by outputs"""
    groups: int = 1
    """into how many groups the whole's rows fall, each with its share of every part: head by head"""
    torch_shapes: tuple[Shape, ...] = ()
    """of PyTorch's tensors, where the result hangs on them; () otherwise"""
    paddle_shapes: tuple[Shape, ...] = ()
    value: int | None = None
    """of a counter that one side lacks: what it was, so that the way back has it"""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of both sides."""
        return *self.torch, *self.paddle

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

    def make(self, arrays: Sequence[Array], to: str) -> list[Array]:
        """Return what the tensors of the framework `to` hold, given the other's."""
        return self.to_paddle(arrays) if to == "paddle" else self.to_torch(arrays)

    def to_paddle(self, arrays: Sequence[Array]) -> list[Array]:
        """Return what Paddle's tensors hold, given PyTorch's. Raises WeightsError if they don't fit."""
        self._check(arrays, self.torch, self.torch_shapes)
        whole = self._join([_turn(array, self.turned) for array in arrays])
        parts = self._cut(whole, len(self.paddle))
        shapes = self.paddle_shapes or (None,) * len(parts)
        return [
            _lay(part, turned, shape)
            for part, turned, shape in zip(parts, self.transposed, shapes, strict=True)
        ]

    def to_torch(self, arrays: Sequence[Array]) -> list[Array]:
        """Return what PyTorch's tensors hold, given Paddle's: the inverse, bit for bit."""
        self._check(arrays, self.paddle, self.paddle_shapes)
        shapes = self._inner_shapes()
        straight = [
            _unlay(array, turned, shape, bool(self.parts))
            for array, turned, shape in zip(arrays, self.transposed, shapes, strict=True)
        ]
        parts = self._cut(self._join(straight), len(self.torch))
        return [transpose(part) if self.turned else part for part in parts]

    def _inner_shapes(self) -> tuple[Shape | None, ...]:
        """Return the shapes, outputs first, of what lies behind each Paddle tensor."""
        if not self.torch_shapes:
            return (None,) * len(self.paddle)
        first = self.torch_shapes[0][::-1] if self.turned else self.torch_shapes[0]
        if not self.parts:
            return (first,)
        lengths = self.parts if len(self.paddle) > 1 else (sum(self.parts),)
        return tuple((length, *first[1:]) for length in lengths)

    def _join(self, arrays: Sequence[Array]) -> Array:
        if len({array.dtype for array in arrays}) > 1:
            kinds = ", ".join(str(array.dtype) for array in arrays)
            raise WeightsError(f"{self.name}: parts of one tensor have different dtypes: {kinds}")
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

    @property
    def name(self) -> str:
        """What to call it."""
        return " + ".join(self.torch or self.paddle)


def make_rule(
    pair: TensorPair, torch_shapes: Sequence[Shape], paddle_shapes: Sequence[Shape]
) -> Rule:
    """Return the rule of a pair of tensors with these shapes."""
    transposed = tuple(lay.transposed for lay in pair.lay)
    shapes = tuple(torch_shapes), tuple(paddle_shapes)
    if _hangs_on_shapes(pair, *shapes):
        parts, kept = tuple(pair.sizes), shapes
    else:
        parts, kept = (1,) * len(pair.sizes), ((), ())
    return Rule(pair.torch, pair.paddle, transposed, parts, pair.turned, pair.groups, *kept)


def _hangs_on_shapes(pair: TensorPair, ours: Sequence[Shape], theirs: Sequence[Shape]) -> bool:
    if pair.groups > 1 or len(set(pair.sizes)) > 1:
        return True
    if any(lay.transposed for lay in pair.lay):
        return any(len(shape) != 2 for shape in (*ours, *theirs))
    return not pair.sizes and tuple(ours) != tuple(theirs)


def _turn(array: Array, turned: bool) -> Array:
    return array.T if turned else array


def _lay(array: Array, turned: bool, shape: Shape | None) -> Array:
    """Return the array as Paddle keeps it; a transposed matrix is a view, laid when it is written."""
    if shape is None:
        return array.T if turned else array
    laid = transpose(_as_matrix(array)) if turned else np.ascontiguousarray(array)
    return laid.reshape(shape)


def _unlay(array: Array, turned: bool, shape: Shape | None, is_part: bool) -> Array:
    """Return what `_lay` was given; shape: its own, None where a matrix was."""
    if not turned:
        return array if shape is None else array.reshape(shape)
    if shape is None:
        return transpose(array) if is_part else array.T
    return transpose(array.reshape(prod(_matrix(shape)[1:]), -1)).reshape(shape)


def _as_matrix(array: Array) -> Array:
    return array if array.ndim == 2 else array.reshape(_matrix(array.shape))


def _matrix(shape: Shape) -> Shape:
    """Return the shape with all axes but the first longer one as one."""
    slim = tuple(length for length in shape if length != 1) or (1,)
    return slim[0], prod(slim[1:])


def find_shapes(rule: Rule, shapes: Sequence[Shape], to: str) -> list[Shape]:
    """Return the shapes that the rule makes of these. Raises WeightsError if they don't fit."""
    empty = [np.empty(shape, "V0") for shape in shapes]  # elements of no bytes
    try:
        made = rule.make(empty, to)
    except ValueError as error:  # numpy's
        found = " + ".join(map(str, shapes))
        raise WeightsError(f"{rule.name}: the map's rule does not fit {found}") from error
    return [array.shape for array in made]
