"""Nothing hides behind a large number, and what rounding really does is no fault."""

from collections.abc import Callable
from typing import Any

from reprod_align import align
from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.noise import Judge, Noise
from reprod_align.model.trace import Trace
from reprod_align.report import Report
from tests.alignment.small import PaddleNet, TorchNet, at_work

import numpy as np
import paddle
import pytest
import torch

ROWS = np.random.default_rng(3).standard_normal((4, 6))
Between = Callable[[Any, Any], Any]


def scores(framework: Any, base: Any, last: Between) -> Any:
    """Return a model of two layers; `last`: made of the framework and the scores, (rows, 4)."""

    class Scores(base):
        def __init__(self) -> None:
            super().__init__()
            self.dense = framework.nn.Linear(6, 8)
            self.out = framework.nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            return last(framework, self.out(framework.tanh(self.dense(x))))

    return Scores()


def compare(ours: Between, theirs: Between) -> Report:
    torch.manual_seed(0)
    return align(
        scores(torch, torch.nn.Module, ours), scores(paddle, paddle.nn.Layer, theirs), (ROWS,)
    )


def with_column(value: float, factor: float = 1.0) -> Between:
    """Return code that fills a column with `value`, and multiplies the others."""

    def last(framework: Any, x: Any) -> Any:
        column = framework.full_like(x[:, :1], value)
        return framework.concat([x[:, :1] * factor, column, x[:, 2:] * factor], -1)

    return last


MINIMUM = float(np.finfo(np.float32).min)


@pytest.mark.parametrize("value", [-1e4, -1e9, -1e30, MINIMUM, float(np.finfo(np.float64).min)])
def test_a_constant_that_hides_is_no_scale_for_the_scores(value: float) -> None:
    assert compare(with_column(value), with_column(value)).verdict == "faithful"
    for factor in (-1.0, 1 + 1e-6):
        assert compare(with_column(value), with_column(value, factor)).verdict == "diverges"


def add_mask(sign: float = 1.0) -> Between:
    def last(framework: Any, x: Any) -> Any:
        hidden = np.array([0.0, 0.0, -1e9, -1e9])
        return sign * x + (
            framework.tensor(hidden) if framework is torch else paddle.to_tensor(hidden)
        )

    return last


def test_scores_beside_masked_ones_are_judged_by_themselves() -> None:
    assert compare(add_mask(), add_mask()).verdict == "faithful"
    assert compare(add_mask(), add_mask(-1.0)).verdict == "diverges"


def rows_of(large: float, small: float, sign: float = 1.0) -> Between:
    """Return code that makes the first row large, and the last one small."""

    def last(framework: Any, x: Any) -> Any:
        return framework.concat([x[:1] * large, x[1:3], sign * x[3:] * small], 0)

    return last


@pytest.mark.parametrize(
    ("large", "small"), [(1e7, 1e-3), (10.0, 1e-4), (1e5, 1e-6), (500.0, 1e-6)]
)
def test_a_small_row_is_not_hidden_by_a_large_one(large: float, small: float) -> None:
    assert compare(rows_of(large, small), rows_of(large, small)).verdict == "faithful"
    assert compare(rows_of(large, small), rows_of(large, small, -1.0)).verdict == "diverges"


def test_cancellation_in_a_small_row_is_noise_and_no_fault() -> None:
    """x + c - c and x are apart by the rounding of c, in rows next to which c is huge."""

    def cancelling(framework: Any, x: Any) -> Any:
        tiny = (x[1:] * 1e-6 + 3e6) - 3e6
        return framework.concat([x[:1] * 10, tiny], 0)

    def regrouped(framework: Any, x: Any) -> Any:
        tiny = (3e6 + x[1:] * 1e-6 - 1e6) - 2e6
        return framework.concat([x[:1] * 10, tiny], 0)

    assert compare(cancelling, cancelling).verdict == "faithful"
    assert compare(cancelling, regrouped).verdict == "faithful"


def test_noise_is_measured_only_where_a_verdict_hangs_on_it() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        assert "shaken" not in vars(done.noise)
        ours = runner.expected.outputs[""].array
        small = np.concatenate([ours, ours * 1e-10])
        find = lambda run: np.concatenate([run.outputs[""].array, run.outputs[""].array * 1e-10])  # noqa: E731
        by = Judge(Noise(runner, False), find).compare
        assert not by(small, small * np.repeat([1, -1], len(ours))[:, None], 0.0).ok
        noisy = small + 1e-15 * np.sign(ours[0, 0])
        assert by(small, noisy, 0.0).ok and Judge().compare(small, small, 0.0).ok
        lost = Judge(Noise(runner, False), lambda run: None).compare
        assert lost(small, small * np.repeat([1, -1], len(ours))[:, None], 0.0).ok


