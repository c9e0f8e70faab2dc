"""Says which lines of both sides' own code no run of a comparison has reached."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reprod_align.base.text import count, shorten
from reprod_align.model.side import Side
from reprod_align.model.source.coverage import IdleLines
from reprod_align.model.source.lines import SourceLine
from reprod_align.report import NotJudged, Report

_NAMED = 4  # places in one sentence


@contextmanager
def watch_lines(reference: Side, port: Side) -> Iterator[Callable[[Report], None]]:
    """Note in the block which lines run on either side; yield what adds the others to a report."""
    sides = ("PyTorch", reference), ("Paddle", port)
    for _, side in sides:
        side.watch_lines()

    def note_idle(report: Report) -> None:
        for name, side in sides:
            text = _describe(name, side.find_idle_lines())
            if text:
                report.not_judged.append(NotJudged("lines", text))

    try:
        yield note_idle
    finally:
        for _, side in sides:
            side.find_idle_lines()


def _describe(side: str, idle: IdleLines) -> str:
    """Return the lines that never ran in one sentence; "" if all did."""
    lines = sum(number for *_, number in idle.own)
    parts = [f"{count(lines, 'line')} never ran: {shorten(_name(idle), _NAMED)}"] if lines else []
    parts += [f"{never} of {total} statements that it reaches in {package} never ran"
              for package, (never, total) in idle.installed.items()]  # fmt: skip
    if idle.unknown:
        files = shorten(list(idle.unknown), _NAMED)
        parts.append(f"which lines of {files} ran is not known: changed since it was imported")
    return f"{side}: {'; '.join(parts)}" if parts else ""


def _name(idle: IdleLines) -> list[str]:
    """Return the places as "file.py:12-14"."""
    return [
        f"{SourceLine(file, first)}" + (f"-{last}" if last > first else "")
        for file, first, last, _ in idle.own
    ]
