"""What a model did: the inputs, outputs and gradients of every module call. Knows numpy only.

Every array is a copy that nothing writes to, so that one array may stand for several tensors. The tensors
of one call are its leaves; `pair_leaves` pairs what the reference takes and gives with what the port does.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, overload

from reprod_align.base.blocks import Array
from reprod_align.base.difference import RELATIVE_TOLERANCE, gap
from reprod_align.base.text import last_part
from reprod_align.model.source import Operation
from reprod_align.traces import recorder

import numpy as np

__all__ = ["Call", "Leaf", "Trace"]
_SUMMED = 4096  # words of eight bytes that one sum stands for


@dataclass
class Leaf:
    """One tensor that went into a module or came out of it."""

    array: Array
    differentiable: bool
    """whether a gradient can flow through it"""
    gradient: Array | None = None
    """of the loss; of an input, this call's share of it alone; None if none arrived"""


Call = recorder.ModuleCall[Leaf]
"""One call of one module, with its tensors by their paths"""


@dataclass
class Trace:
    """One forward pass, and the backward pass if there was one."""

    calls: list[Call] = field(default_factory=list)
    """in the order in which they began"""
    loss: float | None = None
    gradients: dict[str, Array] = field(default_factory=dict)
    """of the parameters, by name, in the framework's own layout; those that got one"""
    buffers: dict[str, Array] = field(default_factory=dict)
    """after the pass"""
    drawn: dict[Any, Any] = field(default_factory=dict)
    """the random draws: place and number -> shape"""
    values: dict[str, Array | None] = field(default_factory=dict)
    """of the model's own outputs, those that are no tensors and can be compared: numbers, texts, None"""
    objects: dict[str, str] = field(default_factory=dict)
    """the others, each with its class"""
    input_gradients: dict[str, Array | None] | None = None
    """of the float inputs, by name or number, None where none arrived; None: they were not asked for"""
    generators: dict[str, float] = field(default_factory=dict)
    """of the generators outside the framework, those that were drawn from, with their next number"""
    changed: dict[str, Array | None] = field(default_factory=dict)
    """the attributes, neither parameters nor buffers, that the calls so far have changed, as
    "module.attribute"; those of numbers with their numbers"""
    operations: list[Operation] = field(default_factory=list)
    """what the user's code called in the modules that were wanted"""
    graph: str | None = None
    """a digest of the backward pass without its dropout, equal only for equal passes; None: not known"""
    deferred: bool = False
    """whether the backward pass was left out, since a run in the other mode may do all that it would"""

    @property
    def outputs(self) -> Mapping[str, Leaf]:
        """The model's own outputs."""
        return self.calls[0].outputs if self.calls else {}

    @property
    def holds_inputs(self) -> bool:
        """Whether what the modules were given was kept."""
        return any(call.inputs for call in self.calls)

    def digest(self, whole: bool = True) -> str:
        """Return a digest of the outputs, gradients and buffers: equal for runs that agree bit by bit.

        whole: False: a digest of the outputs alone, which takes much less time.
        """
        made = hashlib.blake2b(digest_size=16)
        outputs = {name: leaf.array for name, leaf in self.outputs.items()}
        for arrays in (outputs, self.gradients, self.buffers) if whole else (outputs,):
            for name, array in arrays.items():
                made.update(f"{name} {array.dtype} {array.shape}\0".encode())
                made.update(_sum_words(array))
        return made.hexdigest()

    def by_key(self) -> dict[tuple[str, int], Call]:
        """Return the calls by module and index."""
        return {call.key: call for call in self.calls}

    def counts(self) -> Counter[str]:
        """Return how often each module was called."""
        return Counter(call.path for call in self.calls)

    def calls_by_end(self) -> Iterator[Call]:
        """Yield the calls in the order in which they ended: children before their parents."""
        done = [call for call in self.calls if call.finished >= 0]
        yield from sorted(done, key=lambda call: call.finished)

    def parent_path(self, call: Call) -> str:
        """Return the module in whose forward code the call stands; "" for the model's own."""
        return "" if call.parent is None else self.calls[call.parent].path


