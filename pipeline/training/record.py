"""What Step 5 measures after an epoch, and where the runs of native mode are recorded."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.corpus import check_tsv, fetch_corpus
from pipeline.run import Run, remove_records
from pipeline.tasks import RANKED_DECIMALS, TASKS, Task
from pipeline.training.options import NATIVE
from reprod_align.base.files import require_writable

import numpy as np

MISMATCHED = "mm_"  # before the names of what is measured on MNLI's other half


@dataclass
class Measured:
    """What was measured on each set of sentences, by its name in the record of Step 5."""

    logits: dict[str, list[list[float]]] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)

    def add(
        self, task: Task, prefix: str, logits: list[list[float]], labels: Sequence[float]
    ) -> None:
        """Add logits (N, num_labels) and labels (N,) of the sentences that `prefix` names."""
        self.logits[f"{prefix}logits"] = logits
        scores = _scores(task, logits, labels)
        self.scores |= {f"{prefix}{name}": score for name, score in scores.items()}


def list_dev_files(run: Run) -> dict[str, Path]:
    """Return what to measure on, by prefix: the dev set, and for MNLI its mismatched half if it is there."""
    found: dict[str, Path] = {"": run.corpus.dev}
    if run.task is TASKS["mnli"]:
        other = TASKS["mnli-mm"]
        folder = fetch_corpus(other, run.home) if run.options.from_hub else run.corpus.dev.parent
        if (folder / other.dev.file).is_file():
            found[MISMATCHED] = check_tsv(folder / other.dev.file, other, other.dev)
    return found


def official(name: str) -> str:
    """Return what a metric is called in the official record: the guide's name of the accuracy is acc."""
    return name.replace("accuracy", "acc")


def _scores(task: Task, logits: list[list[float]], labels: Sequence[float]) -> dict[str, float]:
    predictions, true = task.predictions(logits), np.asarray(labels)
    scores = task.metrics(predictions, true)
    if "spearman" in scores:  # rounding alone would make and break ties
        ranked = task.metrics(np.round(predictions, RANKED_DECIMALS), true)
        scores["spearman"] = ranked["spearman"]
    return scores


def native_record(run: Run, side: str) -> Path:
    """Return where the run of this seed is recorded; the official files are another run's."""
    return run.results / NATIVE / f"train_align_{side}_seed{run.options.seed}.npy"


def native_records(run: Run, side: str) -> dict[int, Path]:
    """Return where a side's runs are recorded, by seed, rising."""
    pattern = re.compile(rf"train_align_{side}_seed(\d+)\.npy")
    paths = (run.results / NATIVE).glob("*.npy")
    named = [(pattern.fullmatch(path.name), path) for path in paths]
    return dict(sorted((int(match[1]), path) for match, path in named if match))


def remove_training_records(run: Run, side: str) -> None:
    """Remove what an earlier run like this one recorded, so that no check judges it after a failure."""
    if run.options.randomness == NATIVE:
        require_writable(native_record(run, side).parent)
        native_record(run, side).unlink(missing_ok=True)
    else:
        remove_records(run, f"train_align_{side}")
