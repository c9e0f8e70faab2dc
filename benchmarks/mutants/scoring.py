"""What `align` says about one mutant, held against what was mutated."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from benchmarks.mutants.operators import Mutation
from reprod_align import Report

import paddle

Cause = Literal["right", "wrong", "none"]
_LONE = "no counterpart of this"


@dataclass
class Row:
    """One mutant and what became of it."""

    file: str
    kind: str
    line: int
    before: str
    after: str
    outcome: str = "unchanged"
    """caught, missed; or why it does not count: unchanged, raises, hung, crashed"""
    module: bool = False
    """whether the first finding names the module whose code was mutated, or one next to it"""
    line_named: bool = False
    cause: Cause = "none"
    place: str = ""
    """of the first finding: Paddle's name"""
    paddle_line: str = ""
    message: str = ""
    seconds: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether the mutant computes other numbers, so that it must be found."""
        return self.outcome in ("caught", "missed", "hung", "crashed")


def score(row: Row, mutation: Mutation, report: Report, module: ModuleType, model: Any) -> None:
    """Fill in the row from the report on the mutated model."""
    if report.verdict != "diverges":
        row.outcome = "missed"
        row.message = f"{report.verdict}: {'; '.join(report.remarks)}"
        return
    row.outcome = "caught"
    first = report.findings[0]
    row.place, row.message = first.paddle_name, first.message
    places = set(_places(mutation.line, module, model))
    row.module = bool({row.place, row.place.rpartition(".")[0]} & places)  # a parameter, its layer
    row.paddle_line = getattr(first, "paddle_line", None) or ""
    row.line_named = _is_near(row.paddle_line, mutation.line)
    row.cause = judge_cause(f"{first.torch_name} {first.message}", mutation)


def judge_cause(message: str, mutation: Mutation) -> Cause:
    """Judge the message of a finding by the words that a right cause has."""
    stated = split_cause(message)
    if not stated:
        return "none"
    if _shows_both_calls(stated, mutation):
        return "right"
    if any(re.search(pattern, stated, re.IGNORECASE) for pattern in mutation.words):
        return "right"
    return "none" if _LONE in message else "wrong"


def split_cause(message: str) -> str:
    """Return the sentences of a message after the one that says where and how far."""
    if _LONE in message:  # a parameter that one side lacks tells of itself
        return message
    return message.partition(". ")[2].strip()


def _shows_both_calls(stated: str, mutation: Mutation) -> bool:
    """Tell whether the cause quotes code that holds what was mutated, for example `x.mean(1)` here."""
    quoted = re.findall(r"`([^`]*)`", stated)
    bare = re.sub(r"\s", "", mutation.after)
    return len(quoted) > 1 and any(bare in re.sub(r"\s", "", code) for code in quoted)


def _is_near(named: str, line: int) -> bool:
    last = re.findall(r":(\d+)(?:-(\d+))?$", named)
    if not last:
        return False
    start, end = int(last[0][0]), int(last[0][1] or last[0][0])
    return start - 1 <= line <= end + 1


def _places(line: int, module: ModuleType, model: Any) -> Iterator[str]:
    """Yield the names of modules that hold this line of code, and those right above and below.

    A layer of the framework is below the module whose code made it, with all that it is made of.
    """
    classes = _classes_of(line, module)
    layers = dict(model.named_sublayers(include_self=True))
    own = [path for path, layer in layers.items() if type(layer).__module__ == module.__name__]
    holders = {path for path in own if _has_class(layers[path], classes)}
    for path in layers:
        above = _nearest(path, own)
        if path in holders or above in holders:
            yield path
    for path in holders:
        yield _nearest(path, own)


def _has_class(layer: Any, names: set[str]) -> bool:
    return any(kind.__name__ in names for kind in type(layer).__mro__)


def _nearest(path: str, own: Sequence[str]) -> str:
    """Return the first module around one that is of the mutated file; "" the model."""
    path = path.rpartition(".")[0]
    while path and path not in own:
        path = path.rpartition(".")[0]
    return path


def _classes_of(line: int, module: ModuleType) -> set[str]:
    """Return the layer whose source holds the line, or those that use the function that does."""
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    for node in tree.body:
        if node.lineno <= line <= (node.end_lineno or 0):
            name = getattr(node, "name", "")
            kind = getattr(module, name, None)
            if isinstance(kind, type) and issubclass(kind, paddle.nn.Layer):
                return {name}
            return _users(name, tree)
    return set()


def _users(name: str, tree: ast.Module, depth: int = 3) -> set[str]:
    """Return the classes that mention a function, themselves or through another function."""
    found: set[str] = set()
    for node in tree.body:
        mentions = {getattr(it, "id", getattr(it, "attr", "")) for it in ast.walk(node)}
        if name in mentions and getattr(node, "name", name) != name:
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
            elif depth:
                found |= _users(getattr(node, "name", ""), tree, depth - 1)
    return found