def _sum_words(array: Array) -> bytes:
    """Return sums of the array's bits, and what is too short for one: reading is most of the work."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = data.size // (8 * _SUMMED) * (8 * _SUMMED)
    sums: Array = data[:whole].view(np.uint64).reshape(-1, _SUMMED).sum(axis=1)
    left: Array = data[whole:]
    return sums.tobytes() + left.tobytes()


_NEAR = 1e-5  # relative: nearer than any two different tensors, with float32 inside too
_MASK_VALUES = 3  # shown, hidden, and halfway
HIDDEN = 1e3
"""what is added to a score to hide it is below minus this: nothing is left of its exponential"""
PASSED_ON = 10.0
"""a difference between outputs that agree may be so many times as large in the gradients"""


@dataclass(frozen=True)
class LeafPair:
    """A leaf of the reference's call and the leaf of the port's that stands for it."""

    expected: str
    actual: str
    axes: tuple[int, ...] | None
    """transposes the reference's array into the port's layout; None if they are laid out alike"""
    shape: tuple[int, ...] | None = None
    """the port's, where axes are merged, cut or dropped there; None if they are not"""
    split: tuple[int, ...] | None = None
    """the shape that the reference's array takes first, where the port has cut an axis: into heads"""

    @overload
    def to_port(self, array: Array) -> Array: ...
    @overload
    def to_port(self, array: None) -> None: ...
    def to_port(self, array: Array | None) -> Array | None:
        """Return the reference's array in the port's layout, None for None."""
        if array is None:
            return None
        cut = array if self.split is None else array.reshape(self.split)
        turned = cut if self.axes is None else cut.transpose(self.axes)
        return turned if self.shape is None else turned.reshape(self.shape)


def pair_leaves(
    expected: Mapping[str, Leaf],
    actual: Mapping[str, Leaf],
    alike: bool = False,
    inside: bool = False,
) -> list[LeafPair]:
    """Pair the leaves of two calls: those of equal value first, then by name, shape and order.

    alike: the two take and give the same things in the same order, so that order decides. inside:
    the leaves are not outputs of the models, so that either side may have merged axes.
    """
    pairs: dict[str, LeafPair] = {}
    free = list(actual)
    for limit in (np.inf,) if alike else (RELATIVE_TOLERANCE, _NEAR, np.inf):
        for path, leaf in expected.items():
            if path in pairs or (limit < np.inf and not leaf.differentiable):
                continue
            found = _find_partner(path, leaf, {at: actual[at] for at in free}, limit, inside)
            if found is not None:
                pairs[path] = found
                free.remove(found.actual)
    return [pairs[path] for path in expected if path in pairs]


def sum_gradients(
    expected: Mapping[str, Leaf], pairs: Sequence[LeafPair]
) -> dict[str, Array | None]:
    """Return the gradient of each paired leaf, with that of unpaired leaves of the same value.

    One side may take a tensor three times, as query, key and value, where the other takes it once.
    """
    paired = {pair.expected for pair in pairs}
    sums = {path: expected[path].gradient for path in paired}
    for path, leaf in expected.items():
        if path in paired or leaf.gradient is None:
            continue
        for other in paired:
            if np.array_equal(expected[other].array, leaf.array):
                so_far = sums[other]
                sums[other] = leaf.gradient if so_far is None else so_far + leaf.gradient
                break
    return sums


def find_container(at: str) -> str:
    """Return the list that an output is an element of: "hidden" of "hidden[2]"; "" for no list."""
    return at.rpartition("[")[0] if at.endswith("]") else ""


def find_unpaired(
    expected: Mapping[str, Leaf], actual: Mapping[str, Leaf], pairs: Sequence[LeafPair]
) -> tuple[str, str] | None:
    """Return the first float leaf on each side that found no partner for its shape, if both have one."""
    ours, theirs = {pair.expected for pair in pairs}, {pair.actual for pair in pairs}
    left = [path for path, leaf in expected.items() if path not in ours and leaf.differentiable]
    over = [
        path for path, leaf in actual.items() if path not in theirs and leaf.array.dtype.kind == "f"
    ]
    return (left[0], over[0]) if left and over else None


def hide_same_places(expected: Array, actual: Array) -> bool:
    """Tell whether two masks hide the same places, whatever each writes for shown and hidden."""
    if expected.size != actual.size:
        return False
    ours, theirs = (np.unique(mask.ravel(), return_inverse=True) for mask in (expected, actual))
    if len(ours[0]) > 2 or len(ours[0]) != len(theirs[0]):
        return False
    same = ours[1] == theirs[1]
    return bool(same.all() or (len(ours[0]) == 2 and not same.any()))


def is_mask(array: Array) -> bool:
    """Tell whether an array is a mask or holds indices, rather than numbers to compute with."""
    return array.dtype.kind != "f" or len(np.unique(array)) <= _MASK_VALUES


def carries_mask(array: Array) -> bool:
    """Tell whether an array is a mask or index, or has a mask added to it."""
    return is_mask(array) or bool((array <= -HIDDEN).any())


