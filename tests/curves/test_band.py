"""The noise band: what a twin, the precision and the decimals of a log allow."""

import math
from pathlib import Path

from reprod_align.curves import compare_curves
from reprod_align.curves.band import find_decimals, find_precision
from reprod_align.curves.log import CurveError
from tests.curves.runs import Values, command, lines_of, one, run, said

import numpy as np
import pytest


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


def test_a_twin_that_is_not_finite_judges_nothing_after() -> None:
    loss = list(np.linspace(1, 0.5, 50))
    twin = [value + 1e-9 for value in loss[:20]] + [math.nan] * 30
    report = compare_curves({"loss": loss}, {"loss": [*loss[:30], *[9.0] * 20]}, {"loss": twin})
    assert report.passed and len(one(report).track.steps) == 20
    assert "up to step 20 only" in said(report)


def test_a_twin_logged_at_other_steps_still_measures_the_band(tmp_path: Path) -> None:
    loss = np.linspace(1, 0.5, 100)
    first = lines_of(tmp_path / "a.jsonl", range(1, 101), list(loss))
    second = lines_of(tmp_path / "b.jsonl", range(10, 101, 10), list(loss[9::10] + 5e-6))
    twin = lines_of(tmp_path / "t.jsonl", range(1, 100, 7), list(loss[::7] + 1e-6))
    report = compare_curves(first, second, twin)
    assert report.passed and len(one(report).track.steps) == 9  # the twin ends at step 99


def test_precision_is_read_from_the_values() -> None:
    values = np.random.default_rng(0).normal(size=50)
    assert find_precision(values) == 53
    assert find_precision(values.astype(np.float32).astype(np.float64)) == 24
    assert find_precision(values.astype(np.float16).astype(np.float64)) == 11
    assert find_precision(np.arange(50.0)) == 53  # whole numbers leave it open


def test_digits_are_read_from_the_values() -> None:
    values = np.random.default_rng(0).uniform(0.1, 1, size=50)
    assert not find_decimals(values).any()
    assert find_decimals(np.round(values, 4))[0] == pytest.approx(1e-4)
    schedule = np.array([float(f"{2e-5 * value:.3e}") for value in values])
    assert find_decimals(schedule) == pytest.approx(10 ** (np.floor(np.log10(schedule)) - 3))


def test_rounded_decimals_do_not_count_but_more_than_one_does(reference: Values) -> None:
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


@pytest.mark.parametrize("option", ["--multiple", "--tolerance"])
def test_numbers_that_make_no_band_are_refused(tmp_path: Path, option: str) -> None:
    log = lines_of(tmp_path / "log", [1], [1.0])
    for value in ("nan", "inf", "-1"):
        with pytest.raises(CurveError, match="must be a number"):
            command(log, log, f"{option}={value}")
