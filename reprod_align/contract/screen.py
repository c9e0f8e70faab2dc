"""Reads a port's source, without running it, for what no port needs and a cheat does.

What may be imported is a list; so is what may be asked of `os`, `sys` and numpy. Names that lead out of a
module (`__globals__`, `__subclasses__`) are refused wherever they stand.
"""

import ast
import stat
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from reprod_align.contract.refusal import Refusal

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
_IMPORTS: Final = {name: code for names, code in _BAD_IMPORTS.items() for name in names.split()}
_CALLS: Final = {
    "open": "reads-files", "input": "reads-files",
    "exec": "runs-text", "eval": "runs-text", "compile": "runs-text", "__import__": "runs-text",
    "globals": "inspects-the-judge", "vars": "inspects-the-judge", "__builtins__": "inspects-the-judge",
    "breakpoint": "inspects-the-judge", "__loader__": "inspects-the-judge", "__spec__": "inspects-the-judge",
    "exit": "ends-the-process", "quit": "ends-the-process", "SystemExit": "ends-the-process",
    "KeyboardInterrupt": "ends-the-process",
}  # fmt: skip
"""built-in names, wherever they stand"""
_ATTRIBUTES: Final = {
    "__globals__ __code__ __closure__ __subclasses__ __builtins__ __loader__ __spec__ f_back "
    "f_globals f_locals f_builtins tb_frame gi_frame cr_frame __traceback__ __reduce_ex__ "
    "__getattribute__ __mro__ __bases__": "inspects-the-judge",
    "ctypeslib __array_interface__ data_ptr": "uses-ctypes",
    "fromfile memmap loadtxt genfromtxt DataSource open_memmap read_file from_pretrained "
    "save_pretrained": "reads-files",
    "tofile savez savez_compressed savetxt": "writes-files",
    "cpp_extension py_func": "runs-text",
    "enable_compat enable_torch_proxy": "imports-torch",
}
_NAMES: Final = {name: code for names, code in _ATTRIBUTES.items() for name in names.split()}
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
_LAYER: Final = frozenset(
    "state_dict set_state_dict load_dict set_dict parameters named_parameters sublayers "
    "named_sublayers named_buffers buffers __call__ __setattr__ __delattr__ __eq__ __array__ __del__ "
    "register_forward_pre_hook register_forward_post_hook __class_getitem__ __init_subclass__ "
    "train eval astype to _apply".split()
)
"""methods of a layer that a port leaves as they are"""
_BROAD: Final = frozenset(
    {"Exception", "BaseException", "RuntimeError", "ModelFailure", "SystemError"}
)
_COMPARISON: Final = frozenset({"numpy", "math", "operator", "builtins"})
_MOST_CONSTANTS: Final = 4000
_LONGEST_TEXT: Final = 20_000


def screen_files(files: Sequence[Path], packages: Collection[str]) -> list[Refusal]:
    """Return what is refused in the port's files; packages: those that the contract lists."""
    found: list[Refusal] = []
    own = {path.stem for path in files} | {path.parent.name for path in files}
    for path in files:
        fault = _find_file_fault(path)
        if fault:
            found.append(fault)
            continue
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except (SyntaxError, ValueError, RecursionError) as error:
            found.append(Refusal("not-python", f"{path.name}: {error}"))
            continue
        visitor = _Screen(path.name, own, packages)
        visitor.visit(tree)
        found += visitor.found
    return found


def _find_file_fault(path: Path) -> Refusal | None:
    try:
        kind = path.lstat()
    except OSError:
        return Refusal("not-a-plain-file", f"{path.name} is missing")
    if not stat.S_ISREG(kind.st_mode) or path.resolve() != path.parent.resolve() / path.name:
        return Refusal("not-a-plain-file", f"{path.name} is a link or a device")
    if path.suffix != ".py":
        return Refusal("not-a-plain-file", f"{path.name} is not a Python file")
    special = {"sitecustomize", "usercustomize", "conftest"} | {*sys.stdlib_module_names}
    if path.stem in special | HARMLESS | {*_IMPORTS} - {"code", "trace"}:
        return Refusal("shadows-a-module", f"{path.name} takes the name of another module")
    return None


