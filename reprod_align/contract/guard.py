"""Refuses what a port's code leads to, in the port's own process. Nothing here is a sandbox.

Before any code of the port runs, each name of its source is looked up: `paddle.utils.x` may be Paddle's own
function, or a module of the standard library that Paddle has imported; only a process with Paddle in it can
tell. While it runs, an audit hook (PEP 578) hears what Python is asked to do: files, processes, libraries,
connections. Where code of the port is on the stack and what it asks for is not allowed, the refusal is
written to a pipe at once, which nothing can take back, and the call raises. Code in C that asks the system
itself is not heard. A fingerprint tells which functions of the frameworks were replaced meanwhile.
"""

import builtins
import os
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

HIDDEN: Final = frozenset({"torch", "torchvision", "torchaudio", "torchgen", "functorch"})
"""packages that a port's process cannot find"""
ARMED: Final = b"armed"
"""the first line in the pipe"""
_ASKED: Final[Mapping[str, str]] = {
    "subprocess.Popen": "starts-processes", "os.system": "starts-processes",
    "os.exec": "starts-processes", "os.posix_spawn": "starts-processes", "os.spawn": "starts-processes",
    "os.fork": "starts-processes", "os.forkpty": "starts-processes", "pty.spawn": "starts-processes",
    "_thread.start_new_thread": "starts-processes",
    "os.kill": "ends-the-process", "os.killpg": "ends-the-process", "signal.pthread_kill": "ends-the-process",
    "os.remove": "writes-files", "os.rename": "writes-files", "os.link": "writes-files",
    "os.symlink": "writes-files", "os.mkdir": "writes-files", "os.rmdir": "writes-files",
    "os.truncate": "writes-files", "os.chmod": "writes-files", "os.chown": "writes-files",
    "shutil.rmtree": "writes-files", "os.putenv": "reads-the-environment",
    "sys.settrace": "inspects-the-judge", "sys.setprofile": "inspects-the-judge",
    "sys.addaudithook": "inspects-the-judge",
    "gc.get_objects": "inspects-the-judge", "gc.get_referrers": "inspects-the-judge",
    "gc.get_referents": "inspects-the-judge",
}  # fmt: skip
"""what is refused wherever code of the port is on the stack"""
_ASKED_DIRECTLY: Final[Mapping[str, str]] = {
    "exec": "runs-text", "compile": "runs-text", "code.__new__": "runs-text", "marshal.loads": "runs-text",
    "pickle.find_class": "reads-files", "sys._getframe": "inspects-the-judge",
    "object.__setattr__": "patches-framework",
}  # fmt: skip
"""what is refused where the port's code itself asks; libraries do it for their own ends"""
_THROUGH_LIBRARY: Final = "exec"
"""asked directly also where only the standard library lies between: typing.get_type_hints"""
_MAKERS: Final = ("dataclasses.py", f"collections{os.sep}__init__.py")
"""of the standard library: what makes classes out of text of its own"""
_GROUPS: Final = (("ctypes.", "uses-ctypes"), ("socket.", "uses-the-network"))
_LIBRARY: Final = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib"))
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FOLDERS: Final = ("os.listdir", "os.scandir")
_MOST: Final = 50  # refusals that are told


class ForbiddenError(RuntimeError):
    """Raised in the port's code by what it asked for."""


