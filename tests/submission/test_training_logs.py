"""Training logs that are not of the trainings whose results are handed in."""

from pathlib import Path

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


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            '"accuracy": 0.9',
            '"accuracy": 0.8',
            "different runs: training/torch_float64.jsonl never reaches",
        ),
        (
            '"step": 3, "epoch": 0, "loss": 0.',
            '"step": 3, "epoch": 0, "loss": 1.',
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
    assert any(told in found for found in faults(logs))
