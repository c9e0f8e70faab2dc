"""The noise band, what leaves it, and where rounding begins to grow."""

import json
import math
from pathlib import Path
from typing import Any

from reprod_align.commands import main
from reprod_align.curves import compare_curves
from reprod_align.curves.band import (
    SPIKE,
    Limits,
    find_decimals,
    find_precision,
    follow,
    measure_rounding,
)
from reprod_align.curves.log import Curve, CurveError
from reprod_align.curves.report import CurveReport
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


def test_a_spike_is_not_a_divergence() -> None:
    loss = np.linspace(1, 0.5, 100)
    spiked = loss.copy()
    spiked[40:42] += 0.1
    report = compare_curves({"loss": loss}, {"loss": spiked})
    assert one(report).verdict == "spike" and report.exit_code == 1
    assert "isolated spike at step 41, back within the band at step 43" in said(report)
    assert one(report).diverged_step is None


def test_a_spike_before_a_divergence() -> None:
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
    assert one(report).verdict == "parts at the end" and "too few steps follow" in said(report)


def test_a_nan_lies_outside_whatever_the_band() -> None:
    steps = np.arange(1, 9)
    ours = Curve("loss", steps, np.linspace(1.0, 0.5, 8))
    theirs = Curve("loss", steps, np.where(steps == 3, np.nan, ours.values))
    track = follow(ours, theirs, [], Limits(tolerance=1e9))
    assert track.first == 2 and track.back == 3 and track.behaviour == SPIKE
    assert np.isnan(track.difference[2]) and track.outside.sum() == 1


STEPS = 300
UNIT = 2.0**-23
EXACT = 0.7 + 0.2 * np.cos(np.arange(1, STEPS + 1) / 7)  # a loss, in float64


def in_float32(stream: int, rate: float = 0.1, size: float = 1e-9) -> np.ndarray:
    """The run in float32: what it is off by grows like exp(rate * step)."""
    signs = np.random.default_rng(stream).choice([-1.0, 1.0], STEPS)
    growth = np.minimum(size * np.exp(rate * np.arange(STEPS)), 0.05)
    return (EXACT + signs * growth).astype(np.float32).astype(np.float64)


def compared(ours: np.ndarray, theirs: np.ndarray, exact: np.ndarray = EXACT) -> CurveReport:
    return compare_curves(
        {"loss": ours.tolist()}, {"loss": theirs.tolist()}, float64={"loss": exact.tolist()}
    )


def rounding(report: CurveReport) -> Any:
    return report.results[0].rounding


def test_the_onset_is_measured() -> None:
    """It is the first step that is off by more than ten units in the last place of the largest loss."""
    ours = in_float32(1)
    report = compared(ours, in_float32(2))
    found = rounding(report)
    limit = 10 * UNIT * np.maximum.accumulate(ours)
    expected = 1 + int(np.argmax(np.abs(ours - EXACT) > limit))
    assert found.onset == expected and 60 < expected < 90
    assert found.limit == pytest.approx(10 * UNIT * 0.9, rel=0.02) and found.precision == "float32"
    assert found.gaps.max() > 0.01
    assert 0.5 < found.ratio < 3.0  # two runs that differ from float64 alike
    assert report.passed  # the float64 run is a twin: it measures the band
    words = (
        f"loss: rounding grows from step {expected} on: there the first log's float32 run leaves"
    )
    assert words in report.summary() and "from then on the two logs are at most" in report.summary()


def test_rounding_that_does_not_grow() -> None:
    report = compared(in_float32(1, rate=0.0), in_float32(2, rate=0.0))
    assert rounding(report).onset is None and rounding(report).ratio is None and report.passed
    assert "rounding does not grow: up to step 300" in report.summary()


def test_a_fault_larger_than_rounding_is_still_outside() -> None:
    theirs = in_float32(2)
    theirs[100:] += 0.3
    report = compared(in_float32(1), theirs)
    assert report.exit_code == 1 and report.results[0].first_step == 101
    assert rounding(report).ratio > 10


def test_a_run_that_ends_in_nan() -> None:
    ours, theirs = in_float32(1), in_float32(2)
    ours[150:] = theirs[150:] = np.nan
    found = rounding(compared(ours, theirs))
    assert found.steps[-1] == 150 and found.onset is not None and np.isfinite(found.ratio)


def test_logs_that_do_not_fit() -> None:
    same = compared(EXACT, EXACT + 1e-15)
    assert rounding(same) is None
    assert "the reference's own log is in float64: --float64 has no rounding" in same.summary()
    swapped = compared(in_float32(1), in_float32(2), in_float32(3))
    assert "the loss has float32 precision: is this the float64 run?" in swapped.summary()


def test_another_run_is_refused() -> None:
    """It would make a band in which everything agrees."""
    with pytest.raises(
        CurveError, match="float64 is not reference in float64: at step 1 the loss is"
    ):
        compared(in_float32(1), in_float32(2), np.roll(EXACT, 20))


def test_no_onset_without_the_float64_run() -> None:
    report = compare_curves({"loss": in_float32(1).tolist()}, {"loss": in_float32(2).tolist()})
    assert rounding(report) is None and "rounding grows" not in report.summary().split("remark")[0]


def test_the_command_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"a": in_float32(1), "b": in_float32(2), "exact": EXACT}
    for name, values in columns.items():
        rows = [
            json.dumps({"step": n, "loss": value, "lr": 0.1}) for n, value in enumerate(values, 1)
        ]
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    words = ["curves", *(str(tmp_path / name) for name in ("a", "b"))]
    words += ["--float64", str(tmp_path / "exact")]
    assert main([*words, "--report", str(tmp_path / "plot.svg"), "--json"]) == 0
    loss, rate = json.loads(capsys.readouterr().out)["curves"]
    assert rate["rounding"] is None and loss["rounding"]["units"] == 10
    onset = loss["rounding"]["onset"]
    assert f"rounding grows: step {onset}" in (tmp_path / "plot.svg").read_text()
    assert main([*words, "--report", str(tmp_path / "page.html")]) == 0
    assert f"rounding grows from step {onset} on" in (tmp_path / "page.html").read_text()


def test_the_onset_by_hand() -> None:
    steps, exact = np.arange(1, 21), np.linspace(1.0, 0.5, 20) + 1e-9
    ours = np.float32(exact).astype(np.float64)
    ours[9:] += np.float32(2.0**-18)  # 32 units in the last place
    ours = np.float32(ours).astype(np.float64)
    curves = Curve("loss", steps, ours), Curve("loss", steps, exact)
    track = follow(curves[0], Curve("loss", steps, ours + 2.0**-17), [], Limits())
    found = measure_rounding(*curves, track)
    assert found is not None and (found.onset, found.precision) == (10, "float32")
    assert found.ratio == pytest.approx(2, rel=0.05)
    assert measure_rounding(curves[1], curves[1], track) is None  # float64 already
