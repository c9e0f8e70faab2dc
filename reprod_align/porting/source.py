"""The user's PyTorch file, the call that makes its model, and the pair file that proves its port again."""

import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from reprod_align.errors import ReprodError, describe_error, explain_absence
from reprod_align.model.side import Inputs
from reprod_align.pair.file import call_named, name_module
from reprod_align.porting.nesting import compile_arrange, rearrange
from reprod_align.porting.script import Script

import numpy as np


@dataclass(frozen=True)
class Source:
    """A PyTorch file as the module that it is, and the expression that makes the model."""

    path: Path
    module: ModuleType
    call: str
    """"BertModel(BertConfig())": an expression in the module's names"""
    script: Script | None = None
    """how the file trains, where it is asked for"""
    arrange: str = ""
    """the code that makes the model's arguments of the arrays; see `nesting`"""
    made_by: str = ""
    """the same expression in the port's file, where the call itself names PyTorch; "" where it is the call"""

    @property
    def name(self) -> str:
        """The module's dotted name."""
        return self.module.__name__

    def make_model(self, module: str = "") -> Any:
        """Return the model, as a module of another name makes it; called with arrays."""
        call = (self.made_by if module else "") or self.call
        made = call_named(f"{module or self.name}:{call}")
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
    name = name_module(name)
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


PAIR: Final = "pair.py"
WEIGHTS: Final = "weights.pdparams"
INPUTS: Final = "inputs.npz"
_NAMED: Final = "{name.removeprefix('input '): held[name] for name in held.files}"
_ORDERED: Final = "tuple(held[name] for name in held.files)"
_TEXT: Final = '''"""PyTorch's model and its port: `reprod-align pair {pair}` proves it again."""

import sys
from pathlib import Path

import numpy as np
{imported}
FOLDER = Path(__file__).resolve().parent
TORCH = {torch!r}
PADDLE = {paddle!r}
sys.path[:0] = {paths}


def torch_model():
    """Return the PyTorch model."""
    import torch
    from reprod_align.pair.file import call_named

    torch.manual_seed(0)
    return {torch_made}


def paddle_model():
    """Return the port, with the converted weights."""
    import paddle
    from reprod_align.pair.file import call_named

    model = call_named(PADDLE)
    weights = FOLDER / "{weights}"
    if weights.is_file():
        model.set_state_dict(paddle.load(str(weights)))
    return {paddle_made}


{arrange}def inputs():
    """Return the inputs of both."""
    with np.load(FOLDER / "{inputs}") as held:
        return {gather}
'''


def name_port(source: Source) -> str:
    """Return the name of the port's module."""
    stem = source.name.rpartition(".")[2]
    return f"{stem}_paddle" if stem.isidentifier() else "port_paddle"


def _write_root(root: Path, folder: Path) -> str:
    """Return code for the source's root: of a port that lies below it, relative, so that both may move."""
    below = folder.resolve()
    if not below.is_relative_to(root) or below == root:
        return repr(str(root))
    return f"str(FOLDER.parents[{len(below.relative_to(root).parts) - 1}])"


def write_arranged(source: Source, model: str) -> str:
    """Return the text of a model that is called with arrays by name, where the inputs are nested."""
    return f"rearrange({model}, arrange)" if source.arrange else model


def write_pair(source: Source, inputs: Inputs, folder: Path, further: str = "") -> None:
    """Write the pair file and the inputs to a folder.

    further: functions of the pair file beside the models and the inputs. Raises ReprodError for inputs that
    can't be kept.
    """
    named = isinstance(inputs, Mapping)
    items = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    arrays = {f"input {name}": np.asarray(array) for name, array in items}
    if any(array.dtype.hasobject for array in arrays.values()):
        raise ReprodError("--inputs: expected arrays of numbers, got one of objects")
    np.savez(folder / INPUTS, **arrays)  # type: ignore[arg-type]
    root = source.root
    installed = {Path(path).resolve() for path in map(sysconfig.get_path, ("purelib", "platlib"))}
    paths = "[str(FOLDER)]" if root in installed else f"[str(FOLDER), {_write_root(root, folder)}]"
    text = _TEXT.format(
        pair=PAIR, weights=WEIGHTS, inputs=INPUTS, paths=paths, gather=_NAMED if named else _ORDERED,
        imported="from reprod_align.porting.nesting import rearrange\n" if source.arrange else "",
        torch_made=write_arranged(source, "call_named(TORCH)"),
        paddle_made=write_arranged(source, "model"),
        arrange=f"{source.arrange}\n\n" if source.arrange else "",
        torch=f"{source.name}:{source.call}",
        paddle=f"{name_port(source)}:{source.made_by or source.call}",
    )  # fmt: skip
    (folder / PAIR).write_text(text + further, encoding="utf-8")
