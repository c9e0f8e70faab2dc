"""The ranks of a parallel run: how many for which purpose, and which rank stands where."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from reprod_align.errors import ReprodError
from reprod_align.model.trace import Array

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
    order. Raises ReprodError for a row that is no example of the whole.
    """
    batched = batch_names(whole)
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


def batch_names(inputs: dict[str, Array]) -> list[str]:
    """Return the inputs whose first axis counts examples: that of the first input."""
    sizes = [array.shape[0] for array in inputs.values() if array.ndim]
    return [n for n, array in inputs.items() if array.ndim and array.shape[0] == sizes[0]]


def _digest_rows(inputs: dict[str, Array]) -> list[bytes]:
    rows = min((len(array) for array in inputs.values()), default=0)
    return [
        b"".join(np.ascontiguousarray(array[row]).tobytes() for array in inputs.values())
        for row in range(rows)
    ]
