"""One quantity in several records is one number, where nothing but the records tells."""

from pathlib import Path

from reprod_align.submission import verify
from reprod_align.submission.numbers import check_numbers
from tests.submission.making import WEIGHTS, change_record, judge, make_submission

import numpy as np
import pytest

SIDES = ("torch", "paddle")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A submission without training logs."""
    return make_submission(tmp_path)


def faults_of(logs: Path, step: str) -> list[str]:
    judge(logs, step, logs.parent / WEIGHTS)
    return [fault.text for fault in verify(logs).faults]


def test_a_rate_that_is_off_by_less_than_float32_training_is_told(logs: Path) -> None:
    for side in SIDES:
        change_record(
            logs / f"bp_align_{side}.npy",
            lambda held: held.update(lr_1=held["lr_1"] * np.float32(1 + 5e-5)),
        )
    assert any("lr_1 is" in text for text in faults_of(logs, "bp_align"))


@pytest.mark.parametrize("folder", ["", "strict"])
def test_a_best_accuracy_that_no_epoch_reaches_is_told(logs: Path, folder: str) -> None:
    for side in SIDES:
        change_record(
            logs / folder / f"train_align_{side}.npy",
            lambda held: held.update(acc=held["acc"].dtype.type(0.5)),
        )
    assert any("acc is 0.5" in text for text in faults_of(logs, "train_align"))


def test_no_steps_give_no_fault(logs: Path) -> None:
    findings = verify(logs)
    check_numbers([], findings)
    assert findings.passed
