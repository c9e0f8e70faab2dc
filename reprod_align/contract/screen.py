"""Reads a port's source, without running it, for what no port needs and a cheat does.

What may be imported is a list; so is what may be asked of `os`, `sys` and numpy. Names that lead out of a
module (`__globals__`, `__subclasses__`) are refused wherever they stand. What a name such as
`paddle.utils.x.y` stands for is known where Paddle is imported: `contract.guard` looks it up there.
"""

import ast
import stat
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from reprod_align.contract.guard import (
    BUILT_IN,
    COMPUTED,
    HANDED_ON,
    HARMLESS,
    IMPORTS,
    PART,
    DottedName,
    find_import_code,
    find_name_code,
)
from reprod_align.contract.proof import Refusal

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
    "get_type_hints ForwardRef evaluate_forward_ref _evaluate": "runs-text",
    "attrgetter methodcaller": "inspects-the-judge",
}
_NAMES: Final = {name: code for names, code in _ATTRIBUTES.items() for name in names.split()}
_HIDDEN_IN_TEXT: Final = tuple(name for name in _NAMES if "_" in name and name.strip("_") != name)
"""what a format string or a lookup by text can reach"""
_REACHED: Final = frozenset(
    "os sys subprocess ctypes builtins importlib threading multiprocessing socket torch".split()
)
"""modules that no object of a port has as an attribute"""
_ARGUMENTS: Final = frozenset({"input"})
"""built-in names that layers give their arguments; nothing comes from the standard input"""
_BY_NAME: Final = frozenset({"getattr", "setattr", "delattr", "hasattr"})
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


