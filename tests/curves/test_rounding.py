"""The onset of rounding: a float32 run beside its own float64 run, and what the two logs make of it."""

import json
from pathlib import Path
from typing import Any

from reprod_align.commands import main
from reprod_align.curves import compare_curves
from reprod_align.curves.band import Limits, follow, measure_rounding
from reprod_align.curves.log import Curve, CurveError
from reprod_align.curves.report import CurveReport

import numpy as np
import pytest

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
