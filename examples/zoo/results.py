"""What was found, one row a pair, in a file that is written anew after each row."""

import json
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from reprod_align.report import Report

STORE: Final = Path(__file__).resolve().parents[2] / "docs" / "results" / "zoo.json"
GOOD: Final = ("faithful", "agrees to float32")
_SHORT = 400


@dataclass
class Row:
    """What `align` says of one pair."""

    verdict: str
    """that of the report; "does not build", of the port; "cannot be judged" if the command failed"""
    worst: float | None = None
    """the largest relative difference of any comparison"""
    stage: str = ""
    """of the first finding, as the rest"""
    place: str = ""
    message: str = ""
    torch_line: str = ""
    paddle_line: str = ""
    paddle_code: str = ""
    findings: int = 0
    without: str = ""
    """the verdict with the known faults taken out; "" if none is known"""
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0
    inputs: dict[str, str] = field(default_factory=dict)
    """what it was made from: `inputs.read_inputs`"""

    @property
    def told(self) -> tuple[object, ...]:
        """What a reader is told: without the time, and what it was made from."""
        return self.verdict, self.stage, self.place, self.message, self.paddle_line, self.without


def list_sources(row: Row) -> list[str]:
    """Return the source files that a row was made from."""
    return [name for name in row.inputs if name.endswith(".py")]


def make_row(report: Report, seconds: float) -> Row:
    """Return the row of a report."""
    worst = report.worst
    row = Row(report.verdict, worst and worst.relative, findings=len(report.findings),
              remarks=[remark[:_SHORT] for remark in report.remarks[:3]],
              seconds=round(seconds, 1))  # fmt: skip
    if report.findings:
        first = report.findings[0]
        row.stage, row.place, row.message = first.stage, first.place, first.message[:_SHORT]
        row.torch_line, row.paddle_line = _shorten(first.torch_line), _shorten(first.paddle_line)
        row.paddle_code = first.paddle_code
    return row


def make_broken_row(error: Exception) -> Row:
    """Return the row of a port whose model cannot be built."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    message = f"{type(error).__name__}: {error}"[:_SHORT]
    row = Row("does not build", message=message, paddle_code=last.line or "")
    row.paddle_line = _shorten(f"{last.filename}:{last.lineno}")
    return row


def _shorten(line: str | None) -> str:
    """Return a line's place without the folders above its package."""
    place = (line or "").rpartition("site-packages/")[2]
    above = [f"{folder}/" for folder in sys.path if folder and place.startswith(f"{folder}/")]
    return place.removeprefix(max(above, key=len, default=""))


def load(store: Path = STORE) -> dict[str, Row]:
    """Return the rows by "table: pair"."""
    if not store.exists():
        return {}
    return {name: Row(**row) for name, row in json.loads(store.read_text("utf-8")).items()}


def save(rows: Mapping[str, Row], store: Path = STORE) -> None:
    """Write the rows, in their names' order, under the final name when they are whole."""
    plain = {name: asdict(row) for name, row in sorted(rows.items())}
    for row in plain.values():
        row["worst"] = row["worst"] if row["worst"] is None else float(f"{row['worst']:.1e}")
    partial = store.with_suffix(".partial")
    partial.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", "utf-8")
    partial.replace(store)
