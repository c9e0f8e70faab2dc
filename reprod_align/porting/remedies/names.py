"""Names that a draft lost or that Paddle lacks."""

import ast
from collections.abc import Iterable

from reprod_align.porting.code import Edit, dotted, list_imports
from reprod_align.porting.remedy import Case, Remedy, find_object


def name_in_paddle(name: str) -> str:
    """Return Paddle's name of something of PyTorch's that is called the same, "" if there is none."""
    if name != "torch" and not name.startswith("torch."):
        return ""
    renamed = "paddle" + name.removeprefix("torch")
    return renamed if find_object(renamed) is not None else ""


class LostTorchName(Remedy):
    """The draft drops the import `from torch import NAME` and keeps the name where an annotation has a |."""

    def propose(self, case: Case) -> Iterable[Edit]:
        """Write Paddle's full name wherever the name is read."""
        found = case.find(r"name '(\w+)' is not defined")
        if not found:
            return
        renamed = name_in_paddle(list_imports(case.source.tree).get(found[1], ""))
        if renamed:
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
