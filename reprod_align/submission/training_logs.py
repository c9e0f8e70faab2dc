"""Are the training logs, as Step 5 writes them, of the trainings whose results are handed in?"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reprod_align.errors import ReprodError, one_line
from reprod_align.records.record import load_record
from reprod_align.submission.findings import DAMAGED, RUNS, Findings
from reprod_align.submission.folder import Submission

import numpy as np

_NAME = re.compile(r"training/(torch|paddle)_(float32|float64)\.jsonl")
_LOSSES = re.compile(r"epoch_(\d+)_losses")
_MOST_BYTES = 256 * 2**20
_ACCURACY = "accuracy", "acc"  # in the log, and in the record
_ROUNDING = 1e-6  # a record may be float32


@dataclass
class _TrainingLog:
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


def check_training_logs(submission: Submission, findings: Findings) -> None:
    """Add a fault for a log of this project's that cannot be read, or is of another training."""
    for name, path in submission.files.items():
        found = _NAME.fullmatch(name)
        if found is None:
            continue
        folder = "strict/" if found[2] == "float64" else ""
        record = _load(submission, f"{folder}train_align_{found[1]}.npy")
        try:
            log = _read(path)
        except (OSError, RecursionError, TypeError, ValueError) as error:
            findings.add(DAMAGED, f"{name} is not JSON lines: {one_line(str(error))[:100]}")
            continue
        if fault := _find_fault(log, record):
            findings.add(RUNS, f"{name} {fault}")


def _load(submission: Submission, name: str) -> Mapping[str, Any]:
    """Return a record; an empty one if it is missing or damaged, which is told elsewhere."""
    try:
        return load_record(submission.files[name]) if name in submission.files else {}
    except ReprodError:
        return {}


def _read(path: Path) -> _TrainingLog:
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"{path.stat().st_size} bytes")
    log = _TrainingLog()
    for line in path.read_text(encoding="utf-8").splitlines():
        numbers = json.loads(line)
        if not isinstance(numbers, dict):
            raise ValueError("a line is not an object")
        log.losses += [float(numbers["loss"])] if "loss" in numbers else []
        log.accuracies += [float(numbers[_ACCURACY[0]])] if _ACCURACY[0] in numbers else []
    return log


def _find_fault(log: _TrainingLog, record: Mapping[str, Any]) -> str:
    """Return what shows that the log is of another training; "" if nothing does."""
    result = record.get(_ACCURACY[1])
    if result is not None and log.accuracies and np.size(result) == 1:
        reached = np.abs(np.asarray(log.accuracies) - float(np.real(result)))
        if not (reached <= _ROUNDING).any():
            return f"never reaches the accuracy {float(np.real(result)):.6g} that its record holds"
    epochs = sorted((int(match[1]), key) for key in record if (match := _LOSSES.fullmatch(key)))
    recorded = [value for _, key in epochs for value in np.ravel(record[key]).tolist()]
    if len(recorded) != len(log.losses):  # --log-every leaves some out
        return ""
    differing = [
        step
        for step, pair in enumerate(zip(recorded, log.losses, strict=True))
        if pair[0] != pair[1]
    ]
    return f"has another loss than its record at step {differing[0] + 1}" if differing else ""