class Guard:
    """Hears what code below a folder asks for, and tells it through a pipe."""

    def __init__(self, folder: Path, pipe: int, packages: Collection[str]) -> None:
        """folder: of the port's files; pipe: where refusals go; packages: what it may import."""
        self._folder = f"{folder.resolve()}{os.sep}"
        self._pipe, self._told = pipe, 0
        self._packages = frozenset(packages)
        self._readable = (self._folder, *_list_readable())
        self._hidden = tuple(
            f"{root}{os.sep}{name}" for root in _list_readable() for name in HIDDEN
        )
        self._busy = False

    def arm(self) -> None:
        """Begin to listen; it cannot be ended. The pipe is told: from now on it is the port that acts."""
        sys.addaudithook(self._hear)
        os.write(self._pipe, ARMED + b"\n")

    def tell(self, code: str, text: str) -> None:
        """Write a refusal to the pipe."""
        self._told += 1
        if self._told <= _MOST:
            line = f"{code}\t{text}".encode("unicode_escape", "replace")[:1000]
            os.write(self._pipe, line + b"\n")

    def _hear(self, event: str, arguments: Sequence[Any]) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            found = self._judge(event, arguments)
        finally:
            self._busy = False
        if found:
            raise ForbiddenError(f"{found[0]}: {found[1]}")

    def _judge(self, event: str, arguments: Sequence[Any]) -> tuple[str, str] | None:
        code = self._find_code(event, arguments)
        if not code:
            return None
        place = self._find_port(event, event in _ASKED_DIRECTLY or event == "import")
        if not place:
            return None
        said = f"{place}: {event} {str(arguments[:1])[1:-2][:200]}"
        self.tell(code, said)
        return code, said

    def _find_code(self, event: str, arguments: Sequence[Any]) -> str:
        """Return why an event is refused of the port, "" if it is allowed."""
        if event == "open":
            return self._find_file_code(*arguments[:3])
        if event in _FOLDERS:
            return self._find_path_code(arguments[0])
        if event == "import":
            return self._find_import_code(str(arguments[0]))
        for start, code in _GROUPS:
            if event.startswith(start):
                return code
        return _ASKED.get(event) or _ASKED_DIRECTLY.get(event, "")

    def _find_file_code(self, path: Any, mode: Any, flags: Any) -> str:
        if isinstance(path, int):
            return ""
        if isinstance(flags, int) and flags & _WRITES and os.fspath(path) != os.devnull:
            return "writes-files"
        return self._find_path_code(path)

    def _find_path_code(self, path: Any) -> str:
        try:
            real = os.path.realpath(os.fsdecode("." if path is None else path))
        except (TypeError, ValueError):
            return "reads-files"
        if real.startswith("/proc/"):
            return "reads-proc"
        if real.startswith(self._hidden):
            return "imports-torch"
        known = real.startswith(self._readable) or f"{real}{os.sep}" in self._readable
        return "" if known or real in ("/dev/null", "/dev/urandom") else "reads-files"

    def _find_import_code(self, name: str) -> str:
        root = name.partition(".")[0]
        if root in HIDDEN:
            return "imports-torch"
        return "imports-the-judge" if root == "reprod_align" else ""

    def _find_port(self, event: str, directly: bool) -> str:
        """Return the port's line on the stack, "" if there is none.

        directly: only if the port makes the call itself, or by an import statement.
        """
        frame: FrameType | None = sys._getframe(3)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(self._folder):
                return f"{name.removeprefix(self._folder)}, line {frame.f_lineno}"
            if directly and not _lies_between(event, name):
                return ""
            frame = frame.f_back
        return ""


def _lies_between(event: str, file: str) -> bool:
    """Tell whether code of a file only carries out what the code below it on the stack asks for."""
    if event == "import":
        return file.startswith("<frozen importlib")
    return event == _THROUGH_LIBRARY and file.startswith(_LIBRARY) and not file.endswith(_MAKERS) \
        and "-packages" not in file  # fmt: skip


class _HidingFinder:
    """Finds what Python's own finder does, but for hidden packages."""

    def __init__(self, hidden: Collection[str]) -> None:
        self._hidden = frozenset(hidden)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return a module's spec, None for a hidden package: it counts as not installed."""
        if name.partition(".")[0] in self._hidden:
            return None
        return PathFinder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of Python's own finder: distributions, caches."""
        return getattr(PathFinder, name)


def hide_packages(hidden: Collection[str] = HIDDEN) -> None:
    """Let packages count as not installed in this process: PyTorch."""
    finder = _HidingFinder(hidden)
    sys.meta_path[:] = [finder if one is PathFinder else one for one in sys.meta_path]


def _list_readable() -> tuple[str, ...]:
    """Return the folders in which Python and its packages lie."""
    found = {os.path.realpath(path) for name in ("stdlib", "platstdlib", "purelib", "platlib")
             for path in [sysconfig.get_path(name)]}  # fmt: skip
    found |= {os.path.realpath(path) for path in sys.path if path.endswith(("-packages", ".zip"))}
    found |= {os.path.realpath(Path(__file__).parents[1])}
    return tuple(sorted(f"{path}{os.sep}" for path in found))


_ROOTS: Final = {
    "paddle": "patches-framework", "paddlenlp": "patches-framework",
    "numpy": "patches-comparison", "math": "patches-comparison", "builtins": "patches-comparison",
    "operator": "patches-comparison", "json": "patches-comparison",
    "reprod_align": "patches-comparison", "multiprocessing": "patches-comparison",
    "_io": "patches-comparison", "_thread": "patches-comparison",
}  # fmt: skip
_DESCRIPTORS: Final = (classmethod, staticmethod, property)  # not callable by themselves


class Fingerprint:
    """Functions, classes and their code, as they stood when it was made."""

    def __init__(self) -> None:
        """Note what stands in every module of the frameworks that is loaded."""
        self._held = {place: (value, _read_code(value)) for place, value in _walk()}

    def list_changes(self) -> list[tuple[str, str]]:
        """Return the code of the refusal and the name of each function that was replaced since."""
        now = dict(_walk())
        changes = []
        for place, (value, code) in self._held.items():
            module = place[0]
            if module not in sys.modules:
                continue
            found = now.get(place)
            if found is not value or _read_code(found) is not code:
                changes.append((_ROOTS[module.partition(".")[0]], ".".join(filter(None, place))))
        return changes

    def put_back(self) -> None:
        """Let every function be again what it was."""
        now = dict(_walk())
        for (module, kind, name), (value, code) in self._held.items():
            if module not in sys.modules:
                continue
            holder = vars(sys.modules[module])[kind] if kind else sys.modules[module]
            if now.get((module, kind, name)) is not value:
                setattr(holder, name, value)
            if isinstance(value, FunctionType) and value.__code__ is not code:
                value.__code__ = code


