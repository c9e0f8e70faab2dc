"""Traces that the ranks of a parallel run recorded, against one process's trace. Knows numpy only.

How a tensor lies on the ranks is told by its shape there and in the reference. What a rank holds is compared
with what it should hold: a part of the reference's tensor, which is cut out of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError
from reprod_align.match import Shape
from reprod_align.parallel import MOST_PADDING, Mesh, Placement, find_order
from reprod_align.parallel.examine import RankTensor, explain
from reprod_align.traces import RecordedTrace, TraceTensor, load_trace
from reprod_align.traces.diff import (
    Floors,
    Measured,
    TraceDiff,
    compare_traces,
    lay_as_torch,
    measure,
    read_shape,
    read_sketch,
)
from reprod_align.traces.sketch import combine, read_sums

import numpy as np
from numpy.typing import NDArray

_Location = tuple[str, str, int, str]


def load_ranks(folder: Path) -> list[RecordedTrace]:
    """Read the traces in a folder, one of each rank; return them in the order of the ranks.

    Raises ReprodError if a rank's trace is missing or there twice, if a trace is not a rank's, and if the
    ranks run different stages of the model.
    """
    found: dict[int, RecordedTrace] = {}
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        trace = load_trace(path)
        if trace.rank is None:
            raise ReprodError(
                f"{path}: one process recorded it, no rank: record it under fleet.init"
            )
        if trace.rank.others:
            raise ReprodError(
                f"{path}: recorded with {trace.rank.others}: dp, sharding and tp are compared"
            )
        if trace.rank.number in found:
            raise ReprodError(f"{path}: rank {trace.rank.number} stands there twice")
        found[trace.rank.number] = trace
    ranks = [found[number].rank for number in sorted(found)]
    if not ranks or ranks[0] is None:
        raise ReprodError(f"{folder}: no trace of a rank is in it")
    size = ranks[0].dp * ranks[0].tp
    if any(rank is None or (rank.dp, rank.tp) != (ranks[0].dp, ranks[0].tp) for rank in ranks):
        raise ReprodError(f"{folder}: its traces are of runs with other degrees")
    missing = [number for number in range(size) if number not in found]
    if missing:
        raise ReprodError(f"{folder}: the trace of rank {missing[0]} of {size} is missing")
    return [found[number] for number in range(size)]


def compare_ranks(
    expected: RecordedTrace,
    ranks: Sequence[RecordedTrace],
    names: Mapping[str, str] | None = None,
    allow_unpaired: bool = False,
    fused: Mapping[str, Sequence[int]] | None = None,
) -> TraceDiff:
    """Compare what all ranks recorded with one process's trace.

    ranks: as `load_ranks` returns them. fused: the ends of parameters' names -> the sizes of what each holds
    of several, as query, key and value. names, allow_unpaired: as for `compare_traces`.
    Raises ReprodError if the ranks ran different modules, or hold parts of what `expected` keeps a sketch of.
    """
    return compare_traces(
        expected, ranks[0], names, allow_unpaired, _RankTraces(expected, ranks, fused or {}).measure
    )


class _RankTraces:
    """What every rank holds, by its place in the model."""

    def __init__(
        self,
        expected: RecordedTrace,
        ranks: Sequence[RecordedTrace],
        fused: Mapping[str, Sequence[int]],
    ) -> None:
        given, self._fused = ranks[0].rank, fused
        assert given is not None
        self._held: dict[_Location, list[TraceTensor]] = {}
        for trace in ranks:
            for tensor in trace.tensors:
                self._held.setdefault(_place(tensor), []).append(tensor)
        for (phase, module, *_), held in self._held.items():
            if len(held) < len(ranks):
                raise ReprodError(
                    f"the ranks recorded different tensors: {len(ranks) - len(held)} of {len(ranks)} lack "
                    f"the {phase} of {module or 'the model'}"
                )
        self._mesh = Mesh(given.dp, given.tp)
        self._mesh = replace(self._mesh, order=self._find_order(expected))
        self._times: int | None = None

    def _find_order(self, expected: RecordedTrace) -> Array | None:
        """Return in which order the replicas see the examples; None: in the reference's."""
        first = {one.leaf: one for one in expected.tensors if _place(one)[:3] == ("input", "", 0)}
        held = [self._held.get(_place(one), []) for one in first.values()]
        if self._mesh.dp == 1 or not first or not all(len(one) == self._mesh.size for one in held):
            return None
        parts = dict(zip(first, held, strict=True))
        if not all(one.whole for one in [*first.values(), *(p for ps in held for p in ps)]):
            return None
        seen = [{leaf: lay_as_torch(parts[leaf][rank]) for leaf in first}
                for rank in range(0, self._mesh.size, self._mesh.tp)]  # fmt: skip
        try:
            return find_order({leaf: lay_as_torch(one) for leaf, one in first.items()}, seen)
        except ReprodError:  # the inputs themselves are found to differ
            return None

    def measure(self, expected: TraceTensor, first: TraceTensor, floors: Floors) -> Measured:
        """Compare what each rank holds with its part of a tensor; return the rank that is furthest off."""
        parts = self._held[_place(first)]
        failed: tuple[Measured, Placement, list[TraceTensor]] | None = None
        for placement, axes in self._guess(expected, parts):
            # a replica's own gradient is larger: its loss is the mean of fewer examples
            is_own = expected.phase == "gradient" and isinstance(placement.dp, int)
            larger = (self._mesh.dp, 1) if self._times is None else (self._times,)
            for times in larger if is_own else (1,):
                wanted = [
                    self._cut(expected, placement, axes, rank, times)
                    for rank in range(self._mesh.size)
                ]
                if placement.length and expected.phase != "parameter gradient":
                    return self._measure_padded(wanted, parts, placement, floors)
                found = _measure_each(wanted, parts, floors)
                if found.passed:
                    if is_own:
                        self._times = times
                    return found
                means = self._average(expected, placement, parts)
                if means and (mean := _measure_each(wanted, means, floors)).passed:
                    return mean
                failed = failed or (found, placement, wanted)
        if failed is None:
            held = " and ".join(str(shape) for shape in dict.fromkeys(map(read_shape, parts)))
            words = f"shape {read_shape(expected)} expected, the ranks hold {held}"
            return Measured(np.inf, 0.0, False, False, words)
        found, placement, wanted = failed
        numbers = _read(parts, wanted), _read(wanted, parts)
        why = explain(RankTensor(*numbers, placement, self._mesh, found.limit or 1e-9))
        return found if why is None else replace(found, words=why.text)

    def _measure_padded(
        self,
        wanted: Sequence[TraceTensor],
        parts: Sequence[TraceTensor],
        placement: Placement,
        floors: Floors,
    ) -> Measured:
        """Compare without the padding of the vocabulary, which may hold anything."""
        if not all(part.whole for part in parts):
            return Measured(
                0.0, 0.0, True, True, "not compared: a sketch of it holds its padding too"
            )
        assert placement.tp is not None and placement.length is not None
        found = []
        for rank, pair in enumerate(zip(wanted, parts, strict=True)):
            size = read_shape(pair[0])[placement.tp]
            left = placement.length - self._mesh.coordinates(rank)[1] * size
            found.append([_take(one, placement.tp, min(max(left, 0), size)) for one in pair])
        ours, theirs = zip(*found, strict=True)
        return _measure_each(ours, theirs, floors)

    def _average(
        self, expected: TraceTensor, placement: Placement, parts: Sequence[TraceTensor]
    ) -> list[TraceTensor] | None:
        """Return the replicas' mean, where each has its own: of a loss, and of what all examples share."""
        is_own = expected.phase == "gradient" or (
            expected.phase in ("input", "output") and not read_shape(expected)
        )
        if self._mesh.dp == 1 or placement.dp is not None or not is_own:
            return None
        groups = [self._mesh.peers(rank, "dp") for rank in range(self._mesh.size)]
        return [_average([parts[rank] for rank in group]) for group in groups]

    def _guess(
        self, expected: TraceTensor, parts: Sequence[TraceTensor]
    ) -> Iterator[tuple[Placement, Sequence[int]]]:
        """Yield how a tensor may lie on the ranks, and in which order its axes do."""
        local, whole = read_shape(parts[0]), read_shape(expected)
        if len(local) != len(whole) or any(read_shape(part) != local for part in parts):
            return
        axes = [*range(len(whole))]
        # sequence parallel exchanges the first two
        orders = [axes, [1, 0, *axes[2:]]] if len(axes) > 2 else [axes]
        for padding, order in product((0, MOST_PADDING), orders):
            turned = tuple(whole[axis] for axis in order)
            for placement in self._fit(local, turned, padding):
                pieces = self._find_pieces(expected, placement, turned)
                yield replace(placement, pieces=pieces), order

    def _fit(self, local: Shape, whole: Shape, padding: int) -> Iterator[Placement]:
        axes: list[int | None] = [*range(len(whole))]
        for dp, tp in product(
            [None, *axes] if self._mesh.dp > 1 else [None],
            [None, *reversed(axes)] if self._mesh.tp > 1 else [None],
        ):
            placement = Placement(dp, tp)
            sizes = placement.enlarge(local, self._mesh)
            if not padding and sizes == whole:
                yield placement
            elif padding and tp is not None and 0 < sizes[tp] - whole[tp] < padding:
                if sizes[:tp] + sizes[tp + 1 :] == whole[:tp] + whole[tp + 1 :]:
                    yield replace(placement, length=whole[tp], padded=sizes[tp])

    def _find_pieces(
        self, expected: TraceTensor, placement: Placement, whole: Shape
    ) -> tuple[int, ...]:
        for end, pieces in self._fused.items():
            owner = end.rpartition(".")[0]
            is_it = (
                expected.name.endswith(end)
                if expected.phase in ("parameter gradient", "buffer")
                else bool(owner) and expected.module.endswith(owner)
            )
            if is_it and placement.tp is not None and sum(pieces) == whole[placement.tp]:
                return tuple(pieces)
        return ()

    def _cut(
        self,
        expected: TraceTensor,
        placement: Placement,
        axes: Sequence[int],
        rank: int,
        times: int,
    ) -> TraceTensor:
        """Return what a rank should hold."""
        is_cut = placement.tp is not None or isinstance(placement.dp, int)
        if not is_cut and [*axes] == sorted(axes):
            return expected
        if not expected.whole:
            raise ReprodError(
                f"the ranks hold parts of the {expected.phase} of {expected.module or 'the model'}, and the "
                'reference\'s trace keeps a sketch of it: record the reference with mode="whole"'
            )
        whole = lay_as_torch(expected).transpose(axes)
        part = placement.scatter(whole, self._mesh, rank)
        if times != 1:
            part = part * np.asarray(times, part.dtype)
        return replace(expected, values=part, shape=part.shape, transposed=False)


