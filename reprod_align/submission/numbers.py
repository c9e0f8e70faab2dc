"""What the numbers themselves say: one quantity that several records hold must be one number.

The metrics of Step 2 are recomputed from logits and labels.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reprod_align.base import FRAMEWORKS
from reprod_align.base.blocks import Array
from reprod_align.base.difference import INEXACT, dtype_kind
from reprod_align.records import NamedArrays
from reprod_align.submission.findings import EDITED, RUNS, JudgedStep, Verification

import numpy as np

_PART = re.compile(r"(?:batch_(\d+)_)?(logits|labels)")
_FLOAT32 = 1e-6  # metrics are divided in float32
_RANKED = 2e-3
"""area under the curve: float32 makes and breaks ties"""
_NEAR = 1e-5  # relative: logits so near to each other may change places in float32
ExpectedValues = dict[str, tuple[Array, float]]
"""metric -> its value, and how far float32 may move it"""
_ROUNDING = 1e-4  # of float32, after a few iterations of training
_FLOOR = 1e-7  # below it, float32 leaves nothing of a number beside larger ones
_LABELS = ("fake_label", "labels", "label")
_DRIFT = 0.02
"""accuracy: float32 and float64 part in training; ten times what the guide allows between frameworks"""
_WHOLE = 1e-2  # examples: an accuracy may be float32, of 100,000 examples
_ACCURACY: Final = re.compile(r"acc|(epoch_\d+_)?accuracy")
_LOSSES: Final = re.compile(r"epoch_0_losses")
_BEGINNING, _BEGINS = 10, 1e-3  # steps in which float32 stays so near; measured: 4e-7
_RATES: Final = re.compile(r"lr_\d+")


def recompute_metrics(record: Mapping[str, Array]) -> ExpectedValues:
    """Return the metrics that a record's logits (N, C) and labels (N,) give; {} if it does not hold both.

    Known are accuracy, precision, recall, F1 and the area under the ROC curve of class 1, Matthews'
    coefficient, and the counts of true positives, false positives and false negatives.
    """
    logits, labels = _join(record, "logits"), _join(record, "labels")
    if logits is None or labels is None or not _can_be_judged(logits, labels):
        return {}
    predicted = logits.argmax(1)
    ordered = np.sort(logits, 1)
    near = ordered[:, -1] - ordered[:, -2] <= _NEAR * np.abs(logits).max()
    slack = _FLOAT32 + 2 * float(near.sum()) / len(labels)
    accuracy = float((predicted == labels).mean())
    found: ExpectedValues = {
        "accuracy": (np.asarray(accuracy), slack),
        "acc": (np.asarray(accuracy), slack),
        **_count(predicted, labels, logits.shape[1], float(near.sum())),
    }
    if logits.shape[1] == 2:
        found |= _measure_binary(logits, predicted, labels, slack)
    return found


def _join(record: Mapping[str, Array], what: str) -> Array | None:
    """Return the batches of logits, or of labels, one after another."""
    parts = {
        int(match[1] or 0): array
        for key, array in record.items()
        if (match := _PART.fullmatch(key)) and match[2] == what
    }
    arrays = [parts[number] for number in sorted(parts)]
    fit = len({array.shape[1:] for array in arrays}) == 1 and all(a.ndim for a in arrays)
    return np.concatenate(arrays) if fit else None


def _can_be_judged(logits: Array, labels: Array) -> bool:
    """Tell whether these are scores (N, C) of two classes or more, and the classes (N,)."""
    return bool(
        logits.dtype.kind == "f"
        and logits.ndim == 2
        and logits.shape[1] > 1
        and len(logits)
        and labels.shape == logits.shape[:1]
        and labels.dtype.kind in "iu"
        and labels.min() >= 0
        and labels.max() < logits.shape[1]
        and np.isfinite(logits).all()
    )


def _count(predicted: Array, labels: Array, classes: int, near: float) -> ExpectedValues:
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


def _measure_binary(logits: Array, predicted: Array, labels: Array, slack: float) -> ExpectedValues:
    hits = float(((predicted == 1) & (labels == 1)).sum())
    chosen, true = float((predicted == 1).sum()), float((labels == 1).sum())
    precision = hits / chosen if chosen else 0.0
    recall = hits / true if true else 0.0
    f1 = 2 * hits / (chosen + true) if chosen + true else 0.0
    values = {"precision": precision, "recall": recall, "f1": f1}
    several = 1.0 if slack > _FLOAT32 else _FLOAT32  # one example more weighs otherwise in each
    found = {name: (np.asarray(value), several) for name, value in values.items()}
    found["matthews"] = (np.asarray(_compute_matthews(predicted, labels)), several)
    area = _measure_area(logits[:, 1] - logits[:, 0], labels)
    return {**found, "auc": (np.asarray(area), _RANKED)} if area is not None else found


def _compute_matthews(predicted: Array, labels: Array) -> float:
    table = np.histogram2d(labels, predicted, bins=2, range=((0, 2), (0, 2)))[0]
    sides = np.prod([*table.sum(0), *table.sum(1)])
    product = table[0, 0] * table[1, 1] - table[0, 1] * table[1, 0]
    return float(product / np.sqrt(sides)) if sides else 0.0


def _measure_area(scores: Array, labels: Array) -> float | None:
    """Return the share of pairs that the scores put in the right order, ties half; None without a pair."""
    positive, negative = np.sort(scores[labels == 1]), np.sort(scores[labels == 0])
    if not len(positive) or not len(negative):
        return None
    below = np.searchsorted(negative, positive, "left").sum()
    level = np.searchsorted(negative, positive, "right").sum() - below
    return float((below + 0.5 * level) / (len(positive) * len(negative)))


def check_numbers(steps: Sequence[JudgedStep], findings: Verification) -> None:
    """Add a fault for each quantity that differs between two records of a submission."""
    known = {each.step.name: each for each in steps}
    _check_twins(steps, findings)
    _check_logits(known, findings)
    _check_first_loss(known, findings)
    _check_rates(known, findings)
    _check_metrics(known, findings)
    _check_best(known, findings)


def _check_twins(steps: Sequence[JudgedStep], findings: Verification) -> None:
    """Compare each float32 record with its float64 twin: one model made both."""
    for judged in steps:
        compared = judged.step.shows_place and not judged.step.exact
        for side, record, twin in _list_sides(judged) if compared else ():
            alone = [] if judged.step.from_counts else [key for key in record if key not in twin]
            said = f"{alone[0]} is in float32 alone" if alone else ""
            fault = said or next(_find_apart(record, twin), "")
            if fault:
                findings.add(
                    RUNS,
                    f"{judged.step.name}_{side}.npy and its float64 twin in strict/ are not of one run: "
                    f"{fault}",
                )


def _list_sides(judged: JudgedStep | None) -> Iterator[tuple[str, NamedArrays, NamedArrays]]:
    """Yield each side of a step with its record and the float64 twin, where both sides have both."""
    if judged is not None and judged.records is not None and judged.twins is not None:
        yield from zip(FRAMEWORKS, judged.records, judged.twins, strict=True)


def _find_apart(record: NamedArrays, twin: NamedArrays) -> Iterator[str]:
    """Yield each key whose values differ between two records by more than float32 explains."""
    for key in [key for key in record if key in twin]:
        ours, theirs = record[key], twin[key]
        if ours.shape != theirs.shape:
            yield f"{key}: shape {ours.shape} and {theirs.shape}"
        elif dtype_kind(ours.dtype) not in INEXACT:
            if not np.array_equal(ours, theirs):
                yield f"{key}: other values"
        elif ours.size:
            first, second = (np.asarray(each, np.complex128) for each in (ours, theirs))
            apart, other = float(np.abs(first - second).mean()), np.abs(second)
            largest = max(float(np.abs(first).max()), float(other.max()))
            allowed = _ROUNDING * max(1.0, float(other.mean()))
            if not apart <= min(_ROUNDING * largest + _FLOOR, allowed):
                yield f"{key}: mean difference {apart:.2g}, of values up to {float(other.max()):.2g}"


def _check_logits(steps: Mapping[str, JudgedStep], findings: Verification) -> None:
    """Compare the model's output with that of its last layer, which the pipeline records beside it."""
    judged = steps.get("forward")
    for side, record in zip(FRAMEWORKS, (judged.twins if judged else None) or (), strict=False):
        last, logits = record.get("classifier"), record.get("logits")
        if last is not None and logits is not None and last.shape == logits.shape:
            if not np.array_equal(last, logits):
                findings.add(
                    EDITED, f"strict/forward_{side}.npy: logits are not the output of classifier"
                )


