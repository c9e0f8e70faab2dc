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

    yield note_idle


def _describe(side: str, idle: IdleLines) -> str:
    """Return the lines that never ran in one sentence; "" if all did."""
    if idle.is_unknown:
        return (f"which lines of the {side} model ran is not known: a debugger or a coverage tool "
                "was at work")  # fmt: skip
    lines = sum(last - first + 1 for _, first, last in idle.own)
    parts = [f"{count(lines, 'line')} never ran: {shorten(_name(idle), _NAMED)}"] if lines else []
    parts += [f"{never} of {total} lines of {package}'s own code never ran"
              for package, (never, total) in idle.installed.items()]  # fmt: skip
    return f"{side}: {'; '.join(parts)}" if parts else ""


def _name(idle: IdleLines) -> list[str]:
    """Return the places as "file.py:12-14"."""
    return [
        f"{SourceLine(file, first)}" + (f"-{last}" if last > first else "")
        for file, first, last in idle.own
    ]
