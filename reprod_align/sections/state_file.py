"""The file with which an interrupted run goes on: the reports on the pieces that are done."""

import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import reprod_align
from reprod_align.base.files import from_plain, to_plain, write_json
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs
from reprod_align.report import Report

_AT_ONCE = 2**24  # bytes


class StateFile:
    """Reports by piece, kept for one fingerprint: of weights, inputs, code and division."""

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        """Read the file if it holds reports for this fingerprint; path None: nothing is kept."""
        self._path, self._fingerprint = path, fingerprint
        self._reports: dict[str, Any] = {}
        if path is not None and path.is_file():
            self._reports = _read(path, fingerprint)

    def find(self, piece: str) -> Report | None:
        """Return the report on a piece, None if it is still to be judged."""
        known = self._reports.get(piece)
        return None if known is None else _make_report(known)

    def add(self, piece: str, report: Report) -> None:
        """Keep the report on a piece: the file is written whole or not at all."""
        self._reports[piece] = {one.name: to_plain(getattr(report, one.name))
                                for one in fields(report)}  # fmt: skip
        if self._path is not None:
            write_json(self._path, {"fingerprint": self._fingerprint, "reports": self._reports})


def _read(path: Path, fingerprint: str) -> dict[str, Any]:
    """Return the reports of a file; {} if they are for something else, or the file is damaged."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        reports = known["reports"] if known["fingerprint"] == fingerprint else {}
        for report in reports.values():
            _make_report(report)
        return dict(reports)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _make_report(plain: Mapping[str, Any]) -> Report:
    made: Report = from_plain(Report, plain)
    return made


def take_fingerprint(
    files: Iterable[Path], inputs: Inputs, sides: Iterable[LocalSide], settings: Iterable[object]
) -> str:
    """Return a digest of all that decides what the reports say, the files' contents included."""
    digest = hashlib.sha256(reprod_align.__version__.encode())
    for path in files:
        digest.update(f"{path.name}\0".encode())
        with path.open("rb") as handle:
            while block := handle.read(_AT_ONCE):
                digest.update(block)
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    for name, array in named:
        digest.update(f"{name} {array.dtype} {array.shape}\0".encode())
        digest.update(array.tobytes())
    for side in sides:
        for source in sorted(_find_sources(side)):
            digest.update(source.encode())
        digest.update(repr(side.describe()).encode())
    digest.update(repr([*settings]).encode())
    return digest.hexdigest()


def _find_sources(side: LocalSide) -> set[str]:
    """Return the source files, as text, of the modules' classes."""
    found = set()
    for _, module in side.fw.modules(side.model):
        for kind in type(module).__mro__:
            with suppress(TypeError, OSError):  # no source: built in, or typed at a prompt
                path = Path(str(inspect.getsourcefile(kind)))
                found.add(path.read_text(encoding="utf-8", errors="replace"))
    return found