def _check_first_loss(steps: Mapping[str, JudgedStep], findings: Verification) -> None:
    """Compare the losses that the guide makes of the same batch and weights in Steps 1, 3 and 4."""
    for position, side in enumerate(FRAMEWORKS):
        losses = {
            "Step 1's logits": _compute_loss(_find_record(steps, "forward", position)),
            "Step 3's loss": _read_single(_find_record(steps, "loss", position), "loss"),
            "Step 4's loss_0": _read_single(_find_record(steps, "bp_align", position), "loss_0"),
        }
        known = {name: value for name, value in losses.items() if value is not None}
        if known and max(known.values()) - min(known.values()) > _ROUNDING * max(known.values()):
            said = ", ".join(f"{name} {value:.6g}" for name, value in known.items())
            findings.add(
                RUNS,
                f"{side}: the loss of the fake batch should be one number: {said}; the guide takes the same "
                "batch and weights for all three",
            )


def _find_record(steps: Mapping[str, JudgedStep], name: str, position: int) -> NamedArrays:
    judged = steps.get(name)
    return judged.records[position] if judged is not None and judged.records is not None else {}


def _read_single(record: NamedArrays, key: str) -> float | None:
    array = record.get(key)
    if array is None or array.size != 1 or dtype_kind(array.dtype) not in INEXACT:
        return None
    value = float(np.real(array.reshape(-1)[0]))
    return value if np.isfinite(value) else None


