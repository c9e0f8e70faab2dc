"""Derives further batches from the one that is given, as far as the reference accepts them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from reprod_align.alignment.batches.axes import (
    Axes,
    InputArrays,
    InputKey,
    change_integers,
    change_masks,
    find_batch,
    find_sequences,
    keep,
    mirror,
    nudge,
    resize,
    shuffle,
    spread,
    take_rows,
)
from reprod_align.base.blocks import Array
from reprod_align.model.side import Inputs, name_inputs

import numpy as np

FEW = 2
"""examples in a further batch: enough to tell a batch from one example, and cheap"""
_TRIED = 4  # lengths, of sequences and of what turns out to be none
_LENGTHS = 2  # of them are changed
_GROWN = 2  # times the given elements: a longer batch has at most so many
_SHORTEST = (4, 2)  # parts of the length that are tried, in turn, where a run takes its time
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
    parts: tuple["Batch", ...] = ()
    """what it combines, which is tried alone where the batch is refused or at fault"""


Accepts = Callable[[Batch], bool]
"""whether the reference runs on a batch"""


Change = Callable[[InputArrays, frozenset[InputKey], int], dict[InputKey, Array]]
"""of values along an axis, which must be known to belong to the examples"""


@dataclass(frozen=True)
class Given:
    """Inputs by name or position, and which of them have the batch as their axis 0."""

    arrays: InputArrays
    batch: frozenset[InputKey]
    named: bool
    note: str = ""
    """that they are not all examples, in words"""

    @property
    def count(self) -> int:
        """The number of examples; 0 if no axis is the batch."""
        return max((len(self.arrays[key]) for key in self.batch), default=0)

    def take(self, count: int) -> "Given":
        """Return the first `count` examples."""
        some = "example" if count == 1 else f"{count} examples"
        note = f" (the first {some})" if count < self.count else ""
        return replace(self, arrays=take_rows(self.arrays, self.batch, count), note=note)

    def pack(self) -> Inputs:
        """Return them as they were given."""
        if self.named:
            return {str(key): array for key, array in self.arrays.items()}
        return tuple(self.arrays.values())

    def make(self, words: str, arrays: InputArrays | None = None) -> Batch:
        """Return the batch of these arrays."""
        chosen = self if arrays is None else replace(self, arrays=arrays)
        return Batch(words, chosen.pack(), self.note)


def derive_batches(inputs: Inputs, accepts: Accepts, examples: int = FEW) -> Iterator[Batch]:
    """Yield further batches that the reference accepts; most hold at most so many examples."""
    given = _read(inputs)
    cut = _cut_one(given, accepts) if examples == 1 else None
    if cut is not None:
        yield from _derive_short(given, cut, accepts)
        return
    few, moved = given.take(1), _move_one(given, accepts) if examples == 1 else []
    if not moved:
        few, other_counts = _change_count(given, accepts, examples)
        yield from other_counts
        moved = _move(few, accepts)
    yield from moved
    yield from _change_all_values(few, moved, accepts)
    yield from _change_lengths(few, _count_elements(given.arrays), accepts)
    yield from _offer(_change_surroundings(few.make("")), accepts)


def _read(inputs: Inputs) -> Given:
    """Return inputs by name or position, as they are given."""
    arrays: dict[InputKey, Array] = {}
    arrays.update(inputs if isinstance(inputs, Mapping) else enumerate(inputs))
    return Given(arrays, find_batch(arrays), isinstance(inputs, Mapping))


def list_others(inputs: Inputs) -> Iterator[Inputs]:
    """Yield the batch with other values and another length, a longer one first; then with other values alone.

    The reference need not run on any of them.
    """
    given = _read(inputs)
    for length, axes in _list_sequences(given):
        longer, shorter = length + (length + 1) // 2, -(-length // 2)
        for wanted in (longer, shorter):
            resized = replace(given, arrays=resize(given.arrays, axes, wanted))
            yield from (
                one.inputs for one in islice(_change_values(resized, "moved", (spread,)), 1)
            )
    yield from (one.inputs for one in _change_values(given, "moved", (spread, mirror)))


@dataclass(frozen=True)
class _Cut:
    """A batch of one example, shorter and with other values; and how it was cut."""

    batch: Batch
    length: int
    """of the sequence as given"""
    axes: Axes
    words: str
    """that the length is another"""
    plain: Given
    """the example, as short, with its own values"""


def _derive_short(given: Given, cut: _Cut, accepts: Accepts) -> Iterator[Batch]:
    """Yield batches of one example, most of them cut: for models whose runs are slow."""
    few, last, most = given.take(1), cut.batch, _count_elements(given.arrays)
    yield cut.batch
    for last in _change_all_values(cut.plain, [cut.batch], accepts):
        yield last
    first = replace(last if last.before else cut.batch, words=cut.words)  # has just been called
    bare = _change_surroundings(cut.plain.make(""))
    longer = islice(_make_longer(few, cut.axes, cut.length, most, little=True), 1)
    both = _find_first((_surround(_follow(one, first), bare) for one in longer), accepts)
    yield from both or _lengthen(few, cut.axes, cut.length, most, first, accepts)
    yield from _change_lengths(few, most, accepts, cut.length)
    if not both:
        yield from _offer(bare, accepts)


def _surround(batch: Batch, bare: Batch) -> Batch:
    """Return a batch with what `bare` changes beside its own changes."""
    both = _change_surroundings(batch)
    return replace(both, words=f"{batch.words}, {bare.words}", parts=(batch, bare))


def _cut_one(given: Given, accepts: Accepts) -> _Cut | None:
    """Return the first batch of one example, cut and moved, that the reference accepts."""
    if given.count < 2:
        return None
    one = replace(given.take(1), note="")
    alone = one.make(f"with {ONE_EXAMPLE}")
    moved = next(_change_values(one, "moved", (spread,)), None)
    if moved is None:
        return None
    for length, axes in _list_sequences(one):
        for words, arrays in _cut(one, length, axes, _SHORTEST):
            plain = replace(given.take(1), arrays=arrays)
            values = next(_change_values(plain, "moved", (spread,)), None)
            if values is not None:
                parts = (alone, moved, one.make(words, arrays))
                named = f"{alone.words}, its inputs moved, {words}"
                both = Batch(named, values.inputs, parts=parts)
                if accepts(both):
                    return _Cut(both, length, axes, words, plain)
    return None


def _offer(batch: Batch, accepts: Accepts) -> Iterator[Batch]:
    """Yield a batch if the reference accepts it, else those of its parts that it accepts."""
    if accepts(batch):
        yield batch
    else:
        for part in batch.parts:
            yield from _offer(part, accepts)


def _find_first(batches: Iterable[Batch], accepts: Accepts) -> list[Batch]:
    """Return the first batch that the reference accepts, in a list; [] if it accepts none."""
    return next(([batch] for batch in batches if accepts(batch)), [])


def _move(few: Given, accepts: Accepts) -> list[Batch]:
    """Return a batch of other values."""
    return _find_first(_change_values(few, "moved", (spread, mirror, nudge)), accepts)


def _move_one(given: Given, accepts: Accepts) -> list[Batch]:
    """Return a batch of one example with other values, taken from several: for models whose runs are slow."""
    one = replace(given.take(1), note="")
    alone = one.make(f"with {ONE_EXAMPLE}")
    both = (
        replace(moved, words=f"{alone.words}, its inputs moved", parts=(alone, moved))
        for moved in _change_values(one, "moved", (spread, mirror, nudge))
    )
    return _find_first(both, accepts) if given.count > 1 else []


def _change_count(given: Given, accepts: Accepts, examples: int) -> tuple[Given, list[Batch]]:
    """Return a few examples, enough for all later batches, and a batch of one; of two if one is given."""
    if not given.count:
        return given, []
    if given.count == 1:
        twos = (_add(given.arrays, given.batch, change) for change in (mirror, keep))
        return given, _find_first(
            (given.make("with a second example", two) for two in twos), accepts
        )
    alone = replace(given.take(1), note="")
    found = _find_first([alone.make(f"with {ONE_EXAMPLE}")], accepts)
    return (given.take(min(given.count, examples)) if found else given), found


def _add(arrays: InputArrays, batch: frozenset[InputKey], change: Change) -> dict[InputKey, Array]:
    """Return the one example, and behind it what the change makes of it."""
    changed = change(arrays, batch, 1)
    return {
        key: np.concatenate([array, changed[key]]) if key in batch else array
        for key, array in arrays.items()
    }


def _change_lengths(few: Given, most: int, accepts: Accepts, known: int = 0) -> Iterator[Batch]:
    """Yield batches with a shorter sequence, each followed by one with a longer sequence.

    most: elements given. known: a length that was changed already.
    """
    found = {known} - {0}
    for length, axes in _list_sequences(few):
        if length in found or len(found) == _LENGTHS:
            continue
        cut = (few.make(*halved) for halved in _cut(few, length, axes))
        for shorter in _find_first(cut, accepts):
            found.add(length)
            yield shorter
            yield from _lengthen(few, axes, length, most, shorter, accepts)


def _list_sequences(few: Given) -> list[tuple[int, Axes]]:
    """Return the first few lengths, with the axes that may be sequences of them."""
    sequences = list(find_sequences(few.arrays, few.batch))
    lengths = list(dict.fromkeys(length for length, _ in sequences))[:_TRIED]
    return [(length, axes) for length, axes in sequences if length in lengths]


def _cut(
    few: Given, length: int, axes: Axes, parts: Sequence[int] = (2,)
) -> Iterator[tuple[str, dict[InputKey, Array]]]:
    """Yield the inputs with a part of the length, its half unless others are asked for, and that in words."""
    for part, last in product(parts, (0, 1)):
        short = -(-length // part) if length > part else 1
        yield _name_length(short, length), resize(few.arrays, axes, short, last)


def _lengthen(
    few: Given, axes: Axes, length: int, most: int, shorter: Batch, accepts: Accepts
) -> Iterator[Batch]:
    """Yield a batch with a longer sequence, as a second call after one that is shorter."""
    longer = list(_make_longer(few, axes, length, most))
    after = _find_first((_follow(one, shorter) for one in longer[:1]), accepts)
    if not after:
        fitting = [*_find_first(longer, accepts), few.make("")]
        after = list(_offer(_follow(fitting[0], shorter), accepts))
    yield from after


def _follow(batch: Batch, first: Batch) -> Batch:
    """Return the batch as a second call after another one; alone it is a part, unless it is as given."""
    words = f"in a {'later' if first.before else 'second'} call, after one {first.words}"
    parts = (batch,) if batch.words else ()
    return replace(batch, words=words, before=(*first.before, first.inputs), parts=parts)


def _make_longer(
    few: Given, axes: Axes, length: int, most: int, little: bool = False
) -> Iterator[Batch]:
    """Yield batches with a longer sequence, the longest first, that are small enough to be cheap.

    little: by one element alone, which already goes beyond what the given batch reaches.
    """
    lengths = (2 * length, length + (length + 1) // 2, length + 1)
    for longer in lengths[-1:] if little else lengths:
        for chosen in (few, few.take(1)) if few.count > 1 else (few,):
            made = [resize(chosen.arrays, axes, longer, follow=follow) for follow in (True, False)]
            if _count_elements(made[0]) <= _GROWN * most:
                told = any(not np.array_equal(made[0][key], made[1][key]) for key in made[0])
                for arrays in made if told else made[:1]:
                    yield chosen.make(_name_length(longer, length), arrays)
                break


def _count_elements(arrays: InputArrays) -> int:
    return sum(array.size for array in arrays.values())


def _name_length(wanted: int, length: int) -> str:
    return f"with length {wanted} in place of {length}"


def _change_all_values(few: Given, moved: Sequence[Batch], accepts: Accepts) -> Iterator[Batch]:
    """Yield batches of other values in a second call, after the one that is moved."""
    same = few.make("in a second call")
    again = replace(same, before=(same.inputs,))
    arrays, parts = (
        shuffle(few.arrays, few.batch, 1),
        [*_change_values(few, "rearranged", (shuffle,))],
    )
    masked = change_masks(few.arrays)
    if masked is not None:
        arrays.update({key: new for key, new in masked.items() if new is not few.arrays[key]})
        parts.append(few.make("with another mask", masked))
    last = few.make("in a second call, on other values", arrays)
    first = moved[0] if moved else same
    yield from _offer(replace(last, before=(first.inputs,), parts=(*parts, again)), accepts)


def _change_values(few: Given, word: str, changes: Iterable[Change]) -> Iterator[Batch]:
    """Yield batches of other values, those that differ most first."""
    for change, axis in product(changes, _AXES):
        made = change(few.arrays, few.batch, axis)
        if any(not np.array_equal(array, made[key]) for key, array in few.arrays.items()):
            yield few.make(f"with the inputs {word}", made)


def _change_surroundings(batch: Batch) -> Batch:
    """Return the batch with integers of another dtype, if it has any, under no_grad."""
    bare = replace(batch, words="under no_grad", graded=False)
    arrays: dict[InputKey, Array] = {}
    arrays.update(name_inputs(batch.inputs))
    found = change_integers(arrays)
    if found is None:
        return bare
    words, made = found
    inputs = Given(made, frozenset(), isinstance(batch.inputs, Mapping)).pack()
    other = replace(batch, words=f"with {words}", inputs=inputs, other_dtype=True)
    return replace(other, words=f"{other.words} under no_grad", graded=False, parts=(other, bare))


def sort_as_given(batch: Batch, inputs: Inputs) -> tuple[Batch, list[str]] | None:
    """Return the batch with inputs in ascending order that ascend in the batch as given, and their names.

    They are whole numbers, such as the graph of each node, or the segment of each row: a port may ask for
    that order. None if the batch has it.
    """
    named = [name for name, array in name_inputs(inputs).items()
             if _ascends(array) and array[0] < array[-1]]  # fmt: skip
    sets = [name_inputs(one) for one in (*batch.before, batch.inputs)]
    unsorted = [name for name in named if not all(_ascends(one[name]) for one in sets)]
    if not unsorted:
        return None
    made = [
        Given(
            {name: np.sort(array) if name in unsorted else array for name, array in one.items()},
            frozenset(),
            isinstance(inputs, Mapping),
        ).pack()
        for one in sets
    ]
    return replace(batch, inputs=made[-1], before=tuple(made[:-1]), parts=()), unsorted


def _ascends(array: Array) -> bool:
    whole = array.ndim == 1 and array.dtype.kind in "iu" and array.size > 0
    return whole and bool((array[1:] >= array[:-1]).all())
