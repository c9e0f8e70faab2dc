"""Why ranks hold other numbers than they should: known mistakes, tried on the numbers. Knows numpy only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Final

from reprod_align.base.blocks import Array, measure_peak
from reprod_align.base.difference import gap
from reprod_align.parallel import Axis, Mesh, Placement

import numpy as np

_CLOSE: Final = 1e-9  # relative: a mistake that explains the numbers explains them as float64 does
_MOST_BLOCKS: Final = 4


@dataclass(frozen=True)
class Reason:
    """What a mistake is, and where on the mesh."""

    text: str
    axis: str
    """"dp", "tp", or "" where both or none are meant"""
    is_shard: bool = False
    """whether the numbers are right and in the wrong place"""


@dataclass(frozen=True)
class RankTensor:
    """What every rank holds of a tensor, and what it should."""

    parts: Sequence[Array]
    expected: Sequence[Array]
    placement: Placement
    mesh: Mesh
    close: float = _CLOSE
    """relative: how close numbers are that are the same"""

    @property
    def wrong(self) -> list[int]:
        """The ranks that hold something else than they should."""
        return [
            r for r in range(self.mesh.size) if not self.agrees(self.parts[r], self.expected[r])
        ]

    def agrees(self, first: Array, second: Array) -> bool:
        """Tell whether two arrays are the same as far as float64 goes."""
        scale = max(map(measure_peak, self.expected), default=0.0)
        return gap(second, first, self.close, 1e-4 * self.close * scale).ok

    def all_agree(self, make: Callable[[int], Array]) -> bool:
        """Tell whether each wrong rank holds `make(rank)`."""
        return all(self.agrees(self.parts[rank], make(rank)) for rank in self.wrong)

    def axes(self) -> Iterator[tuple[Axis, int, bool]]:
        """Yield each axis of the mesh with ranks on it, how many, and whether it cuts the tensor."""
        if self.mesh.tp > 1:
            yield "tp", self.mesh.tp, self.placement.tp is not None
        if self.mesh.dp > 1:
            yield "dp", self.mesh.dp, isinstance(self.placement.dp, int)


def explain(held: RankTensor) -> Reason | None:
    """Return the mistake that explains what the ranks hold; None if none is known, or all is right."""
    wrong = held.wrong
    if not wrong or any(
        part.shape != e.shape for part, e in zip(held.parts, held.expected, strict=True)
    ):
        return None
    for find in (
        _find_none,
        _find_unreduced,
        _find_wrong_group,
        _find_factor,
        _find_exchange,
        _find_order,
    ):
        found = find(held)
        if found is not None:
            return found
    return None


def _find_none(held: RankTensor) -> Reason | None:
    empty = [rank for rank in held.wrong if not held.parts[rank].any()]
    if not empty:
        return None
    if len(empty) == held.mesh.size:
        return Reason("it is zero on every rank", "")
    return Reason(f"it is zero on {_name(empty)} alone", _find_axis(held.mesh, empty[0]))


def _find_unreduced(held: RankTensor) -> Reason | None:
    """Find parts that would be right if they were summed, or averaged, over an axis."""
    for axis, count, is_cut in held.axes():
        if is_cut or all(
            held.agrees(held.parts[r], held.parts[held.mesh.peers(r, axis)[0]]) for r in held.wrong
        ):
            continue
        sums = {rank: sum(held.parts[other] for other in held.mesh.peers(rank, axis))
                for rank in range(held.mesh.size)}  # fmt: skip
        if _match(held, sums, 1.0):
            return Reason(
                f"it is not summed over {axis}: the {count} ranks' parts add up to it", axis
            )
        if _match(held, sums, 1.0 / count):
            return Reason(
                f"it is not averaged over {axis}: the {count} ranks' parts have it as their mean",
                axis,
            )
    return None


def _match(held: RankTensor, sums: Mapping[int, Any], times: float) -> bool:
    return all(held.agrees(sums[rank] * times, held.expected[rank]) for rank in held.wrong)


def _find_wrong_group(held: RankTensor) -> Reason | None:
    """Find parts of a cut tensor that were reduced with ranks that hold another part."""
    mesh = held.mesh
    if mesh.tp == 1 or held.placement.tp is None:
        return None
    groups = mesh.groups("tp")
    means: dict[int, Any] = {
        rank: sum(held.expected[other] for other in group) / mesh.tp
        for group in groups
        for rank in group
    }
    same = all(
        held.agrees(held.parts[group[0]], held.parts[rank]) for group in groups for rank in group
    )
    if not same:
        return None
    if mesh.dp > 1 and not held.agrees(held.parts[0], held.parts[mesh.tp]):
        both: Any = sum(held.parts) / mesh.size
        if held.agrees(both, means[0]):
            return Reason(
                "it is averaged over tp, whose ranks hold other parts, in place of dp", "tp"
            )
    for times, word in ((1.0, "averaged"), (float(mesh.tp), "summed")):
        if held.all_agree(lambda rank, times=times: means[rank] * times):  # type: ignore[misc]
            return Reason(f"it is {word} over tp, whose ranks hold other parts of it", "tp")
    return None


def _find_factor(held: RankTensor) -> Reason | None:
    """Find a factor that all ranks are off by, or one rank alone."""
    rank = held.wrong[0]
    peak = measure_peak(held.expected[rank])
    if not peak:
        return None
    at = int(np.abs(held.expected[rank]).argmax())
    factor = float(held.parts[rank].flat[at] / held.expected[rank].flat[at])
    if not held.all_agree(lambda rank: held.expected[rank] * factor):
        return None
    where = "" if len(held.wrong) == held.mesh.size else f" on {_name(held.wrong)} alone"
    for axis, count, is_cut in held.axes():
        if np.isclose(factor, count, rtol=held.close):
            how = "in place of averaged" if axis == "dp" else "although every rank has all of it"
            how = "of parts" if is_cut and axis == "tp" else how
            return Reason(
                f"it is {count} times what it should be{where}: summed over {axis} {how}",
                axis,
            )
        if np.isclose(factor, 1 / count, rtol=held.close):
            how = (
                "averaged twice"
                if axis == "dp"
                else "averaged, or divided, in place of taken whole"
            )
            return Reason(f"it is 1/{count} of what it should be{where}: over {axis} {how}", axis)
    times = f"{factor:.6g} times"
    return Reason(
        f"it is {times} what it should be{where}",
        _find_axis(held.mesh, rank) if where else "",
    )


def _find_exchange(held: RankTensor) -> Reason | None:
    """Find a rank that holds what another one should."""
    rank = held.wrong[0]
    for other in range(held.mesh.size):
        if other != rank and held.agrees(held.parts[rank], held.expected[other]):
            return Reason(
                f"rank {rank} holds what rank {other} should",
                _find_axis(held.mesh, rank, other),
                True,
            )
    return None


def _find_order(held: RankTensor) -> Reason | None:
    """Find blocks of a part in another order: query, key and value, or heads."""
    axis, rank = held.placement.tp, held.wrong[0]
    if axis is None or axis >= held.parts[rank].ndim:  # sums of a sketch have no axes
        return None
    part, expected = held.parts[rank], held.expected[rank]
    for blocks in range(2, _MOST_BLOCKS + 1):
        if expected.shape[axis] % blocks:
            continue
        pieces = np.split(expected, blocks, axis)
        for order in permutations(range(blocks)):
            if held.agrees(part, np.concatenate([pieces[n] for n in order], axis)):
                where = f"blocks {order} of {blocks} along axis {axis}"
                text = f"rank {rank} holds its part in another order: {where}"
                return Reason(text, "tp", True)
    if np.array_equal(np.sort(part, None), np.sort(expected, None)):
        return Reason(f"rank {rank} holds its part with its numbers in another order", "tp", True)
    rows, known = (
        _collect_rows(part, axis),
        _collect_rows(np.concatenate(held.expected[: held.mesh.tp], axis), axis),
    )
    if len(rows) > 1 and rows <= known:
        text = (
            f"rank {rank} holds other slices along axis {axis} than its own: cut in another order"
        )
        return Reason(text, "tp", True)
    return None


def _collect_rows(array: Array, axis: int) -> set[bytes]:
    """Return the slices of an array along an axis that are not all zero, as bytes."""
    return {row.tobytes() for row in np.moveaxis(array, axis, 0) if row.any()}


def _find_axis(mesh: Mesh, rank: int, other: int | None = None) -> str:
    """Return the axis of the mesh along which a rank differs from the other, or from the first."""
    if other is None:
        return "tp" if mesh.tp > 1 and rank % mesh.tp else "dp" if mesh.dp > 1 else "tp"
    return "dp" if rank % mesh.tp == other % mesh.tp else "tp"


def _name(ranks: Sequence[int]) -> str:
    numbers = ", ".join(map(str, ranks))
    return f"rank {numbers}" if len(ranks) == 1 else f"ranks {numbers}"
