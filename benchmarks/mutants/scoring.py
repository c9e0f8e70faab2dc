"""Holds what was said about a mutant against what was changed."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.mutants.cause import Told, Verdict, judge
from benchmarks.mutants.frozen import Mutant
from benchmarks.mutants.judging import Result
from benchmarks.mutants.reading import read_finding
from benchmarks.mutants.repairs import Repair


@dataclass(frozen=True)
class Row:
    """One mutant and what became of it; a mutant that was missed has nothing right."""

    mutant: Mutant
    outcome: str
    module: bool = False
    """whether the first finding names a module that holds the line, or one next to it"""
    exact: bool = False
    """whether the line is that of the change, or of the statement that holds it"""
    line: bool = False
    """the same within one line"""
    cause: Verdict = "silent"
    repair: Repair = "none"
    ratio: float = 0.0
    """the time of `fix` over that of `align`; 0 where `fix` was not asked"""
    told: Told = Told()
    said: str = ""

    @property
    def kind(self) -> str:
        """Return the kind of the mutation."""
        return self.mutant.kind

    @property
    def subject(self) -> str:
        """Return the port."""
        return self.mutant.subject

    def describe(self) -> str:
        """Return the mutant and the first finding on it."""
        it = self.mutant
        marks = [self.outcome, "module" if self.module else "NO MODULE"]
        marks += ["exact" if self.exact else "line" if self.line else "NO LINE", self.cause]
        told = [*sorted(self.told.facts), *(f"`{code}`" for code in self.told.expressions)]
        change = f"{it.before!r} -> {it.after!r}"
        return (
            f"{it.name} line {it.line}: {change}  [{', '.join(marks)}]\n    {self.said}\n"
            f"    told: {told}; names it: {[it.cause.element, *it.cause.facts]}"
        )


def score(mutant: Mutant, result: Result) -> Row:
    """Score the first finding on a mutant."""
    if result.outcome != "caught" or not result.findings:
        return Row(mutant, result.outcome, said="; ".join(result.remarks))
    first = result.findings[0]
    place, line = first["paddle_name"], first["paddle_line"] or ""
    told = read_finding(first, result.pairs)
    right = result.restored or result.names_change
    cause = "right" if right else judge(mutant.cause, mutant.expressions, told)
    return Row(
        mutant, "caught",
        module=bool({place, place.rpartition(".")[0]} & set(mutant.places)),  # a parameter, its layer
        exact=is_near(line, mutant, 0), line=is_near(line, mutant, 1),
        cause=cause, repair=result.repair, ratio=result.fixing / (result.seconds or 1.0), told=told,
        said=f"{first['stage']}: {place or 'the model'} {line}: {first['message']}",
    )  # fmt: skip


def is_near(named: str, mutant: Mutant, within: int) -> bool:
    """Tell whether a place such as "modeling.py:12" or ":12-14" is that of the change."""
    last = re.search(r"([^/\\]+):(\d+)(?:-(\d+))?$", named)
    if not last or last[1] != mutant.file:
        return False
    start, end = int(last[2]), int(last[3] or last[2])
    return any(start - within <= at <= end + within for at in (mutant.line, mutant.statement))


COLUMNS: Final[Sequence[tuple[str, Callable[[Row], bool]]]] = (
    ("caught", lambda row: row.outcome == "caught"),
    ("module", lambda row: row.module),
    ("line", lambda row: row.line),
    ("exact line", lambda row: row.exact),
    ("cause right", lambda row: row.cause == "right"),
    ("silent", lambda row: row.cause == "silent"),
    ("wrong", lambda row: row.cause == "wrong"),
    ("asked to fix", lambda row: row.ratio > 0),
    ("repaired", lambda row: row.repair == "repaired"),
    ("given batch only", lambda row: row.repair == "given batch only"),
)
"""a column of the table, and which rows count in it"""


def make_table(rows: Sequence[Row], by: str = "kind", markdown: bool = False) -> list[str]:
    """Return lines with the counts of each kind or file, and of all with their shares."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(getattr(row, by), []).append(row)
    cells = [[by, "mutants", *(title for title, _ in COLUMNS)]]
    cells += [[name, *map(str, _count(found))] for name, found in sorted(groups.items())]
    cells.append(["all", *map(str, _count(rows))])
    cells.append(["share", "", *_share(rows)])
    if markdown:
        lines = [f"| {' | '.join(row)} |" for row in cells]
        return [lines[0], f"|{' --- |' * len(cells[0])}", *lines[1:]]
    return [f"{row[0]:<20}" + "".join(f"{cell:>18}" for cell in row[1:]) for row in cells]


def _share(rows: Sequence[Row]) -> list[str]:
    """Return the share of all rows in each column; behind "asked to fix", of those."""
    shares, whole = [], len(rows)
    for (title, _), hits in zip(COLUMNS, _count(rows)[1:], strict=True):
        shares.append(f"{hits / max(whole, 1):.0%}")
        whole = hits if title == "asked to fix" else whole
    return shares


def _count(rows: Sequence[Row]) -> list[int]:
    return [len(rows), *(sum(counts(row) for row in rows) for _, counts in COLUMNS)]