def _is_function(value: Any) -> bool:
    return callable(value) or isinstance(value, _DESCRIPTORS)


def _read_code(value: Any) -> Any:
    return value.__code__ if isinstance(value, FunctionType) else None


def _walk() -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Yield (module, class, name) and the function, class or property that stands there."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in _ROOTS or not isinstance(module, ModuleType):
            continue
        for key, value in list(vars(module).items()):
            if not _is_function(value):
                continue
            yield (name, "", key), value
            if isinstance(value, type) and getattr(value, "__module__", "") == name:
                for inner, member in list(vars(value).items()):
                    if _is_function(member):
                        yield (name, key, inner), member
    framework = sys.modules.get("paddle")
    tensor = getattr(framework, "Tensor", None)
    for inner, member in list(vars(tensor).items()) if isinstance(tensor, type) else ():
        if _is_function(member):
            yield ("paddle", "Tensor", inner), member


HARMLESS: Final = frozenset(
    "__future__ abc collections contextlib copy dataclasses enum functools itertools logging math "
    "numbers operator os paddle numpy re string sys textwrap types typing typing_extensions warnings "
    "einops".split()
)
"""what every port may import"""
_BAD_IMPORTS: Final = {
    "torch torchvision torchaudio": "imports-torch",
    "reprod_align": "imports-the-judge",
    "ctypes cffi mmap": "uses-ctypes",
    "subprocess multiprocessing pty threading _thread concurrent asyncio sched": "starts-processes",
    "socket urllib http requests httpx ftplib ssl smtplib xmlrpc": "uses-the-network",
    "io pathlib shutil glob tempfile fileinput linecache zipfile tarfile gzip h5py pickle marshal "
    "shelve dill joblib sqlite3 csv json safetensors": "reads-files",
    "time datetime random secrets uuid": "reads-the-clock",
    "importlib runpy pkgutil imp zipimport code codeop": "runs-text",
    "gc inspect traceback tracemalloc dis builtins pdb bdb trace faulthandler weakref site "
    "unittest": "inspects-the-judge",
    "atexit signal": "ends-the-process",
    "platform": "reads-the-environment",
}
IMPORTS: Final = {name: code for names, code in _BAD_IMPORTS.items() for name in names.split()}
BUILT_IN: Final = {
    "open": "reads-files", "input": "reads-files",
    "exec": "runs-text", "eval": "runs-text", "compile": "runs-text", "__import__": "runs-text",
    "globals": "inspects-the-judge", "vars": "inspects-the-judge", "__builtins__": "inspects-the-judge",
    "breakpoint": "inspects-the-judge", "__loader__": "inspects-the-judge", "__spec__": "inspects-the-judge",
    "exit": "ends-the-process", "quit": "ends-the-process", "SystemExit": "ends-the-process",
    "KeyboardInterrupt": "ends-the-process",
}  # fmt: skip
"""built-in names, wherever they stand"""
_OS: Final = frozenset("path sep linesep name fspath PathLike pardir curdir".split())
_SYS: Final = frozenset(
    "version version_info maxsize float_info int_info byteorder platform".split()
)
_OS_NAMES: Final = {
    "environ": "reads-the-environment", "getenv": "reads-the-environment", "putenv": "reads-the-environment",
    "_exit": "ends-the-process", "abort": "ends-the-process", "kill": "ends-the-process",
    "getpid": "reads-the-environment", "getppid": "reads-proc",
    "remove": "writes-files", "unlink": "writes-files", "rename": "writes-files", "write": "writes-files",
}  # fmt: skip
_SYS_NAMES: Final = {"exit": "ends-the-process", "argv": "reads-the-environment"}
_LOADERS: Final = frozenset("load save hub utils.download utils.cpp_extension jit.load jit.save "
                            "static.load static.save vision.ops.read_file".split())  # fmt: skip
"""of paddle and numpy: what reads and writes files"""
_BESIDE_MODELS: Final = {
    "static inference hub onnx dataset reader text audio": "reads-files",
    "profiler hapi callbacks": "writes-files",
    "distributed io": "starts-processes",
    "utils base framework": "inspects-the-judge",
    "base.core base.libpaddle": "uses-ctypes",
}
_PACKAGES: Final = {name: code for names, code in _BESIDE_MODELS.items() for name in names.split()}
"""of paddle: what no model computes with; it leads to files, processes and other modules, partly in C++"""
_HARMLESS_THERE: Final = frozenset(
    "static.InputSpec framework.get_default_dtype framework.in_dynamic_mode framework.dtype "
    "framework.random_seed base.param_attr base.param_attr.ParamAttr utils.unique_name".split()
)

