"""A user's file with a pair of models: `reprod-align pair --help` says what it defines.

`locate_error` finds the line of the file from which an error came; `call_named` makes what a command
line names as MODULE:CALL.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stdout
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, Final, TypedDict, TypeVar, cast

from reprod_align import pair
from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.console import quieten, tell, without_warnings
from reprod_align.errors import ReprodError, describe_error, explain_absence
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs, ModelFailure, check_inputs
from reprod_align.pair import PairSpec, check_setting, order_pair
from reprod_align.weights import FileLocation, locate

_MODULE: Final = "pair_file_of_the_user"  # its own name could be that of a package: torch.py
_FUNCTIONS: Final = ("model", "loss", "optimizer", "scheduler")
_COUNTS: Final = {0: "no arguments", 1: "one argument"}


class Settings(TypedDict, total=False):
    """The further arguments of `align`; those that the file does not define are absent."""

    steps: int
    name_map: Mapping[str, str]
    copy_weights: bool


def _are_sizes(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(type(n) is int and n > 0 for n in value)


_WEIGHTS: Final = ("torch_weights", "paddle_weights")
_NAMES: Final = (
    *(f"{framework}_{function}" for framework in FRAMEWORKS for function in _FUNCTIONS),
    *("inputs", "INPUTS"),
    *_WEIGHTS,
    *Settings.__annotations__,
    *("reference", "paddle_inputs", "fused"),
)


class PairFile:
    """A user's file, loaded. What is wrong with it is a ReprodError that names the file.

    What its own code raises passes unchanged: `pair.blame` finds the line.
    """

    def __init__(self, path: Path, module: ModuleType) -> None:
        """Keep what was loaded from `path`."""
        self.path, self._module = path, module
        for own, meant in self._find_misspelt().items():
            if own.startswith(tuple(f"{framework}_" for framework in FRAMEWORKS)):
                raise ReprodError(f"{path} defines {own}, which is not used: is {meant} meant?")

    def find_maker(self, framework: Framework) -> Callable[..., Any]:
        """Return the function that makes one side's model."""
        about = f"() that returns the {FRAMEWORKS[framework]} model"
        return self.require_function(f"{framework}_model", about)

    def find_functions(self, framework: Framework) -> dict[str, Callable[..., Any] | None]:
        """Return one side's loss, optimizer and scheduler, by their names in the file."""
        names = [f"{framework}_{name}" for name in _FUNCTIONS[1:]]
        return {name: self.find_function(name, 1) for name in names}

    def weights(self, framework: Framework) -> FileLocation | None:
        """Return where one side's weights lie, None if the file does not say."""
        name = f"{framework}_weights"
        found = getattr(self._module, name, None)
        if found is None:
            return None
        if not isinstance(found, (str, Path)):
            raise ReprodError(f"{self.path}: {name} must be a path, not {str(found)[:100]!r}")
        place = locate(found)
        return self.path.resolve().parent / place if isinstance(place, Path) else place

    def side(self, framework: Framework) -> LocalSide:
        """Return one side of the pair, its model made."""
        made = self.find_maker(framework)()
        functions = self.find_functions(framework)
        with _name_file(self.path):
            make = pair.torch_side if framework == "torch" else pair.paddle_side
            return make(made, *functions.values())

    def pair(self, reference: Framework | None = None) -> PairSpec:
        """Return the pair, both of its models made in this process.

        reference: the framework of the model that is right; None: what the file says.
        """
        sides = self.side("torch"), self.side("paddle")
        right = self.reference() if reference is None else reference
        return order_pair(*sides, self.inputs(), right, **self.settings())

    def reference(self) -> Framework:
        """Return the framework of the model that is right."""
        found = getattr(self._module, "reference", "torch")
        with _name_file(self.path):
            check_setting("reference", found)
        return cast(Framework, found)

    def inputs(self) -> Inputs:
        """Return the arrays that both models are given."""
        name = "inputs" if hasattr(self._module, "inputs") else "INPUTS"
        found = getattr(self._module, name, None)
        if callable(found):
            found = self.require_function(name, "()")()
        if found is None:
            raise ReprodError(
                f"{self.path} gives no inputs: define inputs(), which returns a dict or a tuple of arrays"
            )
        with _name_file(self.path):
            check_inputs(found)
        return found  # type: ignore[no-any-return]

    def fused(self) -> Mapping[str, tuple[int, ...]]:
        """Return the sizes of what each fused tensor of the port holds, by the end of the tensor's name."""
        found = getattr(self._module, "fused", None) or {}
        if not isinstance(found, Mapping) or not all(map(_are_sizes, found.values())):
            raise ReprodError(
                f"{self.path}: fused must be a dict from the end of a tensor's name to the sizes of its parts"
            )
        return {str(name): tuple(sizes) for name, sizes in found.items()}

    def replica_inputs(self, inputs: Inputs, replicas: int) -> list[Inputs]:
        """Return what each replica of a parallel run is given, [] where the file leaves that to us."""
        function = self.find_function("paddle_inputs", 3)
        if function is None:
            return []
        given = [function(inputs, replica, replicas) for replica in range(replicas)]
        with _name_file(self.path):
            for one in given:
                check_inputs(one)
        return given

    def settings(self) -> Settings:
        """Return what else the file says."""
        values = {name: getattr(self._module, name, None) for name in Settings.__annotations__}
        given = {name: value for name, value in values.items() if value is not None}
        with _name_file(self.path):
            for name, value in given.items():
                check_setting(name, value)
        return cast(Settings, given)

    def remarks(self) -> list[str]:
        """Return a remark on every name that looks like a misspelt one."""
        return [
            f"{self.path.name} defines {own}, which is not used: is {meant} meant?"
            for own, meant in self._find_misspelt().items()
        ]

    def _find_misspelt(self) -> dict[str, str]:
        """Return the names in the file that look like a misspelt one that it lacks: what is meant."""
        own = [name for name in vars(self._module) if name not in _NAMES and name[0] != "_"]
        found = [(name, get_close_matches(name, _NAMES, 1, 0.85)) for name in own]
        return {
            name: like[0] for name, like in found if like and not hasattr(self._module, like[0])
        }

    def require_function(self, name: str, about: str, arguments: int = 0) -> Callable[..., Any]:
        """Return a function of the file. Raises ReprodError where it is missing: `about` follows its name."""
        function = self.find_function(name, arguments)
        if function is None:
            raise ReprodError(f"{self.path} defines no function {name}{about}")
        return function

    def find_function(self, name: str, arguments: int) -> Callable[..., Any] | None:
        """Return the named function, None if the file has none. Raises ReprodError for another value."""
        found = getattr(self._module, name, None)
        if found is None:
            return None
        is_model = hasattr(found, "forward") and not inspect.isclass(found)
        if not callable(found) or (is_model and arguments == 0):
            what = type(found).__name__
            raise ReprodError(f"{self.path}: {name} must be a function, not of type {what}")
        if not _accepts(found, arguments):
            wanted = _COUNTS.get(arguments, f"{arguments} arguments")
            raise ReprodError(f"{self.path}: {name} must be a function of {wanted}")
        return found  # type: ignore[no-any-return]


