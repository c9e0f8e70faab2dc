"""Writes the Paddle file: every expression of PyTorch's as the simplest that gives the recorded result."""

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from reprod_align.api.calls import NAMES, ApiRow
from reprod_align.api.filling import fill
from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.porting.calls.adapters import ADAPTERS, DRAWN
from reprod_align.porting.calls.candidates import (
    Callee,
    Definitions,
    Proposer,
    find_equal,
    find_target,
)
from reprod_align.porting.calls.layers import (
    Layouts,
    TensorArguments,
    is_function,
    list_function_edits,
    write_setting,
)
from reprod_align.porting.calls.names import exists, find_object, find_public
from reprod_align.porting.calls.record import SIGNS, Fact, list_items
from reprod_align.porting.calls.rewriting import Edits, Rewriter
from reprod_align.porting.calls.rows import UNTOUCHED, read_rows
from reprod_align.porting.calls.slots import Candidate, is_literal, is_starred
from reprod_align.porting.calls.training import (
    OPTIMIZERS,
    SCHEDULES,
    Constants,
    Training,
    prove_optimizer,
    prove_schedule,
    record_loss,
    settle_call,
)
from reprod_align.porting.calls.trial import operates, prove, reads, stores
from reprod_align.porting.calls.values import RecordedCall, walk

_OPERATORS: Final = {
    "@": "torch.matmul",
    "**": "torch.pow",
    "&": "torch.bitwise_and",
    "|": "torch.bitwise_or",
}
"""an operator -> PyTorch's function that does the same, whose rows serve it too"""
_CONTEXTS: Final = (
    "torch.random.fork_rng", "torch.profiler", "torch.autograd.profiler", "torch.cuda.device",
    "torch.cuda.stream", "torch.backends", "torch.autograd.set_detect_anomaly", "torch.autograd.graph",
    "torch.nn.attention.sdpa_kernel", "torch.serialization",
)  # fmt: skip
"""what means nothing to Paddle as a context, beside what never does"""
_FACTORIES: Final = tuple(f"torch.{one}" for one in ("empty", "rand", "randint", "randn", "zeros"))
"""factories whose result is a tensor, known without a run"""
_LISTED: Final = ("parameters", "buffers")
"""methods of a layer that return a list in Paddle, and an iterator in PyTorch"""
_NAMED_RESULTS: Final = ("max", "min", "sort", "median", "topk")
"""functions whose results have names in Paddle too"""
_QUESTIONS: Final = ("is_", "are_", "has_")
_ONLY_TENSORS: Final = ("type_as", "numel", "new_tensor", "masked_fill_", "nelement")
"""methods that nothing but a tensor has"""


@dataclass
class Written:
    """The file, and what is known of its calls."""

    text: str
    proven: int = 0
    """calls that gave the recorded results"""
    rounded: list[str] = field(default_factory=list)
    """those among them that gave them to float32's precision alone"""
    unproven: list[str] = field(default_factory=list)
    """calls that ran, and that no candidate reproduced: "line 12: torch.foo" """
    unseen: list[str] = field(default_factory=list)
    """calls that never ran: converted, not proven"""
    unknown: list[str] = field(default_factory=list)
    """what stays PyTorch's"""
    rehearsed: list[str] = field(default_factory=list)
    """calls that never ran, and were tried on values of their own"""
    trainings: list[Training] = field(default_factory=list)
    """optimizers and schedules that never ran, and whose steps are PyTorch's"""


def write_paddle(
    code: Code,
    facts: dict[int, Fact],
    functions: Mapping[str, Sequence[TensorArguments]],
    exact: bool = False,
) -> Written:
    """Return the Paddle file of a PyTorch file whose nodes are numbered, from what its run gave.

    functions: what its custom functions were applied to. exact: norms compute in their input's dtype.
    """
    return _Writer(code, facts, functions, exact).write()


