"""What a divergence points to: each planted fault gets its hint."""

import json
import math
from pathlib import Path
from typing import Any

from reprod_align.curves import compare_curves
from reprod_align.curves.band import Limits, follow
from reprod_align.curves.hints import find_hints
from reprod_align.curves.log import Curve
from tests.curves.runs import Values, one, run, said, write_lines

import numpy as np
import pytest


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


def test_a_hint_needs_a_divergence() -> None:
    steps = np.arange(1, 31)
    ours = Curve("loss", steps, np.linspace(1.0, 0.5, 30))
    same = follow(ours, ours, [], Limits())
    assert find_hints(same, "loss", None) == []
    theirs = Curve("loss", steps, ours.values + 0.1 * (steps >= 20))
    apart = follow(ours, theirs, [], Limits())
    assert find_hints(apart, "loss", None)[0] == (
        "jumps at step 20, all at once: something changed there"
    )
    epochs = Curve("epoch", steps, (steps >= 20).astype(float))
    assert find_hints(apart, "loss", epochs)[0].startswith("jumps with the first logged step")
