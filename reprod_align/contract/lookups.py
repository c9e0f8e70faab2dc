"""What names in a port's source stand for, looked up before any code of the port runs.

`paddle.utils.x` may be Paddle's own function, or a module of the standard library that Paddle has imported:
only a process with Paddle in it can tell. What a name leads to is judged as if the port had imported it.
"""

import builtins
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

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
class Lookup:
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


def look_up(lookups: Sequence[Lookup], packages: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the code of a refusal, and where and what, for each name that leads where no port may go."""
    for one in lookups:
        found = _judge(one, packages)
        if found is not None:
            yield found[0], f"{one.place}: {one.name} {found[1]}"


def _judge(one: Lookup, packages: Collection[str]) -> tuple[str, str] | None:
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
