"""A user's own pair in a Python file: what the file must define, and `align` run on it.

The file defines

    def torch_model(): ...      returns the torch.nn.Module
    def paddle_model(): ...     returns its port, the paddle.nn.Layer
    def inputs(): ...           returns a dict of arrays (keywords) or a tuple (by position);
                                a plain variable `inputs` or `INPUTS` will do

and, if it likes, what `align` takes, by the same names: the functions torch_loss, paddle_loss,
torch_optimizer, paddle_optimizer, torch_scheduler, paddle_scheduler, and the variables steps,
name_map and copy_weights. None is as good as nothing. Modules that lie beside it can be imported.

To be judged with each framework in an interpreter of its own, the file must load where the other
framework is missing: import torch and paddle inside the functions, and take the models' classes
from modules that the functions import. The file is then loaded once on each side; inputs, steps,
name_map and copy_weights are taken from the PyTorch side.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from difflib import get_close_matches
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, Final, Literal, TypedDict, TypeVar, cast

from reprod_align.errors import ReprodError, describe_error
from reprod_align.model.inputs import check_inputs
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs, ModelFailure

Framework = Literal["torch", "paddle"]
FRAMEWORKS: Final[Mapping[Framework, str]] = {"torch": "PyTorch", "paddle": "Paddle"}
_MODULE: Final = "pair_file_of_the_user"  # its own name could be that of a package: torch.py
_FUNCTIONS: Final = ("model", "loss", "optimizer", "scheduler")
_COUNTS: Final = {0: "no arguments", 1: "one argument"}


class Settings(TypedDict, total=False):
    """What `align` takes beside the sides and the inputs; what the file does not say is absent."""

    steps: int
    name_map: Mapping[str, str]
    copy_weights: bool


def _is_name_map(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) for pair in value.items() for name in pair
    )


_RULES: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "steps": ("a whole number above 0", lambda value: type(value) is int and value > 0),
    "name_map": ("a dict from name to name", _is_name_map),
    "copy_weights": ("True or False", lambda value: isinstance(value, bool)),
}
_NAMES: Final = (
    *(f"{framework}_{function}" for framework in FRAMEWORKS for function in _FUNCTIONS),
    *("inputs", "INPUTS"),
    *_RULES,
)


class PairFile:
    """A user's file, loaded. What is wrong with it is a ReprodError that names the file.

    What its own code raises comes as it is: `placed` says where.
    """

    def __init__(self, path: Path, module: ModuleType) -> None:
        """Keep what was loaded from `path`."""
        self.path, self._module = path, module

    def side(self, framework: Framework) -> LocalSide:
        """Return one side of the pair, its model made."""
        made = self._made(f"{framework}_model", f"that returns the {FRAMEWORKS[framework]} model")
        functions = [self._function(f"{framework}_{name}", 1) for name in _FUNCTIONS[1:]]
        with _naming(self.path):
            return _maker(framework)(made, *functions)

    def inputs(self) -> Inputs:
        """Return the arrays that both models are given."""
        name = "inputs" if hasattr(self._module, "inputs") else "INPUTS"
        found = getattr(self._module, name, None)
        if callable(found):
            found = self._made(name, "")
        if found is None:
            raise ReprodError(
                f"{self.path} gives no inputs: define inputs(), which returns a dict or a tuple of arrays"
            )
        with _naming(self.path):
            check_inputs(found)
        return found  # type: ignore[no-any-return]

    def settings(self) -> Settings:
        """Return what else the file says."""
        values = {name: getattr(self._module, name, None) for name in _RULES}
        given = {name: value for name, value in values.items() if value is not None}
        for name, value in given.items():
            rule, holds = _RULES[name]
            if not holds(value):
                raise ReprodError(f"{self.path}: {name} must be {rule}, not {str(value)[:100]!r}")
        return cast(Settings, given)

    def remarks(self) -> list[str]:
        """Return a remark on every name that looks like a misspelt one."""
        own = [name for name in vars(self._module) if name not in _NAMES and name[0] != "_"]
        found = [(name, get_close_matches(name, _NAMES, 1, 0.85)) for name in own]
        return [
            f"{self.path.name} defines {name}, which is not used: is {like[0]} meant?"
            for name, like in found
            if like and not hasattr(self._module, like[0])
        ]

    def _made(self, name: str, that: str) -> Any:
        function = self._function(name, 0)
        if function is None:
            raise ReprodError(f"{self.path} defines no function {name}() {that}")
        return function()

    def _function(self, name: str, arguments: int) -> Callable[..., Any] | None:
        """Return the named function; None if there is none, ReprodError if it is none."""
        found = getattr(self._module, name, None)
        if found is None:
            return None
        is_model = hasattr(found, "forward") and not inspect.isclass(found)
        if not callable(found) or (is_model and arguments == 0):
            what = type(found).__name__
            raise ReprodError(f"{self.path}: {name} must be a function, not of type {what}")
        if not _takes(found, arguments):
            wanted = _COUNTS.get(arguments, f"{arguments} arguments")
            raise ReprodError(f"{self.path}: {name} must be a function of {wanted}")
        return found  # type: ignore[no-any-return]


File = TypeVar("File", bound=PairFile)


@contextmanager
def opened(path: Path, kind: type[File]) -> Iterator[File]:
    """Yield the loaded file; while the block runs, modules that lie beside it can be imported.

    Raises ReprodError if there is no such file, and whatever its code does.
    """
    if not path.is_file():
        raise ReprodError(f"{path} is no file" if path.exists() else f"{path} is missing")
    module = ModuleType(_MODULE)
    module.__file__ = str(path.resolve())
    sys.modules[_MODULE] = module  # where dataclasses and pickle look a class up
    paths = list(sys.path)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with chdir("."):  # comes back if the file goes elsewhere
            code = compile(path.read_bytes(), module.__file__, "exec")
            exec(code, vars(module))
            yield kind(path, module)
    finally:
        sys.path[:] = paths
        sys.modules.pop(_MODULE, None)


def placed(error: BaseException, path: Path) -> ReprodError:
    """Return an error that the file's code may have caused as a ReprodError with file and line.

    A ModelFailure stays one: its place is a note.
    """
    place = _place_in(error, path)
    if isinstance(error, ModelFailure):
        if place and not hasattr(error, "__notes__"):
            error.add_note(place)
        return error
    if isinstance(error, ReprodError):
        return ReprodError(f"{place}: {error}") if place else error
    return ReprodError(f"{place or path}: {_in_words(error)}")


def told_at(error: BaseException, path: Path) -> ReprodError:
    """Return `placed`'s error with its place in the message, for a command to end with."""
    said = placed(error, path)
    return ReprodError(": ".join([*getattr(said, "__notes__", []), str(said)]))


