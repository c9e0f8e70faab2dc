"""One quantity in several records is one number; Step 2's metrics are those of its logits and labels."""

from pathlib import Path

from reprod_align.submission import verify
from reprod_align.submission.numbers import check_numbers, recompute_metrics
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


LOGITS = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 0.5]])
LABELS = np.array([1, 1, 0, 0, 1])  # chosen: 1 0 1 0 1


def test_two_classes() -> None:
    found = recompute_metrics({"batch_0_logits": LOGITS[:3], "batch_1_logits": LOGITS[3:],
                               "batch_0_labels": LABELS[:3], "batch_1_labels": LABELS[3:]})  # fmt: skip
    values = {name: float(value) for name, (value, _) in found.items()}
    assert values["accuracy"] == values["acc"] == 0.6
    assert (
        values["precision"] == 2 / 3
        and values["recall"] == 2 / 3
        and abs(values["f1"] - 2 / 3) < 1e-12
    )
    assert (values["true_positives"], values["false_positives"], values["false_negatives"]) == (
        2,
        1,
        1,
    )
    assert abs(values["matthews"] - (2 * 1 - 1 * 1) / 6) < 1e-12
    assert values["auc"] == 3 / 6  # pairs in the right order


def test_counts_of_several_classes() -> None:
    logits, labels = np.eye(3)[[0, 1, 2, 1]], np.array([0, 1, 1, 2])
    found = recompute_metrics({"logits": logits, "labels": labels})
    assert found["true_positives"][0].tolist() == [1, 1, 0] and "f1" not in found
    assert found["false_positives"][0].tolist() == [0, 1, 1]


def test_an_example_on_the_edge_may_fall_either_way() -> None:
    logits = LOGITS.copy()
    logits[0] = [1.0, 1.0 + 1e-7]
    assert recompute_metrics({"logits": logits, "labels": LABELS})["accuracy"][1] > 0.2
    assert recompute_metrics({"logits": LOGITS, "labels": LABELS})["accuracy"][1] < 1e-5


def test_what_does_not_fit_gives_nothing() -> None:
    for logits, labels in (
        (LOGITS, LABELS[:4]), (LOGITS, LABELS.astype(float)), (LOGITS, LABELS + 1), (LOGITS[:, :1], LABELS),
        (LOGITS * np.nan, LABELS),
    ):  # fmt: skip
        assert recompute_metrics({"logits": logits, "labels": labels}) == {}
    assert recompute_metrics({"logits": LOGITS}) == {} == recompute_metrics({})