class _Screen(ast.NodeVisitor):
    """Notes what is refused in one file."""

    def __init__(self, name: str, own: Collection[str], packages: Collection[str]) -> None:
        self.name, self.own, self.packages = name, own, packages
        self.found: list[Refusal] = []
        self.modules: dict[str, str] = {}
        """names in the file that stand for modules -> the module"""
        self.constants = 0

    def note(self, node: ast.AST, code: str, what: str) -> None:
        self.found.append(Refusal(code, f"{self.name}, line {getattr(node, 'lineno', 1)}: {what}"))

    # ------------------------------------------------------------------ imports

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802, D102
        for one in node.names:
            self._import(node, one.name)
            self.modules[one.asname or one.name.partition(".")[0]] = (
                one.name if one.asname else one.name.partition(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: N802, D102
        if node.level:
            return
        module = node.module or ""
        self._import(node, module)
        for one in node.names:
            self.modules[one.asname or one.name] = f"{module}.{one.name}"
            self._look_at(node, module, one.name)

    def _import(self, node: ast.AST, name: str) -> None:
        root = name.partition(".")[0]
        listed = any(f"{name}.".startswith(f"{one}.") for one in self.packages)
        if root in self.own or root in HARMLESS or listed:
            return
        self.note(node, _IMPORTS.get(root, "imports-unlisted"), f"imports {name}")

    # ------------------------------------------------------------------ names

    def visit_Name(self, node: ast.Name) -> None:  # noqa: N802, D102
        if node.id in _CALLS and node.id not in self.modules:
            self.note(node, _CALLS[node.id], f"uses {node.id}")

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802, D102
        if node.attr in _NAMES:
            self.note(node, _NAMES[node.attr], f"uses .{node.attr}")
        self._look_at(node, self._find_module(node.value), node.attr)
        self.generic_visit(node)

    def _look_at(self, node: ast.AST, module: str, name: str) -> None:
        """Note what is asked of a module where not everything of it may be asked."""
        root, _, rest = module.partition(".")
        if module == "os" and name not in _OS:
            self.note(node, _OS_NAMES.get(name, "reads-files"), f"uses os.{name}")
        if module == "sys" and name not in _SYS:
            self.note(node, _SYS_NAMES.get(name, "inspects-the-judge"), f"uses sys.{name}")
        if root in ("paddle", "numpy") and f"{rest}.{name}".lstrip(".") in _LOADERS:
            code = "writes-files" if name == "save" else "reads-files"
            self.note(node, code, f"uses {module}.{name}")
        if root == "numpy" and name in _NAMES:
            self.note(node, _NAMES[name], f"uses {module}.{name}")
        if root == "contextlib" and name == "suppress":
            self.note(node, "swallows-exceptions", "uses contextlib.suppress")

    def _find_module(self, node: ast.AST) -> str:
        """Return the module, or the thing in one, that an expression names; "" if it is none."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id, "")
        if isinstance(node, ast.Attribute):
            inner = self._find_module(node.value)
            return f"{inner}.{node.attr}" if inner else ""
        return ""

    # ------------------------------------------------------------------ patches

    def visit_Assign(self, node: ast.Assign) -> None:  # noqa: N802, D102
        for target in node.targets:
            self._look_at_target(target)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802, D102
        self._look_at_target(node.target)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802, D102
        self._look_at_target(node.target)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:  # noqa: N802, D102
        for target in node.targets:
            self._look_at_target(target)
        self.generic_visit(node)

    def _look_at_target(self, target: ast.AST) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._look_at_target(one)
        elif isinstance(target, ast.Starred):
            self._look_at_target(target.value)
        elif isinstance(target, ast.Attribute):
            self._patch(target, self._find_module(target.value), target.attr)
        elif isinstance(target, ast.Subscript):
            self._look_at_target(target.value)

    def _patch(self, node: ast.AST, module: str, name: str) -> None:
        root = module.partition(".")[0]
        if root and root not in self.own:
            code = "patches-comparison" if root in _COMPARISON else "patches-framework"
            self.note(node, code, f"changes {module}.{name}")

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802, D102
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called in ("setattr", "delattr") and node.args:
            self._patch(node, self._find_module(node.args[0]), "...")
        if called == "getattr" and node.args and len(node.args) > 1:
            self._look_up(node)
        self.generic_visit(node)

    def _look_up(self, node: ast.Call) -> None:
        """Note getattr() of a module: a name that is computed hides what is asked for."""
        module, name = self._find_module(node.args[0]), node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            self._look_at(node, module, name.value)
            if name.value in _NAMES:
                self.note(node, _NAMES[name.value], f"uses .{name.value}")
        elif module and module.partition(".")[0] != "paddle":
            self.note(node, "inspects-the-judge", f"looks a computed name up in {module}")

    # ------------------------------------------------------------------ layers, exceptions, constants

    def visit_ClassDef(self, node: ast.ClassDef) -> None:  # noqa: N802, D102
        for inner in node.body:
            names = {inner.name} if isinstance(inner, ast.FunctionDef) else set()
            if isinstance(inner, ast.Assign):
                names = {one.id for one in inner.targets if isinstance(one, ast.Name)}
            for name in sorted(names & _LAYER):
                self.note(inner, "overrides-the-layer", f"{node.name}.{name}")
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:  # noqa: N802, D102
        for handler in node.handlers:
            if self._is_broad(handler.type) and not _raises(handler.body):
                self.note(handler, "swallows-exceptions", "catches every exception")
        if any(isinstance(one, (ast.Return, ast.Break, ast.Continue)) for part in node.finalbody
               for one in ast.walk(part)):  # fmt: skip
            self.note(node, "swallows-exceptions", "leaves in `finally`, which drops the exception")
        self.generic_visit(node)

    visit_TryStar = visit_Try  # type: ignore[assignment]

    def _is_broad(self, kind: ast.AST | None) -> bool:
        if kind is None:
            return True
        if isinstance(kind, ast.Tuple):
            return any(map(self._is_broad, kind.elts))
        return not isinstance(kind, ast.Name) or kind.id in _BROAD

    def visit_Constant(self, node: ast.Constant) -> None:  # noqa: N802, D102
        if isinstance(node.value, (str, bytes)):
            if len(node.value) > _LONGEST_TEXT:
                self.note(node, "holds-answers", f"a text of {len(node.value)} letters")
        elif type(node.value) in (int, float, complex):
            self.constants += 1
            if self.constants == _MOST_CONSTANTS:
                self.note(node, "holds-answers", f"more than {_MOST_CONSTANTS} numbers")


def _raises(body: Sequence[ast.stmt]) -> bool:
    """Tell whether a handler's last statement raises."""
    return isinstance(body[-1], ast.Raise)