def _place(tensor: TraceTensor) -> _Location:
    return tensor.phase, tensor.module, tensor.call, tensor.leaf


def _measure_each(
    wanted: Sequence[TraceTensor], parts: Sequence[TraceTensor], floors: Floors
) -> Measured:
    """Return the rank that is furthest off, with its number if another is not."""
    found = [measure(one, part, floors) for one, part in zip(wanted, parts, strict=True)]
    at = max(range(len(found)), key=lambda rank: (not found[rank].passed, found[rank].relative))
    worst = found[at]
    if worst.passed:
        return worst
    wrong = [str(rank) for rank, one in enumerate(found) if not one.passed]
    where = "on every rank" if len(wrong) == len(found) else f"on rank {', '.join(wrong)}"
    return replace(worst, words=f"{where}: {worst.words}" if worst.words else where)


def _take(tensor: TraceTensor, axis: int, length: int) -> TraceTensor:
    values = np.take(lay_as_torch(tensor), range(length), axis)
    return replace(tensor, values=values, shape=values.shape, transposed=False)


def _average(tensors: Sequence[TraceTensor]) -> TraceTensor:
    first, times = tensors[0], 1 / len(tensors)
    if first.whole:
        total = sum(lay_as_torch(one).astype(np.float64) for one in tensors)
        values = np.asarray(total * times, first.values.dtype)
        return replace(first, values=values, shape=values.shape, transposed=False)
    return replace(first, values=combine([one.values for one in tensors], times), rows=None)


def _read(
    tensors: Sequence[TraceTensor], others: Sequence[TraceTensor]
) -> list[NDArray[np.float64]]:
    """Return numbers that add up as the tensors do: whole ones where all are, else the sums of sketches."""
    if not all(one.whole for one in (*tensors, *others)):
        return [read_sums(read_sketch(one)) for one in tensors]
    arrays = [lay_as_torch(one) for one in tensors]
    parts: list[Array] = [
        np.stack([a.real, a.imag], -1) if a.dtype.kind == "c" else a for a in arrays
    ]
    return [part.astype(np.float64) for part in parts]
