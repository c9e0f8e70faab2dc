"""A log in memory: steps, repeats, NaN."""

from pathlib import Path

from reprod_align.curves.log import CurveLog
from reprod_align.curves.readers import read_curves
from tests.curves.runs import lines_of

import numpy as np


def test_a_log_of_values_counts_from_1() -> None:
    assert CurveLog.from_values({"loss": [1.0, 2.0]}).curves["loss"].steps.tolist() == [1, 2]


def test_a_resumed_run_repeats_steps_and_the_last_counts(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "log", [1, 2, 3, 2, 3, 4], [3.0, 2.0, 9.0, 2.0, 1.0, 0.5])
    log = read_curves(path)
    assert log.curves["loss"].values.tolist() == [3, 2, 1, 0.5]
    assert "more than once: 2 steps of loss (2 to 3), 1 of them" in log.remarks[0]


def test_nan_in_any_spelling(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = ['{"step": 1, "loss": NaN}', '{"step": 2, "loss": "nan"}', '{"step": 3, "loss": 1e999}']
    path.write_text("\n".join([*lines, '{"step": 4, "loss": 1' + "0" * 400 + "}"]))
    values = read_curves(path).curves["loss"].values
    assert np.isnan(values[:2]).all() and np.isposinf(values[2:]).all()
