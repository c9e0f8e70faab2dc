"""Training logs that are not of the trainings whose results are handed in."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reprod_align.submission.files import open_submission
from reprod_align.submission.findings import Verification
from reprod_align.submission.training_logs import check_training_logs
from tests.submission.making import make_submission, write_training_logs

import pytest


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A submission with the logs of its trainings."""
    folder = make_submission(tmp_path)
    write_training_logs(folder)
    return folder


def faults(folder: Path) -> list[str]:
    with open_submission(folder) as submission:
        findings = Verification(folder)
        check_training_logs(submission, findings)
        return [f"{fault.kind}: {fault.text}" for fault in findings.faults]


def test_logs_of_the_same_trainings(logs: Path) -> None:
    assert faults(logs) == []


Rows = list[dict[str, Any]]
TORCH = "torch_float64.jsonl"


def edit(logs: Path, name: str, change: Callable[[Rows], object]) -> None:
    """Change the lines of a log: `change` edits them, or returns others."""
    path = logs / "training" / name
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    made = change(rows)
    kept = made if isinstance(made, list) else rows
    path.write_text("".join(f"{json.dumps(row)}\n" for row in kept))


def end_early(rows: Rows) -> None:
    """Let the first epoch end after five steps."""
    rows[5]["epoch"], rows[6]["step"] = 1, 5
    rows[5], rows[6] = rows[6], rows[5]


EDITS: dict[str, tuple[Callable[[Rows], object], str]] = {
    "other result": (lambda rows: rows[-1].update(accuracy=0.85), "never reaches the accuracy 0.9"),
    "better epoch": (lambda rows: rows[6].update(accuracy=0.95), "has a better epoch than that of"),
    "other first result": (lambda rows: rows[6].update(accuracy=0.81), "has another accuracy than"),
    "other loss": (lambda rows: rows[2].update(loss=1.5), "another loss than its record at step 3"),
    "no result": (lambda rows: [r for r in rows if "loss" in r], "holds no result of an epoch"),
    "a step less": (lambda rows: rows.pop(2), "has step 4 where step 3 is due"),
    "no end": (lambda rows: rows[:-3] + rows[-1:], "ends its losses with step 10"),
    "an epoch twice": (lambda rows: rows[-1].update(epoch=0), "does not hold one result for each"),
    "other epoch": (lambda rows: rows[7].update(epoch=0), "has step 7 in epoch 0, which is of"),
    "other ends": (end_early, "ends its epochs with other steps than its record: [6, 12]"),
    "ends apart": (end_early, "and paddle_float64.jsonl end their epochs with other steps"),
    "not finite": (lambda rows: rows[3].update(loss=math.nan), "holds no finite number at step 4"),
    "less": (lambda rows: rows[3].pop("lr"), "leaves numbers out in some of its lines"),
    "other rate": (lambda rows: rows[11].update(lr=1.0), "have another lr at step 11"),
    "a list": (lambda rows: rows[6].update(accuracy=[1]), "something else than numbers"),
    "no numbers": (lambda rows: rows[2].clear() or rows[2].update(step=3), "a line has no epoch"),
    "no step": (lambda rows: rows[2].pop("step"), "a line has no step"),
    "no object": (lambda rows: [*rows, 1], "a line is not an object"),
    "long line": (lambda rows: rows[0].update(x="x" * 2**16), "a line has more than 65536 bytes"),
}


@pytest.mark.parametrize(("change", "told"), EDITS.values(), ids=EDITS)
def test_an_edited_log(logs: Path, change: Callable[[Rows], object], told: str) -> None:
    edit(logs, TORCH, change)
    assert any(told in found for found in faults(logs))


def test_a_log_in_float32_whose_late_losses_are_others(logs: Path) -> None:
    edit(logs, "torch_float32.jsonl", lambda rows: rows[6].update(loss=9.0))
    assert "has losses of" in faults(logs)[0] and "in the mean, its record" in faults(logs)[0]


def test_a_training_without_its_log(logs: Path) -> None:
    (logs / "training" / TORCH).unlink()
    told = "missing: training/torch_float64.jsonl, though other trainings have their logs"
    assert faults(logs) == [told]


def test_a_record_that_is_damaged_is_told_elsewhere(logs: Path) -> None:
    (logs / "strict" / "train_align_torch.npy").write_bytes(b"")
    edit(logs, TORCH, lambda rows: rows[6].update(accuracy=0.81))
    assert faults(logs) == []


def test_a_log_that_is_too_large(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprod_align.submission.training_logs._MOST_BYTES", 100)
    assert all(" is not JSON lines: " in found for found in faults(logs)) and faults(logs)