def test_weights_are_given_back_after_the_noise_is_measured() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        before = {name: array.copy() for name, array in runner.reference.values().items()}
        noise = Noise(runner, True)
        assert noise.shaken.outputs and len(noise._moved) == 2 and noise._rounded is not None
        after = runner.reference.values()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_gradient_that_is_wrong_in_a_faint_channel_is_no_float32() -> None:
    sizes, last = np.array([1e4, 1, 1, 1, 1e-7]), np.array([0, 0, 0, 0, 1.0])

    def doubled(x: Any) -> Any:
        there = x * paddle.to_tensor(last)
        return (x + there - there.detach()) * paddle.to_tensor(sizes)

    torch.manual_seed(0)
    ours = TorchNet(lambda x: x * torch.tensor(sizes))
    good = PaddleNet(lambda x: x * paddle.to_tensor(sizes))
    assert align(ours, good, (ROWS[:, :3],)).verdict == "faithful"
    report = align(ours, PaddleNet(doubled), (ROWS[:, :3],))
    assert report.verdict == "diverges" and report.findings[0].stage == "backward"


def test_float32_is_told_by_its_noise_even_where_the_reference_does_not_run_in_it() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        noise = Noise(runner, False)
        ours = runner.expected.outputs[""].array
        for rounded in (noise._rounded, None):
            vars(noise)["_rounded"] = rounded
            judge = Judge(noise, lambda run: run.outputs[""].array)
            assert judge.is_float32(ours, ours * (1 + 1e-8), 2e-7)
            assert not judge.is_float32(ours, ours * (1 + 1e-3), 2e-7)
    assert Judge().is_float32(ours, ours + 1e-9, 1e-6) and not Judge().is_float32(ours, -ours, 1e-6)


def test_a_reference_that_refuses_moved_weights_shows_no_noise() -> None:
    kept: dict[str, torch.Tensor] = {}

    def refuse(x: torch.Tensor) -> torch.Tensor:
        assert not kept or torch.equal(model.first.weight, kept["first.weight"])
        return x

    model = TorchNet(refuse)
    with at_work(model, PaddleNet()) as (runner, _):
        noise = Noise(runner, False)
        kept |= {name: torch.tensor(array) for name, array in runner.weights.items()}
        ours = runner.expected.outputs[""].array
        assert noise._moved == () and noise.measure(ours, lambda run: None) is None
        assert torch.equal(runner.reference.model.first.weight, kept["first.weight"])


def test_what_is_upstream_has_no_part_in_a_module_s_answer_to_its_constants() -> None:
    """The code that uses a moved buffer answers, and nothing behind it."""
    with at_work(TorchTabled(), PaddleNet()) as (runner, _):
        noise = Noise(runner, False, runner.expected)
        handed, *given = (measure_answer(noise, runner.expected, *at) for at in PLACES)
        held = runner.reference.values()["table"]
        whole = [measure_answer(noise, runner.expected, *at, whole=True) for at in PLACES]
    assert 1e-8 < handed < 1e-6 and given == [0, 0, 0]
    assert whole[0] == handed and whole[1] == 0 and min(whole[2:]) > 1e-8
    assert np.array_equal(held, TorchTabled().table.numpy())


PLACES = (("second", "inputs"), ("first", "outputs"), ("second", "outputs"), ("", "outputs"))


def test_constants_that_are_exact_or_stored_are_not_moved() -> None:
    exact = torch.tensor([0.125, 3.0, 0.0, -1e9, 2.5])
    with at_work(TorchTabled(exact), PaddleNet()) as (runner, _):
        noise = Noise(runner, False, runner.expected)
        assert measure_answer(noise, runner.expected, "second", "inputs") == 0
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        noise = Noise(runner, False, runner.expected)
        assert measure_answer(noise, runner.expected, "second", "inputs") == 0
    assert Judge().measure_constants(ROWS) == 0


def measure_answer(
    noise: Noise, reference: Trace, path: str, which: str, whole: bool = False
) -> float:
    def find(run: Trace) -> np.ndarray:
        call = next(call for call in run.calls if call.path == path)
        (leaf,) = getattr(call, which).values()
        return leaf.array

    return Judge(noise, find).measure_constants(find(reference), whole)


class TorchTabled(TorchNet):
    """Adds a table between its layers, which float32 has rounded."""

    def __init__(self, table: torch.Tensor | None = None) -> None:
        super().__init__(lambda x: x + self.table)
        rounded = torch.tensor([0.1, 0.7, 0.3, 1.3, 1.7]) if table is None else table
        self.register_buffer("table", rounded, persistent=False)


def test_what_a_mixed_model_rounds_is_measured_between_float32_and_float64_throughout() -> None:
    """The run as it is rounds as the one in float32 does, and shows nothing."""
    mixed = TorchNet(lambda x: (x.float() / 3).exp().to(x.dtype))
    with at_work(mixed, PaddleNet()) as (runner, _):
        noise, at = Noise(runner, False, runner.expected), ("second", "inputs")
        assert 1e-8 < measure_inside(noise, runner.expected, *at) < 1e-4
        assert runner.reference.keeps_float32
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        noise = Noise(runner, False, runner.expected)
        assert measure_inside(noise, runner.expected, *at) == 0
    assert Judge().measure_inside(ROWS) == 0


def measure_inside(noise: Noise, reference: Trace, path: str, which: str) -> float:
    def find(run: Trace) -> np.ndarray:
        (leaf,) = getattr(next(call for call in run.calls if call.path == path), which).values()
        return leaf.array

    return Judge(noise, find).measure_inside(find(reference))