class _Writer(Rewriter):
    def __init__(
        self,
        code: Code,
        facts: dict[int, Fact],
        functions: Mapping[str, Sequence[TensorArguments]],
        exact: bool,
    ) -> None:
        super().__init__(code)
        self.facts, self.functions, self.exact = facts, functions, exact
        self.done = Written("")
        self.annotations = {id(one) for one in _list_annotations(code.tree)}
        self.constants = Constants(code)
        self.definitions = Definitions(code, self.scope, facts.values(), exact)
        self.layouts = Layouts(code, facts, self.scope)
        self.exposed = self.layouts.exposed
        self.proposer = Proposer(self.definitions, self.exposed, self.render, self.close)
        self.adapted = self._find_adapted()
        self.adapted_bases = self._find_adapted_bases()

    def write(self) -> Written:
        edits = [*self._write_imports()]
        edits += list_function_edits(self.code, self.scope, self.functions)
        edits += self.edit_parts(self.code.tree)
        self.done.text = self.definitions.insert_into(_compare_variants(self.splice(edits)))
        return self.done

    # ------------------------------------------------------------------ imports

    def _write_imports(self) -> Iterator[Edit]:
        """Yield the edits that take PyTorch's imports out and bring Paddle in."""
        brought = False
        for node in self.code.nodes:
            if isinstance(node, ast.Import):
                kept = [one for one in node.names if one.name.partition(".")[0] != "torch"]
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                kept = node.names if module.partition(".")[0] != "torch" or node.level else []
                if module == "einops.layers.torch":
                    names = ", ".join(self._write_alias(one) for one in node.names)
                    yield self.code.replace(node, f"from einops.layers.paddle import {names}")
                    continue
            else:
                continue
            if len(kept) == len(node.names):
                continue
            text = f"import {', '.join(map(self._write_alias, kept))}" if kept else ""
            top = node in self.code.tree.body
            if not brought and top:
                brought = True
                text = f"import paddle\n{text}".rstrip()
            if text:
                yield self.code.replace(node, text)
            else:
                yield self.remove(node)

    def _write_alias(self, one: ast.alias) -> str:
        return f"{one.name} as {one.asname}" if one.asname else one.name

    # ------------------------------------------------------------------ names

    def _write_name(self, node: ast.Name | ast.Attribute) -> Edits:
        if not isinstance(node.ctx, ast.Load):
            stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            return self._write_attribute(node) if stored else None  # type: ignore[arg-type]
        name = self.scope.name(node)
        if name:
            return [self.code.replace(node, self._name_value(node, name))]
        if isinstance(node, ast.Attribute) and self._is_saved(node):
            return [self.code.replace(node, f"{self.render(node.value)}.saved_tensor()")]
        if isinstance(node, ast.Attribute):
            return self._write_attribute(node)
        return None

    def _name_value(self, node: ast.AST, name: str) -> str:
        """Return Paddle's text of a name of PyTorch's that is read."""
        public = find_public(name)
        if id(node) in self.annotations:
            found = NAMES.get(public) or find_equal(public) or find_equal(name)
            return found or "object"
        if public == "torch.nn.Linear" and self.exposed:
            return self._name_linear(node)
        adapted = public in ADAPTERS or id(node) in self.adapted_bases
        if adapted or (public in self.adapted and not self._is_kind(node)):
            adapter = self.definitions.adapt(public)
            if adapter:
                return adapter
        held = find_object(name)
        handed_on = (
            public in read_rows() and not self._is_called(node) and not isinstance(held, type)
        )
        if handed_on and callable(held) and _adds_constants(read_rows()[public][0]):
            if adapter := self.definitions.adapt(public):
                return adapter
        target = find_target(public) or find_target(name)
        if target:
            return target
        if handed_on and (adapter := self.definitions.adapt(public)):
            return adapter
        if (held is not None or exists(name)) and is_literal(repr(held)):
            return repr(held)
        if isinstance(held, type) and self._is_compared(node):
            return "()"  # isinstance(x, ()): nothing of Paddle's is one
        if type(held).__name__ == "dtype" and isinstance(
            next(self.code.parents(node), None), ast.Compare
        ):
            return "None"  # x.dtype == None: no tensor of Paddle's has it
        self.done.unknown.append(f"line {node.lineno}: {name}")  # type: ignore[attr-defined]
        return name

    def _name_linear(self, node: ast.AST) -> str:
        """Return the class, or in a comparison both, where the weights of some lie as PyTorch's."""
        plain, compat = "paddle.nn.Linear", "paddle.compat.nn.Linear"
        made = self.layouts.made
        around = next(self.code.parents(node), None)
        if isinstance(around, ast.ClassDef):
            return compat if 0 in self.exposed else plain
        if self._is_kind(node):
            if isinstance(around, ast.Tuple):
                return f"{plain}, {compat}"
            return f"({plain}, {compat})" if made - self.exposed else compat
        return compat if made & self.exposed else plain

    def _is_kind(self, node: ast.AST) -> bool:
        """Tell whether a class is only compared: a base, or an argument of isinstance."""
        around = next(self.code.parents(node), None)
        if isinstance(around, ast.ClassDef):
            return node in around.bases
        return self._is_compared(node)

    def _is_compared(self, node: ast.AST) -> bool:
        """Tell whether something is an argument of isinstance."""
        around = next(self.code.parents(node), None)
        while isinstance(around, ast.Tuple | ast.BinOp):
            around = next(self.code.parents(around), None)
        return isinstance(around, ast.Call) and dotted(around.func) in ("isinstance", "issubclass")

    def _is_saved(self, node: ast.Attribute) -> bool:
        """Tell whether an attribute is what a custom function has saved."""
        kinds = (one for one in self.code.parents(node) if isinstance(one, ast.ClassDef))
        return node.attr in ("saved_tensors", "saved_variables") and any(
            is_function(one, self.scope) for one in kinds
        )

    def _write_attribute(self, node: ast.Attribute) -> Edits:
        if node.attr in _DTYPE_QUESTIONS and not self._is_called(node):  # a tensor's are methods
            names = ", ".join(f"paddle.{one}" for one in _DTYPE_QUESTIONS[node.attr])
            return [self.code.replace(node, f"({self.close(node.value)} in ({names}))")]
        fact = self.facts.get(node._site)  # type: ignore[attr-defined]
        if fact is None:
            return None
        if number := _find_result(node.attr, fact.kinds):
            return [self.code.replace(node, f"{self.close(node.value)}[{number}]")]
        kinds = {kind for kind in fact.kinds if kind.startswith("torch.nn.")}
        target = _TENSOR_ATTRIBUTES.get(node.attr, "") if fact.kinds - kinds else ""
        if kinds:
            around = next(self.code.parents(node), None)
            compared = isinstance(around, ast.Compare) or self._is_compared(node)
            target = self._join_settings(node, kinds, fact, compared)
            if fact.derived and target != "None" and self._is_own(node):
                return None
        if isinstance(node.ctx, ast.Store):
            target = _STORED.get(target, target if target.startswith("self._") else "")
        if not target:
            return None
        return [self.code.replace(node, re.sub(r"\bself\b", self.render(node.value), target))]

    def _join_settings(
        self, node: ast.Attribute, kinds: set[str], fact: Fact, compared: bool
    ) -> str:
        """Return the text that reads a setting of layers of several kinds, as Paddle names it."""
        groups = dict[str, list[str]]()
        for kind in sorted(kinds):
            text = self._write_setting(node.attr, kind, fact, compared)
            groups.setdefault(text, []).append(find_target(kind))
        # the setting under its own name last: it is read of all other layers
        *others, (joined, _) = sorted(groups.items(), key=lambda one: not one[0])
        if others and not (isinstance(node.ctx, ast.Load) and dotted(node.value)):
            return ""
        for text, targets in others:
            layers = f"({', '.join(targets)})" if targets[1:] else targets[0]
            rest = joined or f"self.{node.attr}"
            joined = f"({text} if isinstance(self, {layers}) else {rest})"
        return joined

    def _is_called(self, node: ast.AST) -> bool:
        around = next(self.code.parents(node), None)
        return isinstance(around, ast.Call) and around.func is node

    def _is_own(self, node: ast.Attribute) -> bool:
        """Tell whether the class that a setting is read in gives it itself."""
        parents = self.code.parents(node)
        kind = next((one for one in parents if isinstance(one, ast.ClassDef)), self.code.tree)
        return any(
            isinstance(one, ast.Attribute)
            and isinstance(one.ctx, ast.Store)
            and one.attr == node.attr
            for one in ast.walk(kind)
        )

    def _write_setting(self, name: str, kind: str, fact: Fact, compared: bool = False) -> str:
        """Return the text that reads a setting of Paddle's layer, "" if it is the same."""
        target = "paddle.compat.nn.Linear" if fact.owners & self.exposed else find_target(kind)
        theirs, ours = find_object(kind), find_object(target)
        if kind == "torch.nn.Module" or not isinstance(theirs, type) or not isinstance(ours, type):
            return ""
        return write_setting(name, theirs, target, ours, fact.values, compared)

    # ------------------------------------------------------------------ layers as values

    def _find_adapted(self) -> set[str]:
        """Return what is called by another name with arguments that Paddle's does not take."""
        found: set[str] = set()
        for names, fact, count, words in self._list_indirect():
            for name in names:
                row = next(iter(read_rows().get(name, ())), None)
                fits = row is None or (row.target != "None" and _takes(row, count, words))
                if not fits or name in ADAPTERS or name.startswith(DRAWN):
                    found.add(name)
                elif not self.definitions.serves(find_target(name), name, fact):
                    found.add(name)
        return found

    def _list_indirect(
        self,
    ) -> Iterator[tuple[set[str], Fact | None, int, list[str | None]]]:
        """Yield what is called by another name, as a variable or through partial.

        With what was seen there, how many arguments are given by position, and the names of the others.
        """
        for node in self.code.nodes:
            if not isinstance(node, ast.Call):
                continue
            fact = self.facts.get(node._site)  # type: ignore[attr-defined]
            words = [one.arg for one in node.keywords]
            if dotted(node.func).endswith("partial"):
                first = self.scope.name(node.args[0]) if node.args else ""
                yield {find_public(first)} if first else set(), fact, len(node.args) - 1, words
            elif fact is not None and not self.scope.name(node.func):
                yield fact.callees, fact, len(node.args), words

    def _find_adapted_bases(self) -> set[int]:
        """Return the bases whose `super().__init__` is given what only PyTorch's signature tells apart."""
        return {
            id(base)
            for node in self.code.nodes
            if isinstance(node, ast.Call) and _passes_on(node)
            for kind in self._find_classes(node)[:1]
            for base in kind.bases
            if self.scope.name(base)
        }

    def _find_classes(self, node: ast.AST) -> list[ast.ClassDef]:
        """Return the classes that a node stands in, the innermost first."""
        return [one for one in self.code.parents(node) if isinstance(one, ast.ClassDef)]

    # ------------------------------------------------------------------ calls

    def _write_call(self, node: ast.Call) -> Edits:
        """Return the edits of the first that knows the call; None: its parts are written."""
        fact = self.facts.get(node._site, Fact())  # type: ignore[attr-defined]
        static = self.scope.name(node.func)
        public = find_public(static) if static else ""
        if not public and len(fact.callees) == 1:
            public = next(iter(fact.callees))
        callee = Callee(node, static, public, fact)
        for write in (self._write_super, self._write_next, self._write_number, self._write_question,
                      self._write_choice, self._write_unseen_method, self._write_context, self._unwrap,
                      self._write_training, self._write_default_dtype, self._write_common,
                      self._choose, self._write_answer):  # fmt: skip
            made = write(callee)
            if made is not None:
                return made
        return None

    def _write_next(self, callee: Callee) -> Edits:
        """Write `next(layer.parameters())`: these are lists in Paddle."""
        node = callee.node
        first = node.args[0] if node.args else None
        if dotted(node.func) != "next" or not isinstance(first, ast.Call):
            return None
        if not isinstance(first.func, ast.Attribute) or first.func.attr not in _LISTED:
            return None
        parts = [edit for one in node.args[1:] for edit in self.edit(one)]
        return [self.code.replace(first, f"iter({self.render(first)})"), *parts]

    def _write_number(self, callee: Callee) -> Edits:
        """Write `int(x)` of a tensor with axes and one element, which Paddle refuses."""
        node = callee.node
        if dotted(node.func) not in ("int", "float") or len(node.args) != 1:
            return None
        if "axes" not in callee.fact.kinds and not self._makes_tensor(node.args[0]):
            return None
        return [self.code.replace(node, f"{dotted(node.func)}({self.close(node.args[0])}.item())")]

    def _makes_tensor(self, node: ast.expr) -> bool:
        """Tell whether an expression makes a tensor: `torch.rand(1)`, `torch.empty(1).uniform_()`."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = self.scope.name(node.func)
            if name:
                return name in _FACTORIES
            if not node.func.attr.endswith("_"):
                return False
            node = node.func.value
        return False

    def _write_question(self, callee: Callee) -> Edits:
        """Write `hasattr(torch, "x")` and the like of what Paddle does not have, or calls otherwise."""
        node = callee.node
        if dotted(node.func) != "hasattr" or not node.args:
            return None
        if kinds := self._list_otherwise_called(callee):
            text = f"isinstance({self.render(node.args[0])}, {kinds}) or {self.code.source(node)}"
            return [self.code.replace(node, f"({text})")]
        name = self.scope.name(node.args[0])
        if not name or find_target(find_public(name)) or find_equal(name):
            return None
        return [self.code.replace(node, "False")]

    def _list_otherwise_called(self, callee: Callee) -> str:
        """Return Paddle's classes of layers whose setting has another name than PyTorch's, "" without any."""
        word = callee.node.args[1]
        kinds = callee.fact.kinds - {"torch.nn.Module"} if isinstance(word, ast.Constant) else set()
        found = [
            find_target(kind)
            for kind in sorted(kinds)
            if self._write_setting(word.value, kind, callee.fact)  # type: ignore[attr-defined]
        ]
        if "paddle.nn.Linear" in found and self.exposed:
            found.append("paddle.compat.nn.Linear")
        return f"({', '.join(found)})" if found[1:] else "".join(found)

    def _write_context(self, callee: Callee) -> Edits:
        """Write a context that means nothing to Paddle."""
        around = next(self.code.parents(callee.node), None)
        if not isinstance(around, ast.withitem) or callee.public in read_rows():
            return None
        if not callee.static.startswith(_CONTEXTS) and not self.is_meaningless(callee.node):
            return None
        return [self.code.replace(callee.node, "nullcontext()")]

    def _write_answer(self, callee: Callee) -> Edits:
        """Write what PyTorch answers to a question about itself that Paddle cannot be asked."""
        node, question = callee.node, find_object(callee.static)
        last = callee.static.rpartition(".")[2].lstrip("_")
        if node.args or node.keywords or not callable(question):
            return None
        answers = {repr(call.result) for call in callee.fact.calls}
        if len(answers) == 1 and is_literal(*answers):
            return [self.code.replace(node, *answers)]
        answer = question() if last.startswith(_QUESTIONS) else None
        return [self.code.replace(node, str(answer))] if isinstance(answer, bool) else None

    def _write_default_dtype(self, callee: Callee) -> Edits:
        """Write the default dtype, which Paddle tells as a word, where it is no argument."""
        around = next(self.code.parents(callee.node), None)
        if callee.public != "torch.get_default_dtype" or isinstance(around, ast.Call | ast.keyword):
            return None
        self.done.proven += bool(callee.fact.callees)
        return [self.code.replace(callee.node, "getattr(paddle, paddle.get_default_dtype())")]

    def _unwrap(self, callee: Callee) -> Edits:
        return None if callee.public in read_rows() else self.unwrap(callee.node)

    def _write_choice(self, callee: Callee) -> Edits:
        """Write `getattr(torch.nn, name)`, where Paddle's module has other names or layers."""
        node, values = callee.node, callee.fact.values
        if dotted(node.func) != "getattr" or not values:
            return None
        names = {word: self._name_value(node, public) for word, public in values if public}
        module = self.render(node.args[0])
        if all(one == f"{module}.{word}" for word, one in names.items()):
            return None
        texts = ", ".join(f"{word!r}: {one}" for word, one in sorted(names.items()))
        return [self.code.replace(node, f"{{{texts}}}[{self.render(node.args[1])}]")]

    def _write_common(self, callee: Callee) -> Edits:
        """Write a method that layers of several kinds have, where one row serves all of PyTorch's."""
        node, kinds = callee.node, sorted(callee.fact.callees - {""})
        targets = {tuple(row.target for row in read_rows().get(one, ())) for one in kinds}
        if callee.public or len(targets) != 1 or () in targets or kinds[0].startswith("Tensor."):
            return None
        made = self._choose(replace(callee, public=kinds[0]))
        if made is None or "" not in callee.fact.callees:
            return made
        assert isinstance(node.func, ast.Attribute)
        own = f"hasattr({self.render(node.func.value)}, {node.func.attr!r})"
        return [self.code.replace(node, f"({self.code.source(node)} if {own} else {made[0].text})")]

    def _write_training(self, callee: Callee) -> Edits:
        """Write the first of an optimizer or a schedule that never ran whose steps are PyTorch's."""
        node, public = callee.node, callee.public
        if not callee.static or not public.startswith(OPTIMIZERS):
            return None
        settled = settle_call(node, public, self.constants)
        if settled is None:
            return None
        prove_steps = prove_schedule if public.startswith(SCHEDULES) else prove_optimizer
        texts = Proposer(self.definitions, set(), ast.unparse, ast.unparse)
        plain = Callee(settled, public, public, callee.fact)
        torch, label = ast.unparse(settled), f"line {node.lineno}: {public}"
        space = self.definitions.space | self.constants.space
        self.done.rehearsed += [] if callee.fact.callees else [label]
        every = list(self.proposer.list_candidates(callee))
        for one, other in zip(every, texts.list_candidates(plain), strict=False):
            written = other.text or other.plain + torch.removeprefix(public)
            found = prove_steps(torch, written, self.definitions.space | space)
            if found is not None:
                imports = self.constants.list_imports(settled)
                self.done.trainings.append(replace(found, imports=imports))
                self.done.proven += 1
                self.done.rounded += [label] if found.near else []
                return self._put(node, one)
        self.done.unproven.append(f"{label} (other steps)")
        return self._put(node, every[0]) if every else None

    def _choose(self, callee: Callee) -> Edits:
        """Write the first candidate that gives what was recorded; of none that does, the first."""
        import paddle

        node, public = callee.node, callee.public
        known = public.startswith("Tensor.") or public in read_rows()
        handed_on = public.startswith("torch.")  # a function that an attribute holds is no method
        if not callee.static and (callee.receiver is None or not known or handed_on):
            return None
        is_iterated = self._is_iterated(node)  # no name may be bound there
        candidates = (one for one in self.proposer.list_candidates(callee)
                      if not (is_iterated and ":=" in one.text))  # fmt: skip
        label = f"line {node.lineno}: {public}"
        first = next(candidates, None)
        if first is None:  # its name is listed where it is read
            return None
        fact = callee.fact
        if not fact.callees:
            rehearsed = record_loss(node, public, self.constants)
            if rehearsed is None:
                self.done.unseen.append(label)
                return self._put(node, first)
            self.done.rehearsed.append(label)
            fact = rehearsed
        every = [first, *candidates]
        if (
            not callee.fact.callees
        ):  # no verdict covers it: the simplest that float32 cannot tell apart
            space = self.definitions.space
            every = [one for one in every
                     if prove(node, one.trial, public, fact, space, nearly=True)][:1] or every  # fmt: skip
        varied = (one for one in self.proposer.list_varied(callee)
                  if not one.reserved and not (is_iterated and ":=" in one.text))  # fmt: skip
        plain = [one for one in every if not one.reserved]
        reserved = [one for one in every if one.reserved]
        for graded, nearly, tried in (
            (True, False, reserved if self.exact else ()),
            (True, False, plain),
            (True, False, varied if callee.fact.callees else ()),
            (True, True, plain),
            (True, False, reserved),
            (True, True, reserved),
            (False, False, every),
            (False, True, every),
        ):
            for one in tried:
                space = self.definitions.space
                if prove(node, one.trial, public, fact, space, nearly, graded):
                    if not graded:
                        self.done.unproven.append(f"{label} (another gradient)")
                    else:
                        self.done.proven += 1
                        self.done.rounded += [label] if nearly else []
                    return self._put(node, one)
        is_lacking = first.plain.startswith(".") and not hasattr(paddle.Tensor, first.plain[1:])
        (self.done.unknown if is_lacking else self.done.unproven).append(label)
        space = self.definitions.space
        shaped = (one for one in every
                  if prove(node, one.trial, public, fact, space, graded=False, shaped=True))  # fmt: skip
        return self._put(node, next(shaped, first))

    def _is_iterated(self, node: ast.AST) -> bool:
        """Tell whether a node stands in what a comprehension goes over."""
        for around in self.code.parents(node):
            if isinstance(around, ast.comprehension) and node is around.iter:
                return True
            node = around
        return False

    def _put(self, node: ast.Call, candidate: Candidate) -> list[Edit]:
        around = next(self.code.parents(node), None)
        name = self.scope.name(node.func)
        if name.startswith(DRAWN) and name.endswith("_") and not isinstance(around, ast.Expr):
            return [self.code.replace(node, self._return_drawn(node, candidate))]
        if candidate.plain:
            edits = [self.code.replace(node.func, candidate.plain)]
            if isinstance(node.func, ast.Attribute) and candidate.plain.startswith("."):
                edits = list(self.edit_parts(node.func))
            elif candidate.plain == self.code.source(node.func):
                edits = []
            return edits + [e for part in (*node.args, *node.keywords) for e in self.edit(part)]
        return [self.code.replace(node, self._close_text(node, candidate.text))]

    def _close_text(self, node: ast.expr, text: str) -> str:
        """Return what is written in a node's place, in parentheses where the text around asks for them."""
        around = next(self.code.parents(node), None)
        head = getattr(around, "func" if isinstance(around, ast.Call) else "value", node)
        inside = isinstance(around, ast.Call | ast.Subscript) and node is not head
        joined = isinstance(around, _JOINING) and not inside
        return f"({text})" if joined and not _is_closed(text) else text

    def _return_drawn(self, node: ast.Call, candidate: Candidate) -> str:
        """Return the text of an initialisation whose tensor is read: Paddle's returns none."""
        slots = self.proposer.fill_slots(node, None)
        text = candidate.text or slots.write_call(candidate.plain, True, trial=False)
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not call.args:
            return text
        drawn = ast.Name(self.definitions.bring("drawn"))
        call.func, call.args = drawn, [call.args[0], call.func, *call.args[1:]]
        return ast.unparse(call)

    def _write_unseen_method(self, callee: Callee) -> Edits:
        """Write a method call that never ran, where its name can only be a tensor's."""
        node, receiver = callee.node, callee.receiver
        if callee.public or callee.fact.callees or not isinstance(node.func, ast.Attribute):
            return None
        rows = read_rows().get(f"Tensor.{node.func.attr}", ())
        if node.func.attr not in _ONLY_TENSORS or not rows:
            return None
        slots = self.proposer.fill_slots(node, receiver)
        for candidate in (one for row in rows for one in slots.fill(row)):
            self.done.unseen.append(f"line {node.lineno}: Tensor.{node.func.attr}")
            return self._put(node, candidate)
        return None

    def _write_super(self, callee: Callee) -> Edits:
        """Write `super().__init__(...)` of a class derived from one of PyTorch's layers."""
        node, kind = callee.node, callee.public.removesuffix(".__init__")
        if kind == callee.public or callee.static or not (node.args or node.keywords):
            return None
        adapted = any(
            id(base) in self.adapted_bases
            for around in self._find_classes(node)[:1]
            for base in around.bases
        )
        if adapted or f"torch.nn.{kind}" in UNTOUCHED:
            return None
        slots = self.proposer.fill_slots(node, None)
        for row in read_rows().get(f"torch.nn.{kind}", ()):
            for candidate in slots.fill(row):
                inside = candidate.text.partition("(")[2]
                return [self.code.replace(node, f"{self.code.source(node.func)}({inside}")]
        return None

    # ------------------------------------------------------------------ operators

    def _write_type_name(self, node: ast.Compare) -> Edits:
        """Write `"Half" in x.type()`, where the name of the class is a word in PyTorch."""
        right = node.comparators[0]
        fact = self.facts.get(getattr(right, "_site", -1))
        is_word = len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn)
        if not is_word or fact is None or fact.callees != {"Tensor.type"}:
            return None
        assert isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute)
        if right.args or right.keywords:
            return None
        name = self.definitions.bring("name_type")
        return [self.code.replace(right, f"{name}({self.render(right.func.value)})")]

    def _write_operation(self, node: ast.BinOp | ast.Compare) -> Edits:
        if isinstance(node, ast.Compare) and (named := self._write_type_name(node)) is not None:
            return named
        fact = self.facts.get(getattr(node, "_site", -1))
        if fact is None or not fact.calls or (isinstance(node, ast.Compare) and len(node.ops) > 1):
            return None
        left, right = (
            (node.left, node.right)
            if isinstance(node, ast.BinOp)
            else (node.left, node.comparators[0])
        )
        operator = node.op if isinstance(node, ast.BinOp) else node.ops[0]
        if isinstance(operator, ast.In | ast.NotIn) and not isinstance(right, ast.List | ast.Tuple):
            return self._write_membership(node, left, right, isinstance(operator, ast.NotIn))
        sign = SIGNS.get(type(operator).__name__)
        if sign is None or operates(fact, sign):
            return None
        for form in _FORMS:
            if operates(fact, sign, f"{form[0]} {sign} {form[1]}".format("a", "b")):
                texts = [self.close(left), self.close(right)]
                return [
                    self.code.replace(left, form[0].format(*texts)),
                    self.code.replace(right, form[1].format(*texts)),
                ]
        for row in read_rows().get(_OPERATORS.get(sign, ""), ()):
            row = replace(row, target=self.definitions.bring(row.target))
            trial, text = (
                fill(row, dict(zip(row.arguments, operands, strict=False)))
                for operands in ("ab", map(self.render, (left, right)))
            )
            if trial and text and operates(fact, sign, trial, self.definitions.space):
                return [self.code.replace(node, self._close_text(node, text))]
        self.done.unproven.append(f"line {node.lineno}: {sign}")
        return None

    def _write_membership(
        self, node: ast.AST, left: ast.expr, right: ast.expr, negated: bool
    ) -> Edits:
        """Write `a in tensor`, which Paddle would answer by a loop over the first axis."""
        import torch

        calls = self.facts[node._site].calls  # type: ignore[attr-defined]
        if not all(isinstance(call.arguments[1], torch.Tensor) for call in calls):
            return None
        text = f"bool(({self.close(right)} == {self.close(left)}).any())"
        return [self.code.replace(node, f"(not {text})" if negated else text)]  # type: ignore[arg-type]

    def _write_store(self, node: ast.Assign) -> Edits:
        """Write `tensor[index] = value` as what changes the tensor as PyTorch does, gradients included.

        A setting that means nothing to Paddle goes.
        """
        fact, target = self.facts.get(node._site), node.targets[0]  # type: ignore[attr-defined]
        hooked = isinstance(target, ast.Name) and target.id.startswith("__torch_")
        if hooked or self.is_meaningless(target):
            return [self.remove(node)]
        if owner := _find_rate(target):
            return [self._set_rate(node, owner, self.render(node.value))]
        if items := list_items(node):
            return self._put_each(node, items)
        if settings := self._store_settings(node):
            return settings
        if fact is None or not isinstance(target, ast.Subscript):
            return None
        mask = self._find_mask(target.slice)
        if mask is not None and isinstance(node.value, ast.Constant):
            return [*self.edit(target.value), self.code.replace(target.slice, self.render(mask))]
        text = self._put_items(target, fact, lambda: self.render(node.value))
        return [self.code.replace(node, text)] if text else None

    def _store_settings(self, node: ast.Assign) -> Edits:
        """Write `norm.momentum = value`, whose share Paddle's layer keeps the other way round.

        A class that is derived from the layer keeps its own attribute, and sets the layer's beside it.
        """
        target, value = node.targets[0], node.value
        edits, further = list[Edit](), list[str]()
        pairs: Iterable[tuple[ast.expr, ast.expr]] = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = zip(target.elts, value.elts, strict=False)
        turned = False
        for one, given in pairs:
            fact, held = self.facts.get(getattr(one, "_site", -1)), None
            if fact is not None and isinstance(one, ast.Attribute):
                texts = {self._write_setting(one.attr, kind, fact) for kind in fact.kinds}
                held = _KEPT.fullmatch(texts.pop()) if len(texts) == 1 else None
                owner, own = self.render(one.value), fact.derived and self._is_own(one)
                text = f"{owner}.{held[2]} = {held[1] or ''}{owner}.{one.attr}" if held else ""
            if held and own:
                further.append(text)
            if held and held[1] and not own:
                turned = True
                edits += [self.code.replace(one, f"{owner}.{held[2]}"),
                          self.code.replace(given, self._subtract_from_one(given))]  # fmt: skip
            else:
                edits += [*self.edit(one), *self.edit(given)]
        before = self.code.text.splitlines()[node.lineno - 1][: node.col_offset]
        if further and not before.strip():
            text = f"{self.render(target)} = {self.render(value)}"
            return [self.code.replace(node, f"\n{before}".join([text, *further]))]
        return edits if turned else None

    def _subtract_from_one(self, value: ast.expr) -> str:
        if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            number = repr(1 - value.value)
            if len(number) <= len(repr(value.value)) + 1:  # 1 - 0.03 is 0.97
                return number
        return f"1 - {self.close(value)}"

    def _put_each(self, node: ast.Assign, items: list[ast.Subscript]) -> Edits:
        """Write `x[index], y[index] = value` item by item, where Paddle's own way does another thing."""
        names = {id(one): self._name_item(one) for one in items}
        texts = {}
        for one in items:
            fact = self.facts.get(one._site)  # type: ignore[attr-defined]
            texts[id(one)] = fact and self._put_items(one, fact, lambda: names[id(one)])  # noqa: B023
        before = self.code.text.splitlines()[node.lineno - 1][: node.col_offset]
        if not any(texts.values()) or before.strip():
            return None
        targets = node.targets[0].elts  # type: ignore[attr-defined]
        firsts = ", ".join(names.get(id(one)) or self.render(one) for one in targets)
        lines = [f"{firsts} = {self.render(node.value)}"]
        for one in items:
            lines.append(texts[id(one)] or self._write_target(one, names[id(one)]))
        return [self.code.replace(node, f"\n{before}".join(lines))]

    def _write_target(self, target: ast.Subscript, value: str) -> str:
        """Return the statement that sets an item in the way that both frameworks have."""
        return f"{self.close(target.value)}[{self.render(target.slice)}] = {value}"

    def _name_item(self, item: ast.Subscript) -> str:
        """Return a name for what is put into a tensor, one that the file does not have."""
        base = dotted(item.value).rpartition(".")[2] or "tensor"
        return next(
            one
            for one in (f"{base}_items{'_' * n}" for n in itertools.count())
            if one not in self.code.text
        )

    def _find_mask(self, index: ast.expr) -> ast.expr | None:
        """Return the mask of `x[torch.where(mask)] = 0`: Paddle refuses its places where there are none."""
        if not isinstance(index, ast.Call) or len(index.args) != 1 or index.keywords:
            return None
        return index.args[0] if self.scope.name(index.func) == "torch.where" else None

    def _put_items(self, target: ast.Subscript, fact: Fact, write_value: Callable[[], str]) -> str:
        """Write what changes items of a tensor as PyTorch does; "" where Paddle's own way does."""
        before = self.code.text.splitlines()[target.lineno - 1][: target.col_offset]
        if any(map(_scatters, fact.calls)) and dotted(target.value) and not before.strip():
            held = self.close(target.value)
            plain = self._put_items(
                target, Fact(calls=[replace(one, spread=False) for one in fact.calls]), write_value
            )
            plain = plain or self._write_target(target, write_value())
            return f"{held} = {held}.contiguous()\n{before}{plain}"
        if not fact.calls or stores(fact, "self.__setitem__(index, value)", {}):
            return ""
        many = isinstance(target.slice, ast.Tuple)
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        indices = (
            f"({', '.join(map(self._render_index, parts))}{'' if many and parts[1:] else ','})"
        )
        held, value = self.close(target.value), write_value()
        if stores(fact, f"self.index_put_({'index' if many else '(index,)'}, value)", {}):
            return f"{held}.index_put_({indices}, {value})"
        name = self.definitions.bring("set_items")
        if stores(fact, f"{name}(self, index, value)", self.definitions.space):
            return f"{name}({held}, {indices}, {value})"
        self.done.unproven.append(f"line {target.lineno}: an item that is set")
        return ""

    def _render_index(self, node: ast.expr) -> str:
        """Return the Paddle text of an index that stands outside of square brackets."""
        if not isinstance(node, ast.Slice):
            return self.render(node)
        parts = (node.lower, node.upper, node.step)
        return f"slice({', '.join('None' if one is None else self.render(one) for one in parts)})"

    def _write_item(self, node: ast.Subscript) -> Edits:
        """Write `optimizer.param_groups[0]["lr"]`, a layer whose number is a tensor, an index of slices."""
        owner, fact = _find_rate(node), self.facts.get(node._site)  # type: ignore[attr-defined]
        if fact is not None and "layer" in fact.kinds:
            number = self.code.replace(node.slice, f"{self.close(node.slice)}.item()")
            return [*self.edit(node.value), number]
        if fact is not None and "list" in fact.kinds:
            index = self.code.replace(node.slice, f"tuple({self.render(node.slice)})")
            return [*self.edit(node.value), index]
        if fact is not None and fact.calls and isinstance(node.slice, ast.Tuple):
            return self._write_axes(node, node.slice.elts, fact)
        return [self.code.replace(node, f"{self.render(owner)}.get_lr()")] if owner else None

    def _write_axes(self, node: ast.Subscript, parts: list[ast.expr], fact: Fact) -> Edits:
        """Write `x[None, index]`, of which Paddle makes another shape, with the new axes made before."""
        spread = "self" + "".join(
            f".unsqueeze({at})" for at, one in enumerate(parts) if _is_none(one)
        )  # all that stand before an axis are single ones: no ellipsis, no mask of several
        shown = "tuple(slice(None) if one is None else one for one in index)"
        if reads(fact, "self[index]") or not reads(fact, f"{spread}[{shown}]"):
            return None
        index = ", ".join(":" if _is_none(one) else self.render(one) for one in parts)
        held = spread.replace("self", self.close(node.value), 1)
        return [self.code.replace(node, f"{held}[{index}]")]

    def _write_groups(self, node: ast.For) -> Edits:
        """Write a loop over an optimizer's groups that does nothing but give each one learning rate."""
        if not (isinstance(node.iter, ast.Attribute) and node.iter.attr == "param_groups"):
            return None
        statement, group = node.body[0], node.target
        target = (
            getattr(statement, "target", None) or (getattr(statement, "targets", None) or [None])[0]
        )
        is_rate = (
            isinstance(target, ast.Subscript)
            and ast.unparse(target) == f"{ast.unparse(group)}['lr']"
        )
        if (
            len(node.body) > 1
            or not is_rate
            or not isinstance(statement, ast.Assign | ast.AugAssign)
        ):
            return None
        rate = self.render(statement.value)
        if isinstance(statement, ast.AugAssign):
            sign = SIGNS[type(statement.op).__name__]
            rate = f"{self.render(node.iter.value)}.get_lr() {sign} {self.close(statement.value)}"
        elif group.id in {one.id for one in ast.walk(statement.value) if isinstance(one, ast.Name)}:  # type: ignore[attr-defined]
            return None
        return [self._set_rate(node, node.iter.value, rate)]

    def _set_rate(self, node: ast.stmt, optimizer: ast.expr, rate: str) -> Edit:
        return self.code.replace(node, f"{self.render(optimizer)}.set_lr({rate})")

    def _write_augmented(self, node: ast.AugAssign) -> Edits:
        fact = self.facts.get(node._site)  # type: ignore[attr-defined]
        sign = SIGNS.get(type(node.op).__name__)
        if (owner := _find_rate(node.target)) and sign:
            rate = f"{self.render(owner)}.get_lr() {sign} {self.close(node.value)}"
            return [self._set_rate(node, owner, rate)]
        if fact is not None and sign and isinstance(node.target, ast.Subscript):
            read = f"{self.close(node.target.value)}[{self.render(node.target.slice)}]"
            text = self._put_items(
                node.target, fact, lambda: f"{read} {sign} {self.close(node.value)}"
            )
            return [self.code.replace(node, text)] if text else None
        if fact is None or not fact.calls or sign is None or operates(fact, sign):
            return None
        form = ("{0}", "{1}.astype({0}.dtype)")
        if operates(fact, sign, f"{form[0]} {sign} {form[1]}".format("a", "b")):
            target = self.code.source(node.target)
            return [
                self.code.replace(node.value, f"{self.close(node.value)}.astype({target}.dtype)")
            ]
        return None

    writers = {
        ast.Import | ast.ImportFrom: lambda writer, node: [],
        ast.Call: _write_call,
        ast.Name | ast.Attribute: _write_name,
        ast.BinOp | ast.Compare: _write_operation,
        ast.AugAssign: _write_augmented,
        ast.Assign: _write_store,
        ast.Subscript: _write_item,
        ast.For: _write_groups,
        ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef: Rewriter.write_definition,
        ast.Expr: Rewriter.write_statement,
        ast.Constant: Rewriter.write_constant,
    }


