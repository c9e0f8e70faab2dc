"""Lines that a training script prints."""

import math
from pathlib import Path

from reprod_align.curves.log import CurveError
from reprod_align.curves.readers import read_curves
from reprod_align.curves.readers.text import read_text

import pytest

PRINTED = """\
[2024-05-01 10:00:00,123] [    INFO] - ***** Running training *****
global step 10, epoch: 0, batch: 9, loss: 0.69315, lr: 0.0000200000, speed: 3.21 step/s
\x1b[32m[2024-05-01 10:00:01,123] [    INFO]\x1b[0m - loss: 0.5, learning_rate: 1e-05, global_step: 20, \
interval_runtime: 1.0, interval_samples_per_second: 3.2, progress_or_epoch: 1.0
[2024-05-01 10:00:02,123] [    INFO] - eval_loss: 0.4, eval_accuracy: 0.9
global step 30/60, epoch: 1, batch: 9, rank_id: 0, loss: nan, lr: 5e-06, speed: 3.21 step/s
"""


LINES = [f"[2024] global step {n}, epoch: 0, loss: {1 / n:.6f}, lr: 1e-05" for n in range(1, 9)]
SAMPLES = {"a.log": lambda folder: ["\n".join(LINES).encode()]}


def test_printed_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(PRINTED, encoding="utf-8")
    log = read_curves(path)
    assert log.kind == "printed lines" and log.curves["loss"].steps.tolist() == [10, 20, 30]
    assert log.curves["loss"].values[:2].tolist() == [0.69315, 0.5]
    assert math.isnan(log.curves["loss"].values[2])
    assert log.curves["lr"].values.tolist() == [2e-05, 5e-06]
    assert all(name.strip() == name and "20" not in name for name in log.curves)


def test_a_text_without_a_step_is_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("loss: 0.5\nstep 3 of the recipe\n")
    assert read_text(tmp_path / "log") is None


@pytest.mark.parametrize(
    "line",
    [
        "step 1 {}",
        "step 1 a:{}x",
        "step 1 a{}",
        "step{}",
        "epoch{} step 1",
        "step 1 {}: 2",
        "step 1 a: 1{}",
    ],
)
@pytest.mark.parametrize(
    "piece", ["a", "1", ":1", ".", " ", "a ", "step", "-", "1.", "e1", "=", "\x1b[", "_", "@"]
)
def test_a_long_line_takes_no_time(tmp_path: Path, line: str, piece: str) -> None:
    """A pattern that gives letters back would look at each letter as often as there are letters."""
    path = tmp_path / "log"
    path.write_text("step 1, loss: 0.5\n" + line.format(piece * 300_000) + "\n")
    try:
        read_text(path)
    except CurveError as error:
        assert "\n" not in str(error)


def test_a_step_of_thousands_of_digits(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for text in (
        "step " + "9" * 5000 + ", loss: 1",
        "step 1, loss: 1\nstep 1, loss: " + "9" * 5000,
    ):
        path.write_text(text)
        try:
            read_text(path)
        except CurveError as error:
            assert "is too large" in str(error)
