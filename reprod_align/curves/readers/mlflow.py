"""Reads the runs that MLflow keeps as files: mlruns/EXPERIMENT/RUN/metrics/NAME, without its package.

A metric's file has a line for each value: time in milliseconds, value, step, and perhaps a data set's name
and digest. A name with slashes is a path below metrics/.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reprod_align.curves.log import CurveError, CurveLog, Points
from reprod_align.curves.readers import EPOCH_NAMES, Format, Runs

_METRICS: Final = "metrics"
_ABOUT: Final = "meta.yaml"
_OF_RUN: Final = re.compile("^run_(id|uuid): ", re.M)  # experiments and models have such a file too
_TRASH: Final = ".trash"  # deleted runs
_FLOAT: Final = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)"
_LINE: Final = re.compile(rf"(\d+) ({_FLOAT})(?: (-?\d+)(?: \S+ \S+)?)?", re.I)
_FIRST: Final = re.compile(rf"\d{{12,}} {_FLOAT} -?\d+(?: \S+ \S+)?\r?\n", re.I)


def read_mlflow(path: Path) -> CurveLog:
    """Return the curves of a run's folder, or of one metric's file.

    A metric of several values that were all logged without a step is counted in their order, from 1, with
    a remark. Raises CurveError, with file and line, for a damaged line; a last line that was cut off is left
    out, with a remark.
    """
    points = Points(str(path))
    metrics = path / _METRICS
    files = sorted(metrics.rglob("*")) if path.is_dir() else [path]
    for file in files:
        if file.is_file():
            _read_metric(
                points, file, str(file.relative_to(metrics if path.is_dir() else file.parent))
            )
    return points.build_log("an MLflow run")


def _read_metric(points: Points, file: Path, name: str) -> None:
    entries: list[tuple[int, float]] = []
    with file.open(encoding="utf-8", errors="replace") as handle:
        for line, text in enumerate(handle, 1):
            if not text.endswith("\n"):
                points.remarks.append(f"{name}: the last line ({line}) was cut off and is left out")
                break
            found = _LINE.fullmatch(text.strip())
            if found is None:
                raise CurveError(
                    f"{file}, line {line} is damaged: expected time, value and step, got {text[:40]!r}"
                )
            entries.append((int((found[3] or "0")[:24]), float(found[2])))
    if len(entries) > 1 and not any(step for step, _ in entries):
        points.remarks.append(f"{name} was logged without a step: its values are counted from 1")
        entries = [(step, value) for step, (_, value) in enumerate(entries, 1)]
    for step, value in entries:
        if name in EPOCH_NAMES:
            points.add_epoch(step, value)
        else:
            points.add(step, name, value)


def _find_runs(folder: Path, files: Sequence[Path]) -> Runs:
    """Return the folders of the runs that are in the folder, or the run whose metrics it holds."""
    if folder.name == _METRICS and (folder.parent / _ABOUT).is_file():
        return [[folder.parent]]
    places = [path.parent for path in files if path.name == _ABOUT]
    return [
        [place]
        for place in places
        if (place / _METRICS).is_dir()
        and _TRASH not in place.relative_to(folder).parts
        and _OF_RUN.search((place / _ABOUT).read_text(encoding="utf-8", errors="replace"))
    ]


MLFLOW: Final = Format(
    "MLflow",
    read_mlflow,
    (
        "the folder of an MLflow run, `mlruns/EXPERIMENT/RUN`, or the file of one metric",
        "needs no package",
    ),
    ("MLflow 一次运行的目录 `mlruns/EXPERIMENT/RUN`，或单个指标的文件", "不需要安装任何包"),
    lambda head: _FIRST.match(head.text) is not None,
    _find_runs,
)