_FORMS: Final = (
    ("{0}.astype({1}.dtype)", "{1}"),
    ("{0}", "{1}.astype({0}.dtype)"),
    ("{0}.astype(paddle.get_default_dtype())", "{1}"),
    ("{0}", "{1}.astype(paddle.get_default_dtype())"),
    ("{0}.astype(paddle.get_default_dtype())", "{1}.astype(paddle.get_default_dtype())"),
    ("{0}", "paddle.full_like({0}, {1})"),  # floor division of a tensor without axes gives it one
    ("paddle.full_like({1}, {0})", "{1}"),
)
_JOINING: Final = (
    ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Starred, ast.Await,
)  # fmt: skip
"""what binds the text of its parts to what is beside it"""
_KEPT: Final = re.compile(r"\(?(1 - )?self\.(_\w+)\)?")
"""the text of a setting that Paddle's layer keeps under another name, or as what is left to 1"""
_STORED: Final = {"self._padding": "self._padding = self._updated_padding"}
"""a setting that is given a value -> what is given it, where Paddle's layer keeps it twice"""
_DTYPE_QUESTIONS: Final = {
    "is_floating_point": ("float16", "bfloat16", "float32", "float64"),
    "is_complex": ("complex64", "complex128"),
}
"""what a dtype of PyTorch's can be asked -> the dtypes of which it is true"""
_TENSOR_ATTRIBUTES: Final = {
    "mT": "self.mT",
    "real": "self.real()",
    "imag": "self.imag()",
    "itemsize": "self.element_size()",
    "is_sparse": "self.is_sparse()",
    "layout": "('sparse_coo' if self.is_sparse() else 'strided')",
}


