"""Are the training logs, as Step 5 writes them, of the trainings whose results are handed in?

A log has a line for every --log-every-th step, {"step": 3, "epoch": 0, "loss": ..., "lr": ...}, and one for
each epoch, {"step": 21, "epoch": 0, "accuracy": ...}. What a record holds too must be the same, and what two
logs hold must agree.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose, isfinite
from pathlib import Path
from typing import Any, Final

from reprod_align.base import FRAMEWORKS
from reprod_align.base.text import count, shorten
from reprod_align.errors import ReprodError, one_line
from reprod_align.records import load_record
from reprod_align.submission.files import TRAINING, Submission
from reprod_align.submission.findings import DAMAGED, MISSING, RUNS, Verification

import numpy as np

_NAME: Final = re.compile(r"training/(torch|paddle)_(float32|float64)\.jsonl")
_CURVE: Final = re.compile(r"epoch_(\d+)_(.+)")
_MOST_BYTES = 256 * 2**20
_LONGEST = 2**16  # bytes of a line
_ROUNDING = 1e-6  # a record may be float32
_BEGINNING = 10  # steps in which float32 stays near float64
_BEGINS = 1e-3  # relative: the losses of these steps; measured: 4e-7
_DRIFT = 0.2  # relative: the mean of all losses
_RATE = 1e-6  # relative: learning rates are computed by either framework
_NAMED = 3


@dataclass(frozen=True)
class _LoggedNumbers:
    step: int
    epoch: int
    numbers: Mapping[str, float]


@dataclass
class _TrainingLog:
    steps: list[_LoggedNumbers] = field(default_factory=list)
    """with a loss"""
    epochs: list[_LoggedNumbers] = field(default_factory=list)
    """with results"""

    @property
    def losses(self) -> list[float]:
        return [line.numbers["loss"] for line in self.steps]


EpochCurves = Mapping[int, Mapping[str, Any]]
"""epoch -> its losses and results, as a float64 record holds them"""


def check_training_logs(submission: Submission, findings: Verification) -> None:
    """Add a fault for a log of this project's that cannot be read, or is of another training."""
    logs: dict[tuple[str, str], _TrainingLog] = {}
    for name, path in submission.files.items():
        found = _NAME.fullmatch(name)
        if found is None:
            continue
        try:
            logs[found[1], found[2]] = _read(path)
        except (OSError, RecursionError, TypeError, ValueError) as error:
            findings.add(DAMAGED, f"{name} is not JSON lines: {one_line(str(error))[:100]}")
    _note_others(submission, findings)
    _require_all(submission, findings)
    for (side, dtype), log in logs.items():
        name = f"{TRAINING}{side}_{dtype}.jsonl"
        folder = "strict/" if dtype == "float64" else ""
        record = _load(submission, f"{folder}train_align_{side}.npy")
        curves = _list_curves(_load(submission, f"strict/train_align_{side}.npy"))
        for fault in _list_faults(log, record, curves, exact=dtype == "float64"):
            findings.add(RUNS, f"{name} {fault}")
            break
    for fault in _compare_logs(logs):
        findings.add(RUNS, fault)


def _require_all(submission: Submission, findings: Verification) -> None:
    """Add a fault where a training has a record and no log, though another one has both."""
    wanted = {
        f"{TRAINING}{side}_{dtype}.jsonl": f"{folder}train_align_{side}.npy"
        for side in FRAMEWORKS
        for dtype, folder in (("float32", ""), ("float64", "strict/"))
    }
    lacking = [name for name, record in wanted.items()
               if record in submission.files and name not in submission.files]  # fmt: skip
    if lacking and any(name in submission.files for name in wanted):
        findings.add(MISSING, f"{shorten(lacking, _NAMED)}, though other trainings have their logs")


