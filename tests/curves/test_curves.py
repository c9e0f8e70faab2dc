"""Two runs compared: a planted fault is found at its step, noise is not flagged."""

from pathlib import Path
from typing import Any

from reprod_align.curves import compare_curves
from tests.curves.runs import Values, command, lines_of, one, run, said

import numpy as np
import pytest


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


def test_the_gradients_diverge_at_the_first_step_alone() -> None:
    loss = np.linspace(1, 0.5, 50)
    norms = {"grad_norm": loss * 2}
    other = {"loss": loss + np.where(np.arange(50) > 0, 1e-3, 0), "grad_norm": loss * 2.1}
    report = compare_curves({"loss": loss} | norms, other)
    assert "the backward pass" in report.hints[0]


def test_evaluation_alone_diverges() -> None:
    loss = list(np.linspace(1, 0.5, 50))
    report = compare_curves(
        {"loss": loss, "eval_accuracy": [0.8] * 9}, {"loss": loss, "eval_accuracy": [0.7] * 9}
    )
    assert "evaluation" in report.hints[0] and one(report).verdict == "agrees"


def test_an_unperturbed_twin_and_identical_logs_are_remarked_on() -> None:
    loss = {"loss": list(np.linspace(1, 0.5, 50))}
    text = said(compare_curves(loss, loss, loss))
    assert "was it perturbed?" in text and "two logs of two runs?" in text


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