def _compare_variants(text: str) -> str:
    """Return a Paddle file in which `type(m) is paddle.nn.X` names what is made in place of every X."""
    code = Code(text)
    made = {dotted(one.func) for one in code.calls()}
    compared = (one for node in code.nodes if isinstance(node, ast.Compare)
                for one in (node.left, *node.comparators))  # fmt: skip
    edits = []
    for one in compared:
        name = dotted(one)
        variant = f"Own{name.rpartition('.')[2]}"
        if name.startswith("paddle.nn.") and name not in made and variant in made:
            edits.append(code.replace(one, variant))
    return code.splice(edits)


def _scatters(call: RecordedCall) -> bool:
    """Tell whether a tensor that lies in memory with gaps is set where tensors say.

    Paddle 3.3 then writes beyond it: the heap is broken, and the process ends later.
    """
    import torch

    return call.spread and any(True for _ in walk(call.arguments[0], torch.Tensor))


def _find_result(name: str, kinds: set[str]) -> str:
    """Return the number of a result that is read by its name, "" where it has that name in Paddle too."""
    results = {kind for kind in kinds if kind.startswith("torch.return_types.")}
    numbers = {
        str(find_object(kind).__match_args__.index(name))
        for kind in results
        if kind.rpartition(".")[2] not in _NAMED_RESULTS
    }
    return numbers.pop() if len(numbers) == 1 else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _find_rate(node: ast.AST) -> ast.expr | None:
    """Return the optimizer of `optimizer.param_groups[0]["lr"]`, None for anything else."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript)):
        return None
    groups = node.value.value
    is_rate = isinstance(node.slice, ast.Constant) and node.slice.value == "lr"
    if not is_rate or not isinstance(groups, ast.Attribute) or groups.attr != "param_groups":
        return None
    return groups.value


def _is_closed(text: str) -> bool:
    """Tell whether an expression stays one, whatever is written beside it."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Tuple):  # whose own parentheses are a part of it, or are none
        return isinstance(ast.parse(f"{text}[0]", mode="eval").body, ast.Subscript)
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)


