"""A fault of a published port: an edit of its source, and the proof that nothing else is at fault.

The source is edited in memory: the package's files stay as they are.
"""

import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from examples.zoo.symptom import Symptom


@dataclass(frozen=True)
class Fault:
    """One mistake in a port, and its remedy."""

    pairs: str
    """the pairs that show it, separated by commas"""
    module: str
    what: str
    edits: tuple[tuple[str, str], ...]
    """the text as it stands, which occurs once, and as it should be"""
    line: int = 0
    """of a package that has an environment of its own, so that this one cannot look"""
    within: str = ""
    """the class that is edited; "" the whole module"""
    design: bool = False
    """the port is another network here by design, which is no mistake: `what` says so"""
    symptom: Symptom | None = None
    """what the mistake looks like from outside; None of what is so by design"""
    left: str = ""
    """why the pair still differs without the mistake"""

    @property
    def path(self) -> Path:
        """Where the source lies."""
        return find_source(self.module)

    def find_line(self) -> int:
        """Return the number of the first line that the first edit changes."""
        if self.line:
            return self.line
        source = self.path.read_text("utf-8")
        start, end = self._find_span(source)
        old, new = self.edits[0]
        same = next(
            (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(old)
        )
        return source[: source.index(old, start, end) + same].count("\n") + 1

    def edit(self, source: str) -> str:
        """Return the source without the mistake. Raises ValueError if it reads otherwise."""
        start, end = self._find_span(source)
        part = source[start:end]
        for old, new in self.edits:
            if part.count(old) != 1:
                raise ValueError(f"{self.module}: {part.count(old)} times, not once: {old!r}")
            part = part.replace(old, new)
        return source[:start] + part + source[end:]

    def _find_span(self, source: str) -> tuple[int, int]:
        """Return where the edited class begins and ends. Raises ValueError without that class."""
        if not self.within:
            return 0, len(source)
        found = re.search(rf"^class {self.within}\b.*?(?=^\S|\Z)", source, re.DOTALL | re.MULTILINE)
        if not found:
            raise ValueError(f"{self.module}: no class {self.within}")
        return found.span()

    def shows_in(self, pair: str) -> bool:
        """Tell whether the pair shows the mistake."""
        return pair in self.pairs.split(", ")


def find_source(module: str) -> Path:
    """Return the file of a module that is installed."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise ImportError(f"{module} is not installed")
    return Path(found.origin)


class Changed:
    """A package, the classes of one or more modules in the place of its own."""

    def __init__(self, package: Any, modules: Sequence[ModuleType]) -> None:
        """Keep both."""
        self._package, self._modules = package, modules

    def __getattr__(self, name: str) -> Any:
        """Return what has that name, of the modules first."""
        for module in self._modules:
            if hasattr(module, name):
                return getattr(module, name)
        return getattr(self._package, name)


def mend(package: Any, faults: Iterable[Fault]) -> Any:
    """Return the package without these faults."""
    order = sorted(faults, key=lambda fault: fault.module)
    modules = [_load(name, [*found]) for name, found in groupby(order, key=lambda one: one.module)]
    return Changed(package, modules)


def _load(name: str, faults: Sequence[Fault]) -> ModuleType:
    """Return the module as it is without the faults, under another name."""
    path = find_source(name)
    source = path.read_text("utf-8")
    for fault in faults:
        source = fault.edit(source)
    made = f"{name}_mended"
    spec = importlib.util.spec_from_file_location(made, path)
    if spec is None:
        raise ImportError(f"{name} cannot be loaded from {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[made] = module
    exec(compile(source, str(path), "exec"), module.__dict__)
    _hand_over(name, module)
    return module


def _hand_over(name: str, made: ModuleType) -> None:
    """Give the modules of the package that imported a class of this one the class without the faults."""
    original, package = importlib.import_module(name), name.partition(".")[0]
    own = {key: old for key, old in vars(original).items()
           if getattr(old, "__module__", "") == name and hasattr(made, key)}  # fmt: skip
    for found, module in list(sys.modules.items()):
        for key, old in own.items() if found.startswith(f"{package}.") else ():
            if vars(module).get(key) is old:
                setattr(module, key, getattr(made, key))


def load_faults() -> Mapping[str, Sequence[Fault]]:
    """Return the faults that are known, by table."""
    from examples.zoo import (
        faults_heads,
        faults_layers,
        faults_paddleclas,
        faults_paddlenlp,
        faults_ppdiffusers,
        faults_vision,
    )  # fmt: skip

    return {
        "paddleclas": faults_paddleclas.FAULTS,
        "ppdiffusers": faults_ppdiffusers.FAULTS,
        "paddlenlp": (*faults_paddlenlp.FAULTS, *faults_heads.FAULTS),
        "paddle.vision": faults_vision.FAULTS,
        "paddle.nn": faults_layers.FAULTS,
    }


def find_note(table: str, pair: str) -> str:
    """Return why a pair differs by design; "" if nothing is known of it."""
    from examples.zoo import faults_heads, faults_layers, faults_vision, releases_table

    modules = {
        "paddlenlp": faults_heads,
        "paddle.vision": faults_vision,
        "paddle.nn": faults_layers,
        "transformers5": releases_table,
    }
    notes: Mapping[str, str] = getattr(modules.get(table), "NOTES", {})
    return next((note for end, note in notes.items() if pair.endswith(end)), "")