def _note_others(submission: Submission, findings: Verification) -> None:
    """Remark on logs in other formats, which cannot be compared with a record."""
    others = [name for name in submission.files
              if name.startswith(TRAINING) and not _NAME.fullmatch(name)]  # fmt: skip
    if others:
        findings.remarks.append(
            f"{count(len(others), 'training log')} not compared with a record: {shorten(others, _NAMED)}"
        )


def _load(submission: Submission, name: str) -> Mapping[str, Any]:
    """Return a record; an empty one if it is missing or damaged, which is told elsewhere."""
    try:
        return load_record(submission.files[name]) if name in submission.files else {}
    except ReprodError:
        return {}


def _read(path: Path) -> _TrainingLog:
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise ValueError(f"{size} bytes")
    log = _TrainingLog()
    with path.open("rb") as handle:
        while line := handle.readline(_LONGEST + 1):
            if len(line) > _LONGEST:
                raise ValueError(f"a line has more than {_LONGEST} bytes")
            if line.strip():
                made = _read_line(line)
                (log.steps if "loss" in made.numbers else log.epochs).append(made)
    return log


def _read_line(line: bytes) -> _LoggedNumbers:
    """Return a line; ValueError if it is no object of numbers with a step and an epoch."""
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("a line is not an object")
    place = []
    for name in ("step", "epoch"):
        value = found.pop(name, None)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"a line has no {name}")
        place.append(value)
    if not found or any(
        isinstance(one, bool) or not isinstance(one, (int, float)) for one in found.values()
    ):
        raise ValueError("a line holds something else than numbers")
    return _LoggedNumbers(place[0], place[1], {name: float(value) for name, value in found.items()})