def screen_files(
    files: Sequence[Path], packages: Collection[str]
) -> tuple[list[Refusal], list[DottedName]]:
    """Return what is refused in the port's files, and the names to look up where Paddle is imported.

    packages: those that the contract lists.
    """
    found: list[Refusal] = []
    lookups: dict[DottedName, None] = {}
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
        visitor.known = BUILT_IN.keys() - (
            _ARGUMENTS & {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
        )
        visitor.visit(tree)
        found += visitor.found
        lookups |= dict.fromkeys(visitor.lookups)
    return found, list(lookups)


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
    if path.stem in special | HARMLESS | {*IMPORTS} - {"code", "trace"}:
        return Refusal("shadows-a-module", f"{path.name} takes the name of another module")
    return None


class _Screen(ast.NodeVisitor):
    """Notes what is refused in one file."""

    def __init__(self, name: str, own: Collection[str], packages: Collection[str]) -> None:
        self.name, self.own, self.packages = name, own, packages
        self.found: list[Refusal] = []
        self.modules: dict[str, str] = {}
        """names in the file that stand for modules, or for what is in one -> the module's name for it"""
        self.assigned: set[str] = set()
        """those of them that no import made"""
        self.lookups: list[DottedName] = []
        self.given: set[int] = set()
        """ids of the expressions that may be a module as a whole"""
        self.known: Collection[str] = BUILT_IN
        """built-in names that are refused wherever they stand"""
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
            if one.name == "*":
                self._look_up(node, module, COMPUTED)
                continue
            self.modules[one.asname or one.name] = f"{module}.{one.name}"
            self._look_at(node, module, one.name)
            self._look_up(node, f"{module}.{one.name}", PART)

    def _import(self, node: ast.AST, name: str) -> None:
        code = find_import_code(name, self.packages, self.own)
        if code:
            self.note(node, code, f"imports {name}")

    # ------------------------------------------------------------------ names

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:  # noqa: N802, D102
        outside = set(self.assigned)
        self.generic_visit(node)
        if not any(isinstance(one, (ast.Global, ast.Nonlocal)) for one in ast.walk(node)):
            for name in self.assigned - outside:
                self.modules.pop(name, None)
            self.assigned = outside

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Name(self, node: ast.Name) -> None:  # noqa: N802, D102
        if node.id in self.known and node.id not in self.modules:
            self.note(node, BUILT_IN[node.id], f"uses {node.id}")
        if node.id in _BY_NAME and id(node) not in self.given:
            self.note(node, "inspects-the-judge", f"hands {node.id} on")
        self._look_up_whole(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802, D102
        self._look_up_whole(node)
        self._look_at_parts(node)

    def _look_at_parts(self, node: ast.Attribute) -> None:
        """Note what each part of a dotted expression asks for."""
        if node.attr in _NAMES:
            self.note(node, _NAMES[node.attr], f"uses .{node.attr}")
        module = self._find_module(node.value)
        if module:
            self._look_at(node, module, node.attr)
        elif node.attr in _REACHED:
            code = IMPORTS.get(node.attr, "inspects-the-judge")
            self.note(node, code, f"reaches {node.attr} through an object")
        if module and isinstance(node.value, ast.Attribute):
            self._look_at_parts(node.value)
        elif not module:
            self.visit(node.value)

    def _look_up_whole(self, node: ast.AST) -> None:
        """Remember a name that begins with a module, to be looked up; as a value it must be none."""
        name = self._find_module(node)
        if name:
            self._look_up(node, name, PART if id(node) in self.given else HANDED_ON)

    def _look_up(self, node: ast.AST, name: str, use: str) -> None:
        if name and name.partition(".")[0] not in self.own:
            place = f"{self.name}, line {getattr(node, 'lineno', 1)}"
            self.lookups.append(DottedName(place, name, use))

    def _look_at(self, node: ast.AST, module: str, name: str) -> None:
        """Note a refusal if a port may not use this name of the module."""
        code = find_name_code(module, name)
        if module.partition(".")[0] in ("numpy", "typing", "operator"):
            code = code or _NAMES.get(name, "")
        if module == "contextlib" and name == "suppress":
            code = "swallows-exceptions"
        if name == "__dict__":
            code = "inspects-the-judge"
        if code:
            self.note(node, code, f"uses {module}.{name}")

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
        self.given.add(id(node.value))
        self.generic_visit(node)
        name = self._find_module(node.value)
        for target in node.targets if name else ():
            if isinstance(target, ast.Name):
                if target.id not in self.modules:
                    self.assigned.add(target.id)
                self.modules[target.id] = name
            else:  # where it goes cannot be followed
                self._look_up(node, name, HANDED_ON)

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
            module = self._find_module(target.value)
            if not module and _names_a_class(target.value):
                self.note(target, "patches-framework", f"changes .{target.attr} of a class")
            self._patch(target, module, target.attr)
        elif isinstance(target, ast.Subscript):
            self._look_at_target(target.value)

    def _patch(self, node: ast.AST, module: str, name: str) -> None:
        root = module.partition(".")[0]
        if root and root not in self.own:
            code = "patches-comparison" if root in _COMPARISON else "patches-framework"
            self.note(node, code, f"changes {module}.{name}")

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802, D102
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called in _BY_NAME and node.args:
            self.given.add(id(node.func))
            self.given.add(id(node.args[0]))
            if called in ("setattr", "delattr"):
                self._patch(node, self._find_module(node.args[0]), "...")
                if _names_a_class(node.args[0]):
                    self.note(node, "patches-framework", "changes a class")
            elif len(node.args) > 1:
                self._look_by_name(node)
        self.generic_visit(node)

    def _look_by_name(self, node: ast.Call) -> None:
        """Note getattr() of a module: a name that is computed hides what is asked for."""
        module, name = self._find_module(node.args[0]), node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            if name.value in _NAMES:
                self.note(node, _NAMES[name.value], f"uses .{name.value}")
            if module:
                self._look_at(node, module, name.value)
                self._look_up(node, f"{module}.{name.value}", HANDED_ON)
        elif module.partition(".")[0] in ("", "paddle"):
            self._look_up(node, module, COMPUTED)
        else:
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
            if self._is_broad(handler.type) and not isinstance(handler.body[-1], ast.Raise):
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
            text = node.value if isinstance(node.value, str) else ""
            for name in _HIDDEN_IN_TEXT:
                if name in text:
                    self.note(node, _NAMES[name], f"a text names {name}")
        elif type(node.value) in (int, float, complex):
            self.constants += 1
            if self.constants == _MOST_CONSTANTS:
                self.note(node, "holds-answers", f"more than {_MOST_CONSTANTS} numbers")


def _names_a_class(node: ast.AST) -> bool:
    """Tell whether an expression is `type(...)` or `x.__class__`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "type"
    return isinstance(node, ast.Attribute) and node.attr == "__class__"
