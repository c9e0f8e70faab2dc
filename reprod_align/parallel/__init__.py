"""A port that runs on several ranks of `paddle.distributed.fleet`, judged against one PyTorch process.

Here is what all of the package stands on, in numpy alone: a `Mesh` says how many ranks serve which
purpose, and which rank stands where; a `Placement` puts a tensor together from the ranks' parts, and cuts
it into them.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, Literal

from reprod_align.base.blocks import Array
from reprod_align.base.difference import gap
from reprod_align.errors import ReprodError
from reprod_align.match import Shape

import numpy as np

Axis = Literal["dp", "tp"]
_GLOO: Final = "(Unimplemented) ProcessGroupGLOO does not support {} with sync_op flag."
_REFUSED: Final = {
    "pp": "its batch_isend_irecv fails on gloo: unbound_buffer.cc:133] TIMEOUT self_rank = -1",
    "ep": f"experts exchange tokens: {_GLOO.format('all_to_all')}",
    "sharding": f"its optimizer scatters gradients: {_GLOO.format('reduce_scatter')}",
}
"""degrees that are refused, and why"""
_WORD: Final = re.compile(r"(dp|tp)=(\d{1,4})|(sp)|([a-z_]+)(?:=\d+)?")


@dataclass(frozen=True)
class Mesh:
    """So many replicas of the data, each cut into so many ranks: rank = replica * tp + part."""

    dp: int = 1
    tp: int = 1
    sp: bool = False
    """whether the port cuts the sequence between its layers: sequence parallel, within tp"""
    order: Array | None = field(default=None, compare=False)
    """example number of each row that the replicas see, one replica after the other; None: in order"""

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self.dp * self.tp

    @property
    def name(self) -> str:
        """The words that stand for it: "dp=2,tp=2,sp"."""
        degrees = [f"{name}={n}" for name, n in (("dp", self.dp), ("tp", self.tp)) if n > 1]
        return ",".join([*degrees, *(["sp"] if self.sp else [])])

    @property
    def axes(self) -> list[str]:
        """What it divides: "dp", "tp", "sp"."""
        divided = {"dp": self.dp > 1, "tp": self.tp > 1, "sp": self.sp}
        return [axis for axis, is_divided in divided.items() if is_divided]

    def coordinates(self, rank: int) -> tuple[int, int]:
        """Return which replica a rank belongs to, and which part of it is its."""
        return divmod(rank, self.tp)

    def peers(self, rank: int, axis: Axis) -> list[int]:
        """Return the ranks that reduce together along an axis."""
        replica, part = self.coordinates(rank)
        if axis == "tp":
            return [replica * self.tp + other for other in range(self.tp)]
        return [other * self.tp + part for other in range(self.dp)]

    def groups(self, axis: Axis) -> list[list[int]]:
        """Return all groups of ranks that reduce together along an axis."""
        ranks = [self.peers(rank, axis) for rank in range(self.size)]
        return [group for at, group in enumerate(ranks) if group not in ranks[:at]]


def parse_mesh(text: str) -> Mesh:
    """Return what words such as "tp=2", "dp=2", "tp=2,sp" or "dp=2,tp=2" name.

    Raises ReprodError for others, with the reason for what Paddle or gloo cannot do.
    """
    given: dict[str, int] = {}
    for word in text.replace(" ", "").split(","):
        found = _WORD.fullmatch(word)
        if found and found[4] in _REFUSED:
            raise ReprodError(f"--parallel {word}: {_REFUSED[found[4]]}; see docs/parallel.md")
        if not found or found[4]:
            raise ReprodError(
                f"--parallel {text[:40]!r}: expected words such as tp=2, dp=2 or tp=2,sp"
            )
        name, degree = (found[1], int(found[2])) if found[1] else ("sp", 1)
        if name in given or degree < 1:
            raise ReprodError(f"--parallel {text[:40]!r}: {word} stands there twice, or is 0")
        given[name] = degree
    mesh = Mesh(given.get("dp", 1), given.get("tp", 1), "sp" in given)
    if mesh.sp and mesh.tp == 1:
        raise ReprodError("--parallel sp: the sequence is cut among the ranks of tp: give tp=2,sp")
    if mesh.size < 2:
        raise ReprodError(
            f"--parallel {text[:40]!r}: one rank is no parallel run: give tp=2 or dp=2"
        )
    return mesh


def find_order(whole: dict[str, Array], seen: Sequence[dict[str, Array]]) -> Array:
    """Return the number of each example that the replicas see, one replica after the other.

    whole: the inputs of the reference, examples along the first axis. Rows that are alike count in
    order. Raises ReprodError for a row that the whole batch does not hold.
    """
    batched = list_batched(whole)
    keys = _digest_rows({name: whole[name] for name in batched})
    free: dict[bytes, list[int]] = {}
    for number, key in enumerate(keys):
        free.setdefault(key, []).append(number)
    order = []
    for replica, inputs in enumerate(seen):
        for row, key in enumerate(_digest_rows({name: inputs[name] for name in batched})):
            if key not in free:
                raise ReprodError(
                    f"replica {replica} is given a row, number {row}, that is no example"
                )
            numbers = free[key]
            order.append(numbers.pop(0) if len(numbers) > 1 else numbers[0])
    return np.array(order)


def list_batched(inputs: dict[str, Array]) -> list[str]:
    """Return the inputs whose first axis counts examples: that of the first input."""
    sizes = [array.shape[0] for array in inputs.values() if array.ndim]
    return [n for n, array in inputs.items() if array.ndim and array.shape[0] == sizes[0]]


def _digest_rows(inputs: dict[str, Array]) -> list[bytes]:
    rows = min((len(array) for array in inputs.values()), default=0)
    return [
        b"".join(np.ascontiguousarray(array[row]).tobytes() for array in inputs.values())
        for row in range(rows)
    ]


MEAN: Final = "mean"
"""in place of an axis: each replica has the number of its own data, and their mean counts"""
MOST_PADDING: Final = 1024
"""rows: a vocabulary is padded by fewer"""


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

    def enlarge(self, shape: Shape, mesh: Mesh) -> Shape:
        """Return the shape of the whole tensor, given that of a rank's part."""
        sizes = list(shape)
        for axis, times in ((self.dp, mesh.dp), (self.tp, mesh.tp)):
            if isinstance(axis, int):
                sizes[axis] *= times
        if self.tp is not None and self.length is not None:
            sizes[self.tp] = self.length
        return tuple(sizes)

    def find_apart(
        self, parts: Sequence[Array], mesh: Mesh
    ) -> Iterator[tuple[Axis, tuple[int, int]]]:
        """Yield each axis along which ranks differ that should hold the same, and the first two that do."""
        axes: tuple[tuple[Axis, object], ...] = (("dp", self.dp), ("tp", self.tp))
        for axis, cut in axes:
            ranks = differ(parts, mesh, axis) if cut is None else None
            if ranks is not None:
                yield axis, ranks

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
    parts: Sequence[Array], mesh: Mesh, known: Collection[Shape], hint: int | None | str = ""
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
    tried = [Placement(dp, tp) for dp, tp in product(axes_dp, axes_tp)]
    if cut_tp:  # it should be whole along tp
        tried += [Placement(dp) for dp in axes_dp]
    fitting = (one for one in tried if tuple(sorted(one.enlarge(shape, mesh))) in known)
    return next(fitting, tried[0])


def guess(local: Shape, whole: Shape, mesh: Mesh) -> Iterator[Placement]:
    """Yield how a tensor of shape `whole`, its axes in any order, may be cut into parts of shape `local`."""
    axes: list[int | None] = [*range(len(local)), None]  # examples come first
    for dp, tp in product(axes if mesh.dp > 1 else [None], [None, *reversed(range(len(local)))]):
        found = Placement(dp, tp)
        if (tp is None or mesh.tp > 1) and sorted(found.enlarge(local, mesh)) == sorted(whole):
            yield found
