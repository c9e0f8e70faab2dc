"""Metrics from logits and labels, against scikit-learn's definitions worked out by hand."""

from reprod_align.submission.numbers import recompute_metrics

import numpy as np

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
