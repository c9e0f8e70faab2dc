"""How one tensor lies on the ranks: put together from their parts, and cut into them. Knows numpy only."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from reprod_align.base.difference import gap
from reprod_align.model.trace import Array
from reprod_align.parallel.mesh import Axis, Mesh

import numpy as np

Shape = tuple[int, ...]
MEAN: Final = "mean"
"""in place of an axis: a number of each replica's own data, which stands for the mean"""
MOST_PADDING: Final = 1024
"""rows: by more no vocabulary is padded"""


@dataclass(frozen=True)
class Placement:
    """Along which axis of the tensor each axis of the mesh cuts it; None: it does not."""

    dp: int | str | None = None
    tp: int | None = None
    pieces: tuple[int, ...] = ()
    """sizes along `tp` of what is fused there, each of which is cut by itself: query, key and value"""
    length: int | None = None
    """along `tp`, of what counts: what is beyond it is padding; None: all of it"""
    padded: int = 0
    """along `tp`, with the padding"""

    def gather(self, parts: Sequence[Array], mesh: Mesh) -> Array:
        """Return the whole from what the ranks hold, in the order of the ranks."""
        replicas = [self._gather_parts(parts[at : at + mesh.tp], mesh)
                    for at in range(0, mesh.size, mesh.tp)]  # fmt: skip
        if self.dp is None:
            return replicas[0]
        if isinstance(self.dp, str):
            return np.asarray(sum(replica / mesh.dp for replica in replicas), replicas[0].dtype)
        whole = np.concatenate(replicas, self.dp)
        if mesh.order is None or whole.shape[self.dp] % len(mesh.order):
            return whole
        return _put_in_order(whole, self.dp, mesh.order)

    def _gather_parts(self, parts: Sequence[Array], mesh: Mesh) -> Array:
        if self.tp is None:
            return parts[0]
        if not self.pieces:
            whole = np.concatenate(parts, self.tp)
        else:
            ends = np.cumsum([size // mesh.tp for size in self.pieces])[:-1]
            cut = [np.split(part, ends, self.tp) for part in parts]
            whole = np.concatenate(
                [one for piece in zip(*cut, strict=True) for one in piece], self.tp
            )
        if self.length is None:
            return whole
        return np.ascontiguousarray(np.take(whole, range(self.length), self.tp))

    def scatter(self, whole: Array, mesh: Mesh, rank: int) -> Array:
        """Return what a rank holds of the whole."""
        replica, part = mesh.coordinates(rank)
        found = whole
        if isinstance(self.dp, int):
            if mesh.order is not None and whole.shape[self.dp] == len(mesh.order):
                found = np.take(found, mesh.order, self.dp)
            found = np.split(found, mesh.dp, self.dp)[replica]
        if self.tp is not None:
            found = self._scatter_parts(found, mesh, part)
        return np.array(found, order="C", copy=None)  # a scalar stays one

    def _scatter_parts(self, whole: Array, mesh: Mesh, part: int) -> Array:
        assert self.tp is not None
        if self.length is not None:
            short = self.padded - self.length
            padding = [(0, short if axis == self.tp else 0) for axis in range(whole.ndim)]
            whole = np.pad(whole, padding)
        if not self.pieces:
            return np.split(whole, mesh.tp, self.tp)[part]
        pieces = np.split(whole, np.cumsum(self.pieces)[:-1], self.tp)
        return np.concatenate([np.split(p, mesh.tp, self.tp)[part] for p in pieces], self.tp)


def _put_in_order(whole: Array, axis: int, order: Array) -> Array:
    """Return examples in the reference's order; of one that stands twice the first counts."""
    times = whole.shape[axis] // len(order)
    numbers = (order[:, None] * times + np.arange(times)).reshape(-1)
    back = np.zeros(whole.shape[axis], int)
    back[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return np.ascontiguousarray(np.take(whole, back, axis))


def differ(parts: Sequence[Array], mesh: Mesh, axis: Axis) -> tuple[int, int] | None:
    """Return the first two ranks of one group along an axis that hold different numbers; None if none do."""
    for group in mesh.groups(axis):
        for rank in group[1:]:
            if not gap(parts[group[0]], parts[rank]).ok:
                return group[0], rank
    return None


def choose(
    parts: Sequence[Array],
    mesh: Mesh,
    known: Collection[Shape],
    hint: int | None | str = "",
) -> Placement:
    """Return how what the ranks hold goes together to one tensor.

    What all ranks of a group hold alike is whole. What differs is cut along the axis with which the
    tensor gets a shape that the reference has; `known`: its shapes, their axes sorted. hint: the axis
    that the layer is known to cut along tp, None for none; "" where nothing is known.
    """
    shape = parts[0].shape
    if any(part.shape != shape for part in parts):
        return Placement()
    cut_dp = mesh.dp > 1 and differ(parts, mesh, "dp") is not None
    cut_tp = mesh.tp > 1 and differ(parts, mesh, "tp") is not None
    if not shape:
        return Placement(MEAN if cut_dp else None)
    axes_dp: list[int | None] = [*range(len(shape))] if cut_dp else [None]
    axes_tp: list[int | None] = [None]
    if cut_tp and not isinstance(hint, str):
        axes_tp = [hint if hint is None else hint % len(shape)]
    elif cut_tp:
        axes_tp = [*reversed(range(len(shape)))]
    found = [Placement(dp, tp) for dp, tp in product(axes_dp, axes_tp)
             if _whole_shape(shape, dp, tp, mesh) in known]  # fmt: skip
    if found:
        return found[0]
    if cut_tp and tuple(sorted(shape)) in known and not cut_dp:
        return Placement()  # it should be whole
    whole = [Placement(dp) for dp in axes_dp if _whole_shape(shape, dp, None, mesh) in known]
    if cut_tp and whole:
        return whole[0]
    return Placement(axes_dp[0], axes_tp[0])


def _whole_shape(shape: Shape, dp: int | None, tp: int | None, mesh: Mesh) -> Shape:
    sizes = list(shape)
    if dp is not None:
        sizes[dp] *= mesh.dp
    if tp is not None:
        sizes[tp] *= mesh.tp
    return tuple(sorted(sizes))


def guess(local: Shape, whole: Shape, mesh: Mesh) -> Iterator[Placement]:
    """Yield how a tensor of shape `whole`, its axes in any order, may be cut into parts of shape `local`."""
    axes: list[int | None] = [*range(len(local)), None]  # examples come first
    for dp, tp in product(axes if mesh.dp > 1 else [None], [None, *reversed(range(len(local)))]):
        if (tp is None or mesh.tp > 1) and _whole_shape(local, dp, tp, mesh) == tuple(
            sorted(whole)
        ):
            yield Placement(dp, tp)