def _compute_loss(record: NamedArrays) -> float | None:
    """Return the cross entropy of a record's "logits" (B, C) and its labels (B,), if it holds both."""
    logits = record.get("logits")
    labels = next((record[key] for key in _LABELS if key in record), None)
    if logits is None or labels is None or not _can_be_judged(logits, labels):
        return None
    scores = logits.astype(np.float64)
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(labels)), labels]
    return float(chances.mean())


def _check_rates(steps: Mapping[str, JudgedStep], findings: Verification) -> None:
    """Compare the learning rates of Step 4 in both precisions, to the last digits: no float32 made them."""
    for side, record, twin in _list_sides(steps.get("bp_align")):
        for key in filter(_RATES.fullmatch, record):
            if key in twin and not _are_close(record[key], twin[key], 1e-6):
                findings.add(
                    EDITED,
                    f"bp_align_{side}.npy: {key} is {_show(record[key])}, and {_show(twin[key])} in strict/",
                )
                break


def _check_metrics(steps: Mapping[str, JudgedStep], findings: Verification) -> None:
    """Recompute the metrics of Step 2 from the logits and labels that its float64 records hold."""
    told, sides = 0, list(_list_sides(steps.get("metric")))
    for side, record, twin in sides:
        for name, held in (("", record), ("strict/", twin)):
            for key, (value, tolerance) in recompute_metrics(twin).items():
                if key not in held:
                    continue
                told += 1
                array = np.asarray(held[key], np.float64)
                ok = array.shape == value.shape and bool((np.abs(array - value) <= tolerance).all())
                if not ok:
                    due = f"its logits and labels give {_show(value)}"
                    findings.add(EDITED, f"{name}metric_{side}.npy: {key} is {_show(array)}; {due}")
    if sides and not told:
        findings.remarks.append(
            "metric: its numbers could not be recomputed: strict/ holds no logits and labels of it"
        )


def _check_best(steps: Mapping[str, JudgedStep], findings: Verification) -> None:
    """Compare the result of Step 5 with its curves, and float32's with float64's."""
    for side, record, twin in _list_sides(steps.get("train_align")):
        for fault in _list_result_faults(record, twin):
            findings.add(RUNS, f"train_align_{side}.npy: {fault}")


def _list_result_faults(record: NamedArrays, twin: NamedArrays) -> Iterator[str]:
    for key in filter(_LOSSES.fullmatch, record):
        if key in twin and not _begin_alike(record[key], twin[key]):
            yield f"{key} are other losses than in strict/"
    strict = _read_single(twin, "acc")
    for key in filter(_ACCURACY.fullmatch, record):
        one, other = _read_single(record, key), _read_single(twin, key)
        if one is not None and other is not None and not abs(one - other) <= _DRIFT:
            yield f"{key} is {one:.6g}, and {other:.6g} in strict/"
    reached = [value for key in twin if key.startswith("epoch_") and _ACCURACY.fullmatch(key)
               if (value := _read_single(twin, key)) is not None]  # fmt: skip
    if strict is not None and reached and not abs(max(reached) - strict) <= 1e-9:
        yield f"acc is {strict:.6g} in strict/, whose epochs reach {max(reached):.6g}"
    yield from _list_false_fractions(record, twin)


def _begin_alike(one: Array, other: Array) -> bool:
    """Tell whether the losses of two precisions begin alike, and are about as large in the mean."""
    if one.shape != other.shape or not one.size:
        return one.shape == other.shape
    first, second = (np.ravel(np.asarray(each, np.float64)) for each in (one, other))
    near = np.abs(first - second)[:_BEGINNING] <= _BEGINS * (np.abs(second)[:_BEGINNING] + 1)
    means = float(first.mean()), float(second.mean())
    return bool(near.all()) and abs(means[0] - means[1]) <= 0.2 * abs(means[1]) + 0.02


def _list_false_fractions(record: NamedArrays, twin: NamedArrays) -> Iterator[str]:
    """Yield accuracies that no whole number of the examples gives, which the float64 logits count."""
    counts = {len(array) for key, array in twin.items()
              if re.fullmatch(r"epoch_\d+_logits", key) and array.ndim == 2}  # fmt: skip
    for name, held in (("", record), (" in strict/", twin)) if len(counts) == 1 else ():
        (count,) = counts
        for key in filter(_ACCURACY.fullmatch, held):
            value = _read_single(held, key)
            if value is not None and not abs(value * count - round(value * count)) <= _WHOLE:
                yield f"{key}{name} is {value:.6g}, which is no fraction of {count} examples"


def _are_close(one: Array, other: Array, relative: float) -> bool:
    if one.shape != other.shape:
        return False
    first, second = np.asarray(one, np.float64), np.asarray(other, np.float64)
    largest = np.maximum(np.abs(first), np.abs(second))
    return bool((np.abs(first - second) <= relative * largest).all())


def _show(array: Array) -> str:
    return np.array2string(np.asarray(array), precision=6, threshold=4)[:40]