def _place_in(error: BaseException, path: Path) -> str:
    """Return the file and the line in it through which the error came, "" if it did not."""
    file = os.path.realpath(path)  # unlike resolve(), it does not mind a ring of links
    for seen in _with_causes(error):
        if isinstance(seen, SyntaxError) and Path(seen.filename or "").is_file():
            shown = path if seen.filename == file else seen.filename
            return f"{shown}, line {seen.lineno}"
        frames = walk_tb(seen.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == file]
        if lines:
            return f"{path}, line {lines[-1]}"
    return ""


def _with_causes(error: BaseException) -> list[BaseException]:
    """Return the error, what it was raised from, and so on; the chain may be a ring."""
    chain: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and seen not in chain:
        chain.append(seen)
        seen = seen.__cause__
    return chain


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the file's name before what is found wrong in the block."""
    try:
        yield
    except ReprodError as error:
        raise ReprodError(f"{path}: {error}") from error


def _maker(framework: Framework) -> Callable[..., LocalSide]:
    from reprod_align.pair import sides as pair

    return pair.torch_side if framework == "torch" else pair.paddle_side


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*(None,) * arguments)
    except ValueError:  # a builtin does not tell
        return True
    except TypeError:
        return False
    return True


def _in_words(error: BaseException) -> str:
    if isinstance(error, SyntaxError):  # str() repeats the place
        return f"{type(error).__name__}: {error.msg}"
    return describe_error(error)