File = TypeVar("File", bound=PairFile)


@contextmanager
def open_file(path: Path, kind: type[File], any_reference: bool = False) -> Iterator[File]:
    """Yield the loaded file; while the block runs, modules that lie beside it can be imported.

    any_reference: whether the file may say that Paddle's model is the reference. Raises ReprodError if
    the file is missing, or says so where it may not. What the file's code raises passes unchanged.
    """
    if not path.is_file():
        raise explain_absence(path)
    module = ModuleType(_MODULE)
    module.__file__ = str(path.resolve())
    sys.modules[_MODULE] = module  # where dataclasses and pickle look a class up
    paths = list(sys.path)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with chdir("."):  # comes back if the file goes elsewhere
            code = compile(path.read_bytes(), module.__file__, "exec")
            exec(code, vars(module))
            file = kind(path, module)
            if not any_reference and file.reference() != "torch":
                raise ReprodError(
                    f"{path} says reference = 'paddle': that is for pair and convert alone; here "
                    "PyTorch's model is the reference"
                )
            yield file
    finally:
        sys.path[:] = paths
        sys.modules.pop(_MODULE, None)


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    """Put the file's name before what is found wrong in the block."""
    try:
        yield
    except ReprodError as error:
        raise ReprodError(f"{path}: {error}") from error


