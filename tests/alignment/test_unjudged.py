"""A divergence that PyTorch's own kernels make is not the port's.

Where a comparison that passed shows little.
"""

import random
import sys
from collections.abc import Callable
from inspect import getsourcelines
from typing import Any

from reprod_align import align
from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.unjudged import (
    contradicts_itself,
    doubt_gradients,
    doubts,
    note_generators,
    note_unread_rows,
    nothing_finite,
    watch_lines,
)
from reprod_align.model.trace import Trace
from reprod_align.pair import paddle_side, torch_side
from reprod_align.report import Report
from reprod_align.selftest import selftest
from tests.alignment.small import PaddleNet, TorchNet, X, at_work

import numpy as np
import paddle
import pytest
import torch

ROWS = [3, 1, 0, 2]


class TorchTakes(TorchNet):
    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        x = super().forward(x)
        return torch.gather(x, 0, rows[:, None].expand(4, 2))


class PaddleTakes(PaddleNet):
    off = 0

    def forward(self, x: paddle.Tensor, rows: paddle.Tensor) -> paddle.Tensor:
        x = super().forward(x)
        return paddle.take_along_axis(x, ((rows + self.off) % 4)[:, None].expand([4, 2]), 0)


class PaddleTakesOthers(PaddleTakes):
    off = 1


def contradicts() -> bool:
    x, rows = torch.arange(8.0).reshape(4, 2), torch.tensor(ROWS, dtype=torch.int32)[:, None]
    rows = rows.expand(4, 2)
    return not torch.equal(torch.gather(x, 0, rows.long()), torch.gather(x, 0, rows))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_kernel_that_contradicts_itself_is_named_and_the_port_is_not(dtype: str) -> None:
    rows = np.array(ROWS, dtype)
    report = align(TorchTakes(), PaddleTakes(), (X, rows))
    assert report.passed, report.summary()
    said = [one.what for one in report.not_judged if one.kind == "precision"]
    assert bool(said) == contradicts()
    assert all("aten.gather gives other numbers in int32 than in int64" in text for text in said)
    assert not align(TorchTakes(), PaddleTakesOthers(), (X, rows)).passed


def test_another_fault_needs_no_word_about_kernels() -> None:
    report = align(TorchNet(), PaddleNet(lambda x: 1.1 * x), (X,))
    assert not report.passed and not report.not_judged


def test_only_a_model_with_such_a_kernel_contradicts_itself() -> None:
    rows = np.array(ROWS, "int32")
    for model, inputs, expected in (
        (TorchTakes(), (X, rows), contradicts()),
        (TorchTakes(), (X, rows.astype("int64")), contradicts()),
        (TorchNet(), (X,), False),
    ):
        assert contradicts_itself(torch_side(model), inputs) == expected


def double_if_long(x: torch.Tensor) -> torch.Tensor:
    """Take a branch that no batch takes."""
    if x.shape[-1] > 100:
        x = x * 2
        x = x + 1
    if x.shape[-1] > 200:
        text = "too long"
        raise ValueError(text)
    return x


class TorchLong(TorchNet):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(double_if_long(x))


class PaddleLong(PaddleNet):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        if self.training:
            return super().forward(x)
        y = super().forward(x)
        return self.unreached(y) if False else y

    def unreached(self, x: paddle.Tensor) -> paddle.Tensor:
        y = x * 3
        return y

    def _not_named_in_forward(self) -> int:
        return 1


def find(report) -> list[str]:
    return [one.what for one in report.not_judged if one.kind == "lines"]


def test_lines_that_never_ran_are_named_on_each_side() -> None:
    report = align(TorchLong(), PaddleNet(), (X,))
    assert report.passed
    (text,) = find(report)
    start = getsourcelines(double_if_long)[1]
    assert text.startswith("PyTorch: 2 lines never ran: ")
    assert text.endswith(f"test_unjudged.py:{start + 3}-{start + 4}")
    (text,) = find(align(TorchNet(), PaddleLong(), (X,)))
    start = getsourcelines(PaddleLong.unreached)[1]
    assert text.startswith("Paddle: 2 lines never ran: ")
    assert text.endswith(f"test_unjudged.py:{start + 1}-{start + 2}")


def test_a_pair_whose_lines_all_run_is_told_nothing() -> None:
    assert align(TorchNet(), PaddleNet(), (X,)).not_judged == []


