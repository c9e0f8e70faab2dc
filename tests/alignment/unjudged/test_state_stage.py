"""A state in a plain attribute that train mode writes and later calls read."""

from collections import deque
from collections.abc import Callable
from typing import Any

from reprod_align import align
from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.state_stage import compare_state
from tests.alignment.small import PaddleNet, TorchNet, X, at_work

import numpy as np
import paddle
import pytest
import torch

Update = Callable[[Any, float], None]
"""takes the holder of a state and a number of this call"""


class TorchKeeps(torch.nn.Module):
    def __init__(self, start: Any, update: Update, read: Callable[[Any], float]) -> None:
        super().__init__()
        self.first, self.kept, self.update, self.read = torch.nn.Linear(3, 5), start, update, read

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if self.training:
            self.update(self, float(x.mean()))
            return x
        return x - self.read(self.kept)


class PaddleKeeps(paddle.nn.Layer):
    def __init__(self, start: Any, update: Update, read: Callable[[Any], float]) -> None:
        super().__init__()
        self.first, self.kept, self.update, self.read = paddle.nn.Linear(3, 5), start, update, read

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.first(x)
        if self.training:
            self.update(self, float(x.mean()))
            return x
        return x - self.read(self.kept)


def average(share: float) -> Update:
    def update(holder: Any, number: float) -> None:
        holder.kept = share * holder.kept + (1 - share) * number

    return update


def average_in_place(share: float) -> Update:
    def update(holder: Any, number: float) -> None:
        holder.kept *= share
        holder.kept += (1 - share) * number

    return update


def append(times: float) -> Update:
    return lambda holder, number: holder.kept["last"].append(times * number)


def keep_nothing(holder: Any, number: float) -> None:
    pass


KINDS = {
    "number": (lambda: 0.0, average, float, 0.9, 0.8),
    "array in place": (lambda: np.zeros(1), average_in_place, lambda kept: float(kept[0]), 0.9, 0.8),
    "deque in a dict": (
        lambda: {"last": deque(maxlen=2)}, append, lambda kept: sum(kept["last"]), 1.0, 1.1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_eval_mode_reads_is_compared(kind: str) -> None:
    start, make, read, right, wrong = KINDS[kind]
    reference = TorchKeeps(start(), make(right), read)
    report = align(reference, PaddleKeeps(start(), make(right), read), (X,))
    assert report.passed and any("after calls in train mode" in c.what for c in report.checks)
    assert all(one.kind not in ("state", "precision") for one in report.not_judged)
    for other in (make(wrong), keep_nothing):
        (found,) = align(reference, PaddleKeeps(start(), other, read), (X,)).findings
        assert "in eval mode after two calls in train mode the outputs differ" in found.message
        assert "kept in PyTorch" in found.message


def test_the_state_comes_back_as_it_was() -> None:
    held = np.ones(1)
    reference = TorchKeeps(held, average_in_place(0.9), lambda kept: float(kept[0]))
    port = PaddleKeeps(np.ones(1), average_in_place(0.9), lambda kept: float(kept[0]))
    assert align(reference, port, (X,)).passed
    assert reference.kept is held and held == 1.0 and port.kept == 1.0


def test_a_state_on_one_side_that_no_output_reads_is_no_matter() -> None:
    def count(holder: Any, number: float) -> None:
        holder.calls = getattr(holder, "calls", 0) + 1

    report = align(TorchKeeps(0.0, keep_nothing, float), PaddleKeeps(0.0, count, float), (X,))
    assert report.passed and not report.not_judged


def test_a_state_that_differs_unseen_is_not_judged() -> None:
    def read_nothing(kept: float) -> float:
        return 0.0

    report = align(
        TorchKeeps(0.0, average(0.9), read_nothing),
        PaddleKeeps(0.0, average(0.8), read_nothing),
        (X,),
    )
    assert report.passed
    (note,) = [one for one in report.not_judged if one.kind == "state"]
    assert note.what.startswith("kept holds other numbers than in Paddle")


def test_a_batch_norm_and_a_counter_stay_faithful() -> None:
    def count(holder: Any, number: float) -> None:
        holder.kept = holder.kept + 1

    class TorchNorm(TorchKeeps):
        def __init__(self) -> None:
            super().__init__(0, count, lambda kept: 0.0)
            self.norm = torch.nn.BatchNorm1d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(self.norm(x))

    class PaddleNorm(PaddleKeeps):
        def __init__(self) -> None:
            super().__init__(0, count, lambda kept: 0.0)
            self.norm = paddle.nn.BatchNorm1D(3)

        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            return super().forward(self.norm(x))

    report = align(TorchNorm(), PaddleNorm(), (X,))
    assert report.passed, report.summary()
    assert any("after calls in train mode" in check.what for check in report.checks)


def test_nothing_runs_where_no_attribute_changes() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, findings):
        done = [compare_pass(runner, runner.run_reference(mode), mode) for mode in (False, True)]
        compare_state(runner, findings, done[1], done[0])
    assert findings.report.checks == [] and findings.report.not_judged == []
