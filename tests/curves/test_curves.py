"""Training logs: every format is read, and a planted fault is found at its step."""

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from reprod_align.commands import parse
from reprod_align.curves import compare_curves
from reprod_align.curves.band import decimals_of, precision_of
from reprod_align.curves.log import CurveError, CurveLog
from reprod_align.curves.names import canonical, is_measured, pair_names
from reprod_align.curves.readers.files import read_curves
from reprod_align.curves.report import CurveReport, CurveResult
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.records.record import save_record

import numpy as np
import pytest

BATCH, WIDTH, HIDDEN, PER_EPOCH = 16, 16, 32, 60
Values = dict[str, list[float]]


class Run:
    """A small training run with dropout and AdamW, and the mistakes that a port of it may make."""

    def __init__(
        self,
        dtype: type[np.floating[Any]] = np.float32,
        steps: int = 240,
        nudge: int = 0,
        decay: float = 0.01,
        rate: float = 3e-3,
        ahead: int = 0,
        swapped: int = 0,
        draws: int = 0,
        order: int = 0,
        order_from: int = 0,
        weights: int = 0,
        scale: float = 1.0,
    ) -> None:
        """`nudge`: seed of a rounding error in the weights; `ahead`: steps the schedule is early."""
        self.dtype, self.decay, self.scale = dtype, decay, scale
        self.swapped, self.draws, self.order, self.order_from = swapped, draws, order, order_from
        data = np.random.default_rng(5)
        self.x = data.normal(size=(PER_EPOCH * BATCH, WIDTH)).astype(dtype)
        self.y = (self.x[:, :1] * self.x[:, 1:2] > 0).astype(dtype)
        start = np.random.default_rng(weights)
        shapes = ((WIDTH, HIDDEN), (HIDDEN, 1))
        self.weights = [(0.3 * start.normal(size=s)).astype(dtype) for s in shapes]
        if nudge:
            self._nudge(np.random.default_rng(nudge))
        self.moments = [[np.zeros_like(w), np.zeros_like(w)] for w in self.weights]
        self.rates = [self._rate(step + ahead, rate, steps) for step in range(steps)]

    def values(self) -> Values:
        """Return {curve: one value a step}."""
        logged: Values = {"loss": [], "lr": [], "grad_norm": []}
        for step, rate in enumerate(self.rates, 1):
            loss, gradients = self._backward(step)
            norm = math.sqrt(sum(float((g * g).sum()) for g in gradients))
            self._update(step, rate, gradients)
            for name, value in zip(logged, (loss * self.scale, rate, norm), strict=True):
                logged[name].append(float(value))
        return logged

    def _nudge(self, random: np.random.Generator) -> None:
        eps = np.finfo(self.dtype).eps
        for weight in self.weights:
            weight *= (1 + eps * random.choice([-1, 0, 1], weight.shape)).astype(self.dtype)

    @staticmethod
    def _rate(step: int, rate: float, steps: int, warmup: int = 20) -> float:
        falling = 1 - max(0, step - warmup) / (steps - warmup + 1)
        return rate * min(1, step / warmup) * falling

    def _batch(self, step: int) -> slice | Any:
        epoch, place = divmod(step - 1, PER_EPOCH)
        place = (place + 7) % PER_EPOCH if step == self.swapped else place
        seed = self.order if epoch >= self.order_from else 0
        order = np.random.default_rng([epoch, seed]).permutation(len(self.x))
        return order[place * BATCH : (place + 1) * BATCH]

    def _backward(self, step: int) -> tuple[float, list[Any]]:
        batch, dtype = self._batch(step), self.dtype
        x, y = self.x[batch], self.y[batch]
        kept = np.random.default_rng([step, self.draws]).random((BATCH, HIDDEN)) >= 0.1
        mask = kept.astype(dtype) / dtype(0.9)
        before = x @ self.weights[0]
        hidden = np.maximum(before, 0) * mask  # (B, H)
        logits = hidden @ self.weights[1]  # (B, 1)
        loss = float((np.logaddexp(dtype(0), logits) - y * logits).mean(dtype=dtype))
        by_logits = (1 / (1 + np.exp(-logits)) - y) / dtype(BATCH)
        by_hidden = by_logits @ self.weights[1].T * mask * (before > 0)
        return loss, [x.T @ by_hidden, hidden.T @ by_logits]

    def _update(self, step: int, rate: float, gradients: Sequence[Any]) -> None:
        for place, gradient in enumerate(gradients):
            first, second = self.moments[place]
            first[:] = 0.9 * first + 0.1 * gradient
            second[:] = 0.999 * second + 0.001 * gradient**2
            mean, square = first / (1 - 0.9**step), second / (1 - 0.999**step)
            update = rate * mean / (np.sqrt(square) + 1e-8)
            self.weights[place][:] = self.weights[place] * (1 - rate * self.decay) - update


@cache
def run(**options: Any) -> Values:
    return Run(**options).values()


