"""What a comparison costs: how often each side runs, and what is kept or written."""

from collections import Counter
from typing import Any

from reprod_align import align
from reprod_align.alignment import compare_pair
from reprod_align.errors import ReprodError
from reprod_align.model import store
from reprod_align.model.local import LocalSide
from reprod_align.pair import PairSpec, paddle_side, torch_side
from tests.alignment.small import PaddleNet, TorchNet, X, same

import numpy as np
import paddle
import pytest
import torch

WIDE = np.random.default_rng(0).normal(size=(4, 400))


class Counting:
    """A side that counts its runs by mode, dtype and whether there is a backward pass."""

    def __init__(self, side: LocalSide) -> None:
        self._side, self.runs = side, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._side, name)

    def run(self, *args: Any, **options: Any) -> Any:
        trace = self._side.run(*args, **options)
        mode, back = "train" if args[1] else "eval", " and backward" if trace.gradients else ""
        self.runs[f"{mode} {self._side.dtype}{back}"] += 1
        return trace


def count(between: Any, theirs: Any = same) -> tuple[Counter[str], Counter[str], Any]:
    torch.manual_seed(0)
    sides = torch_side(TorchNet(between[0])), paddle_side(PaddleNet(between[1]))
    ours, port = Counting(sides[0]), Counting(sides[1])
    report = compare_pair(PairSpec(ours, port, (X,)))  # type: ignore[arg-type]
    return ours.runs, port.runs, report


BATCHES = 6  # further ones, and the call before one of them


@pytest.mark.parametrize("layers", [(same, same), (torch.nn.Dropout(0.5), paddle.nn.Dropout(0.5))])
def test_a_faithful_pair_runs_once_each_way(layers: Any) -> None:
    *runs, report = count(layers)
    assert report.passed
    for counted in runs:
        assert counted["eval float64 and backward"] == 0  # train mode's graph is the same
        assert counted["train float64 and backward"] == 1
        assert counted["eval float32"] == 1 and counted["eval float32 and backward"] == 0
        assert counted["train float64"] == 0 and counted["eval float64"] <= 1 + BATCHES


def test_a_fault_is_found_with_one_run_on_the_references_numbers() -> None:
    *runs, report = count((same, lambda x: 1.5 * x))
    assert not report.passed
    ours, theirs = runs
    for mode, times in (
        ("eval", 2),
        ("train", 1),
    ):  # on the reference's numbers; train repeats eval
        assert ours[f"{mode} float64 and backward"] == 1
        assert theirs[f"{mode} float64 and backward"] == times
    assert theirs["eval float64"] <= 7  # for shares and lines
    assert ours["eval float64"] <= 3 and ours["train float64"] == 1  # kernels against themselves


def test_where_dropout_tells_the_modes_apart_gradients_of_the_port_are_judged_in_one() -> None:
    class Scaled(paddle.nn.Dropout):
        def forward(self, x: Any) -> Any:
            return 1.5 * super().forward(x)

    _, theirs, report = count((torch.nn.Dropout(0.5), Scaled(0.5)))
    assert not report.passed
    assert theirs["eval float64 and backward"] == 0
    assert theirs["train float64 and backward"] == 2  # as it is, and on the reference's numbers


def make_wide(wrong: float = 1.0) -> tuple[Any, Any]:
    torch.manual_seed(0)
    ours = torch.nn.Sequential(torch.nn.Linear(400, 400), torch.nn.Tanh(), torch.nn.Linear(400, 3))
    theirs = paddle.nn.Sequential(
        paddle.nn.Linear(400, 400),
        paddle.nn.Tanh() if wrong == 1 else paddle.nn.Silu(),
        paddle.nn.Linear(400, 3),
    )
    return ours, theirs


@pytest.mark.parametrize("wrong", [1.0, 2.0], ids=["faithful", "wrong"])
def test_a_small_budget_writes_files_and_reports_the_same(
    wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores, init = [], store.Store.__init__

    def note(self: Any, *args: Any) -> None:
        init(self, *args)
        stores.append(self)

    monkeypatch.setattr(store.Store, "__init__", note)
    free, tight = (align(*make_wide(wrong), (WIDE,), memory=size) for size in (None, 1))
    assert free.summary() == tight.summary() and free.passed is (wrong == 1)
    assert stores[0].written == 0 < stores[0].most and stores[1].written > 2**20


@pytest.mark.parametrize("memory", [0, -5, "8G", True, 2.5])
def test_a_budget_is_a_number_of_bytes(memory: Any) -> None:
    with pytest.raises(ReprodError, match="memory: expected a number of bytes, got"):
        align(TorchNet(), PaddleNet(), (X,), memory=memory)
