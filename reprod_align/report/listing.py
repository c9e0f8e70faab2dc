"""A finding as a compiler prints it: what, where, the fix, the evidence."""

from collections.abc import Iterator
from typing import Final

from reprod_align.api.table import split_references
from reprod_align.base.text import count, shorten
from reprod_align.report.finding import Finding

_PLACES: Final = 6  # named in the text of a finding


def list_finding(finding: Finding) -> list[str]:
    """Return the lines of a finding: its code and title, the line of the port, and what belongs to it."""
    head = f"error[{finding.code}]: {finding.stage}: {finding.place}: {finding.title}"
    place = finding.paddle_line or ""
    number = place.rpartition(":")[2] if finding.paddle_code else ""
    margin = " " * (len(number) + 1)
    lines = [head]
    if place:
        lines.append(f"{margin[1:]}--> {place}")
    if number:
        lines.append(f"{number} |  {finding.paddle_code}")
        start, stop = finding.paddle_span
        if stop > start and not _is_all(finding.paddle_code, start, stop):
            lines.append(f"{margin}|  {' ' * start}{'^' * (stop - start)}")
    return lines + [f"{margin}= {name}: {text}" for name, text in describe_finding(finding)]


def _is_all(code: str, start: int, stop: int) -> bool:
    """Tell whether a part of a line is all of it but for a comment."""
    return not start and code[stop:].lstrip()[:1] in ("", "#")


def describe_finding(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield what is said of a finding below its title and its line: a name, and the words."""
    if finding.fix:
        yield "fix", finding.fix
    if finding.torch_line is not None:
        yield "PyTorch", f"{finding.torch_line}:  {finding.torch_code}"
    if finding.cause and finding.settings:
        yield "settings", split_references(finding.settings)[0]
    if finding.cause or finding.settings:
        yield "evidence", finding.evidence
    if finding.places:
        more = count(len(finding.places), "more place")
        yield "also", f"{more}: {shorten(finding.places, _PLACES)}"
    if finding.entries:
        yield "see", ", ".join(f"reprod-align api {entry}" for entry in finding.entries)
