"""A port on ranks as one side: what the ranks hold is cut and put together."""

from typing import Any

from reprod_align.model.side import ModelInfo, TensorInfo
from reprod_align.parallel import Mesh
from reprod_align.parallel.launch import OpenedPort
from reprod_align.parallel.side import Overheard, ParallelSide

import numpy as np

WHOLE = np.arange(12.0).reshape(3, 4)


class _Ranks:
    """Two ranks that hold halves of `up` and all of `norm`."""

    broken = None

    def __init__(self) -> None:
        self.held = [
            {"up": WHOLE[:, :2], "norm": np.ones(3)},
            {"up": WHOLE[:, 2:], "norm": np.ones(3)},
        ]

    def ask(self, name: str, *arguments: Any, **options: Any) -> list[Any]:
        if name == "open":
            shards: dict[str, tuple[int | None, str]] = {
                "up": (1, "column"),
                "norm": (None, "replicated"),
            }
            return [OpenedPort("Paddle", frozenset({"loss"}), shards, {})] * 2
        if name == "describe":
            return [ModelInfo({}, {n: _info(n, a.shape) for n, a in part.items()}, frozenset())
                    for part in self.held]  # fmt: skip
        return self.held

    def ask_each(self, questions: list[Any]) -> list[Any]:
        self.held = [given[0] for _, given, _ in questions]
        return [None] * 2


def _info(name: str, shape: tuple[int, ...]) -> TensorInfo:
    return TensorInfo(name, "", name, shape, True, True, True, True, name)


def test_tensors_are_whole_for_the_judge_and_cut_for_the_ranks() -> None:
    ranks = _Ranks()
    side = ParallelSide(ranks, "pair.py", Overheard(ranks), Mesh(1, 2))  # type: ignore[arg-type]
    assert (side.name, side.loss, side.optimizer) == ("Paddle", "loss", None)
    assert side.describe().tensors["up"].shape == (3, 4)
    np.testing.assert_array_equal(side.values()["up"], WHOLE)
    side.load({"up": -WHOLE})
    np.testing.assert_array_equal(ranks.held[1]["up"], -WHOLE[:, 2:])