def _list_curves(record: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return what a float64 record holds of each epoch: "losses", "accuracy"."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in record.items():
        if match := _CURVE.fullmatch(key):
            found.setdefault(int(match[1]), {})[match[2]] = value
    return found


# ------------------------------------------------------------------- one log


def _list_faults(
    log: _TrainingLog, record: Mapping[str, Any], curves: EpochCurves, exact: bool
) -> Iterator[str]:
    """Yield what shows that a log is of another training. exact: the curves are of the very same run."""
    if not log.epochs:
        yield "holds no result of an epoch"
        return
    yield from _list_gaps(log)
    yield from _list_false_results(log, record)
    if curves:
        yield from _list_false_curves(log, curves, exact)


def _list_gaps(log: _TrainingLog) -> Iterator[str]:
    """Yield what is missing or out of place in a log by itself."""
    stride = log.steps[0].step if log.steps else 0
    for number, line in enumerate(log.steps, 1):
        if line.step != number * stride or not stride:
            yield f"has step {line.step} where step {number * stride} is due"
            return
    ends = [line.step for line in log.epochs]
    if [line.epoch for line in log.epochs] != [*range(len(log.epochs))] or sorted(
        set(ends)
    ) != ends:
        yield "does not hold one result for each epoch, in order"
        return
    if log.steps and not ends[-1] - stride < log.steps[-1].step <= ends[-1]:
        yield f"ends its losses with step {log.steps[-1].step}, and its last epoch with step {ends[-1]}"
    for line in log.steps:
        due = sum(line.step > end for end in ends)
        if line.epoch != due:
            yield f"has step {line.step} in epoch {line.epoch}, which is of epoch {due}"
            return
    wrong = [
        line for line in (*log.steps, *log.epochs) if not all(map(isfinite, line.numbers.values()))
    ]
    if wrong:
        yield f"holds no finite number at step {wrong[0].step}"
    kinds = (
        {frozenset(line.numbers) for line in log.steps},
        {frozenset(line.numbers) for line in log.epochs},
    )
    if max(map(len, kinds)) > 1:
        yield "leaves numbers out in some of its lines"


def _list_false_results(log: _TrainingLog, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield each way in which the record's result differs from the log's best epoch."""
    said = {
        name: float(np.real(record[key]))
        for name in log.epochs[0].numbers
        for key in (name, name.replace("accuracy", "acc"))
        if key in record and np.size(record[key]) == 1
    }
    if not said:
        return
    fitting = [line for line in log.epochs
               if all(abs(line.numbers.get(name, np.inf) - value) <= _ROUNDING
                      for name, value in said.items())]  # fmt: skip
    name, value = next(iter(said.items()))
    if not fitting:
        yield f"never reaches the {name} {value:.6g} that its record holds"
        return
    best = {name: max(line.numbers[name] for line in log.epochs) for name in said}
    if not any(
        abs(line.numbers[name] - best[name]) <= _ROUNDING for line in fitting for name in said
    ):
        yield f"has a better epoch than that of its record, whose {name} is {value:.6g}"


def _list_false_curves(log: _TrainingLog, curves: EpochCurves, exact: bool) -> Iterator[str]:
    """Yield where a log differs from the float64 record; a float32 log, by more than rounding explains."""
    recorded = [value for epoch in sorted(curves)
                for value in np.ravel(curves[epoch].get("losses", ())).tolist()]  # fmt: skip
    ends = np.cumsum(
        [np.size(curves[epoch].get("losses", ())) for epoch in sorted(curves)]
    ).tolist()
    if recorded and [line.step for line in log.epochs] != ends:
        yield f"ends its epochs with other steps than its record: {ends[:3]} there"
        return
    if recorded:
        due = [recorded[line.step - 1] for line in log.steps]
        yield from _compare_losses(log.losses, due, [line.step for line in log.steps], exact)
    for line in log.epochs:
        for name, value in line.numbers.items():
            held = curves.get(line.epoch, {}).get(name)
            if held is not None and np.size(held) == 1 and exact and float(np.real(held)) != value:
                yield f"has another {name} than its record in epoch {line.epoch}"
                return


def _compare_losses(
    losses: Sequence[float], due: Sequence[float], steps: Sequence[int], exact: bool
) -> Iterator[str]:
    for step, loss, other in zip(steps, losses, due, strict=True):
        near = step > _BEGINNING or isclose(loss, other, rel_tol=_BEGINS, abs_tol=_BEGINS)
        if (exact and loss != other) or not near:
            yield f"has another loss than its record at step {step}"
            return
    first, second = (float(np.mean(values)) if len(values) else 0.0 for values in (losses, due))
    if not isclose(first, second, rel_tol=_DRIFT, abs_tol=_DRIFT * 0.1):
        yield f"has losses of {first:.4g} in the mean, its record {second:.4g}"


# ------------------------------------------------------------------- several logs


def _compare_logs(logs: Mapping[tuple[str, str], _TrainingLog]) -> Iterator[str]:
    """Yield how two logs of one training differ: in steps, learning rates or first losses."""
    names = [(side, dtype) for dtype in ("float64", "float32") for side in FRAMEWORKS]
    known = [(name, logs[name]) for name in names if name in logs]
    for (name, log), (other, second) in zip(known, known[1:], strict=False):
        fault = _compare_two(log, second)
        if fault:
            texts = [f"{side}_{dtype}.jsonl" for side, dtype in (name, other)]
            yield f"{TRAINING}{texts[0]} and {texts[1]} {fault}"


def _compare_two(one: _TrainingLog, other: _TrainingLog) -> str:
    ours, theirs = ({line.step: line.numbers for line in log.steps} for log in (one, other))
    if [line.step for line in one.epochs] != [line.step for line in other.epochs]:
        return "end their epochs with other steps"
    for step in sorted(ours.keys() & theirs.keys()):
        for name in ours[step].keys() & theirs[step].keys():
            tolerance = _RATE if "lr" in name else _BEGINS
            values = ours[step][name], theirs[step][name]
            near = isclose(*values, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
            if not near and ("lr" in name or step <= _BEGINNING):
                return f"have another {one_line(name)[:20]} at step {step}"
    return ""
