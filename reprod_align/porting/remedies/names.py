"""Names that a draft lost or that Paddle lacks."""

import ast
import inspect
from collections.abc import Iterable
from typing import Final

from reprod_align.explain.code import Edit, dotted, list_imports
from reprod_align.porting.remedy import Case, Remedy, find_object, find_start

_PLAIN: Final = "(?:Tensor|NoneType|int|float|bool|str|list|tuple|dict)'"
"""what keeps no setting behind an underscore"""


def name_in_paddle(name: str) -> str:
    """Return Paddle's name of something of PyTorch's that is called the same, "" if there is none."""
    if name != "torch" and not name.startswith("torch."):
        return ""
    renamed = "paddle" + name.removeprefix("torch")
    return renamed if find_object(renamed) is not None else ""


class LostTorchName(Remedy):
    """The draft drops the import `from torch import NAME` and keeps the name."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Write Paddle's full name wherever the name is read."""
        found = case.find(r"name '(\w+)' is not defined")
        if not found:
            return
        imported = list_imports(case.source.tree).get(found[1], "")
        renamed = name_in_paddle(imported)
        if renamed and imported != "torch":  # what is not converted stays in sight
            for node in case.draft.names(found[1]):
                yield case.draft.replace(node, renamed)


class LoadingHook(Remedy):
    """Paddle's layers have no hooks on loading a state dict: change a checkpoint's names before."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Take the registration out, or what stands for it in an expression."""
        found = case.find(r"has no attribute '(_?register_(?:load_)?state_dict\w*hook)'")
        if found:
            yield from remove_calls(case, found[1])


def remove_calls(case: Case, method: str) -> Iterable[Edit]:
    """Yield the edits that remove the statements which call a method."""
    for node in case.draft.calls():
        around = next(case.draft.parents(node))
        if dotted(node.func).rpartition(".")[2] == method and isinstance(around, ast.Expr):
            yield case.draft.remove(around)


class OtherCase(Remedy):
    """This Paddle writes the name with other capitals."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Write the name as the module has it, wherever the draft reads it."""
        found = case.find(r"module '(paddle[\w.]*)' has no attribute '(\w+)'")
        if not found:
            return
        alike = [name for name in dir(find_object(found[1])) if name.lower() == found[2].lower()]
        if len(alike) == 1:
            for node in case.draft.attributes(found[2]):
                yield case.draft.replace(node, f"{case.draft.source(node.value)}.{alike[0]}")


class MissingSubmodule(Remedy):
    """The draft reads a module that nothing imports."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Import the module."""
        found = case.find(r"module '([\w.]+)' has no attribute '(\w+)'")
        name = f"{found[1]}.{found[2]}" if found else ""
        if name and inspect.ismodule(find_object(name)):
            yield case.draft.insert(find_start(case.draft), f"import {name}")


class PrivateSetting(Remedy):
    """Paddle's layers keep a setting under a name that begins with an underscore."""

    RENAMED: Final = {"eps": "epsilon"}
    """PyTorch's name -> what Paddle calls it"""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Read the underscored name, in the problem's line."""
        found, line = (
            case.find(rf"'(?!{_PLAIN})\w+' object has no attribute '([a-z]\w*)'"),
            case.problem.line,
        )
        if found is None or line is None:
            return
        for node in case.draft.attributes(found[1], line):
            if isinstance(node.ctx, ast.Load):
                name = self.RENAMED.get(found[1], found[1])
                yield case.draft.replace(node, f"{case.draft.source(node.value)}._{name}")


class TorchScriptDecorator(Remedy):
    """A decorator for TorchScript or torch.fx means nothing to Paddle."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Take the decorator off, wherever it stands."""
        if not case.find(r"module '(paddle|torch)[\w.]*' has no attribute|name 'torch' is not"):
            return
        for node in case.draft.nodes:
            for decorator in getattr(node, "decorator_list", ()):
                name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
                place = name.partition(".")[2].partition(".")[0]
                known = name.startswith("paddle.") and find_object(name) is not None
                if place in ("jit", "fx") and not known:
                    yield case.draft.remove_decorator(decorator)


class UsageRecord(Remedy):
    """PyTorch counts who uses what; Paddle has no such call."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Take the call out."""
        if case.find(r"_log_api_usage_once|name 'torch' is not"):
            yield from remove_calls(case, "_log_api_usage_once")


class TracedAssertion(Remedy):
    """PyTorch has a function that asserts, for torch.fx; in Paddle it is Python's own statement."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Write the statement."""
        if not case.find(r"has no attribute '_assert'"):
            return
        for node in case.draft.calls():
            alone = isinstance(next(case.draft.parents(node)), ast.Expr)
            if alone and dotted(node.func) == "paddle._assert" and not node.keywords:
                yield case.draft.replace(node, f"assert {', '.join(map(ast.unparse, node.args))}")


class ShadowedName(Remedy):
    """The draft takes an argument of a function for what was imported from PyTorch by the same name."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Read the argument."""
        found = case.find(r"(paddle(?:\.\w+)+)' has no attribute")
        if found is None:
            return
        for node in case.draft.attributes(found[1].rpartition(".")[2]):
            if dotted(node) == found[1] and node.attr in _list_arguments(case, node):
                yield case.draft.replace(node, node.attr)


def _list_arguments(case: Case, node: ast.AST) -> set[str]:
    """Return the arguments of the functions that a node stands in."""
    around = [held.args for held in case.draft.parents(node)
              if isinstance(held, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]  # fmt: skip
    return {one.arg for args in around for one in (*args.args, *args.kwonlyargs)}
