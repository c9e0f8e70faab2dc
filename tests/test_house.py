"""The house rules: a test for each module, verbs for functions."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import REPOSITORY

ROOMS = ("reprod_align", "pipeline")
# one table for each topic; tests/api runs every entry of them all
TABLES = "reprod_align/api/topics"
# what was once the name of a function and is not a verb
NOT_VERBS = {
    "apart", "ended", "fitted", "given", "judged", "known", "met", "named", "needed", "paired", "parted",
    "placed", "said", "settled", "shown", "told", "turned", "unmet",
}  # fmt: skip


def modules(room: str) -> list[Path]:
    return sorted(path.relative_to(REPOSITORY) for path in (REPOSITORY / room).rglob("*.py"))


def name_of(path: Path) -> str:
    """Return a module's dotted name; a package's is its folder's."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Yield what a file imports, `from a import b` as a and as a.b, and strings, which may name it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def names_in(folder: str) -> frozenset[str]:
    """Return what the tests below a folder of tests/ import."""
    return frozenset(name for path in modules(folder) for name in imported(path))


def test_each_module_has_a_test_of_its_own() -> None:
    missing = []
    for path in modules("reprod_align"):
        room = path.parts[1] if len(path.parts) > 2 else ""
        empty = not any(
            isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree(path).body
        )
        if not empty and TABLES not in str(path) and name_of(path) not in names_in(f"tests/{room}"):
            missing.append(str(path))
    assert missing == []


def test_functions_are_verbs() -> None:
    found = [
        f"{path}: {node.name}"
        for room in ROOMS
        for path in modules(room)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef) and node.name.strip("_") in NOT_VERBS
    ]
    assert found == []
