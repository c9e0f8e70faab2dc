"""Step 5 check, native mode: do both sides learn as well, each with its own framework's randomness?

reads   log_reprod/native/train_align_torch_seed*.npy, train_align_paddle_seed*.npy    of all seeds
writes  log_reprod/native/native_diff.log, native_diff.json, and the plot of --report
exit    0 equivalent, 1 different, 2 undecided (more seeds are needed) or cannot be compared
"""

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.run import Run, start
from reprod_align.atomic import whole_file
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.record import load_record
from reprod_align.significance import (
    ALPHA,
    EXIT_CODES,
    MARGINS,
    NativeReport,
    compare_accuracies,
    compare_runs,
)

import numpy as np
from numpy.typing import NDArray

NAMES = {"torch": "PyTorch", "paddle": "Paddle"}
SCRIPTS = {"torch": "pipeline/Step5/pt_train.py", "paddle": "pipeline/Step5/pd_train.py"}


@dataclass
class Trained:
    """One run's best epoch."""

    path: Path
    accuracy: float
    predicted: NDArray | None = None  # (N,) classes of the dev sentences
    labels: NDArray | None = None  # (N,)


@dataclass
class Runs:
    """All runs of both sides, by seed, and what is to be known of them."""

    sides: dict[str, dict[int, Trained]]
    remarks: list[str] = field(default_factory=list)


def main(run: Run) -> int:
    """Judge all seeds found; write the verdict, and print it."""
    options, folder = run.options, run.results / "native"
    if options.report:
        from reprod_align import significance_plot  # what it needs may be missing: say so now

        significance_plot.require_kind(options.report)
    runs = read(run, folder)
    report = judged(runs, tuple(options.margin or MARGINS), options.alpha)
    text = "\n".join([report.text(), *(f"remark: {remark}" for remark in runs.remarks)])
    content = report.to_json() | {
        "seeds_found": {side: sorted(found) for side, found in runs.sides.items()},
        "remarks": runs.remarks,
    }
    write(folder / "native_diff.log", text)
    write(folder / "native_diff.json", json.dumps(content, indent=1, allow_nan=False))
    if options.report:
        significance_plot.write_plot(options.report, report)
    print(text)
    return EXIT_CODES[report.verdict]


def read(run: Run, folder: Path) -> Runs:
    """Return the runs whose records lie in `folder`; ReprodError if a side has none, or one is damaged."""
    runs = Runs({})
    for side in NAMES:
        found = {seed: trained(path) for seed, path in records(folder, side).items()}
        if not found:
            command = run.command(SCRIPTS[side])
            raise MissingInputError(
                f"{folder} has no train_align_{side}_seed*.npy: first run {command} --randomness "
                "native --seed 1, and again with other seeds"
            )
        runs.sides[side] = found
    runs.remarks += remarks(runs.sides)
    return runs


def records(folder: Path, side: str) -> dict[int, Path]:
    """Return a side's records by seed, rising."""
    pattern = re.compile(rf"train_align_{side}_seed(\d+)\.npy")
    named = [(pattern.fullmatch(path.name), path) for path in folder.glob("*.npy")]
    return dict(sorted((int(match[1]), path) for match, path in named if match))


def trained(path: Path) -> Trained:
    """Return the best epoch of a record; ReprodError if it holds no epoch's accuracy."""
    record = load_record(path)
    accuracies = {
        name.removesuffix("_accuracy"): float(value)
        for name, value in record.items()
        if re.fullmatch(r"epoch_\d+_accuracy", name) and value.ndim == 0
    }
    if not accuracies and "acc" not in record:
        raise ReprodError(f"{path} holds no accuracy: native mode judges tasks that have one")
    best = max(accuracies, key=lambda epoch: accuracies[epoch], default="")  # the first of equals
    accuracy = accuracies[best] if best else float(record["acc"])
    logits, labels = record.get(f"{best}_logits"), record.get("labels")
    if logits is None or labels is None:
        return Trained(path, accuracy)
    if logits.ndim != 2 or labels.shape != logits.shape[:1] or not len(labels):
        raise ReprodError(f"{path}: logits {logits.shape} do not go with labels {labels.shape}")
    predicted = logits.argmax(axis=1)
    if abs(float((predicted == labels).mean()) - accuracy) > 0.5 / len(labels):
        raise ReprodError(f"{path}: its labels and logits do not give its accuracy {accuracy:.4f}")
    return Trained(path, accuracy, predicted, labels)


def remarks(sides: Mapping[str, Mapping[int, Trained]]) -> list[str]:
    """Return what makes the verdict say less than it seems to."""
    found = []
    if sides["torch"].keys() != sides["paddle"].keys():
        for side, other in (("torch", "paddle"), ("paddle", "torch")):
            alone = sorted(sides[side].keys() - sides[other].keys())
            if alone:
                words = ", ".join(map(str, alone))
                found.append(f"{NAMES[side]} alone has seed {words}: it counts, unpaired")
    for side, runs in sides.items():
        kept = [one.predicted for one in runs.values() if one.predicted is not None]
        if len(kept) > 1 and all(np.array_equal(kept[0], other) for other in kept[1:]):
            found.append(
                f"all seeds of {NAMES[side]} predict the very same: did --seed reach the runs?"
            )
    lacking = [
        one.path.name for runs in sides.values() for one in runs.values() if one.labels is None
    ]
    if lacking:
        found.append(
            f"{', '.join(lacking)}: no labels or logits, so McNemar's and the permutation test, which need "
            "predictions, cannot be computed; accuracies alone are compared"
        )
    return found


def judged(runs: Runs, margins: tuple[float, ...], alpha: float) -> NativeReport:
    """Return the verdict; the seeds that both sides have stand first, and are paired."""
    seeds = [runs.sides[side].keys() for side in NAMES]
    common = sorted(seeds[0] & seeds[1])
    ordered = [
        [runs.sides[side][seed] for seed in (*common, *sorted(runs.sides[side].keys() - set(common)))]
        for side in NAMES
    ]  # fmt: skip
    ours, theirs = ordered
    if any(one.labels is None for one in (*ours, *theirs)):
        return compare_accuracies(
            [one.accuracy for one in ours], [one.accuracy for one in theirs], margins, alpha
        )
    labels = same_labels([*ours, *theirs])
    return compare_runs(
        labels,
        np.stack([one.predicted for one in ours]),
        np.stack([one.predicted for one in theirs]),
        margins,
        alpha,
        names=[f"seed {seed}" for seed in common],
    )


def same_labels(runs: list[Trained]) -> NDArray:
    """Return the labels; ReprodError if two runs were measured on different sentences."""
    first = runs[0]
    for other in runs[1:]:
        if not np.array_equal(first.labels, other.labels):
            counts = " and ".join(str(len(one.labels)) for one in (first, other))
            raise ReprodError(
                f"{first.path.name} and {other.path.name} were measured on different sentences "
                f"({counts} labels): train all seeds with the same --data-dir"
            )
    return first.labels


def write(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as handle:
        handle.write(f"{text}\n".encode())


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this check's own options."""
    parser.add_argument("--alpha", type=float, default=ALPHA, help="level of every test")
    parser.add_argument(
        "--margin", type=float, action="append", metavar="SHARE",
        help="what accuracies may differ by; may be repeated (default: 0.0015 and 0.0025)",
    )  # fmt: skip
    parser.add_argument("--report", type=Path, metavar="FILE", help="draw: .html, .png or .svg")


if __name__ == "__main__":
    start(main, __doc__, add_options)
