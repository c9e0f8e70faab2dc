"""Which way the weights of Linear layers lie: as Paddle's, or as PyTorch's where a file reads them."""

import ast
from typing import Any, Final

from reprod_align.explain.code import Code, dotted
from reprod_align.porting.calls.record import Fact, Weight
from reprod_align.porting.calls.torch_names import Scope, find_public

_TAKING_WEIGHTS: Final = ("torch.nn.functional.linear",)
"""functions that take the weight of a Linear, whichever way it lies"""


class Layouts:
    """The layouts of a file."""

    def __init__(self, code: Code, facts: dict[int, Fact], scope: Scope) -> None:
        """Find the weights that are read as matrices, and lay the recorded ones as the port has them."""
        self.code, self.facts, self.scope = code, facts, scope
        self.made = {site for site, fact in facts.items() if "torch.nn.Linear" in fact.callees}
        """the calls that make a Linear"""
        self.exposed = self._find_exposed()
        self._settle()

    def _find_exposed(self) -> set[int]:
        """Return the calls that make a Linear whose weight is read or shared as PyTorch's matrix.

        A class derived from Linear that reads its own weight is 0 among them.
        """
        found = {site for site, fact in self.facts.items() if fact.shared}
        for node in self.code.nodes:
            if not isinstance(node, ast.Attribute) or node.attr != "weight":
                continue
            fact = self.facts.get(node._site)  # type: ignore[attr-defined]
            around = next(self.code.parents(node), None)
            if fact is None or "torch.nn.Linear" not in fact.kinds:
                continue
            if fact.derived and not self._sets_alone(node, around):
                found.add(0)
            elif isinstance(node.ctx, ast.Store):
                found |= fact.owners
            elif not self._sets_alone(node, around) and not self._is_taken(around):
                found |= fact.owners
        named = {
            node._site  # type: ignore[attr-defined]
            for node in self.code.nodes
            if isinstance(node, ast.Call) and self.scope.name(node.func)
        }
        return found | (self.made - named if found - named - {0} else set())

    def _is_taken(self, around: ast.AST | None) -> bool:
        """Tell whether a weight is the argument of a function that takes it as it lies."""
        if isinstance(around, ast.keyword):
            around = next(self.code.parents(around), None)
        name = self.scope.name(around.func) if isinstance(around, ast.Call) else ""
        return bool(name) and find_public(name) in _TAKING_WEIGHTS

    def _settle(self) -> None:
        """Lay the recorded weights of Linear layers as the port has them."""

        def lay(value: Any) -> Any:
            if isinstance(value, Weight):
                return value.tensor if value.owner in self.exposed else value.tensor.t()
            if type(value) in (list, tuple):
                return type(value)(map(lay, value))
            if type(value) is dict:
                return {key: lay(one) for key, one in value.items()}
            return value

        for fact in self.facts.values():
            for call in fact.calls:
                call.arguments, call.keywords = lay(call.arguments), lay(call.keywords)
                call.result, call.receiver = lay(call.result), lay(call.receiver)
                call.after = lay(call.after)

    def _sets_alone(self, node: ast.Attribute, around: ast.AST | None) -> bool:
        """Tell whether a weight is read to be initialised, or for what has no layout."""
        if isinstance(around, ast.keyword):
            around = next(self.code.parents(around), None)
        if isinstance(around, ast.Call):
            return self.scope.name(around.func).startswith("torch.nn.init") or _is_init(around)
        if isinstance(around, ast.Attribute) and around.attr == "data":
            around = next(self.code.parents(around), None)
        if isinstance(around, ast.Attribute):
            plain = ("dtype", "device", "requires_grad", "grad", "numel", "is_cuda")
            return around.attr in plain or around.attr.endswith("_")
        return isinstance(around, ast.Compare | ast.Expr)


def _is_init(call: ast.Call) -> bool:
    name = dotted(call.func).rpartition(".")[2]
    return name.endswith("_") or name.startswith("init") or "normal" in name or "uniform" in name
