"""Mutants on disk: a folder each, with both sources and what was changed, for any later run or program.

SET/set.json                       the seed, which list of files, the packages' versions
SET/0007-axis-bert/mutant.json     file, line, span, kind, before, after, structural cause
SET/0007-axis-bert/modeling.py     the mutated source, under the name that it has in its package
SET/0007-axis-bert/original.txt    the source as it is installed
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutants.cause import Cause
from benchmarks.mutants.source import Splice

Entry = dict[str, Any]
"""a mutant in a list: subject, kind, start, end, before, after"""
_ENTRY = ("subject", "kind", "start", "end", "before", "after")
_DESCRIPTION = "mutant.json"
_ORIGINAL = "original.txt"


@dataclass(frozen=True)
class Mutant:
    """A mutation that computes other numbers than the port."""

    name: str
    """of its folder"""
    subject: str
    """which port"""
    file: str
    """the name of the source"""
    kind: str
    line: int
    """from 1: where the change begins, in the mutated source"""
    statement: int
    """from 1: where the statement begins that holds it"""
    start: int
    end: int
    """bytes of the original that are replaced"""
    before: str
    after: str
    cause: Cause
    expressions: tuple[str, ...]
    """the mutated code that holds the change, from the inside"""
    places: tuple[str, ...]
    """the port's modules that hold the line, and those right above and below"""

    @property
    def splice(self) -> Splice:
        """The change of the original."""
        return Splice(self.start, self.end, self.after)


@dataclass(frozen=True)
class Frozen:
    """A mutant in its folder."""

    folder: Path
    mutant: Mutant

    @property
    def path(self) -> Path:
        """The mutated source."""
        return self.folder / self.mutant.file

    @property
    def original(self) -> str:
        """The source before the change."""
        return (self.folder / _ORIGINAL).read_bytes().decode()


def write_mutant(folder: Path, mutant: Mutant, original: str) -> None:
    """Write the folder of a mutant."""
    own = folder / mutant.name
    own.mkdir(parents=True)
    (own / mutant.file).write_bytes(mutant.splice.apply(original).encode())
    (own / _ORIGINAL).write_bytes(original.encode())
    write_json(own / _DESCRIPTION, asdict(mutant))


def read_mutants(folder: Path) -> list[Frozen]:
    """Read the mutants of a set, in the order in which they were drawn."""
    return [Frozen(at.parent, _read(at)) for at in sorted(folder.glob(f"*/{_DESCRIPTION}"))]


def list_entries(mutants: Iterable[Mutant]) -> list[Entry]:
    """Return the entries of a list, from which the same mutants are made again."""
    return [{key: getattr(it, key) for key in _ENTRY} for it in mutants]


def _read(path: Path) -> Mutant:
    held = json.loads(path.read_text(encoding="utf-8"))
    cause = held.pop("cause")
    lists = {key: tuple(held.pop(key)) for key in ("expressions", "places")}
    return Mutant(**held, **lists, cause=Cause(**{**cause, "facts": tuple(cause["facts"])}))


def write_json(path: Path, value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write a value as JSON."""
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
