"""Training logs that are not of the trainings whose results are handed in."""

import json
from pathlib import Path

from reprod_align.records.record import load_record
from reprod_align.submission.findings import Findings
from reprod_align.submission.folder import open_submission
from reprod_align.submission.training_logs import check_training_logs
from tests.submission.making import make_submission

import pytest


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A submission with the logs of its trainings."""
    folder = make_submission(tmp_path)
    (folder / "training").mkdir()
    for side in ("torch", "paddle"):
        losses = load_record(folder / "strict" / f"train_align_{side}.npy")["epoch_0_losses"]
        rows = [{"step": step, "loss": loss} for step, loss in enumerate(losses.tolist(), 1)]
        rows.append({"step": 12, "accuracy": 0.9})
        for dtype in ("float32", "float64"):
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            (folder / "training" / f"{side}_{dtype}.jsonl").write_text(text)
    for path in (folder / "training").glob("*_float32.jsonl"):  # as with --log-every 2
        path.write_text("".join(path.read_text().splitlines(keepends=True)[::2]))
    return folder


def faults(folder: Path) -> list[str]:
    with open_submission(folder) as submission:
        findings = Findings(folder)
        check_training_logs(submission, findings)
        return [f"{fault.kind}: {fault.text}" for fault in findings.faults]


def test_logs_of_the_same_trainings(logs: Path) -> None:
    assert faults(logs) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            '"accuracy": 0.9',
            '"accuracy": 0.8',
            "different runs: training/torch_float64.jsonl never reaches",
        ),
        (
            '"step": 3, "loss": 0.',
            '"step": 3, "loss": 1.',
            "another loss than its record at step 3",
        ),
        ('"step": 3', "step", "damaged: training/torch_float64.jsonl is not JSON lines"),
        (
            '"accuracy": 0.9',
            '"accuracy": [1]',
            "damaged: training/torch_float64.jsonl is not JSON lines",
        ),
    ],
)
def test_an_edited_log(logs: Path, old: str, new: str, told: str) -> None:
    path = logs / "training" / "torch_float64.jsonl"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    (found,) = faults(logs)
    assert told in found
