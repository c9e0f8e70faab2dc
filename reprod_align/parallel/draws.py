"""Random draws of a rank: its part of what the reference draws for the whole tensor."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reprod_align.parallel.mesh import Mesh
from reprod_align.parallel.placement import Placement, guess
from reprod_align.randomness import KeyedDraws, Shape, lay_out

import numpy as np
from numpy.typing import NDArray

Note = Callable[[Any, Shape, bool], None]
"""takes a draw's place, its shape on this rank, and whether it is of a part"""


def _ignore(key: Any, shape: Shape, is_cut: bool) -> None:
    pass


@dataclass
class ShardedDraws(KeyedDraws):
    """The draws of one pass on one rank."""

    mesh: Mesh = field(default_factory=Mesh)
    rank: int = 0
    note: Note = _ignore

    @classmethod
    def of(cls, draws: KeyedDraws, mesh: Mesh, rank: int, note: Note) -> "ShardedDraws":
        """Return a rank's draws of a pass."""
        return cls(draws.seed, draws.names, draws.asked, mesh=mesh, rank=rank, note=note)

    def _draw(
        self, shape: Shape, draw: Callable[[np.random.Generator, Shape], NDArray[Any]]
    ) -> NDArray[Any]:
        local = tuple(shape)
        key, source = self._begin(local)
        wanted = self.asked.get(key, local)
        placement = next(guess(local, wanted, self.mesh), Placement())
        whole = _enlarge(local, placement, self.mesh)
        self.note(key, local, placement.tp is not None)
        self.drawn[key] = whole
        return placement.scatter(lay_out(draw, source, wanted, whole), self.mesh, self.rank)


def _enlarge(shape: Shape, placement: Placement, mesh: Mesh) -> Shape:
    sizes = list(shape)
    for axis, times in ((placement.dp, mesh.dp), (placement.tp, mesh.tp)):
        if isinstance(axis, int):
            sizes[axis] *= times
    return tuple(sizes)
