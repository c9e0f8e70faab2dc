"""Rewrites a PyTorch file node by node, and takes out what means nothing to Paddle."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from reprod_align.explain.code import Code, Edit
from reprod_align.porting.calls.names import Scope

_MEANINGLESS: Final = (
    "torch.jit", "torch.fx", "torch.compile", "torch._C._log_api_usage_once", "torch._dynamo",
    "torch._check_is_size", "torch.utils._pytree", "torch.amp.custom", "torch.cuda.amp.custom",
    "torch.autograd.function.once_differentiable", "torch.autograd.set_detect_anomaly", "torch.backends",
    "torch.set_num_threads", "torch.set_float32_matmul_precision", "torch.use_deterministic_algorithms",
    "torch.set_printoptions", "torch.multiprocessing", "torch.cuda.empty_cache", "torch.cuda.synchronize",
    "torch.cuda.manual_seed",
)  # fmt: skip
"""what means nothing to Paddle: as a statement or decorator it goes, around one argument that stays"""
_GRADIENT_MODES: Final = ("torch.no_grad", "torch.enable_grad", "torch.inference_mode")
"""decorators that Paddle takes with their brackets alone"""
_ANNOTATION: Final = "torch.jit.annotate"
"""the type and then the value: the value stays"""
_ASSERTIONS: Final = ("torch._assert", "torch._assert_async", "torch._check")
_HOOKS: Final = ("state_dict_hook", "state_dict_pre_hook", "state_dict_post_hook")
"""how the methods end that register hooks on loading a state dict, which Paddle's layers do not have"""

_CLASS: Final = "<class '{}."

Edits = list[Edit] | None
"""of a node; None: its parts are written"""


class Rewriter:
    """Writes a file anew: the edits of each node are made once, by what is known of its kind."""

    writers: ClassVar[Mapping[Any, Callable[[Any, Any], Edits]]]
    """kind of node -> the method that writes it"""

    def __init__(self, code: Code) -> None:
        """Take the file."""
        self.code, self.scope = code, Scope(code.tree)
        self._made: dict[int, Edits] = {}
        self._removed: set[ast.stmt] = set()

    def splice(self, edits: Iterable[Edit]) -> str:
        """Return the file with these edits made; a block all of whose statements were removed passes."""
        every = list(edits)
        for node in self.code.nodes:
            for part in ("body", "orelse", "finalbody"):
                block = getattr(node, part, None)
                if isinstance(block, list) and len(block) > 1 and self._removed >= set(block):
                    every.insert(0, self.code.replace(block[0], "pass"))
        return self.code.splice(every)

    def remove(self, statement: ast.stmt) -> Edit:
        """Return the edit that takes a statement out; see `splice` for blocks that are emptied."""
        self._removed.add(statement)
        return self.code.remove(statement)

    def edit_parts(self, node: ast.AST) -> Iterator[Edit]:
        """Yield the edits of everything below a node, each of a place of its own."""
        for child in ast.iter_child_nodes(node):
            yield from self.edit(child)

    def edit(self, node: ast.AST) -> list[Edit]:
        """Return the edits of a node, or of its parts."""
        if id(node) not in self._made:
            self._made[id(node)] = self._write(node)
        made = self._made[id(node)]
        return list(self.edit_parts(node)) if made is None else made

    def _write(self, node: ast.AST) -> Edits:
        for kinds, write in self.writers.items():
            if isinstance(node, kinds):
                return write(self, node)
        return None

    def render(self, node: ast.AST) -> str:
        """Return the text of an expression after its edits."""
        span = self.code.replace(node, "")  # type: ignore[arg-type]
        return self.code.cut(span.start, span.end, self.edit(node))

    def close(self, node: ast.expr) -> str:
        """Return that text, in brackets where a method's dot would split it."""
        text = self.render(node)
        simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        is_float = isinstance(node, ast.Constant) and isinstance(node.value, float)
        return text if simple or is_float else f"({text})"

    # ------------------------------------------------------------------ what means nothing to Paddle

    def is_meaningless(self, node: ast.expr) -> bool:
        """Tell whether a call or a decorator is of what means nothing to Paddle."""
        name = self.scope.name(node.func if isinstance(node, ast.Call) else node)
        return name.startswith(_MEANINGLESS)

    def write_statement(self, node: ast.Expr) -> Edits:
        """Write a call that stands alone: one that asserts is a statement, one without meaning goes."""
        call = node.value
        if not isinstance(call, ast.Call):
            return None
        if self.scope.name(call.func) in _ASSERTIONS and call.args:
            condition, *message = map(self.render, call.args)
            if message and isinstance(call.args[1], ast.Lambda):
                message = [f"({message[0]})()"]
            return [self.code.replace(node, f"assert {', '.join([condition, *message])}")]
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        gone = self.is_meaningless(call) or method.endswith(_HOOKS)
        return [self.remove(node)] if gone else None

    def write_definition(
        self, node: ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
    ) -> Edits:
        """Take decorators without meaning off, and call those that PyTorch takes as they are, too."""
        gone = [one for one in node.decorator_list if self.is_meaningless(one)]
        bare = [one for one in node.decorator_list if self.scope.name(one) in _GRADIENT_MODES]
        if not gone and not bare:
            return None
        kept = (part for part in ast.iter_child_nodes(node) if part not in gone)
        edits = [self.code.remove_decorator(one) for one in gone]
        for one in bare:
            end = self.code.replace(one, "").end
            edits.append(Edit(end, end, "()"))
        return edits + [edit for part in kept for edit in self.edit(part)]

    def write_constant(self, node: ast.Constant) -> Edits:
        """Write Paddle's name of a tensor's class, as `str(type(tensor))` gives it."""
        if not isinstance(node.value, str) or _CLASS.format("torch") not in node.value:
            return None
        text = self.code.source(node).replace(_CLASS.format("torch"), _CLASS.format("paddle"))
        return [self.code.replace(node, text)]

    def unwrap(self, node: ast.Call) -> Edits:
        """Write what means nothing around one argument, as `torch.jit.script(x)`: the argument."""
        count = 2 if self.scope.name(node.func) == _ANNOTATION else 1
        if len(node.args) != count or not self.is_meaningless(node):
            return None
        return [self.code.replace(node, self.render(node.args[-1]))]


class _Plainer(Rewriter):
    def write_name(self, node: ast.Name | ast.Attribute) -> Edits:
        name = self.scope.name(node)
        return [self.code.replace(node, name)] if name and isinstance(node.ctx, ast.Load) else None

    writers = {
        ast.Call: Rewriter.unwrap,
        ast.Name | ast.Attribute: write_name,
        ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef: Rewriter.write_definition,
        ast.Expr: Rewriter.write_statement,
    }


def write_names_in_full(text: str) -> str:
    """Return a PyTorch file without what means nothing to Paddle, PyTorch's names written in full.

    A converter that reads `torch.Tensor` neither loses `from torch import Tensor` nor takes an argument
    for what was imported by the same name.
    """
    code = Code(text)
    plainer = _Plainer(code)
    return plainer.splice(plainer.edit_parts(code.tree))
