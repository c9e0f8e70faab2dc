"""Derives further batches from the one that is given, as far as the reference accepts them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from reprod_align.alignment.batches.axes import (
    Arrays,
    Axes,
    Key,
    find_batch,
    find_sequences,
    resize,
    take_rows,
)
from reprod_align.alignment.batches.values import (
    change_integers,
    change_masks,
    keep,
    mirror,
    nudge,
    shuffle,
)
from reprod_align.model.side import Inputs
from reprod_align.model.trace import Array

import numpy as np

_FEW = 2  # examples in a further batch: enough to tell a batch from one example, and cheap
_LENGTHS = 4  # lengths that are tried, of sequences and of what turns out to be none
_GROWN = 2  # times the given elements: a longer batch has at most so many
_AXES = (1, 0)  # along which whole numbers are moved: 0 if those of axis 1 have ranges of their own
ONE_EXAMPLE = "the first example alone"


@dataclass(frozen=True)
class Batch:
    """Inputs, and in which call and state both models are given them."""

    words: str
    """what is different: "with length 4 in place of 8" """
    inputs: Inputs
    note: str = ""
    """that not all examples are in it, in words"""
    before: tuple[Inputs, ...] = ()
    """of the calls that come first"""
    graded: bool = True
    """False: under no_grad"""
    other_dtype: bool = False
    """whether it holds integers of another dtype, for which the port may lack a kernel"""


Accepts = Callable[[Batch], bool]
"""whether the reference runs on a batch"""


Change = Callable[[Arrays, frozenset[Key], int], dict[Key, Array]]
"""of values along an axis, for which the examples must be known"""


@dataclass(frozen=True)
class Given:
    """Inputs by name or position, and which of them have the batch as their axis 0."""

    arrays: Arrays
    batch: frozenset[Key]
    named: bool
    note: str = ""
    """that they are not all examples, in words"""

    @property
    def count(self) -> int:
        """The number of examples; 0 if no axis is the batch."""
        return max((len(self.arrays[key]) for key in self.batch), default=0)

    def take(self, count: int) -> "Given":
        """Return the first `count` examples."""
        note = f" (the first {count} examples)" if count < self.count else ""
        return replace(self, arrays=take_rows(self.arrays, self.batch, count), note=note)

    def pack(self) -> Inputs:
        """Return them as they were given."""
        if self.named:
            return {str(key): array for key, array in self.arrays.items()}
        return tuple(self.arrays.values())

    def make(self, words: str, arrays: Arrays | None = None) -> Batch:
        """Return the batch of these arrays."""
        chosen = self if arrays is None else replace(self, arrays=arrays)
        return Batch(words, chosen.pack(), self.note)


def derive_batches(inputs: Inputs, accepts: Accepts) -> Iterator[Batch]:
    """Yield further batches that the reference accepts."""
    named = isinstance(inputs, Mapping)
    arrays: dict[Key, Array] = {}
    arrays.update(inputs if isinstance(inputs, Mapping) else enumerate(inputs))
    given = Given(arrays, find_batch(arrays), named)
    few, other_counts = _change_count(given, accepts)
    yield from other_counts
    lengths = list(_change_lengths(few, _count_elements(arrays), accepts))
    yield from (batch for pair in lengths for batch in pair)
    moved = _first(_change_values(few, "moved", (mirror, nudge)), accepts)
    yield from moved
    yield from _first(_change_values(few, "rearranged", (shuffle,)), accepts)
    masked = change_masks(few.arrays)
    if masked is not None:
        yield from _first([few.make("with another mask", masked)], accepts)
    yield from _first(_change_dtype(few), accepts)
    yield from _first(_repeat(few, moved), accepts)
    for shorter, *longer in lengths:
        yield from _first([_follow(shorter, longer[0] if longer else few.make(""))], accepts)
    yield from _first([replace(few.make("under no_grad"), graded=False)], accepts)


def _first(batches: Iterable[Batch], accepts: Accepts) -> list[Batch]:
    """Return the first batch that the reference accepts, in a list; [] if it accepts none."""
    return next(([batch] for batch in batches if accepts(batch)), [])


def _change_count(given: Given, accepts: Accepts) -> tuple[Given, list[Batch]]:
    """Return a few examples, which will do from then on, and a batch of one; of two if one is given."""
    if not given.count:
        return given, []
    if given.count == 1:
        twos = (_add(given.arrays, given.batch, change) for change in (mirror, keep))
        return given, _first((given.make("with a second example", two) for two in twos), accepts)
    alone = replace(given.take(1), note="")
    found = _first([alone.make(f"with {ONE_EXAMPLE}")], accepts)
    return (given.take(min(given.count, _FEW)) if found else given), found


def _add(arrays: Arrays, batch: frozenset[Key], change: Change) -> dict[Key, Array]:
    """Return the one example, and behind it what the change makes of it."""
    changed = change(arrays, batch, 1)
    return {
        key: np.concatenate([array, changed[key]]) if key in batch else array
        for key, array in arrays.items()
    }


def _change_lengths(few: Given, most: int, accepts: Accepts) -> Iterator[list[Batch]]:
    """Yield batches with a sequence cut, each with one that is longer; most: elements that were given."""
    found: set[int] = set()
    sequences = list(find_sequences(few.arrays, few.batch))
    lengths = list(dict.fromkeys(length for length, _ in sequences))[:_LENGTHS]
    for length, axes in sequences:
        if length in found or length not in lengths:
            continue
        half = (length + 1) // 2 if length > 2 else 1
        words = _name_length(half, length)
        cut = (few.make(words, resize(few.arrays, axes, half, last)) for last in (0, 1))
        shorter = _first(cut, accepts)
        if shorter:
            found.add(length)
            yield [*shorter, *_first(_make_longer(few, axes, length, most), accepts)]


def _make_longer(few: Given, axes: Axes, length: int, most: int) -> Iterator[Batch]:
    """Yield batches with a longer sequence, the longest first, that are small enough to be cheap."""
    counts = (few, few.take(1)) if few.count > 1 else (few,)
    for longer, chosen in product((2 * length, length + (length + 1) // 2, length + 1), counts):
        arrays = resize(chosen.arrays, axes, longer)
        if _count_elements(arrays) <= _GROWN * most:
            yield chosen.make(_name_length(longer, length), arrays)


def _count_elements(arrays: Arrays) -> int:
    return sum(array.size for array in arrays.values())


def _name_length(wanted: int, length: int) -> str:
    return f"with length {wanted} in place of {length}"


def _repeat(few: Given, moved: list[Batch]) -> Iterator[Batch]:
    """Yield second calls: on what was moved, else on the same."""
    same = few.make("in a second call")
    for inputs in [*(batch.inputs for batch in moved), same.inputs]:
        yield replace(same, inputs=inputs, before=(same.inputs,))


def _follow(shorter: Batch, batch: Batch) -> Batch:
    """Return the batch as a second call, after the one with a shorter sequence."""
    words = f"in a second call, after one {shorter.words}"
    return replace(batch, words=words, before=(shorter.inputs,))


def _change_values(few: Given, word: str, changes: Iterable[Change]) -> Iterator[Batch]:
    """Yield batches of other values, those that differ most first."""
    for change, axis in product(changes, _AXES):
        made = change(few.arrays, few.batch, axis)
        if any(not np.array_equal(array, made[key]) for key, array in few.arrays.items()):
            yield few.make(f"with the inputs {word}", made)


def _change_dtype(few: Given) -> Iterator[Batch]:
    """Yield a batch with integers of another dtype."""
    found = change_integers(few.arrays)
    if found is not None:
        words, made = found
        yield replace(few.make(f"with {words}", made), other_dtype=True)
