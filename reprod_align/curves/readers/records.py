"""Reads the curves in a record of this library, as Step 5 of the pipeline writes it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reprod_align.base.blocks import Array
from reprod_align.curves.log import CurveLog, Points, read_count
from reprod_align.curves.readers import Format
from reprod_align.records import load_record

import numpy as np

_OF_EPOCH: Final = re.compile(r"epoch_(\d+)_(.+)")
_OF_STEP: Final = re.compile(r"(.+)_(\d+)")
_NUMBERS: Final = "iuf"


def read_record(path: Path) -> CurveLog:
    """Return the curves of a record: `epoch_0_losses` (N,), `loss_0`, or any vector of numbers.

    Steps count from 1, over all epochs; a number of an epoch (`epoch_0_accuracy`) stands at the
    epoch's last step. Raises RecordError for a damaged file, CurveError for one without curves.
    """
    record = {
        name: array
        for name, array in load_record(path).items()
        if array.dtype.kind in _NUMBERS and array.ndim <= 1
    }
    points = Points(str(path))
    _add_epochs(points, record)
    for name, array in record.items():
        numbered = _OF_STEP.fullmatch(name)
        if _OF_EPOCH.fullmatch(name):
            continue
        if array.ndim == 1:
            _add_vector(points, 0, name, array)
        elif numbered:
            points.add(read_count(numbered[2]) + 1, numbered[1], float(array))
    return points.build_log("a record")


def _add_epochs(points: Points, record: Mapping[str, Array]) -> None:
    by_epoch: dict[int, dict[str, Array]] = {}
    for name, array in record.items():
        found = _OF_EPOCH.fullmatch(name)
        if found:
            by_epoch.setdefault(read_count(found[1]), {})[found[2]] = array
    start = 0
    for epoch in sorted(by_epoch):
        arrays = by_epoch[epoch]
        length = max(len(np.atleast_1d(array)) for array in arrays.values())
        for name, array in arrays.items():
            vector = array.ndim == 1
            _add_vector(points, start if vector else start + length - 1, name, np.atleast_1d(array))
        for step in range(start + 1, start + length + 1):
            points.add_epoch(step, epoch)
        start += length


def _add_vector(points: Points, start: int, name: str, array: Array) -> None:
    name = "loss" if name == "losses" else name
    for step, value in enumerate(array.tolist(), start + 1):
        points.add(step, name, float(value))


RECORD: Final = Format(
    "a record (.npy)",
    read_record,
    (
        "a record of this library (`.npy`) with `epoch_0_losses`, ...",
        "Step 5 of the pipeline writes one",
    ),
    ("本库的记录（`.npy`），含 `epoch_0_losses` 等", "由流水线的 Step 5 写出"),
    lambda head: head.data.startswith(b"\x93NUMPY"),
)
