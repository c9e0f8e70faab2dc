"""Faults that one fixed batch does not show, and faithful pairs that look alike."""

from collections.abc import Callable
from typing import Any

from reprod_align import align
from reprod_align.alignment import batch_stage
from reprod_align.alignment.batch_stage import Trials, compare_batches
from reprod_align.alignment.batches.derive import Batch
from reprod_align.alignment.comparing import compare_pass
from reprod_align.report import Report
from tests.alignment.small import PaddleNet, TorchNet, X, at_work

import numpy as np
import paddle
import pytest
import torch

IDS = np.random.default_rng(0).integers(0, 11, (3, 6))
Between = Callable[[Any, Any, Any], Any]


class Torch(torch.nn.Module):
    """Embeds ids, adds positions, does something in between, and takes the mean over the sequence."""

    def __init__(self, between: Between) -> None:
        super().__init__()
        self.words, self.positions = torch.nn.Embedding(11, 8), torch.nn.Embedding(40, 8)
        self.mix, self.head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)
        self.between, self.calls, self.kept = between, 0, []
        self.register_buffer("seen", torch.zeros(1), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:  # (B, L) -> (B, 3)
        x = self.words(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.head(self.between(self, ids, torch.tanh(self.mix(x))).mean(1))


class Paddle(paddle.nn.Layer):
    def __init__(self, between: Between) -> None:
        super().__init__()
        self.words, self.positions = paddle.nn.Embedding(11, 8), paddle.nn.Embedding(40, 8)
        self.mix, self.head = paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 3)
        self.between, self.calls, self.kept = between, 0, []
        self.register_buffer("seen", paddle.zeros([1]), persistable=False)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:  # (B, L) -> (B, 3)
        x = self.words(ids) + self.positions(paddle.arange(ids.shape[1]))
        return self.head(self.between(self, ids, paddle.tanh(self.mix(x))).mean(1))


def judge(theirs: Between, ours: Between | None = None, ids: Any = IDS) -> Report:
    torch.manual_seed(0)
    return align(Torch(ours or same), Paddle(theirs), (ids,))


def same(model: Any, ids: Any, x: Any) -> Any:
    return x


def squeeze(model: Any, ids: Any, x: Any) -> Any:
    return x if ids.shape[0] > 1 else x.squeeze().unsqueeze(1)


def count_calls(model: Any, ids: Any, x: Any) -> Any:
    model.calls += 1
    return x * model.calls


def count_in_a_buffer(model: Any, ids: Any, x: Any) -> Any:
    model.seen += 1
    return x * model.seen


def add_what_was_kept(model: Any, ids: Any, x: Any) -> Any:
    kept = sum((one.mean() for one in model.kept), 0.0)
    model.kept.append(x.detach())
    return x + kept


def center_on_the_first_call(model: Any, ids: Any, x: Any) -> Any:
    model.kept.append(x.mean([0, 1]))
    return x - model.kept[0]


def center(model: Any, ids: Any, x: Any) -> Any:
    return x - x.mean([0, 1])


def double_unless(holds: Callable[[Any], bool]) -> Between:
    return lambda model, ids, x: x if holds(ids) else 2 * x


FAULTS = {
    "only one example": ("with the first example alone: ", squeeze, same),
    "a position beyond": ("with length 12 in place of 6", lambda m, ids, x: x[:, :6], same),
    "a fixed length": ("with length 3 in place of 6", lambda m, ids, x: x.sum(1, True) / 6, None),
    "a counter": ("in a second call", count_calls, same),
    "a counter that is missing": ("in a second call", same, count_calls),
    "a buffer": ("in a second call", count_in_a_buffer, same),
    "a list that grows": ("in a second call", add_what_was_kept, same),
    "a cache": ("in a second call", center_on_the_first_call, center),
    "a value": ("moved", double_unless(lambda ids: int(ids[0, 0]) == int(IDS[0, 0])), same),
    "int32": ("with int32 in place", double_unless(lambda ids: ids.dtype == paddle.int64), same),
    "no_grad": ("under no_grad", double_unless(lambda ids: paddle.is_grad_enabled()), same),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_the_batch_does_not_show_is_found_and_said_where(fault: str) -> None:
    words, theirs, ours = FAULTS[fault]
    report = judge(theirs, ours or (lambda model, ids, x: x.mean(1, keepdim=True)))
    assert report.verdict == "diverges", report
    first = report.findings[0]
    assert (first.stage, first.torch_name, first.paddle_name) == ("forward", "", "")
    assert first.message.startswith(("with ", "in ", "under ")) and words in first.message
    assert [check.passed for check in report.checks if "eval mode" in check.what] == [True]
    assert [check.passed for check in report.checks if "further batches" in check.what] == [False]
    assert len(report.findings) == 1 and first.paddle_line


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_whose_runs_take_time_shows_each_fault_with_one_example(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_stage, "_SLOW", 0)
    _, theirs, ours = FAULTS[fault]
    report = judge(theirs, ours or (lambda model, ids, x: x.mean(1, keepdim=True)))
    assert report.verdict == "diverges" and len(report.findings) == 1, report


class TorchMasked(torch.nn.Module):
    """Takes the mean of what a mask shows."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(11, 8)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:  # (B, L) -> (B, 8)
        shown = mask.unsqueeze(-1).to(torch.get_default_dtype())
        return (self.words(ids) * shown).sum(1) / shown.sum(1)


class PaddleMasked(paddle.nn.Layer):
    def __init__(self, looks: bool) -> None:
        super().__init__()
        self.words, self.looks = paddle.nn.Embedding(11, 8), looks

    def forward(self, ids: paddle.Tensor, mask: paddle.Tensor) -> paddle.Tensor:
        shown = mask.unsqueeze(-1).astype(paddle.get_default_dtype())
        shown = shown if self.looks else paddle.ones_like(shown)
        return (self.words(ids) * shown).sum(1) / shown.sum(1)


@pytest.mark.parametrize("looks", [True, False])
def test_a_forgotten_mask_shows_although_the_batch_is_not_padded(looks: bool) -> None:
    inputs = {"ids": IDS, "mask": np.ones_like(IDS)}
    report = align(TorchMasked(), PaddleMasked(looks), inputs)
    assert report.passed is looks
    assert looks or report.findings[0].message.startswith("with another mask")


KEEPERS = [squeeze, count_calls, count_in_a_buffer, add_what_was_kept, center_on_the_first_call]


@pytest.mark.parametrize("both", [same, center, *KEEPERS])
def test_a_faithful_pair_stays_faithful_whatever_it_keeps(both: Between) -> None:
    report = judge(both, both)
    assert report.passed and report.verdict == "faithful", report
    assert not report.remarks


def test_a_port_that_raises_on_another_batch_is_a_finding_at_its_module() -> None:
    def refuse(model: Any, ids: Any, x: Any) -> Any:
        return x.reshape([-1, 6, 8])[: len(ids)]

    (finding,) = judge(refuse).findings
    assert finding.message.startswith("with length 3 in place of 6")
    assert "return x.reshape([-1, 6, 8])[: len(ids)]" in finding.paddle_code


def test_integers_that_an_operator_of_paddle_does_not_take_are_a_remark() -> None:
    def refuse(model: Any, ids: Any, x: Any) -> Any:
        if ids.dtype == paddle.int32:
            raise RuntimeError("The kernel `gather` is not registered for data type int32")
        return x

    report = judge(refuse)
    assert report.passed
    assert any(
        text.startswith("with int32 in place of int64 the Paddle") for text in report.remarks
    )


def test_a_reference_that_takes_several_examples_only_is_a_remark() -> None:
    def refuse(model: Any, ids: Any, x: Any) -> Any:
        if len(ids) == 1:
            raise ValueError("two examples at least")
        return x

    report = judge(refuse, refuse)
    assert report.passed
    assert report.remarks == [
        "not compared with the first example alone: the PyTorch model does not run on it"
    ]


def test_nothing_more_is_compared_where_the_batch_itself_differs() -> None:
    report = judge(lambda model, ids, x: 2 * x)
    assert not any("further" in check.what for check in report.checks)


def test_two_faults_in_one_place_that_two_batches_show_are_one_finding() -> None:
    def forget(model: Any, ids: Any, x: Any) -> Any:
        return squeeze(model, ids, x[:, :6])

    (finding,) = judge(forget).findings
    assert finding.message.startswith(
        "with the first example alone and with length 12 in place of 6: "
    )


def test_to_a_batch_of_one_example_a_second_one_is_added() -> None:
    for wrong in (lambda m, ids, x: x[:1].expand_as(x), lambda m, ids, x: x.reshape([1, -1, 8])):
        report = judge(wrong, ids=IDS[:1])
        assert report.findings[0].message.startswith("with a second example: ")


@pytest.mark.parametrize(("factor", "further"), [(1, 1), (2, 0)])
def test_the_stage_adds_a_check_if_the_given_batch_agrees(factor: int, further: int) -> None:
    with at_work(TorchNet(), PaddleNet(lambda x: x * factor)) as (runner, findings):
        compare_batches(runner, findings, compare_pass(runner, runner.expected, False))
    assert sum("further" in check.what for check in findings.report.checks) == further
    assert not findings.report.findings


@pytest.mark.parametrize("faithful", [True, False])
def test_values_far_apart_show_a_limit_that_the_given_ones_stay_below(faithful: bool) -> None:
    torch.manual_seed(0)
    last = paddle.nn.ReLU() if faithful else paddle.nn.ReLU6()
    report = align(
        torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU()),
        paddle.nn.Sequential(paddle.nn.Linear(3, 8), last),
        (2 * np.random.default_rng(1).normal(size=(4, 3)),),
    )
    assert report.passed is faithful and report.checks[0].passed
    assert faithful or report.findings[0].message.startswith("with the inputs moved")


class TorchPacked(torch.nn.Module):
    """Its output is as long as the longest example."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 3, batch_first=True)

    def forward(self, ids, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.embed(ids), lengths, batch_first=True, enforce_sorted=False
        )
        return torch.nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


class PaddlePacked(paddle.nn.Layer):
    """Its output is as long as the ids; `told`: whether it heeds the lengths."""

    def __init__(self, told: bool = True) -> None:
        super().__init__()
        self.embed, self.rnn, self.told = paddle.nn.Embedding(9, 4), paddle.nn.GRU(4, 3), told

    def forward(self, ids, lengths):
        return self.rnn(self.embed(ids), sequence_length=lengths if self.told else None)[0]


@pytest.mark.parametrize("lengths", [[6, 3], [4, 6]])
def test_lengths_of_examples_follow_the_length_of_the_sequence(lengths: list[int]) -> None:
    ids = np.random.default_rng(0).integers(1, 9, (2, 6))
    report = align(TorchPacked(), PaddlePacked(), (ids, np.array(lengths)))
    assert report.passed, str(report)
    assert any("further batches" in check.what for check in report.checks)


def test_a_port_that_forgets_the_lengths_is_found() -> None:
    ids = np.random.default_rng(0).integers(1, 9, (2, 6))
    report = align(TorchPacked(), PaddlePacked(told=False), (ids, np.array([6, 3])))
    assert not report.passed


def halve_single(x):
    return x if len(x) > 1 else x / 2


ONE = Batch("with one example", (X[:1],))


def test_a_batch_that_is_accepted_is_compared_and_its_fault_located() -> None:
    with at_work(TorchNet(), PaddleNet(halve_single)) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        assert trials.accepts(ONE)
        done = trials.compare(ONE)
        assert not done.outputs_ok and len(done.natural.calls[0].outputs[""].array) == 1
        (finding,) = trials.locate(ONE).report.findings
        assert (finding.torch_name, finding.paddle_name) == ("", "")
        assert "hands to second" in finding.message


def test_a_batch_on_which_the_reference_raises_is_refused() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        assert not trials.accepts(Batch("with another width", (X[:, :2],)))
        assert trials.refused == ["with another width"]


@pytest.mark.parametrize("inputs", [X * np.nan, X * 0 + np.inf, X[:1]], ids=["NaN", "inf", "large"])
def test_a_batch_of_which_the_reference_makes_no_ordinary_numbers_is_refused(inputs: Any) -> None:
    def grow(x):
        return x * 1e6 if len(x) == 1 else x

    with at_work(TorchNet(grow), PaddleNet(grow)) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        assert not trials.accepts(Batch("with what is not ordinary", (inputs,)))
        assert trials.accepts(Batch("with two examples", (X[:2],)))


def test_gradients_are_off_under_no_grad_alone_and_the_place_is_found_there() -> None:
    def halve(x):
        return x if paddle.is_grad_enabled() else x / 2

    ungraded = Batch("under no_grad", (X,), graded=False)
    with at_work(TorchNet(), PaddleNet(halve)) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        assert trials.accepts(ungraded) and trials.accepts(ONE)
        assert trials.compare(ONE).outputs_ok and not trials.compare(ungraded).outputs_ok
        assert "hands to second" in trials.locate(ungraded).report.findings[0].message


def test_calls_that_come_first_are_made_on_both_sides() -> None:
    def count(x):
        counted.append(len(x))
        return x

    counted: list[int] = []
    again = Batch("again", (X,), before=(ONE.inputs, (X[:2],)))
    with at_work(TorchNet(count), PaddleNet(count)) as (runner, _):
        trials = Trials(runner, compare_pass(runner, runner.expected, False))
        counted.clear()
        assert trials.accepts(again) and trials.compare(again).outputs_ok
        assert counted == [1, 2, 4, 1, 2, 4]


class TorchSegments(torch.nn.Module):
    """Sums rows by the graph that they belong to, (N, 4) and (N,) -> (3, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, graph: torch.Tensor) -> torch.Tensor:
        mixed = torch.tanh(self.mix(x))
        return torch.zeros(3, 4, dtype=x.dtype).index_add(0, graph, mixed)


class PaddleSegments(paddle.nn.Layer):
    """Raises unless the graphs ascend, as `paddle.geometric.segment_mean` does."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = paddle.nn.Linear(4, 4)

    def forward(self, x: paddle.Tensor, graph: paddle.Tensor) -> paddle.Tensor:
        if bool((paddle.diff(graph) < 0).any()):
            raise ValueError("the segment ids should be sorted")
        mixed = paddle.tanh(self.mix(x))
        return paddle.zeros([3, 4], x.dtype).index_add(graph, 0, mixed)


def _make_segments(graph: list[int]) -> dict[str, np.ndarray]:
    rows = np.random.default_rng(0).standard_normal((len(graph), 4))
    return {"x": rows, "graph": np.array(graph)}


def test_ids_that_ascend_as_given_are_kept_so_where_the_port_asks_for_it() -> None:
    report = align(TorchSegments(), PaddleSegments(), _make_segments([0, 1, 1, 2, 2]))
    assert report.verdict == "faithful", report.findings
    assert sum("raises unless graph ascends" in one for one in report.remarks) == 1


def test_a_port_that_raises_whatever_the_order_is_still_at_fault(monkeypatch) -> None:
    own = PaddleSegments.forward

    def forward(self: PaddleSegments, x: paddle.Tensor, graph: paddle.Tensor) -> paddle.Tensor:
        if float(x.sum()) != total:
            raise ValueError("only the batch as given")
        return own(self, x, graph)

    given = _make_segments([0, 1, 1, 2, 2])
    total = float(paddle.to_tensor(given["x"]).sum())
    monkeypatch.setattr(PaddleSegments, "forward", forward)
    report = align(TorchSegments(), PaddleSegments(), given)
    assert {one.kind for one in report.findings} == {"port-raises"}
