"""The user's PyTorch file, and the call that makes the model from it."""

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from reprod_align.errors import ReprodError, describe_error, explain_absence
from reprod_align.pair.call import call_named
from reprod_align.porting.nesting import compile_arrange, rearrange


@dataclass(frozen=True)
class Source:
    """A PyTorch file as the module that it is, and the expression that makes the model."""

    path: Path
    module: ModuleType
    call: str
    """"BertModel(BertConfig())": an expression in the module's names"""
    arrange: str = ""
    """the code that makes the model's arguments of the arrays; see `nesting`"""

    @property
    def name(self) -> str:
        """The module's dotted name."""
        return self.module.__name__

    def make_model(self, module: str = "") -> Any:
        """Return the model, as a module of another name makes it; called with arrays."""
        made = call_named(f"{module or self.name}:{self.call}")
        return rearrange(made, compile_arrange(self.arrange)) if self.arrange else made

    @property
    def root(self) -> Path:
        """The folder from which the module is imported."""
        parts = self.name.count(".") + 1 + (self.path.stem == "__init__")
        return self.path.resolve().parents[parts - 1]


def open_source(path: Path, words: str | None = None) -> Source:
    """Import the user's file. words: "MODULE:CALL", where MODULE is `path`; without it, its torch_model().

    Raises ReprodError if there is no such file or if MODULE is another one; the error of the file's
    own code, as one.
    """
    words = words or f"{path.stem}:torch_model()"
    name, colon, call = words.partition(":")
    if not colon or not name or not call:
        raise ReprodError(f"--torch {words!r}: expected MODULE:CALL, such as mine.models:Model(8)")
    if not path.is_file():
        raise explain_absence(path)
    for folder in {*_find_root(path, name), str(Path.cwd())} - set(sys.path):
        sys.path.insert(0, folder)
    try:
        module = import_module(name)
    except (Exception, SystemExit) as error:
        raise ReprodError(f"--torch {words}: {describe_error(error)}") from error
    found = getattr(module, "__file__", None) or ""
    if os.path.realpath(found) != os.path.realpath(path):
        raise ReprodError(
            f"--torch {words}: {name} is {found or 'a part of Python'}, expected {path}"
        )
    return Source(path, module, call)


def _find_root(path: Path, name: str) -> list[str]:
    """Return the folder in which `path` is the module `name`; nothing if the names do not fit."""
    file, parts = path.resolve(), tuple(name.split("."))
    own = file.parent.parts if file.stem == "__init__" else (*file.parent.parts, file.stem)
    return [str(Path(*own[: -len(parts)]))] if own[-len(parts) :] == parts else []
