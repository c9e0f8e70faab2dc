"""Reads the event files of TensorBoard and VisualDL, through their own packages.

Both hold their numbers in float32. Several files of one folder are one run that was resumed.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from reprod_align.curves.log import CurveError, CurveLog, Points
from reprod_align.curves.readers import Format, Head, Runs, read_head

_TENSORBOARD, _VISUALDL = b"brain.Event", b"meta_data_tag"  # words of a file's first event
_LENGTH: Final = 8  # bytes that hold the length of an event or a record
_FRAME: Final = 16  # bytes around an event: its length and two checksums
_POLYNOMIAL, _MASK = 0x82F63B78, 0xA282EAD8  # of TFRecord's checksum, a masked CRC-32C


def read_tensorboard(*paths: Path) -> CurveLog:
    """Return the scalars of one run's event files, each read to its end.

    Raises CurveError if tensorboard is not installed or an event is damaged; an event cut off at
    the end of a file is left out, with a remark.
    """
    loader = _import_package(
        "tensorboard.backend.event_processing.event_file_loader"
    ).EventFileLoader
    make_ndarray = _import_package("tensorboard.util.tensor_util").make_ndarray
    points = Points(_name_source(paths))
    for path in sorted(paths):
        _require_whole_events(path, points)
        for event in loader(str(path)).Load():
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "scalars":
                    points.add(event.step, value.tag, make_ndarray(value.tensor).item())
    return points.build_log("TensorBoard events")


def read_visualdl(*paths: Path) -> CurveLog:
    """Return the scalars of one run's VisualDL files, each read to its end.

    Raises CurveError if visualdl is not installed or a record is damaged; a record cut off at
    the end of a file is left out, with a remark.
    """
    record = _import_package("visualdl.proto.record_pb2").Record
    decode_error = import_module("google.protobuf.message").DecodeError
    points = Points(_name_source(paths))
    for path in sorted(paths):
        for start, data in _read_frames(path, points):
            try:
                values = record.FromString(data).values
            except decode_error as error:
                raise CurveError(f"{path} is damaged at byte {start}: {error}") from error
            for value in values:
                if value.HasField("value"):
                    points.add(value.id, value.tag, value.value)
                elif value.HasField("tag_value"):
                    name = f"{value.tag}/{value.tag_value.tag}"
                    points.add(value.id, name, value.tag_value.value)
    return points.build_log("VisualDL records")


def _name_source(paths: tuple[Path, ...]) -> str:
    return str(paths[0] if len(paths) == 1 else paths[0].parent)


def _import_package(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        raise CurveError(
            f"reading {name} logs needs {error.name}: python -m pip install {name}"
        ) from error


def _require_whole_events(path: Path, points: Points) -> None:
    """Raise CurveError at the first damaged event, where the package itself would stop in silence."""
    raw = _import_package(
        "tensorboard.backend.event_processing.event_file_loader"
    ).RawEventFileLoader
    read = sum(len(event) + _FRAME for event in raw(str(path)).Load())
    size = path.stat().st_size
    if read == size:
        return
    with path.open("rb") as handle:
        handle.seek(read)
        header = handle.read(_LENGTH + 4)
    length, checksum = struct.unpack("<QI", header) if len(header) == 12 else (size, None)
    intact = checksum in (None, _compute_crc(header[:_LENGTH]))
    if not intact or read + length + _FRAME <= size:
        raise CurveError(f"{path} is damaged at byte {read} of {size}")
    points.remarks.append(f"{path.name}: its last event was cut off and is left out")


def _compute_crc(data: bytes) -> int:
    """Return the checksum that TFRecord keeps of the few bytes of a length."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17) + _MASK & 0xFFFFFFFF


def _read_frames(path: Path, points: Points) -> Iterator[tuple[int, bytes]]:
    """Yield where each record starts, and its bytes."""
    data, start = path.read_bytes(), 0
    while start < len(data):
        length = int.from_bytes(data[start : start + _LENGTH], "little")
        end = start + _LENGTH + length
        if end > len(data):
            points.remarks.append(f"{path.name}: its last record was cut off and is left out")
            return
        yield start, data[start + _LENGTH : end]
        start = end


def _has_mark(mark: bytes, head: Head) -> bool:
    return mark in head.data[:64]


def _find_runs(word: str, mark: bytes, folder: Path, files: Sequence[Path]) -> Runs:
    """Return the files with `word` in their names and the mark in them: those of one folder are one run."""
    runs: dict[Path, list[Path]] = {}
    for path in files:
        if word in path.name and _has_mark(mark, read_head(path)):
            runs.setdefault(path.parent, []).append(path)
    return runs.values()


TENSORBOARD: Final = Format(
    "TensorBoard",
    read_tensorboard,
    ("TensorBoard event files, or their folder", "needs `python -m pip install tensorboard`"),
    ("TensorBoard 事件文件或其目录", "需要 `python -m pip install tensorboard`"),
    partial(_has_mark, _TENSORBOARD),
    partial(_find_runs, "tfevents", _TENSORBOARD),
)
VISUALDL: Final = Format(
    "VisualDL",
    read_visualdl,
    ("VisualDL files, or their folder", "needs `python -m pip install visualdl`"),
    ("VisualDL 文件或其目录", "需要 `python -m pip install visualdl`"),
    partial(_has_mark, _VISUALDL),
    partial(_find_runs, "vdlrecords", _VISUALDL),
)
