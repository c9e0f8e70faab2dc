"""What `fix` found: the edits, the patch and their proof, as text and as JSON."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from difflib import unified_diff
from pathlib import Path

from reprod_align.base.files import as_json
from reprod_align.base.text import count, shorten
from reprod_align.mending.proof import ENOUGH, Level, Proof
from reprod_align.report import Finding, Report
from reprod_align.report.finding import keep_changed_lines

_NAMED = 3  # batches in one line


@dataclass(frozen=True)
class Mend:
    """One edit of the port, and what it does."""

    kind: str
    """the kind of mistake, a stable name: "reference", "number", "operator", ..."""
    file: str
    line: int
    """from 1, in the file as it was before this edit"""
    before: str
    after: str
    stage: str
    place: str
    """the module or parameter whose difference is gone with it"""
    reason: str
    """what was found there"""
    difference: float
    """the largest absolute difference there, before"""
    level: Level = "unproven"

    @property
    def where(self) -> str:
        """The file, as seen from the working directory, and the line."""
        path = Path(self.file)
        inside = path.is_relative_to(Path.cwd())
        return f"{path.relative_to(Path.cwd()) if inside else path}:{self.line}"

    def tell_difference(self) -> str:
        """Say how far its place differed before, or what was wrong there if no number tells it."""
        if not self.difference:
            return "its gradient stopped"
        known = math.isfinite(self.difference)
        return f"it differed by {self.difference:.1e}" if known else self.reason

    def __str__(self) -> str:
        """Return the edit in one line."""
        before, after = keep_changed_lines(self.before, self.after)
        if not before:
            return f"{self.where}: `{after}` is added"
        made = f"becomes `{after}`" if after else "is taken out"
        return f"{self.where}: `{before}` {made}"


@dataclass(frozen=True)
class Mended:
    """The result of `fix`."""

    first: Report
    """of the port as it came"""
    edits: tuple[Mend, ...]
    patch: str
    """one unified diff; "" without edits"""
    proof: Proof
    left: tuple[Finding, ...] = ()
    """findings for which no edit was found"""
    texts: Mapping[str, str] = field(default_factory=dict)
    """file -> its mended text"""
    has_source: bool = True
    """whether there was any source to edit"""
    lacking: tuple[str, ...] = ()
    """parameters of PyTorch's of layers that the port is left without: no edit writes one"""
    tried: int = 0
    """how many edits were tried"""

    @property
    def verdict(self) -> str:
        """The verdict on the mended port."""
        return self.proof.report.verdict

    @property
    def passed(self) -> bool:
        """Whether the port is faithful at the end."""
        return self.proof.report.passed and not (self.proof.refuted or self.proof.refused)

    def summary(self) -> str:
        """Return the result as text: the verdict, the edits, what is left, the patch."""
        lines = [f"verdict: {self.verdict}{self._tell_edits()}", *self._tell_proof()]
        for number, edit in enumerate(self.edits, 1):
            shown = f"     {edit.stage}: {edit.place}: {edit.tell_difference()}"
            lines += ["", f"  {number}. {edit}", shown]
        if not self.has_source:
            lines += [
                "",
                "the port has no source that can be edited there: it is compiled, or made by exec",
            ]
        if self.lacking:
            named = shorten(self.lacking, _NAMED)
            lines += [
                "",
                f"the port lacks layers that PyTorch has, and no layer is written: {named}",
            ]
        if self.left:
            tried = f" ({count(self.tried, 'edit was', 'edits were')} tried)" if self.tried else ""
            lines += ["", f"no edit was found{tried} for:"]
            lines += [f"  - {finding}" for finding in self.left]
        return "\n".join([*lines, "", self.patch] if self.patch else lines)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _tell_edits(self) -> str:
        if not self.edits:
            return ", as it is" if self.passed else ""
        return f", with {count(len(self.edits), 'edit')} ({self.proof.level})"

    def _tell_proof(self) -> Iterator[str]:
        """Yield what the edits were tried on."""
        proof = self.proof
        if proof.refused:
            yield f"refused: {proof.refused}"
        elif proof.refuted:
            yield f"on another batch, {proof.refuted}, the pair still differs"
        elif self.edits and self.passed:
            named = shorten(proof.batches, _NAMED)
            yield f"{count(len(proof.batches), 'batch', 'batches')} that no search has seen agree: {named}"
            if len(proof.batches) < ENOUGH:
                yield f"{ENOUGH} are needed for a proof: the PyTorch model takes no more of those derived"

    def to_json(self) -> str:
        """Return the result as strict JSON."""
        return as_json({
            "passed": self.passed,
            "verdict": self.verdict,
            "edits": [asdict(one) for one in self.edits],
            "patch": self.patch,
            "batches": list(self.proof.batches),
            "refuted": self.proof.refuted,
            "refused": self.proof.refused,
            "tried": self.tried,
            "left": list(self.left),
        })  # fmt: skip


_NO_END = "\n\\ No newline at end of file\n"


def make_patch(before: Mapping[str, str], after: Mapping[str, str], root: Path) -> str:
    """Return the diff of files. before, after: file -> text; root: the folder that paths begin at.

    A file outside of `root` is named from the folder of installed packages, or by its name.
    """
    parts = (
        line
        for file, text in sorted(after.items())
        if text != before[file]
        for line in _list_diff(before[file], text, name_in_patch(file, root))
    )
    return "".join(parts)


def name_in_patch(file: str, root: Path) -> str:
    """Return what a patch calls a file."""
    path = Path(file).resolve()
    if path.is_relative_to(root.resolve()):
        return path.relative_to(root.resolve()).as_posix()
    _, installed, inside = str(path).rpartition(f"-packages{os.sep}")
    return Path(inside).as_posix() if installed else path.name


def _list_diff(before: str, after: str, name: str) -> Iterator[str]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for line in unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else line + _NO_END
