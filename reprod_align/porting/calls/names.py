"""Public names of the frameworks: what an object is called, and what a name in a file stands for."""

import ast
import pkgutil
import types
from functools import cache
from importlib import import_module
from typing import Any, Final

from reprod_align.explain.code import dotted, list_imports

_SPACES: Final = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils",
    "torch.nn.utils.parametrizations", "torch.nn.utils.rnn", "torch.linalg", "torch.fft", "torch.special",
    "torch.autograd", "torch.autograd.functional", "torch.utils.checkpoint", "torch.optim",
    "torch.optim.lr_scheduler", "torch.jit", "torch.cuda", "torch.cuda.amp", "torch.amp", "torch.distributed",
    "torch.backends.cuda", "torch.compiler", "torch.fx", "torch.distributions", "torch.nn.modules.utils",
    "torch.utils.data", "torch.sparse",
)  # fmt: skip
"""modules whose names are used in place of those of the modules that define them, the first first"""


@cache
def _list_names() -> dict[int, str]:
    found: dict[int, str] = {}
    for space in _SPACES:
        try:
            module = import_module(space)
        except ImportError:
            continue
        for name, held in vars(module).items():
            if callable(held) and not name.startswith("__"):
                found.setdefault(id(held), f"{space}.{name}")
    return found


def name_object(held: Any) -> str:
    """Return the public name of something of PyTorch's, "" for anything else."""
    known = _list_names().get(id(held))
    if known:
        return known
    module = getattr(held, "__module__", None) or ""
    name = getattr(held, "__qualname__", "")
    if isinstance(held, type | types.FunctionType) and module.partition(".")[0] == "torch" and name:
        return f"{module}.{name}"
    return ""


_NOTHING: Final = object()


@cache
def _resolve(name: str) -> Any:
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return _NOTHING


def exists(name: str) -> bool:
    """Tell whether there is something of a dotted name, None included."""
    return _resolve(name) is not _NOTHING


def find_object(name: str) -> Any:
    """Return what a dotted name stands for, None if there is no such thing."""
    return _resolve(name) if exists(name) else None


@cache
def find_public(name: str) -> str:
    """Return the public name of what a dotted name stands for; the name itself if it has none."""
    found = find_object(name)
    return (name_object(found) if callable(found) else "") or name


class Scope:
    """Which names of a file are PyTorch's."""

    def __init__(self, tree: ast.Module) -> None:
        """Read the imports; a name that a function binds itself is its own there."""
        self.imports = list_imports(tree)
        self._own: dict[ast.AST, set[str]] = {}
        self._hide(tree, frozenset())

    def _hide(self, node: ast.AST, hidden: frozenset[str]) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            hidden = (hidden | list_bound(node)) - _list_imported(node)
        if isinstance(node, ast.Name) and node.id in hidden:
            self._own.setdefault(node, set()).add(node.id)
        for child in ast.iter_child_nodes(node):
            self._hide(child, hidden)

    def name(self, node: ast.AST, root: str = "torch") -> str:
        """Return "torch.nn.Linear" for an expression that reads it by any alias, "" for anything else."""
        words = dotted(node)
        if not words:
            return ""
        first, _, rest = words.partition(".")
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if base in self._own:
            return ""
        full = self.imports.get(first, "")
        if full.partition(".")[0] != root:
            return ""
        return f"{full}.{rest}" if rest else full


def list_bound(node: ast.AST) -> frozenset[str]:
    """Return what a function binds: its arguments and what it assigns."""
    args = node.args  # type: ignore[attr-defined]
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    found = {one.arg for one in named if one is not None}
    for held in ast.walk(node):
        if isinstance(held, ast.Name) and isinstance(held.ctx, ast.Store):
            found.add(held.id)
    return frozenset(found)


def _list_imported(node: ast.AST) -> frozenset[str]:
    return frozenset(
        (alias.asname or alias.name).partition(".")[0]
        for held in ast.walk(node)
        if isinstance(held, ast.Import | ast.ImportFrom)
        for alias in held.names
    )
