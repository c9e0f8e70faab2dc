"""The runs of native mode, over all their seeds: what they learned, and the verdict on both sides."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.run import Run
from pipeline.training.options import NATIVE
from pipeline.training.record import native_records
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.records import load_record
from reprod_align.significance import NativeReport, compare_accuracies, compare_runs

import numpy as np
from numpy.typing import NDArray

NAMES = {"torch": "PyTorch", "paddle": "Paddle"}
SCRIPTS = {"torch": "pipeline/Step5/pt_train_many.py", "paddle": "pipeline/Step5/pd_train_many.py"}


@dataclass(frozen=True)
class Trained:
    """One run's best epoch."""

    path: Path
    accuracy: float
    predicted: NDArray | None = None  # (N,) classes of the dev sentences
    labels: NDArray | None = None  # (N,)


Sides = Mapping[str, Mapping[int, Trained]]  # "torch" or "paddle" -> seed -> run


def read_runs(run: Run) -> Sides:
    """Return all runs of both sides by seed; ReprodError if a side has none, or one is damaged."""
    return {side: _read_side(run, side) for side in NAMES}


def _read_side(run: Run, side: str) -> dict[int, Trained]:
    found = {seed: read_run(path) for seed, path in native_records(run, side).items()}
    if not found:
        raise MissingInputError(
            f"{run.results / NATIVE} has no train_align_{side}_seed*.npy: first run "
            f"{run.command(SCRIPTS[side])} --randomness native --seed 1, and again with other seeds"
        )
    return found


def read_run(path: Path) -> Trained:
    """Return the best epoch of a record; ReprodError if it holds no epoch's accuracy."""
    record = load_record(path)
    best, accuracy = _find_best_epoch(path, record)
    logits, labels = record.get(f"{best}_logits"), record.get("labels")
    if logits is None or labels is None:
        return Trained(path, accuracy)
    if logits.ndim != 2 or labels.shape != logits.shape[:1] or not logits.size:
        raise ReprodError(f"{path}: logits {logits.shape} do not go with labels {labels.shape}")
    if logits.dtype.kind != "f" or labels.dtype.kind not in "iu" or not np.isfinite(logits).all():
        raise ReprodError(f"{path}: finite logits and whole numbers as labels are expected")
    predicted = logits.argmax(axis=1)
    if abs(float((predicted == labels).mean()) - accuracy) > 0.5 / len(labels):
        raise ReprodError(f"{path}: its labels and logits do not give its accuracy {accuracy:.4f}")
    return Trained(path, accuracy, predicted, labels)


def _find_best_epoch(path: Path, record: Mapping[str, NDArray]) -> tuple[str, float]:
    """Return the best epoch ("epoch_0", the first of equals; "" if only `acc` is there), its accuracy."""
    accuracies = {
        name.removesuffix("_accuracy"): _read_share(path, name, value)
        for name, value in record.items()
        if re.fullmatch(r"epoch_\d+_accuracy", name)
    }
    if not accuracies and "acc" not in record:
        raise ReprodError(f"{path} holds no accuracy: native mode judges tasks that have one")
    best = max(accuracies, key=lambda epoch: accuracies[epoch], default="")
    return best, accuracies[best] if best else _read_share(path, "acc", record["acc"])


def _read_share(path: Path, name: str, value: NDArray) -> float:
    if value.ndim or value.dtype.kind not in "fiu" or not 0 <= value <= 1:
        raise ReprodError(f"{path}: {name} must be a number from 0 to 1")
    return float(value)


def list_remarks(sides: Sides) -> list[str]:
    """Return what makes the verdict say less than it seems to."""
    return [*_remark_unpaired(sides), *_remark_sameness(sides), *_remark_missing_predictions(sides)]


def _remark_unpaired(sides: Sides) -> Iterator[str]:
    for side, other in (("torch", "paddle"), ("paddle", "torch")):
        alone = sorted(sides[side].keys() - sides[other].keys())
        if alone:
            words = ", ".join(map(str, alone))
            yield f"{NAMES[side]} alone has seed {words}: it counts, unpaired"


def _remark_sameness(sides: Sides) -> Iterator[str]:
    for side, runs in sides.items():
        kept = [one.predicted for one in runs.values() if one.predicted is not None]
        if len(kept) > 1 and all(np.array_equal(kept[0], other) for other in kept[1:]):
            yield f"all seeds of {NAMES[side]} predict the very same: did --seed reach the runs?"


def _remark_missing_predictions(sides: Sides) -> Iterator[str]:
    runs = [one for side in sides.values() for one in side.values()]
    lacking = [one.path.name for one in runs if one.labels is None]
    if lacking:
        yield (
            f"{', '.join(lacking)}: no labels or logits, so McNemar's and the permutation test, which "
            "need predictions, cannot be computed; accuracies alone are compared"
        )


def judge_runs(sides: Sides, margins: tuple[float, ...], alpha: float) -> NativeReport:
    """Return the verdict; runs of equal seeds are paired, without predictions accuracies alone judge_runs."""
    common = sorted(sides["torch"].keys() & sides["paddle"].keys())
    ours, theirs = (_pair_first(sides[side], common) for side in NAMES)
    if any(one.labels is None for one in (*ours, *theirs)):
        accuracies = ([one.accuracy for one in runs] for runs in (ours, theirs))
        return compare_accuracies(*accuracies, margins, alpha)
    predictions = (np.stack([one.predicted for one in runs]) for runs in (ours, theirs))
    names = [f"seed {seed}" for seed in common]
    return compare_runs(_read_labels([*ours, *theirs]), *predictions, margins, alpha, names=names)


def _pair_first(runs: Mapping[int, Trained], common: Sequence[int]) -> list[Trained]:
    """Return the runs whose seeds both sides have first: those are paired, by their position."""
    return [runs[seed] for seed in (*common, *sorted(runs.keys() - set(common)))]


def _read_labels(runs: Sequence[Trained]) -> NDArray:
    """Return the labels (N,); ReprodError if two runs were measured on different sentences."""
    first = runs[0]
    for other in runs[1:]:
        if not np.array_equal(first.labels, other.labels):
            counts = " and ".join(str(len(one.labels)) for one in (first, other))
            raise ReprodError(
                f"{first.path.name} and {other.path.name} were measured on different sentences "
                f"({counts} labels): train all seeds with the same --data-dir"
            )
    return first.labels