def write_lines(path: Path, values: Values, epochs: bool = True) -> Path:
    """Write the log as a training loop of this project does: one JSON object a step."""
    with path.open("w", encoding="utf-8") as handle:
        for place, row in enumerate(zip(*values.values(), strict=True)):
            line = {"step": place + 1} | ({"epoch": place // PER_EPOCH} if epochs else {})
            print(json.dumps(line | dict(zip(values, row, strict=True))), file=handle)
    return path


def command(*words: str | Path) -> int:
    """Run `reprod-align curves` with these words; return its exit code."""
    options = parse(["curves", *map(str, words)])
    return int(options.run(options))


def one(report: CurveReport, quantity: str = "loss") -> CurveResult:
    return next(result for result in report.results if result.quantity == quantity)


def said(report: CurveReport) -> str:
    return report.summary()


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def reference(dtype: Any) -> Values:
    return run(dtype=dtype)


@pytest.fixture(scope="module", params=[True, False], ids=["twin", "no twin"])
def twin(request: pytest.FixtureRequest, dtype: Any) -> Values | None:
    return run(dtype=dtype, nudge=1) if request.param else None


# ---- planted faults, and none


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_noise_alone_is_not_flagged(
    reference: Values, twin: Values | None, dtype: Any, seed: int
) -> None:
    report = compare_curves(reference, run(dtype=dtype, nudge=seed), twin)
    assert report.passed and report.exit_code == 0, said(report)
    assert not report.hints and one(report).largest > 0  # not vacuous: there is noise


def test_a_schedule_one_step_ahead(reference: Values, twin: Values | None, dtype: Any) -> None:
    report = compare_curves(reference, run(dtype=dtype, ahead=1), twin)
    assert report.first is not None and report.first.quantity == "lr"
    assert report.first.first_step == 1 and one(report).first_step == 2
    assert "the schedule" in report.hints[0]
    assert "one step later: points to a scheduler" in said(report)


def test_one_batch_swapped(reference: Values, twin: Values | None, dtype: Any) -> None:
    report = compare_curves(reference, run(dtype=dtype, swapped=57), twin)
    assert one(report).first_step == 57 and report.exit_code == 1
    assert any("jumps at step 57" in hint for hint in one(report).hints)
    assert any("that step's batch" in hint for hint in one(report).hints)
    assert any("falls again" in hint for hint in one(report, "grad_norm").hints)


def test_dropout_seeds_differ(reference: Values, twin: Values | None, dtype: Any) -> None:
    report = compare_curves(reference, run(dtype=dtype, draws=1), twin)
    assert one(report).first_step == 1 and one(report).diverged_step == 1
    assert "before any update" in one(report).hints[0] and "dropout" in one(report).hints[0]
    assert "same order of the data" in one(report).hints[1]


def test_decay_missing(reference: Values, twin: Values | None, dtype: Any) -> None:
    report = compare_curves(reference, run(dtype=dtype, decay=0.0), twin)
    step = one(report).first_step
    assert step is not None and 2 <= step <= 5 and one(report, "lr").verdict == "agrees"
    assert "weight decay" in " ".join(one(report).hints)


def test_data_order_differs_from_an_epoch_on(
    tmp_path: Path, twin: Values | None, dtype: Any
) -> None:
    first = write_lines(tmp_path / "a.jsonl", run(dtype=dtype))
    second = write_lines(tmp_path / "b.jsonl", run(dtype=dtype, order=1, order_from=2))
    report = compare_curves(first, second, twin)
    assert one(report).first_step == 121
    assert "first logged step of an epoch (121)" in " ".join(one(report).hints)
    bare = compare_curves(run(dtype=dtype), run(dtype=dtype, order=1, order_from=2), twin)
    assert "do not move together after it: points to another order" in " ".join(one(bare).hints)


def test_a_jump_within_an_epoch_is_not_laid_to_the_epoch(tmp_path: Path, dtype: Any) -> None:
    first = write_lines(tmp_path / "a.jsonl", run(dtype=dtype))
    second = write_lines(tmp_path / "b.jsonl", run(dtype=dtype, swapped=57))
    assert "epoch" not in said(compare_curves(first, second))


def test_a_fraction_of_an_epoch_counts_its_last_step_in(tmp_path: Path) -> None:
    loss = np.linspace(1, 0.5, 40)
    paths = []
    for name, other in (("a", loss), ("b", loss + 0.1 * (np.arange(40) >= 20))):
        rows = [{"step": s, "epoch": s / 20, "loss": v} for s, v in enumerate(other.tolist(), 1)]
        paths.append(tmp_path / name)
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "first logged step of an epoch (21)" in said(compare_curves(*paths))


def test_data_order_differs_from_the_start(
    reference: Values, twin: Values | None, dtype: Any
) -> None:
    report = compare_curves(reference, run(dtype=dtype, order=1), twin)
    assert one(report).first_step == 1
    assert "do not move together" in " ".join(one(report).hints)


def test_a_sum_for_a_mean(reference: Values, twin: Values | None, dtype: Any) -> None:
    report = compare_curves(reference, run(dtype=dtype, scale=4.0), twin)
    assert "the second is 4 times the first" in " ".join(one(report).hints)


def test_a_rounding_error_that_grows_is_told_from_a_fault() -> None:
    steps = np.arange(1, 301)
    loss = 1 / np.sqrt(steps)
    noise = 1e-16 * 2 ** (steps / 8) * np.sign(np.sin(steps))
    report = compare_curves({"loss": loss}, {"loss": loss + noise})
    hint = " ".join(one(report).hints)
    assert "doubles every" in hint and "--twin" in hint
    assert float(hint.split("doubles every ")[1].split()[0]) == pytest.approx(8, rel=0.1)
    twin = compare_curves({"loss": loss}, {"loss": loss + noise}, {"loss": loss + 0.5 * noise})
    assert twin.passed
    small = compare_curves({"loss": loss}, {"loss": loss + noise}, {"loss": loss + 0.01 * noise})
    assert not small.passed and "at the rate of the twin's" in said(small)


def test_the_band_never_narrows_and_its_first_steps_share_it() -> None:
    loss, steps = np.linspace(1, 0.5, 100), np.arange(100)
    twin = loss + 1e-6 * ((steps > 2) & (steps < 30))
    assert compare_curves({"loss": loss}, {"loss": loss + 5e-6}, {"loss": twin}).passed
    late = loss + 1e-6 * (steps > 10)
    report = compare_curves({"loss": loss}, {"loss": loss + 5e-6}, {"loss": late})
    assert one(report).first_step == 1  # no noise of later steps excuses the first


def test_the_multiple_is_what_is_said() -> None:
    loss = np.linspace(1, 0.5, 100)
    for apart, passed in ((9.9e-6, True), (10.1e-6, False)):
        report = compare_curves({"loss": loss}, {"loss": loss + apart}, {"loss": loss + 1e-6})
        assert report.passed is passed
    assert compare_curves(
        {"loss": loss}, {"loss": loss + 1e-5}, {"loss": loss + 1e-6}, multiple=11
    ).passed


def test_one_narrow_twin_is_doubted() -> None:
    loss = np.linspace(1, 0.5, 100)
    report = compare_curves({"loss": loss}, {"loss": loss + 2e-5}, {"loss": loss + 1e-6})
    assert "give two more" in said(report)
    more = compare_curves(
        {"loss": loss}, {"loss": loss + 2e-5}, [{"loss": loss + d} for d in (1e-6, 3e-6)]
    )
    assert more.passed


def test_the_gradients_part_at_the_first_step_alone() -> None:
    loss = np.linspace(1, 0.5, 50)
    norms = {"grad_norm": loss * 2}
    other = {"loss": loss + np.where(np.arange(50) > 0, 1e-3, 0), "grad_norm": loss * 2.1}
    report = compare_curves({"loss": loss} | norms, other)
    assert "the backward pass" in report.hints[0]


def test_evaluation_alone_parts() -> None:
    loss = list(np.linspace(1, 0.5, 50))
    report = compare_curves(
        {"loss": loss, "eval_accuracy": [0.8] * 9}, {"loss": loss, "eval_accuracy": [0.7] * 9}
    )
    assert "evaluation" in report.hints[0] and one(report).verdict == "agrees"


# ---- the way a curve parts


def test_a_spike_is_no_parting() -> None:
    loss = np.linspace(1, 0.5, 100)
    spiked = loss.copy()
    spiked[40:42] += 0.1
    report = compare_curves({"loss": loss}, {"loss": spiked})
    assert one(report).verdict == "spike" and report.exit_code == 1
    assert "isolated spike at step 41, back within the band at step 43" in said(report)
    assert one(report).diverged_step is None


def test_a_spike_before_a_parting() -> None:
    loss = np.linspace(1, 0.5, 100)
    other = loss.copy()
    other[10] += 0.1
    other[60:] += 0.1
    report = compare_curves({"loss": loss}, {"loss": other})
    assert (one(report).first_step, one(report).diverged_step) == (11, 61)
    assert "outside at step 11, stays outside from step 61" in said(report)


def test_the_last_steps_are_too_few_to_tell() -> None:
    loss = np.linspace(1, 0.5, 100)
    other = np.where(np.arange(100) >= 97, loss + 0.1, loss)
    report = compare_curves({"loss": loss}, {"loss": other})
    assert one(report).verdict == "diverges at the end" and "too few steps follow" in said(report)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_not_finite_on_both_sides_is_no_agreement(value: float) -> None:
    loss = [*np.linspace(1, 0.5, 50), *[value] * 10]
    report = compare_curves({"loss": loss}, {"loss": loss})
    assert one(report).first_step == 51 and report.exit_code == 1
    assert "both logs are NaN or infinite from step 51 on" in said(report)
    json.dumps(report.to_json(), allow_nan=False)


def test_not_finite_on_one_side() -> None:
    report = compare_curves({"loss": [1.0, 0.9, 0.8]}, {"loss": [1.0, math.nan, 0.8]})
    assert "only the second log is NaN or infinite from step 2" in said(report)


def test_a_twin_that_is_not_finite_judges_nothing_after() -> None:
    loss = list(np.linspace(1, 0.5, 50))
    twin = [value + 1e-9 for value in loss[:20]] + [math.nan] * 30
    report = compare_curves({"loss": loss}, {"loss": [*loss[:30], *[9.0] * 20]}, {"loss": twin})
    assert report.passed and len(one(report).track.steps) == 20
    assert "up to step 20 only" in said(report)


def test_an_unperturbed_twin_and_identical_logs_are_remarked_on() -> None:
    loss = {"loss": list(np.linspace(1, 0.5, 50))}
    text = said(compare_curves(loss, loss, loss))
    assert "was it perturbed?" in text and "two logs of two runs?" in text


# ---- steps


def lines_of(path: Path, steps: Sequence[int], loss: Sequence[float]) -> Path:
    rows = [json.dumps({"step": s, "loss": v}) for s, v in zip(steps, loss, strict=True)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_another_count_of_steps_is_said_and_not_applied(tmp_path: Path, reference: Values) -> None:
    loss = reference["loss"]
    first = lines_of(tmp_path / "a.jsonl", range(1, 241), loss)
    second = lines_of(tmp_path / "b.jsonl", range(240), loss)
    report = compare_curves(first, second)
    assert report.exit_code == 1 and "with --offset 1 the curves agree" in report.hints[0]
    assert command(first, second, "--offset", "1") == 0


def test_few_steps_suggest_no_other_count(tmp_path: Path) -> None:
    first = lines_of(tmp_path / "a.jsonl", range(1, 5), [1.0, 0.5, 0.7, 0.2])
    second = lines_of(tmp_path / "b.jsonl", range(4), [1.0, 0.5, 0.7, 0.2])
    assert not compare_curves(first, second).hints
    constant = compare_curves({"loss": [1.0] * 50}, {"loss": [1.0] * 49 + [2.0]})
    assert one(constant).shift == 0  # shifted by one, 49 equal values say nothing


def test_steps_without_a_common_one_cannot_be_compared(tmp_path: Path, reference: Values) -> None:
    loss = reference["loss"][9::10]
    first = lines_of(tmp_path / "a.jsonl", range(10, 241, 10), loss)
    second = lines_of(tmp_path / "b.jsonl", range(9, 240, 10), loss)
    report = compare_curves(first, second)
    assert report.exit_code == 2 and not report.passed
    assert "with --offset 1" in report.hints[0] and "no step is in both logs" in said(report)


def test_other_intervals_are_compared_where_they_meet(tmp_path: Path, reference: Values) -> None:
    loss = reference["loss"]
    first = lines_of(tmp_path / "a.jsonl", range(1, 241), loss)
    second = lines_of(tmp_path / "b.jsonl", range(10, 241, 10), loss[9::10])
    report = compare_curves(first, second)
    assert report.passed and "24 steps are in both logs, which have 240 and 24" in said(report)


def test_means_over_an_interval_are_recognised(tmp_path: Path, reference: Values) -> None:
    loss = np.array(reference["loss"])
    first = lines_of(tmp_path / "a.jsonl", range(1, 241), list(loss))
    second = lines_of(tmp_path / "b.jsonl", range(10, 241, 10), list(loss.reshape(-1, 10).mean(1)))
    report = compare_curves(first, second)
    assert not report.passed and "averaged likewise the curves agree" in said(report)


def test_a_twin_logged_at_other_steps_still_measures_the_band(tmp_path: Path) -> None:
    loss = np.linspace(1, 0.5, 100)
    first = lines_of(tmp_path / "a.jsonl", range(1, 101), list(loss))
    second = lines_of(tmp_path / "b.jsonl", range(10, 101, 10), list(loss[9::10] + 5e-6))
    twin = lines_of(tmp_path / "t.jsonl", range(1, 100, 7), list(loss[::7] + 1e-6))
    report = compare_curves(first, second, twin)
    assert report.passed and len(one(report).track.steps) == 9  # the twin ends at step 99


# ---- how precisely a log was written


def test_precision_is_read_from_the_values() -> None:
    values = np.random.default_rng(0).normal(size=50)
    assert precision_of(values) == 53
    assert precision_of(values.astype(np.float32).astype(np.float64)) == 24
    assert precision_of(values.astype(np.float16).astype(np.float64)) == 11
    assert precision_of(np.arange(50.0)) == 53  # whole numbers leave it open


def test_digits_are_read_from_the_values() -> None:
    values = np.random.default_rng(0).uniform(0.1, 1, size=50)
    assert not decimals_of(values).any()
    assert decimals_of(np.round(values, 4))[0] == pytest.approx(1e-4)
    schedule = np.array([float(f"{2e-5 * value:.3e}") for value in values])
    assert decimals_of(schedule) == pytest.approx(10 ** (np.floor(np.log10(schedule)) - 3))


def test_rounded_decimals_are_no_parting_but_more_than_one_is(reference: Values) -> None:
    loss = np.array(reference["loss"])
    report = compare_curves({"loss": np.round(loss, 4)}, {"loss": np.round(loss + 1e-6, 4)})
    assert report.passed and one(report).largest > 5e-5 and "digits hide" in said(report)
    assert not compare_curves(
        {"loss": np.round(loss, 4)}, {"loss": np.round(loss + 3e-4, 4)}
    ).passed


def test_a_short_learning_rate_is_not_taken_for_a_rounded_one() -> None:
    rates = np.round(1e-5 - 1e-9 * np.arange(200), 9)
    report = compare_curves({"lr": rates[:-1]}, {"lr": rates[1:]})
    assert not report.passed and report.results[0].first_step == 1
    assert not compare_curves({"lr": [2e-5] * 20}, {"lr": [1.9e-5] * 20}).passed
    accuracy = compare_curves({"eval_accuracy": [0.9128] * 3}, {"eval_accuracy": [0.9117] * 3})
    assert not accuracy.passed


def test_few_digits_excuse_no_visible_difference() -> None:
    plateaus = np.round(np.repeat(np.arange(9, 0, -1) / 10, 100), 1)
    other = plateaus.copy()
    other[300:400] -= 0.1
    assert compare_curves({"lr": plateaus}, {"lr": np.round(other, 1)}).results[0].first_step == 301


def test_float32_of_the_loss_does_not_excuse_the_learning_rate(reference: Values) -> None:
    other = reference | {"lr": [rate * (1 + 1e-8) for rate in reference["lr"]]}
    report = compare_curves(reference, other)
    assert [r.quantity for r in report.results if r.first_step] == ["lr"]


def test_runs_of_different_precision_are_told() -> None:
    loss = np.array(run(dtype=np.float64)["loss"])
    report = compare_curves({"loss": loss}, {"loss": loss.astype(np.float32).astype(np.float64)})
    assert report.passed and "float32 in the second" in said(report)


# ---- names


@pytest.mark.parametrize(
    "name", ["loss", "train_loss", "Train/loss", "LOSS", "my run - train/loss"]
)
def test_synonyms_of_the_loss(name: str) -> None:
    assert canonical(name) == "loss"


def test_synonyms_of_the_rest() -> None:
    assert canonical("train/learning_rate") == canonical("lr") == "lr"
    assert canonical("val_acc") == canonical("eval/accuracy") == "eval_accuracy"
    assert canonical("eval_loss") != canonical("loss")


@pytest.mark.parametrize(
    "name",
    ["epoch", "train_runtime", "interval_samples_per_second", "progress_or_epoch", "global_step",
     "train/max_memory_allocated", "reader_cost", "ips", "memory(GiB)", "train_speed(iter/s)"],
)  # fmt: skip
def test_time_and_memory_are_not_compared(name: str) -> None:
    assert is_measured(name)


@pytest.mark.parametrize("name", ["loss", "cost", "lr", "grad_norm", "eval_accuracy", "perplexity"])
def test_quantities_are_compared(name: str) -> None:
    assert not is_measured(name)


def test_a_trainers_final_mean_is_not_the_loss() -> None:
    pairs = pair_names(["loss", "train_loss", "learning_rate"], ["train_loss", "lr"]).pairs
    assert pairs == {"loss": "train_loss", "learning_rate": "lr"}


def test_unprefixed_metrics_are_paired_with_a_remark() -> None:
    names = pair_names(["loss", "accuracy"], ["loss", "eval_accuracy"])
    assert names.pairs["accuracy"] == "eval_accuracy" and "taken for the same" in names.remarks[0]


def test_names_without_a_partner_are_listed_and_none_at_all_is_an_error() -> None:
    names = pair_names(["loss", "bleu"], ["loss", "rouge", "kl"])
    assert names.remarks == ("only the first log has bleu", "only the second log has rouge, kl")
    with pytest.raises(CurveError, match="no curve is in both logs: the first has bleu, f1"):
        pair_names(["bleu", "f1"], ["rouge", "kl"])
    with pytest.raises(CurveError, match="no curve 'loss' in both"):
        pair_names(["bleu", "loss"], ["bleu"], only=["loss"])
    with pytest.raises(CurveError, match="the second log has no 'x'"):
        pair_names(["loss"], ["loss"], {"loss": "x"})


def test_a_name_map_pairs_what_names_do_not(tmp_path: Path) -> None:
    first = lines_of(tmp_path / "a.jsonl", range(1, 4), [1.0, 2.0, 3.0])
    second = tmp_path / "b.csv"
    second.write_text("step,objective,penalty\n1,1,7\n2,2,7\n3,3,7\n", encoding="utf-8")
    names = tmp_path / "names.json"
    names.write_text('{"loss": "objective"}', encoding="utf-8")
    assert command(first, second, "--name-map", names) == 0
    with pytest.raises(CurveError, match="no curve is in both"):
        command(first, second)


# ---- formats


def test_our_own_log_with_evaluations(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"step": 1, "epoch": 0, "loss": 0.69, "lr": 2e-05}\n'
        '{"step": 2, "epoch": 1, "loss": 0.6, "lr": 1e-05}\n'
        '{"step": 2, "epoch": 1, "accuracy": 0.91, "best": true, "note": "x", "none": null}\n',
        encoding="utf-8",
    )
    log = read_curves(path)
    assert list(log.curves) == ["loss", "lr", "accuracy"] and log.kind == "JSON lines"
    assert not log.remarks
    assert log.curves["accuracy"].steps.tolist() == [2] and log.curves["loss"].values[1] == 0.6
    assert log.epochs is not None and log.epochs.values.tolist() == [0, 1]


HISTORY = [
    {"epoch": 0.5, "grad_norm": 2.5, "learning_rate": 2e-05, "loss": 0.6931, "step": 10},
    {"epoch": 1.0, "grad_norm": 2.0, "learning_rate": 1e-05, "loss": 0.5, "step": 20},
    {"epoch": 1.0, "eval_accuracy": 0.9, "eval_loss": 0.4, "eval_runtime": 1.2, "step": 20},
    {"epoch": 1.0, "total_flos": 1e12, "train_loss": 0.6, "train_runtime": 9.0, "step": 20},
]
PADDLE_HISTORY = [
    {"loss": 0.69310001, "learning_rate": 2e-05, "global_step": 10, "interval_runtime": 1.0,
     "interval_samples_per_second": 3.2, "interval_steps_per_second": 0.1, "progress_or_epoch": 0.5,
     "step": 10},
    {"loss": 0.50000001, "learning_rate": 1e-05, "global_step": 20, "interval_runtime": 1.0,
     "progress_or_epoch": 1.0, "step": 20},
    {"eval_loss": 0.4, "eval_accuracy": 0.9, "eval_runtime": 2.0, "progress_or_epoch": 1.0, "step": 20},
]  # fmt: skip


@pytest.mark.parametrize("whole", [True, False], ids=["trainer_state.json", "JSON lines"])
def test_both_trainers_are_read_and_paired(tmp_path: Path, whole: bool) -> None:
    paths = []
    for name, history in (("hf", HISTORY), ("paddle", PADDLE_HISTORY)):
        text = json.dumps({"best_metric": None, "log_history": history}, indent=2) + "\n"
        lines = "".join(json.dumps(row) + "\n" for row in history)
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(text if whole else lines, encoding="utf-8")
    report = compare_curves(*paths, tolerance=1e-6)
    assert [r.quantity for r in report.results] == ["lr", "loss", "eval_accuracy", "eval_loss"]
    assert report.passed and one(report).track.steps.tolist() == [10, 20]


def test_a_trainers_folder_and_its_latest_checkpoint(tmp_path: Path) -> None:
    for number, history in ((10, HISTORY[:1]), (9, HISTORY)):
        folder = tmp_path / f"checkpoint-{number}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    assert read_curves(tmp_path).curves["loss"].steps.tolist() == [10]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": HISTORY[:2]}))
    assert read_curves(tmp_path).curves["loss"].steps.tolist() == [10, 20]


