"""A state in a plain attribute that train mode writes and later calls read."""

from collections import deque
from collections.abc import Callable
from typing import Any

from reprod_align import align
from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.state_stage import compare_state, compare_statistics
from tests.alignment.small import PaddleNet, TorchNet, X, at_work, messages

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


@pytest.mark.parametrize(("momentum", "faithful"), [(0.9, True), (0.1, False)])
def test_the_momentum_shows_and_paddles_biased_variance_is_no_fault(
    momentum: float, faithful: bool
) -> None:
    ours = TorchNet(last=torch.nn.BatchNorm1d(5, momentum=0.1))
    theirs = PaddleNet(last=paddle.nn.BatchNorm1D(5, momentum=momentum))
    with at_work(ours, theirs) as (runner, findings):
        reference, port = runner.run_reference(True), runner.run_port(True, "all")
        compare_statistics(runner, findings, reference, port)
    assert findings.report.checks[0].what == "2 running statistics after a step"
    assert findings.report.checks[0].passed == faithful
    assert ["running statistic" in text for text in messages(findings)] == [True] * (not faithful)
    if faithful:
        assert any("biased running variance" in text for text in findings.report.remarks)


def make_table(base: float, nudge: float = 1.0) -> np.ndarray:
    """Return sines (3000, 5), made in float32; `nudge` is rounding, another base is a fault."""
    rate = (np.exp(np.arange(5) * -np.log(base) / 5) * nudge).astype("float32")
    return np.sin(np.arange(3000, dtype="float32")[:, None] * rate)


class TorchTable(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pe", torch.tensor(make_table(10000.0)), persistent=False)

    def forward(self, x):
        return x + self.pe[: x.shape[0]]


class PaddleTable(paddle.nn.Layer):
    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("pe", paddle.to_tensor(table))

    def forward(self, x):
        return x + self.pe[: x.shape[0]]


@pytest.mark.parametrize(
    ("base", "nudge", "faithful"),
    [(10000.0, 1 + 1e-7, True), (10000.0, 1 + 1e-5, False), (10010.0, 1.0, False)],
)
def test_a_long_table_made_in_float32_is_judged_by_its_angles_rounding(
    base: float, nudge: float, faithful: bool
) -> None:
    port = PaddleTable(make_table(base, nudge))
    with at_work(TorchNet(last=TorchTable()), PaddleNet(last=port)) as (runner, findings):
        reference, port = runner.run_reference(True), runner.run_port(True, "all")
        compare_statistics(runner, findings, reference, port)
    assert ["pe differs" in text for text in messages(findings)] == [True] * (not faithful)
    assert findings.float32_inside == faithful


class TorchLazy(torch.nn.Module):
    """Puts another table in the place of a placeholder when it is called, as ConViT does."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.zeros(1, 1))

    def forward(self, x):
        self.table = torch.ones(x.shape[0], 2, dtype=x.dtype)
        return x + self.table.sum()


class PaddleLazy(paddle.nn.Layer):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.register_buffer("table", paddle.zeros([1, 1]))
        self.value = value

    def forward(self, x):
        self.table = paddle.full([x.shape[0], 2], self.value, x.dtype)
        return x + 2.0 * x.shape[0]


def flatten_around(norm: type, momentum: float) -> Any:
    class Flat(norm):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x.reshape([x.shape[0], -1])).reshape(x.shape)

    return Flat(15, momentum=momentum)


@pytest.mark.parametrize("momentum", [0.9, 0.8])
def test_a_batch_norm_whose_class_flattens_its_input_is_judged_by_pytorchs_step(
    momentum: float,
) -> None:
    torch.manual_seed(0)
    ours = torch.nn.Sequential(torch.nn.Linear(3, 5), flatten_around(torch.nn.BatchNorm1d, 0.1))
    theirs = paddle.nn.Sequential(
        paddle.nn.Linear(3, 5), flatten_around(paddle.nn.BatchNorm1D, momentum)
    )
    report = align(ours, theirs, (np.random.default_rng(0).normal(size=(4, 3, 3)),))
    kinds = [found.kind for found in report.findings]
    assert kinds == ([] if momentum == 0.9 else ["running-statistics"])


@pytest.mark.parametrize("value", [1.0, 2.0])
def test_a_buffer_that_a_call_replaces_by_one_of_another_shape_is_compared(value: float) -> None:
    pair = TorchNet(last=TorchLazy()), PaddleNet(last=PaddleLazy(value))
    with at_work(*pair) as (runner, findings):
        reference, port = runner.run_reference(True), runner.run_port(True, "all")
        compare_statistics(runner, findings, reference, port)
    assert ["table differs" in text for text in messages(findings)] == [True] * (value != 1.0)


@pytest.mark.parametrize(("shift", "faithful"), [(0.0, True), (1e-6, False)])
def test_what_rounding_leaves_of_a_mean_of_zero_is_no_fault(shift: float, faithful: bool) -> None:
    """A projection of what a batch norm has centred: its mean is zero, but for the sums' order."""
    torch.manual_seed(0)
    ours = torch.nn.Sequential(
        torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 5, bias=False), torch.nn.BatchNorm1d(5)
    )
    theirs = paddle.nn.Sequential(
        paddle.nn.BatchNorm1D(6), paddle.nn.Linear(6, 5, bias_attr=False), Shifted(5, shift)
    )
    x = np.random.default_rng(0).normal(3.0, 2.0, (64, 6))
    report = align(ours, theirs, (x,))
    found = [one for one in report.checks if "running statistics" in one.what]
    assert [one.passed for one in found] == [faithful]


class Shifted(paddle.nn.BatchNorm1D):
    """Moves its running mean by more than the batch does."""

    def __init__(self, features: int, shift: float) -> None:
        super().__init__(features)
        self._shift = shift

    def forward(self, x):
        y = super().forward(x)
        if self.training and self._shift:
            self._mean.set_value(self._mean + self._shift)
        return y