def equal_in_effect(expected: Array, actual: Array) -> bool:
    """Tell whether two masks that are added to scores hide the same: -1e4 does what -inf does."""
    if expected.shape != actual.shape or {expected.dtype.kind, actual.dtype.kind} != {"f"}:
        return False
    hidden = expected <= -HIDDEN
    if (hidden != (actual <= -HIDDEN)).any():
        return False
    return gap(np.where(hidden, 0.0, expected), np.where(hidden, 0.0, actual)).ok


def hide_different_places(expected: Array, actual: Array) -> bool:
    """Tell whether two masks, which may differ in axes of length 1, hide different places."""
    kinds = len(np.unique(expected)), len(np.unique(actual))
    if max(kinds) != 2:
        return False
    if expected.squeeze().shape == actual.squeeze().shape:
        return not hide_same_places(expected, actual)
    if expected.ndim != actual.ndim:  # which axis is which, their lengths don't tell
        return False
    try:
        return not hide_same_places(*np.broadcast_arrays(expected, actual))
    except ValueError:
        return False


def _find_partner(
    path: str, leaf: Leaf, free: Mapping[str, Leaf], limit: float, inside: bool
) -> LeafPair | None:
    """Return the pair with the first free leaf that fits, those of the same name first.

    limit: how near the values must be, relative; inf: shapes decide.
    """
    named = sorted(free, key=lambda at: last_part(at) != last_part(path))
    for at in named:
        axes = _find_axes(leaf.array, free[at].array)
        if axes is not None and _is_near(leaf.array.transpose(axes), free[at].array, limit):
            return LeafPair(path, at, None if axes == tuple(range(len(axes))) else axes)
    if not inside:
        return None
    for at in named:
        other = free[at].array
        if not _may_merge(leaf.array, other):
            continue
        if limit == np.inf and leaf.differentiable and _share_ends(leaf.array, other):
            return LeafPair(path, at, None, other.shape)
        if limit < np.inf and (pair := _reshape(path, leaf.array, at, other, limit)):
            return pair
    return None


def _may_merge(expected: Array, actual: Array) -> bool:
    """Tell whether two arrays hold as much in another number of axes longer than 1."""
    alike = _find_kind(expected) == _find_kind(actual) and expected.size == actual.size
    return alike and _count_axes(expected) != _count_axes(actual)


def _count_axes(array: Array) -> int:
    return sum(size > 1 for size in array.shape)


def _share_ends(expected: Array, actual: Array) -> bool:
    """Tell whether two arrays can differ by merged inner axes: (n, h, w, c) and (n, hw, c)."""
    ours, theirs = expected.shape, actual.shape
    return (ours[0], ours[-1]) == (theirs[0], theirs[-1]) and min(len(ours), len(theirs)) > 1


def _reshape(path: str, ours: Array, at: str, theirs: Array, limit: float) -> LeafPair | None:
    """Return the pair of leaves that hold the same in another number of axes.

    As (n, h, w, c) and (n, hw, c), or (n, l, hd) and, cut into heads, (n, h, l, d).
    """
    if not _is_near(np.sort(ours, None), np.sort(theirs, None), limit):
        return None
    merges = _count_axes(ours) > _count_axes(theirs)
    for order in permutations(range(ours.ndim if merges else theirs.ndim)):
        pair = LeafPair(path, at, order, theirs.shape)
        if not merges:
            cut = tuple(theirs.shape[axis] for axis in order)
            pair = LeafPair(path, at, tuple(int(axis) for axis in np.argsort(order)), split=cut)
        if _is_near(pair.to_port(ours), theirs, limit):
            return pair
    return None


def _find_axes(expected: Array, actual: Array) -> tuple[int, ...] | None:
    """Return the axes that lay `expected` out like `actual`, None if it is another kind or size."""
    if _find_kind(expected) != _find_kind(actual) or sorted(expected.shape) != sorted(actual.shape):
        return None
    straight = tuple(range(expected.ndim))
    if expected.shape == actual.shape:
        return straight
    fitting = [axes for axes in permutations(straight)
               if tuple(expected.shape[axis] for axis in axes) == actual.shape]  # fmt: skip
    equal = (axes for axes in fitting if gap(expected.transpose(axes), actual).ok)
    return next(equal, fitting[0])


def _find_kind(array: Array) -> str:
    return "i" if array.dtype.kind in "iu" else array.dtype.kind


def _is_near(expected: Array, actual: Array, limit: float) -> bool:
    return limit == np.inf or gap(expected, actual, relative=limit).ok