def _takes(row: ApiRow, count: int, words: Sequence[str | None]) -> bool:
    """Tell whether Paddle's callee takes PyTorch's arguments as they are."""
    tree = ast.parse(row.target, mode="eval").body
    if not isinstance(tree, ast.Call) or set(row.defaults) - set(words):
        return False
    placed = [one.id for one in tree.args if isinstance(one, ast.Name)]
    if tuple(placed[:count]) != row.arguments[:count]:
        return False
    same = {
        one.arg
        for one in tree.keywords
        if isinstance(one.value, ast.Name) and one.value.id == one.arg
    }
    return None not in words and set(words) <= same | set(placed)


def _adds_constants(row: ApiRow) -> bool:
    """Tell whether Paddle's callee takes something before or between PyTorch's arguments."""
    tree = ast.parse(row.target, mode="eval").body
    return isinstance(tree, ast.Call) and any(isinstance(one, ast.Constant) for one in tree.args)


def _list_annotations(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for part in ("annotation", "returns"):
            held = getattr(node, part, None)
            if isinstance(held, ast.AST):
                yield from ast.walk(held)


def _passes_on(node: ast.Call) -> bool:
    """Tell whether a call is `super().__init__(*a, **k)`."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr != "__init__":
        return False
    owner = function.value
    return isinstance(owner, ast.Call) and dotted(owner.func) == "super" and is_starred(node)
