"""Reads CSV and TSV with a header and a column of steps."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from reprod_align.curves.log import CurveError, CurveLog
from reprod_align.curves.readers import Format, Head, LogLine, find_step_column, read_rows

_DELIMITERS: Final = ",\t;"
_EXTREMES: Final = ("__MIN", "__MAX")  # Weights & Biases exports these beside each curve


def read_table(path: Path) -> CurveLog:
    """Return a curve for every column of numbers; an empty cell is skipped.

    Raises CurveError, with the line's number, for a row that does not fit the header or a text
    among numbers.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            return read_rows(path, "a table", _read_rows(handle, path))
    except (csv.Error, UnicodeDecodeError) as error:
        raise CurveError(f"{path} cannot be read as a table: {error}") from error


def _read_header(line: str) -> list[str]:
    return next(csv.reader([line], delimiter=_find_delimiter(line)), [])


def _find_delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _read_rows(handle: Iterator[str], path: Path) -> Iterator[LogLine]:
    first = next(line for line in handle if line.strip())
    names = _read_header(first)
    if len(set(names)) < len(names):
        raise CurveError(f"{path}: a column name appears twice in the header")
    numeric: dict[str, bool] = {}
    reader = csv.reader(handle, delimiter=_find_delimiter(first))
    for cells in reader:
        line = reader.line_num + 1
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) > len(names):
            raise CurveError(f"{path}, line {line}: {len(cells)} cells for {len(names)} names")
        if len(cells) < len(names):
            yield line, "fewer cells than the header has names"
        else:
            row = dict(zip(names, cells, strict=True))
            yield line, _take_numbers(row, numeric, f"{path}, line {line}")


def _take_numbers(cells: dict[str, str], numeric: dict[str, bool], where: str) -> dict[str, object]:
    """Return the cells that hold numbers; a column's first cell decides what the column holds."""
    row: dict[str, object] = {}
    for name, cell in cells.items():
        if not cell.strip() or name.endswith(_EXTREMES):
            continue
        value = _parse_number(cell)
        if not numeric.setdefault(name, value is not None):
            continue
        if value is None:
            raise CurveError(f"{where}: column {name!r} holds numbers, got {cell[:40]!r}")
        row[name] = value
    return row


def _parse_number(cell: str) -> float | None:
    try:
        return float(cell) if "_" not in cell else None  # Python would read 1_000 as a number
    except ValueError:
        return None


def _has_step_column(head: Head) -> bool:
    line = next((line for line in head.text.splitlines() if line.strip()), "")
    return find_step_column(_read_header(line)) is not None


TABLE: Final = Format(
    "CSV or TSV with a step column",
    read_table,
    (
        "CSV or TSV with a header and a column `step`, `iter`, `global_step`, ..., `epoch`",
        "Weights & Biases exports too",
    ),
    (
        "带表头的 CSV 或 TSV，含 `step`、`iter`、`global_step`……或 `epoch` 列",
        "也支持 Weights & Biases 的导出",
    ),
    _has_step_column,
    rank=2,
)