def _accepts(function: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*(None,) * arguments)
    except ValueError:  # a builtin does not tell
        return True
    except TypeError:
        return False
    return True


def call_named(words: str) -> Any:
    """Return what `words` make: "package.module:make_model", or with arguments "module:Model(8, bias=False)".

    CALL is a Python expression that sees the module's names; a function or class without arguments is
    called. A module may be given as its file, too: "package/module.py:make_model". Modules beside the
    present folder are found. Raises ReprodError for what cannot be imported or raises.
    """
    name, colon, call = words.partition(":")
    if not colon or not name or not call:
        raise ReprodError(f"{words!r}: expected MODULE:CALL, such as mine.models:make_model")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = eval(call, dict(vars(import_module(name_module(name)))))
        made = found() if inspect.isclass(found) or inspect.isroutine(found) else found
    except (Exception, SystemExit) as error:
        raise ReprodError(f"{words}: {describe_error(error)}") from error
    return made


def name_module(words: str) -> str:
    """Return the name by which a module is imported, also of its file: "models/net.py" is "models.net".

    A file outside of the present folder is imported by its stem, for which its folder is put on sys.path.
    """
    if not words.endswith(".py"):
        return words
    path, here = Path(words).resolve(), Path.cwd().resolve()
    if path.is_relative_to(here):
        return ".".join(path.relative_to(here).with_suffix("").parts)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    return path.stem


def locate_error(error: BaseException, path: Path) -> ReprodError:
    """Return the error as a ReprodError that names the file, and the line if the file's code raised it.

    A ModelFailure stays one: its place is a note.
    """
    place = _find_place(error, path)
    if isinstance(error, ModelFailure):
        if place and not hasattr(error, "__notes__"):
            error.add_note(place)
        return error
    if isinstance(error, ReprodError):
        return ReprodError(f"{place}: {error}") if place else error
    said = describe_error(error)
    if isinstance(error, SyntaxError):  # str() repeats the place
        said = f"{type(error).__name__}: {error.msg}"
    return ReprodError(f"{place or path}: {said}")


def catch_error(path: Path, function: Callable[[], Any]) -> Any:
    """Return the function's result, or the error that it raised, as `locate_error` names it."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        return locate_error(error, path)


def explain_error(error: BaseException, path: Path) -> ReprodError:
    """Return the error with its place in the message, for a command to end with."""
    said = locate_error(error, path)
    return ReprodError(": ".join([*getattr(said, "__notes__", []), str(said)]))


@contextmanager
def run_user_code(path: Path) -> Iterator[None]:
    """Keep stdout for the result alone while a file's code runs; at the end clear what was told of progress.

    Whatever is raised becomes a ReprodError, as `explain_error` words it.
    """
    quieten()
    with without_warnings(), redirect_stdout(sys.stderr):
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: the file's exit code must not become ours
            raise explain_error(error, path) from error
        finally:
            tell("")


def _find_place(error: BaseException, path: Path) -> str:
    """Return the file and the line in it through which the error came, "" if it did not."""
    file = os.path.realpath(path)  # unlike resolve(), it does not mind a ring of links
    for seen in _list_causes(error):
        if isinstance(seen, SyntaxError) and Path(seen.filename or "").is_file():
            shown = path if seen.filename == file else seen.filename
            return f"{shown}, line {seen.lineno}"
        frames = walk_tb(seen.__traceback__)
        lines = [n for frame, n in frames if os.path.realpath(frame.f_code.co_filename) == file]
        if lines:
            return f"{path}, line {lines[-1]}"
    return ""


def _list_causes(error: BaseException) -> list[BaseException]:
    """Return the error, what it was raised from, and so on; the chain may be a ring."""
    chain: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and seen not in chain:
        chain.append(seen)
        seen = seen.__cause__
    return chain
