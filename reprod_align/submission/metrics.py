"""The metrics of Step 2 from logits and labels, by numpy alone."""

import re
from collections.abc import Mapping
from typing import Any

from reprod_align.base.blocks import Array

import numpy as np

_PART = re.compile(r"(?:batch_(\d+)_)?(logits|labels)")
_FLOAT32 = 1e-6  # metrics are divided in float32
_RANKED = 2e-3
"""area under the curve: float32 makes and breaks ties"""
_NEAR = 1e-5  # relative: logits so near to each other may change places in float32
Expected = dict[str, tuple[Array, float]]
"""metric -> its value, and how far float32 may move it"""


def recompute_metrics(record: Mapping[str, Array]) -> Expected:
    """Return the metrics that a record's logits (N, C) and labels (N,) give; {} if it does not hold both.

    Known are accuracy, precision, recall, F1 and the area under the ROC curve of class 1, Matthews'
    coefficient, and the counts of true positives, false positives and false negatives.
    """
    logits, labels = _join(record, "logits"), _join(record, "labels")
    if logits is None or labels is None or not _fit(logits, labels):
        return {}
    predicted = logits.argmax(1)
    ordered = np.sort(logits, 1)
    near = ordered[:, -1] - ordered[:, -2] <= _NEAR * np.abs(logits).max()
    slack = _FLOAT32 + 2 * float(near.sum()) / len(labels)
    accuracy = float((predicted == labels).mean())
    found: Expected = {
        "accuracy": (np.asarray(accuracy), slack),
        "acc": (np.asarray(accuracy), slack),
        **_count(predicted, labels, logits.shape[1], float(near.sum())),
    }
    return {**found, **_binary(logits, predicted, labels, slack)} if logits.shape[1] == 2 else found


def _join(record: Mapping[str, Array], what: str) -> Array | None:
    """Return the batches of logits, or of labels, one after another."""
    parts = {
        int(match[1] or 0): array
        for key, array in record.items()
        if (match := _PART.fullmatch(key)) and match[2] == what
    }
    arrays = [parts[number] for number in sorted(parts)]
    if (
        not arrays
        or len({array.shape[1:] for array in arrays}) > 1
        or not all(a.ndim for a in arrays)
    ):
        return None
    return np.concatenate(arrays)


def _fit(logits: Array, labels: Array) -> bool:
    whole = (
        logits.ndim == 2 and logits.shape[1] > 1 and logits.dtype.kind == "f" and len(logits) > 0
    )
    return bool(
        whole
        and labels.shape == logits.shape[:1]
        and labels.dtype.kind in "iu"
        and labels.min() >= 0
        and labels.max() < logits.shape[1]
        and np.isfinite(logits).all()
    )


def _count(predicted: Array, labels: Array, classes: int, near: float) -> Expected:
    """Return the counts of class 1, or of every class where there are more than two."""
    wanted = np.arange(classes)[:, None] if classes > 2 else np.array([[1]])
    chosen, true = predicted[None] == wanted, labels[None] == wanted
    counts = {
        "true_positives": (chosen & true).sum(1),
        "false_positives": (chosen & ~true).sum(1),
        "false_negatives": (~chosen & true).sum(1),
    }
    shape: Any = () if classes == 2 else (classes,)
    return {name: (value.reshape(shape), near) for name, value in counts.items()}


def _binary(logits: Array, predicted: Array, labels: Array, slack: float) -> Expected:
    hits = float(((predicted == 1) & (labels == 1)).sum())
    chosen, true = float((predicted == 1).sum()), float((labels == 1).sum())
    precision = hits / chosen if chosen else 0.0
    recall = hits / true if true else 0.0
    f1 = 2 * hits / (chosen + true) if chosen + true else 0.0
    values = {"precision": precision, "recall": recall, "f1": f1}
    several = 1.0 if slack > _FLOAT32 else _FLOAT32  # one example more weighs otherwise in each
    found = {name: (np.asarray(value), several) for name, value in values.items()}
    found["matthews"] = (np.asarray(_matthews(predicted, labels)), several)
    area = _area(logits[:, 1] - logits[:, 0], labels)
    return {**found, "auc": (np.asarray(area), _RANKED)} if area is not None else found


def _matthews(predicted: Array, labels: Array) -> float:
    table = np.histogram2d(labels, predicted, bins=2, range=((0, 2), (0, 2)))[0]
    sides = np.prod([*table.sum(0), *table.sum(1)])
    return (
        float((table[0, 0] * table[1, 1] - table[0, 1] * table[1, 0]) / np.sqrt(sides))
        if sides
        else 0.0
    )


def _area(scores: Array, labels: Array) -> float | None:
    """Return the share of pairs that the scores put in the right order, ties half; None without a pair."""
    positive, negative = np.sort(scores[labels == 1]), np.sort(scores[labels == 0])
    if not len(positive) or not len(negative):
        return None
    below = np.searchsorted(negative, positive, "left").sum()
    level = np.searchsorted(negative, positive, "right").sum() - below
    return float((below + 0.5 * level) / (len(positive) * len(negative)))