def test_functions_and_trace_functions_come_back() -> None:
    codes = double_if_long.__code__, PaddleLong.forward.__code__
    heard = []

    def hear(frame, event, argument):
        heard.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(hear)
    try:
        report = align(TorchLong(), PaddleLong(), (X,))
        assert sys.gettrace() is hear
    finally:
        sys.settrace(before)
    assert "double_if_long" in heard and len(find(report)) == 2
    assert codes == (double_if_long.__code__, PaddleLong.forward.__code__)
    assert codes[0] is double_if_long.__code__


def test_selftest_tells_too() -> None:
    result = selftest(TorchLong(), PaddleNet(), (X,))
    assert "not judged: PyTorch: 2 lines never ran" in result.summary()


def test_code_is_given_back_where_the_comparison_fails() -> None:
    code = double_if_long.__code__
    sides, report = (torch_side(TorchLong()), paddle_side(PaddleNet())), Report()
    try:
        with watch_lines(*sides):
            assert double_if_long.__code__ is not code
            raise KeyError
    except KeyError:
        pass
    assert double_if_long.__code__ is code
    with watch_lines(*sides) as note_idle:
        note_idle(report)
    assert all("never ran" in text for text in find(report)) and len(find(report)) == 2


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ([0.5, 1.0], [0.5, 1.0], False),
        ([0.5, 1.0], [0.5, 2.0], True),
        ([0.5, 1.0], [0.0, 0.0], False),
        ([True, False], [True, False], False),
        ([True, False], [False, True], True),
    ],
)
def test_a_table_that_the_port_makes_otherwise_is_said(
    ours: list, theirs: list, said: bool
) -> None:
    pair = TorchNet(), PaddleNet()
    pair[0].register_buffer("table", torch.tensor(ours))
    pair[1].register_buffer("table", paddle.to_tensor(theirs))
    report = align(*pair, (X,))
    assert report.passed, report.summary()
    assert [text.startswith("table: ") for text in report.remarks if "hide it" in text] == [
        True
    ] * said


Draw = Callable[[], float]
DRAWS: dict[str, Draw] = {
    "Python's random": random.random,
    "numpy's global generator": lambda: float(np.random.normal()),
}


def scale(draw: Draw, times: float = 1.0):
    return lambda x: x * (1 + times * draw())


@pytest.mark.parametrize("name", DRAWS)
def test_both_sides_get_the_same_draws(name: str) -> None:
    random.seed(3)
    np.random.seed(3)
    before = random.getstate(), np.random.get_state()[1].tobytes()
    report = align(TorchNet(scale(DRAWS[name])), PaddleNet(scale(DRAWS[name])), (X,))
    assert report.passed, report.summary()
    assert not any(one.kind == "random numbers" for one in report.not_judged)
    assert before == (random.getstate(), np.random.get_state()[1].tobytes())
    assert not align(TorchNet(scale(DRAWS[name])), PaddleNet(scale(DRAWS[name], 1.1)), (X,)).passed


@pytest.mark.parametrize("name", DRAWS)
def test_a_side_that_alone_draws_is_named(name: str) -> None:
    def draw_unseen(x):
        DRAWS[name]()
        return x

    report = align(TorchNet(draw_unseen), PaddleNet(), (X,))
    assert report.passed
    first, *_ = [one.what for one in report.not_judged if one.kind == "random numbers"]
    assert first.startswith(
        f"in eval mode PyTorch's model draws from {name}, and Paddle's does not"
    )


def test_more_draws_on_one_side_are_named() -> None:
    def draw_twice(x):
        return x + 0 * (random.random() + random.random())

    report = align(TorchNet(lambda x: x + 0 * random.random()), PaddleNet(draw_twice), (X,))
    assert any("but not the same draws" in one.what for one in report.not_judged)


class Holds:
    """Scales what it is given by a number that its own generator draws."""

    def __init__(self, generator: Any, name: str) -> None:
        self.generator, self.name = generator, name

    def __call__(self, x: Any) -> Any:
        return x * (1 + abs(getattr(self.generator, self.name)()))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (np.random.default_rng, "normal"),
        (np.random.RandomState, "normal"),
        (random.Random, "random"),
    ],
)
def test_a_generator_that_a_module_holds_begins_anew_in_each_run(
    make: Callable[[int], Any], name: str
) -> None:
    ours, theirs = Holds(make(5), name), Holds(make(5), name)
    report = align(TorchNet(ours), PaddleNet(theirs), (X,))
    assert report.passed, report.summary()
    for held in (ours, theirs):
        assert getattr(held.generator, name)() == getattr(make(5), name)()