PRINTED = """\
[2024-05-01 10:00:00,123] [    INFO] - ***** Running training *****
global step 10, epoch: 0, batch: 9, loss: 0.69315, lr: 0.0000200000, speed: 3.21 step/s
\x1b[32m[2024-05-01 10:00:01,123] [    INFO]\x1b[0m - loss: 0.5, learning_rate: 1e-05, global_step: 20, \
interval_runtime: 1.0, interval_samples_per_second: 3.2, progress_or_epoch: 1.0
[2024-05-01 10:00:02,123] [    INFO] - eval_loss: 0.4, eval_accuracy: 0.9
global step 30/60, epoch: 1, batch: 9, rank_id: 0, loss: nan, lr: 5e-06, speed: 3.21 step/s
"""


def test_printed_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(PRINTED, encoding="utf-8")
    log = read_curves(path)
    assert log.kind == "printed lines" and log.curves["loss"].steps.tolist() == [10, 20, 30]
    assert log.curves["loss"].values[:2].tolist() == [0.69315, 0.5]
    assert math.isnan(log.curves["loss"].values[2])
    assert log.curves["lr"].values.tolist() == [2e-05, 5e-06]
    assert all(name.strip() == name and "20" not in name for name in log.curves)


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_tables(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "log"
    rows = [
        "Step,mode,train_loss,val_loss",
        "0,train,0.7,",
        "1,train,nan,0.5",
        "",
        "2.0,train,0.5,",
    ]
    path.write_text("\n".join(rows).replace(",", delimiter) + "\n", encoding="utf-8-sig")
    log = read_curves(path)
    assert list(log.curves) == ["train_loss", "val_loss"]
    assert log.curves["train_loss"].steps.tolist() == [0, 1, 2]
    assert log.curves["val_loss"].values.tolist() == [0.5]


def test_an_export_of_weights_and_biases(tmp_path: Path) -> None:
    path = tmp_path / "wandb.csv"
    path.write_text(
        '"Step","run-1 - train/loss","run-1 - train/loss__MIN","run-1 - train/loss__MAX"\n'
        '"1","0.5","0.5","0.5"\n',
        encoding="utf-8",
    )
    assert [canonical(name) for name in read_curves(path).curves] == ["loss"]


def test_epochs_count_where_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text('{"train_loss": 2.5, "epoch": 0}\n{"train_loss": 2.0, "epoch": 1}\n')
    assert read_curves(path).curves["train_loss"].steps.tolist() == [0, 1]


def test_steps_that_start_again_with_every_epoch(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    rows = [{"epoch": e, "iter": i, "loss": 1.0} for e in (1, 2, 3) for i in (50, 100)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_curves(path)
    assert log.curves["loss"].steps.tolist() == [50, 100, 150, 200, 250, 300]
    assert "starts again with every epoch" in log.remarks[0]


def test_a_step_of_a_total(tmp_path: Path) -> None:
    path = tmp_path / "logging.jsonl"
    path.write_text('{"loss": 2.5, "global_step/max_steps": "1/93"}\n')
    assert read_curves(path).curves["loss"].steps.tolist() == [1]


def test_records_of_step_5(tmp_path: Path) -> None:
    record = {
        "epoch_0_losses": np.array([3.0, 2.0]),
        "epoch_0_logits": np.zeros((4, 2)),
        "epoch_0_accuracy": 0.5,
        "epoch_1_losses": np.array([1.0, 0.5]),
        "epoch_1_accuracy": 0.75,
        "loss_0": 9.0,
        "loss_1": 8.0,
        "name": "x",
    }
    log = read_curves(save_record(tmp_path / "train_align_torch.npy", record))
    assert log.epochs is not None and log.epochs.values.tolist() == [0, 0, 1, 1]
    assert log.curves["accuracy"].steps.tolist() == [2, 4]
    del record["loss_0"], record["loss_1"]
    log = read_curves(save_record(tmp_path / "again.npy", record))
    assert log.curves["loss"].values.tolist() == [3, 2, 1, 0.5]
    assert log.curves["loss"].steps.tolist() == [1, 2, 3, 4]


def write_visualdl(folder: Path, values: Values, start: int = 1) -> Path:
    from visualdl import LogWriter

    with LogWriter(str(folder)) as writer:
        for name, column in values.items():
            for step, value in enumerate(column, start):
                writer.add_scalar(tag=f"train/{name}", step=step, value=value)
    return folder


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_visualdl(tmp_path: Path, reference: Values) -> None:
    pytest.importorskip("visualdl")
    folder = write_visualdl(tmp_path / "vdl", reference)
    (path,) = folder.iterdir()
    report = compare_curves(reference, folder)
    assert report.passed and one(report).other_name == "train/loss"
    assert compare_curves(reference, path).passed
    data = path.read_bytes()
    path.write_bytes(data[:-7])
    assert "its last record was cut off" in read_curves(path).remarks[0]
    path.write_bytes(data[:200] + b"\xff" * 200 + data[400:])
    with pytest.raises(CurveError, match="damaged at byte"):
        read_curves(folder)


def write_tensorboard(folder: Path, values: Values) -> Path:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for name, column in values.items():
            for step, value in enumerate(column, 1):
                writer.add_scalar(f"train/{name}", value, step)
    return folder


def test_tensorboard(tmp_path: Path, reference: Values) -> None:
    pytest.importorskip("tensorboard")
    folder = write_tensorboard(tmp_path / "runs" / "one", reference)
    (path,) = folder.iterdir()
    report = compare_curves(reference, tmp_path / "runs")
    assert report.passed and one(report).logged == (240, 240)
    assert compare_curves(reference, path).passed
    data = path.read_bytes()
    path.write_bytes(data[:-7])
    assert "its last event was cut off" in read_curves(path).remarks[0]
    for place in (400, len(data) // 2):
        path.write_bytes(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
        with pytest.raises(CurveError, match="damaged at byte"):
            read_curves(folder)


def test_several_runs_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.out.tfevents.1").write_bytes(b"\0" * 12 + b"brain.Event:2")
    with pytest.raises(CurveError, match="holds 2 runs: give one of a, b"):
        read_curves(tmp_path)


@pytest.mark.parametrize(
    ("package", "head"),
    [("tensorboard", b"\0" * 12 + b"brain.Event:2"), ("visualdl", b"\0" * 12 + b"meta_data_tag")],
)
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, head: bytes
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError("gone", name=name.partition(".")[0])

    monkeypatch.setattr("reprod_align.curves.readers.events.import_module", missing)
    (tmp_path / "log").write_bytes(head)
    with pytest.raises(CurveError, match=f"needs {package}: python -m pip install {package}"):
        read_curves(tmp_path / "log")


# ---- damaged logs


def test_a_killed_runs_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 1.0}\n{"step": 2, "loss": 0.9}\n{"step": 3, "lo')
    log = read_curves(path)
    assert log.curves["loss"].steps.tolist() == [1, 2]
    assert log.remarks == ("the last line (3) was cut off and is left out",)
    table = tmp_path / "log.csv"
    table.write_text("step,loss,lr\n1,0.5,1\n2,0.4,1\n3,0.")
    assert "the last line (4) was cut off" in read_curves(table).remarks[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"step": 1, "loss": 1}\n{"step": 2, "lo\n{"step": 3, "loss": 1}\n', "line 2 is damaged"),
        ('{"step": 1, "loss": 1}\n[1]\n{"step": 3, "loss": 1}\n', "got a list"),
        ('{"step": 1.5, "loss": 1}\n', "line 1: expected a step, a whole number, got '1.5'"),
        ('{"step": "x", "loss": 1}\n', "expected a step, a whole number, got 'x'"),
        ('{"step": 1e300, "loss": 1}\n', "step 100000000000000005250476 is too large"),
        ('{"loss": 1}\n', "has no step: it has loss"),
        ('{"step": 1, "note": "x"}\n', "holds no number"),
        ('{"log_history": []}', "its log_history is empty"),
        ('{"log_history": 3}', "expected a log_history, a list of JSON objects"),
        ('{\n  "log_history": [\n    {"step": 1,\n', "is damaged at line"),
        ("step,loss\n1,0.5\n2,abc\n", "line 3: column 'loss' holds numbers, got 'abc'"),
        ("step,loss\n1,0.5\n2\n3,0.4\n", "line 3: fewer cells"),
        ("step,loss\n1,0.5,9\n", "line 2: 3 cells for 2 names"),
        ("step,loss,loss\n1,0.5,9\n", "a column name appears twice"),
        ("step,loss\n", "has no step"),
        ("hello world\n", "unknown log format; known: a record"),
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("[" * 5000, "unknown log format; known: a record"),
        ("{" * 5000, "damaged|cannot be read"),
    ],
)
def test_damage_is_one_clear_error(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CurveError, match=words) as error:
        read_curves(path)
    assert "\n" not in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize("data", [bytes(range(256)) * 40, b"\0" * 64, b"PK\3\4\xff", b"\x93NUMPY"])
def test_binary_garbage_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    with pytest.raises(ReprodError) as error:
        read_curves(path)
    assert str(path) in str(error.value)


def test_missing_files_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="is missing"):
        read_curves(tmp_path / "none")
    with pytest.raises(CurveError, match="holds no TensorBoard"):
        read_curves(tmp_path)
    with pytest.raises(CurveError, match="device"):
        read_curves("/dev/null")


def test_a_resumed_run_repeats_steps_and_the_last_counts(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "log", [1, 2, 3, 2, 3, 4], [3.0, 2.0, 9.0, 2.0, 1.0, 0.5])
    log = read_curves(path)
    assert log.curves["loss"].values.tolist() == [3, 2, 1, 0.5]
    assert "2 step(s) (2 to 3) of loss appear more than once, 1 of them" in log.remarks[0]


def test_nan_in_any_spelling(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = ['{"step": 1, "loss": NaN}', '{"step": 2, "loss": "nan"}', '{"step": 3, "loss": 1e999}']
    path.write_text("\n".join([*lines, '{"step": 4, "loss": 1' + "0" * 400 + "}"]))
    values = read_curves(path).curves["loss"].values
    assert np.isnan(values[:2]).all() and np.isposinf(values[2:]).all()


def test_a_large_log(tmp_path: Path) -> None:
    steps = np.arange(1, 100_001)
    values = 1 / np.sqrt(steps)
    path = lines_of(tmp_path / "log", steps.tolist(), values.tolist())
    report = compare_curves(path, {"loss": values + 1e-3 * (steps > 70_000)})
    assert one(report).first_step == 70_001


# ---- the command


def test_the_summary_starts_with_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_lines(tmp_path / "a.jsonl", run())
    second = write_lines(tmp_path / "b.jsonl", run(swapped=57))
    assert command(first, second, "--twin", write_lines(tmp_path / "t.jsonl", run(nudge=1))) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "verdict: loss leaves the noise band at step 57"
    assert lines[2].split("  ")[0] == "curve" and lines[3].split()[:2] == ["loss", "240"]
    assert lines[3].split()[-2:] == ["57", "diverges"] and lines[4].split()[-1] == "agrees"
    assert any(line.startswith("band: 10 x the largest |reference - twin|") for line in lines)
    assert command(first, second) == 1
    assert "no noise was measured" in capsys.readouterr().out
    assert command(first, second, "--curve", "lr") == 0


def test_json_is_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = lines_of(tmp_path / "a", [1, 2], [1.0, math.nan])
    assert command(first, lines_of(tmp_path / "b", [1, 2], [1.0, 0.5]), "--json") == 1

    def refuse(name: str) -> None:
        raise AssertionError(name)

    result = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert result["first_step"] == 2 and result["curves"][0]["verdict"] == "diverges at the end"


@pytest.mark.parametrize("kind", ["html", "png", "svg"])
def test_reports(tmp_path: Path, kind: str) -> None:
    first = write_lines(tmp_path / "a$_<b>.jsonl", run())
    second = write_lines(tmp_path / "b.jsonl", run(swapped=57))
    path = tmp_path / f"out.{kind}"
    assert command(first, second, "--report", path) == 1
    head = {"html": b"<!DOCTYPE html>", "png": b"\x89PNG", "svg": b"<?xml"}[kind]
    assert path.read_bytes().startswith(head)
    if kind == "html":
        text = path.read_text()
        assert "leaves the noise band at step 57" in text and "a$_&lt;b&gt;.jsonl" in text
        assert "<script" not in text and "http" not in text.replace("http-equiv", "")


def test_a_report_survives_whatever_is_in_the_log(tmp_path: Path) -> None:
    name = "<b>$x^$\n\x1b[31m"
    first = {name: [math.nan, 1.0, 0.0], "loss": [math.inf, -1e308, 1e308], "zero": [0.0] * 3}
    second = {name: [1.0, 1.0, 0.0], "loss": [math.inf, 1e308, 1e308], "zero": [0.0] * 3}
    for kind in ("html", "png", "svg"):
        from reprod_align.curves.plot import write_plot

        report = compare_curves(first, second)
        write_plot(tmp_path / f"out.{kind}", report)
    assert "\x1b" not in said(report) and "<b>" not in (tmp_path / "out.html").read_text()


def test_a_report_of_another_kind_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ReprodError, match="must end in"):
        command(tmp_path / "none", tmp_path / "none", "--report", tmp_path / "out.pdf")


@pytest.mark.parametrize("option", ["--multiple", "--tolerance"])
def test_numbers_that_make_no_band_are_refused(tmp_path: Path, option: str) -> None:
    log = lines_of(tmp_path / "log", [1], [1.0])
    for value in ("nan", "inf", "-1"):
        with pytest.raises(CurveError, match="must be a number"):
            command(log, log, f"{option}={value}")


def test_a_log_of_values_counts_from_1() -> None:
    assert CurveLog.of({"loss": [1.0, 2.0]}).curves["loss"].steps.tolist() == [1, 2]