PART: Final = "part"
HANDED_ON: Final = "handed on"
COMPUTED: Final = "computed"


@dataclass(frozen=True)
class DottedName:
    """A dotted name in a port's source that begins with an imported module."""

    place: str
    """"port.py, line 3" """
    name: str
    use: str
    """PART; HANDED_ON: given away as a value; COMPUTED: asked for a name that is computed"""


def find_import_code(name: str, packages: Collection[str], own: Collection[str] = ()) -> str:
    """Return why a module may not be imported, "" if it may; own: the roots of the port's modules."""
    root = name.partition(".")[0]
    listed = any(f"{name}.".startswith(f"{one}.") for one in packages)
    if root in own or root in HARMLESS or listed:
        return ""
    return IMPORTS.get(root, "imports-unlisted")


def find_name_code(module: str, name: str) -> str:
    """Return why a port may not use a name of a module that is allowed in part, "" if it may."""
    root, _, rest = module.partition(".")
    if module == "os" and name not in _OS:
        return _OS_NAMES.get(name, "reads-files")
    if module == "sys" and name not in _SYS:
        return _SYS_NAMES.get(name, "inspects-the-judge")
    whole = f"{rest}.{name}".lstrip(".")
    if root in ("paddle", "numpy") and whole in _LOADERS:
        return "writes-files" if name.startswith("save") else "reads-files"
    if root != "paddle" or not rest or whole in _HARMLESS_THERE:
        return ""
    return _PACKAGES.get(whole, _PACKAGES.get(rest, _PACKAGES.get(rest.partition(".")[0], "")))


def look_up(lookups: Sequence[DottedName], packages: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield a refusal for each name that leads where no port may go: its code, its place, and why."""
    for one in lookups:
        found = _judge(one, packages)
        if found is not None:
            yield found[0], f"{one.place}: {one.name} {found[1]}"


def _judge(one: DottedName, packages: Collection[str]) -> tuple[str, str] | None:
    root, *rest = one.name.split(".")
    value: Any = _import(root)
    for name in rest:
        inside = isinstance(value, ModuleType)
        if inside and (code := find_name_code(value.__name__, name)):
            return code, f"is {value.__name__}.{name}"
        found = _get(value, name)
        if found is None and inside:
            found = _import(f"{value.__name__}.{name}")
        if found is None:
            return None  # it raises where the port asks for it
        value = found
        if code := _find_code(value, packages):
            return code, f"is {getattr(value, '__name__', name)}"
    if not isinstance(value, ModuleType) or one.use == PART:
        return None
    if one.use == HANDED_ON:
        return "inspects-the-judge", "is a module, and handed on"
    held = [inner for inner in vars(value).values() if isinstance(inner, ModuleType)]
    foreign = [inner.__name__ for inner in held
               if inner.__name__ in ("os", "sys") or find_import_code(inner.__name__, packages)]  # fmt: skip
    return (
        ("inspects-the-judge", f"is asked for a computed name; it holds {foreign[0]}")
        if foreign
        else None
    )


def _find_code(value: Any, packages: Collection[str]) -> str:
    """Return why a port may not hold this, "" if it may."""
    if isinstance(value, ModuleType):
        return find_import_code(value.__name__, packages)
    if not callable(value):
        return ""
    if code := next((code for known, code in _list_known() if known is value), ""):
        return code
    module = getattr(value, "__module__", None)
    root = module.partition(".")[0] if isinstance(module, str) else ""
    return "" if root == "builtins" else IMPORTS.get(root, "")


@cache
def _list_known() -> list[tuple[Any, str]]:
    """Return functions that are refused under whatever name they are reached, each with its code."""
    known = [
        (getattr(builtins, name), code)
        for name, code in BUILT_IN.items()
        if hasattr(builtins, name)
    ]
    for root in ("paddle", "numpy"):
        for whole in _LOADERS:
            value: Any = _import(root)
            for name in whole.split("."):
                value = _get(value, name)
            if callable(value):
                known.append((value, "writes-files" if "save" in whole else "reads-files"))
    return known


def _get(value: Any, name: str) -> Any:
    """Return an attribute of a package's module, None if it has none."""
    try:
        return getattr(value, name, None)
    except Exception:  # a package's own __getattr__ may raise anything
        return None


def _import(name: str) -> Any:
    """Return a module, None where it cannot be imported."""
    try:
        return import_module(name)
    except Exception:  # a package's module may raise anything at import
        return None