def test_equal_draws_need_no_word() -> None:
    findings = Findings()
    drawn = Trace(generators={"Python's random": 0.25})
    note_generators(findings, drawn, Trace(generators={"Python's random": 0.25}), "eval")
    assert findings.report.not_judged == []
    note_generators(findings, drawn, Trace(generators={"Python's random": 0.5}), "eval")
    assert len(findings.report.not_judged) == 1


class TorchPlaces(torch.nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.places = torch.nn.Embedding(rows, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.places(ids)


class PaddlePlaces(paddle.nn.Layer):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.places = paddle.nn.Embedding(rows, 3)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.places(ids)


def tell(ids: list[int], rows: int) -> list[str]:
    report = align(TorchPlaces(rows), PaddlePlaces(rows), (np.array([ids, ids]),))
    assert report.passed
    return [one.what for one in report.not_judged if one.kind == "batches"]


def test_a_range_that_is_not_the_whole_table_is_named() -> None:
    assert tell([2, 3, 4, 5], 8) == ["the given batch reads rows 2 to 5 of 8 of places only"]


def test_words_and_whole_tables_are_not() -> None:
    assert tell([0, 1, 2, 3], 4) == tell([0, 5, 2, 7], 9) == tell([0, 0, 0, 0], 2) == []


def test_a_model_without_tables_is_told_nothing() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, findings):
        note_unread_rows(runner, findings)
    assert findings.report.not_judged == []


@pytest.mark.parametrize(
    ("made", "told"),
    [([0.0, 0.5, 1.0, 1.5, 2.0], True), ([-1.0, -0.5, 0.0, 0.5, 1.0], False), ([0.0] * 5, False)],
    ids=["others", "the same", "a place to load into"],
)
def test_a_table_that_the_weights_hide_is_named(made: list[float], told: bool) -> None:
    """It is loaded with the weights, so that no number shows what the port makes itself."""
    nets = TorchNet(), PaddleNet()
    nets[0].register_buffer("places", torch.linspace(-1, 1, 5))
    nets[1].register_buffer("places", paddle.to_tensor(made))
    report = align(*nets, (X,))
    said = [
        one for one in report.remarks if one.startswith("places: Paddle's model makes other values")
    ]
    assert report.passed and len(said) == told


def test_constant_inputs_and_uncalled_modules_are_doubtful() -> None:
    ours = TorchNet()
    ours.idle = torch.nn.Linear(2, 2)
    with at_work(ours, PaddleNet(), inputs=(np.ones((4, 3)),)) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        said = list(doubts(done, runner.inputs, runner.pairing.torch))
        said += doubt_gradients(done, runner.pairing.torch)
    assert said[0].startswith("every element of the input 0 is 1")
    assert "zero gradient on this batch, so not tested: idle.weight, idle.bias" in said
    assert "never called as a module (unused, or used from outside): idle" in said
    assert not nothing_finite(done)


def test_a_varied_input_raises_no_doubt_and_outputs_without_numbers_do() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        assert list(doubts(done, runner.inputs, runner.pairing.torch)) == []
    with at_work(TorchNet(), PaddleNet(), inputs=(X * np.nan,)) as (runner, _):
        assert nothing_finite(compare_pass(runner, runner.expected, training=False))


def test_a_constant_output_and_missing_gradients_are_doubtful() -> None:
    nets = TorchNet(lambda x: x * 0), PaddleNet(lambda x: x * 0)
    with at_work(*nets, inputs=(X[:, :3],)) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        said = " ".join(doubt_gradients(done, runner.pairing.torch))
    assert "zero gradient on this batch, so not tested: first.weight, first.bias" in said


def test_nan_on_both_sides_is_said() -> None:
    inputs = X.copy()
    inputs[1] = np.nan
    with at_work(TorchNet(), PaddleNet(), inputs=(inputs,)) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        said = list(doubts(done, runner.inputs, runner.pairing.torch))
    assert done.outputs_ok
    assert "the output is NaN on both sides in 2 of 8 places: they show nothing" in said
