"""The modules of a package as text: where a name is bound, and to what."""

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from reprod_align.explain.code import Code

_USES_TORCH = re.compile(r"^\s*(import torch\b|from torch\b)", re.MULTILINE)


@dataclass(frozen=True)
class Import:
    """A name that stays imported: `from module import name as bound`, or a whole module."""

    bound: str
    module: str
    name: str = ""
    """"" for `import module as bound`"""

    def __str__(self) -> str:
        """Return the statement."""
        if self.name:
            alias = "" if self.name == self.bound else f" as {self.bound}"
            return f"from {self.module} import {self.name}{alias}"
        plain = self.bound == self.module.partition(".")[0]
        return f"import {self.module}" + ("" if plain else f" as {self.bound}")


@dataclass(frozen=True, eq=False)
class Definition:
    """The statements at the top of a module that bind a name."""

    module: "Module"
    name: str
    statements: tuple[ast.stmt, ...]


@dataclass
class Module:
    """A module's source."""

    name: str
    path: Path
    code: Code
    _imports: dict[str, Import] = field(default_factory=dict)

    @cached_property
    def uses_torch(self) -> bool:
        """Whether its text imports PyTorch."""
        return _USES_TORCH.search(self.code.text) is not None

    @cached_property
    def _bound(self) -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.code.tree.body:
            for name in _list_bound(statement):
                found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def imports(self) -> dict[str, Import]:
        """What its imports bind, wherever they stand; relative ones in full."""
        found = {}
        for node in self.code.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    found[bound] = Import(bound, alias.name)
            elif isinstance(node, ast.ImportFrom):
                module = self._resolve(node)
                for alias in node.names:
                    bound = alias.asname or alias.name
                    found[bound] = Import(bound, module, alias.name)
        return found

    def _resolve(self, node: ast.ImportFrom) -> str:
        """Return the full name of the module that a statement imports from."""
        if not node.level:
            return node.module or ""
        package = self.name.split(".")
        up = node.level - (self.path.stem == "__init__")
        return ".".join([*package[: len(package) - up], *([node.module] if node.module else [])])

    def define(self, name: str) -> Definition | None:
        """Return the definition of a name, None if the module does not bind it itself."""
        found = self._bound.get(name)
        return Definition(self, name, tuple(found)) if found else None


def _list_bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds, imports aside."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield statement.name
    elif isinstance(statement, ast.If | ast.Try | ast.With | ast.For):
        for part in ast.iter_child_nodes(statement):
            if isinstance(part, ast.stmt):
                yield from _list_bound(part)
            elif isinstance(part, ast.ExceptHandler):
                for held in part.body:
                    yield from _list_bound(held)
    elif not isinstance(statement, ast.Import | ast.ImportFrom):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


class Library:
    """The modules that were opened."""

    def __init__(self) -> None:
        """Start with none."""
        self._modules: dict[str, Module | None] = {}

    def open(self, name: str) -> Module | None:
        """Return a module, None for one without Python source."""
        if name not in self._modules:
            self._modules[name] = _open(name)
        return self._modules[name]

    def trace(self, found: Import) -> Import:
        """Return an import of something of PyTorch's that a neighbour passes on as PyTorch's own."""
        one: Import | None = found
        for _ in range(20):  # modules may import each other
            if one is None or not one.name:
                break
            if _is_torch(one.module):
                return Import(found.bound, one.module, one.name)
            module = self.open(one.module)
            one = module.imports.get(one.name) if module else None
        return found

    def find_home(self, found: Import) -> tuple[Module, str] | None:
        """Return the module that defines what is imported, and its name there; None: leave the import.

        An import stays where it gives a module, or something of a module that does not import PyTorch.
        """
        if not found.name or _is_torch(found.module):
            return None
        held = _find_object(found)
        home = getattr(held, "__module__", None) if callable(held) else None
        if _is_torch(home or ""):
            return None
        name = getattr(held, "__name__", found.name) if home else found.name
        for module_name, own in ((home, name), (found.module, found.name)):
            module = self.open(module_name) if module_name else None
            if module is not None and module.define(own):
                return (module, own) if module.uses_torch else None
        module = self.open(found.module)
        further = module.imports.get(found.name) if module else None
        return self.find_home(further) if further and further != found else None


def write_import(found: Import) -> str:
    """Return the statement; of what is not installed here, one that binds None."""
    if _is_there(found):
        return str(found)
    return f"try:\n    {found}\nexcept ImportError:\n    {found.bound} = None"


def _is_there(found: Import) -> bool:
    try:
        module = import_module(found.module)
        if found.name and not hasattr(module, found.name):
            import_module(f"{found.module}.{found.name}")
    except (Exception, SystemExit):
        return False
    return True


def _is_torch(module: str) -> bool:
    return module.partition(".")[0] == "torch"


def _open(name: str) -> Module | None:
    try:
        file = getattr(import_module(name), "__file__", None) or ""
        path = Path(os.path.realpath(file))
        if path.suffix == ".py":
            return Module(name, path, Code(path.read_text(encoding="utf-8")))
    except (Exception, SystemExit):
        pass
    return None


def _find_object(found: Import) -> Any:
    try:
        return getattr(import_module(found.module), found.name, None)
    except (Exception, SystemExit):
        return None
