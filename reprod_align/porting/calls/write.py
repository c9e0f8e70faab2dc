"""Writes the Paddle file: every expression of PyTorch's as the simplest that gives the recorded result."""

import ast
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final, NamedTuple

from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.porting.calls.adapters import (
    ADAPTERS,
    SET_ITEMS,
    VARIANTS,
    list_needed,
    write_adapter,
    write_inplace,
    write_variant,
)
from reprod_align.porting.calls.functions import Given, is_function, list_function_edits
from reprod_align.porting.calls.linear import Layouts
from reprod_align.porting.calls.record import SIGNS, Fact
from reprod_align.porting.calls.rows import NAMES, UNTOUCHED, Row, read_rows
from reprod_align.porting.calls.settings import write_setting
from reprod_align.porting.calls.slots import RENAMED, Candidate, Slots, is_literal
from reprod_align.porting.calls.torch_names import Scope, find_public, find_torch, is_torch
from reprod_align.porting.calls.trial import operates, prove, stores

_MEANINGLESS: Final = (
    "torch.jit", "torch.fx", "torch.compile", "torch._C._log_api_usage_once", "torch._dynamo",
    "torch._check_is_size", "torch.utils._pytree", "torch.amp.custom", "torch.cuda.amp.custom",
    "torch.autograd.function.once_differentiable",
)  # fmt: skip
"""what means nothing to Paddle: as a statement or decorator it goes, around one argument that stays"""
_BATCHED: Final = (
    (
        "{0}",
        "{1}.expand([*paddle.broadcast_shape({0}.shape[:-2], {1}.shape[:-2]), *{1}.shape[-2:]])",
    ),
    (
        "{0}.expand([*paddle.broadcast_shape({0}.shape[:-2], {1}.shape[:-2]), *{0}.shape[-2:]])",
        "{1}",
    ),
)
"""matrices whose batch has fewer axes than the other operand's: Paddle's backward pass refuses them"""
_ASSERTIONS: Final = ("torch._assert", "torch._assert_async", "torch._check")
_HOOKS: Final = ("state_dict_hook", "state_dict_pre_hook", "state_dict_post_hook")


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


def write_paddle(
    code: Code, facts: dict[int, Fact], functions: Mapping[str, Sequence[Given]]
) -> Written:
    """Return the Paddle file of a PyTorch file whose nodes are numbered, from what its run gave.

    functions: what its custom functions were applied to.
    """
    return _Writer(code, facts, functions).write()


@cache
def find_paddle(name: str) -> Any:
    """Return what a dotted name of Paddle's stands for, None if there is no such thing."""
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return None


class _Writer:
    def __init__(
        self, code: Code, facts: dict[int, Fact], functions: Mapping[str, Sequence[Given]]
    ) -> None:
        self.code, self.facts, self.functions = code, facts, functions
        self.scope = Scope(code.tree)
        self.done = Written("")
        self.made: dict[int, list[Edit] | None] = {}
        self.adapters: dict[str, str] = {}
        self.removed: set[ast.stmt] = set()
        self.space: dict[str, Any] = {}
        self.rows = read_rows()
        self.taken = {getattr(node, "name", "") for node in code.nodes} | {
            node.id for node in code.nodes if isinstance(node, ast.Name)
        }
        self.annotations = {id(one) for one in _list_annotations(code.tree)}
        self.dynamic = self._find_dynamic()
        self.layouts = Layouts(code, facts, self.scope)
        self.exposed = self.layouts.exposed
        self.adapted_bases = self._find_adapted_bases()

    def write(self) -> Written:
        edits = [*self._imports()]
        edits += list_function_edits(self.code, self.scope, self.functions)
        edits += self._edits(self.code.tree)
        for node in self.code.nodes:
            for part in ("body", "orelse", "finalbody"):
                block = getattr(node, part, None)
                if isinstance(block, list) and len(block) > 1 and self.removed >= set(block):
                    edits.insert(0, self.code.replace(block[0], "pass"))
        text = self.code.splice(edits)
        self.done.text = _insert_adapters(text, list(self.adapters.values()))
        return self.done

    def _remove(self, statement: ast.stmt) -> Edit:
        """Return the edit that takes a statement out; see `write` for blocks that are emptied."""
        self.removed.add(statement)
        return self.code.remove(statement)

    # ------------------------------------------------------------------ text

    def _edits(self, node: ast.AST) -> Iterator[Edit]:
        """Yield the edits of everything below a node, each of a place of its own."""
        for child in ast.iter_child_nodes(node):
            made = self._rewrite(child)
            if made is None:
                yield from self._edits(child)
            else:
                yield from made

    def render(self, node: ast.AST) -> str:
        """Return the Paddle text of an expression."""
        made = self._rewrite(node)
        edits = list(self._edits(node)) if made is None else made
        text = self.code.source(node)
        start = self.code.replace(node, "").start  # type: ignore[arg-type]
        moved = [Edit(one.start - start, one.end - start, one.text) for one in edits]
        for edit in sorted(moved, key=lambda one: one.start, reverse=True):
            raw = text.encode()
            text = (raw[: edit.start] + edit.text.encode() + raw[edit.end :]).decode()
        return text

    def _rewrite(self, node: ast.AST) -> list[Edit] | None:
        """Return the edits of one node, None to look at its parts; each node is looked at once."""
        if id(node) not in self.made:
            self.made[id(node)] = self._make_edits(node)
        return self.made[id(node)]

    def _make_edits(self, node: ast.AST) -> list[Edit] | None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return []
        if isinstance(node, ast.Call):
            return self._write_call(node)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            return self._write_name(node)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            return self._write_attribute(node)
        if isinstance(node, ast.BinOp | ast.Compare):
            return self._write_operation(node)
        if isinstance(node, ast.AugAssign):
            return self._write_augmented(node)
        if isinstance(node, ast.Assign):
            return self._write_store(node)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            return self._write_definition(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self._write_statement(node)
        return None

    # ------------------------------------------------------------------ imports

    def _imports(self) -> Iterator[Edit]:
        """Yield the edits that take PyTorch's imports out and bring Paddle in."""
        brought = False
        for node in self.code.nodes:
            if isinstance(node, ast.Import):
                kept = [one for one in node.names if one.name.partition(".")[0] != "torch"]
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                kept = node.names if module.partition(".")[0] != "torch" or node.level else []
                if module == "einops.layers.torch":
                    names = ", ".join(self._alias(one) for one in node.names)
                    yield self.code.replace(node, f"from einops.layers.paddle import {names}")
                    continue
            else:
                continue
            if len(kept) == len(node.names):
                continue
            text = f"import {', '.join(map(self._alias, kept))}" if kept else ""
            top = node in self.code.tree.body
            if not brought and top:
                brought = True
                text = f"import paddle\n{text}".rstrip()
            if text:
                yield self.code.replace(node, text)
            else:
                yield self._remove(node)

    def _alias(self, one: ast.alias) -> str:
        return f"{one.name} as {one.asname}" if one.asname else one.name

    # ------------------------------------------------------------------ names

    def _write_name(self, node: ast.Name | ast.Attribute) -> list[Edit] | None:
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
            found = NAMES.get(public) or self._equal(public) or self._equal(name)
            return found or "object"
        if public == "torch.nn.Linear" and self.exposed:
            return self._name_linear(node)
        adapted = public in ADAPTERS or id(node) in self.adapted_bases
        if adapted or (public in self.dynamic and not self._is_kind(node)):
            adapter = self._adapt(public)
            if adapter:
                return adapter
        target = self._name_target(public) or self._name_target(name)
        if target:
            return target
        held = find_torch(name)
        if (held is not None or is_torch(name)) and is_literal(repr(held)):
            return repr(held)
        if isinstance(held, type) and self._is_compared(node):
            return "()"  # isinstance(x, ()): nothing of Paddle's is one
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

    def _name_target(self, public: str) -> str:
        if public in NAMES:
            return NAMES[public]
        for row in self.rows.get(public, ()):
            target = row.target.partition("(")[0]
            if (
                target.startswith("paddle.")
                and find_paddle(target) is not None
                and row.target.endswith(")")
            ):
                return target
        return self._equal(public)

    def _equal(self, name: str) -> str:
        """Return Paddle's name that is PyTorch's, "" if there is none."""
        if name != "torch" and not name.startswith("torch."):
            return ""
        renamed = "paddle" + name.removeprefix("torch")
        plain = renamed.replace("paddle.special.", "paddle.")
        return next((one for one in (renamed, plain) if find_paddle(one) is not None), "")

    def _is_kind(self, node: ast.AST) -> bool:
        """Tell whether a class is only compared: a base, or an argument of isinstance."""
        around = next(self.code.parents(node), None)
        if isinstance(around, ast.ClassDef):
            return node in around.bases
        return self._is_compared(node)

    def _is_compared(self, node: ast.AST) -> bool:
        """Tell whether a class is an argument of isinstance."""
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

    def _write_attribute(self, node: ast.Attribute) -> list[Edit] | None:
        fact = self.facts.get(node._site)  # type: ignore[attr-defined]
        if fact is None:
            return None
        kinds = {kind for kind in fact.kinds if kind.startswith("torch.nn.")}
        target = _TENSOR_ATTRIBUTES.get(node.attr, "") if fact.kinds - kinds else ""
        if kinds:
            texts = {self._write_setting(node.attr, kind, fact) for kind in kinds}
            target = texts.pop() if len(texts) == 1 else ""
            if fact.derived and target != "None" and self._is_own(node):
                return None
        if isinstance(node.ctx, ast.Store):
            target = _STORED.get(target, target if target.startswith("self._") else "")
        if not target:
            return None
        return [self.code.replace(node, target.replace("self", self.render(node.value)))]

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

    def _write_setting(self, name: str, kind: str, fact: Fact) -> str:
        """Return the text that reads a setting of Paddle's layer, "" if it is the same."""
        target = (
            "paddle.compat.nn.Linear" if fact.owners & self.exposed else self._name_target(kind)
        )
        theirs, ours = find_torch(kind), find_paddle(target)
        if kind == "torch.nn.Module" or not isinstance(theirs, type) or not isinstance(ours, type):
            return ""
        return write_setting(name, theirs, target, ours, fact.values)

    # ------------------------------------------------------------------ layers as values

    def _find_dynamic(self) -> set[str]:
        """Return what is called by another name with arguments that Paddle's does not take."""
        found: set[str] = set()
        for node in self.code.nodes:
            if not isinstance(node, ast.Call):
                continue
            fact = self.facts.get(node._site)  # type: ignore[attr-defined]
            names = fact.callees if fact else set()
            direct = find_public(self.scope.name(node.func)) if self.scope.name(node.func) else ""
            if direct in ("functools.partial",) or dotted(node.func).endswith("partial"):
                names = (
                    {find_public(self.scope.name(node.args[0]))}
                    if node.args and self.scope.name(node.args[0])
                    else set()
                )
                words = [one.arg for one in node.keywords]
                count = len(node.args) - 1
            elif fact is not None and not direct:
                words, count = [one.arg for one in node.keywords], len(node.args)
            else:
                continue
            for name in names:
                for row in self.rows.get(name, ())[:1]:
                    if not _takes(row, count, words) or row.target == "None":
                        found.add(name)
                if name in ADAPTERS or not self._serves(self._name_target(name), name, fact):
                    found.add(name)
        return found

    def _serves(self, target: str, public: str, fact: Fact | None) -> bool:
        """Tell whether a class gives, with PyTorch's arguments, what a layer that has a variant gave."""
        if public not in VARIANTS or fact is None:
            return True
        trial = f"{target}(*star, **rest)"
        return prove(_PASSED_ON, trial, public, fact, self.space, nearly=True) is not False

    def _find_adapted_bases(self) -> set[int]:
        """Return the bases whose `super().__init__` is given what only PyTorch's signature tells apart."""
        found: set[int] = set()
        for node in self.code.nodes:
            if isinstance(node, ast.Call) and self._passes_on(node):
                kind = next(
                    (one for one in self.code.parents(node) if isinstance(one, ast.ClassDef)), None
                )
                found |= (
                    {id(base) for base in kind.bases if self.scope.name(base)} if kind else set()
                )
        return found

    def _passes_on(self, node: ast.Call) -> bool:
        """Tell whether a call is `super().__init__(*a, **k)`."""
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr != "__init__":
            return False
        starred = any(one.arg is None for one in node.keywords) or any(
            isinstance(one, ast.Starred) for one in node.args
        )
        return (
            starred
            and isinstance(function.value, ast.Call)
            and dotted(function.value.func) == "super"
        )

    def _adapt(self, public: str) -> str:
        """Return the name of a definition that takes PyTorch's arguments, "" if none can be made."""
        if public not in self.adapters:
            plain = public.rpartition(".")[2]
            own = find_public(self.scope.imports.get(plain, "")) == public  # what the import bound
            name = plain if own or plain not in self.taken else f"Torch{plain}"
            needed = self._adapt_needed(ADAPTERS.get(public, ""))
            text = write_adapter(public, name, self.rows.get(public, ()), needed)
            space = _define(text, self.space)
            if not space:
                return ""
            self.adapters[public] = text
            self.taken.add(name)
            self.space |= space
            made = (one for one in self.facts.values() if public in one.callees)
            if not all(self._serves(name, public, one) for one in made):
                self.adapters[f"plain {public}"] = self.adapters.pop(public)
                needed = self._adapt_needed(VARIANTS[public])
                self.adapters[public] = write_variant(public, needed, f"Torch{name}", name)
                self.space |= _define(self.adapters[public], self.space)
        tree = ast.parse(self.adapters[public]).body[0]
        return tree.name  # type: ignore[attr-defined, no-any-return]

    def _adapt_needed(self, text: str) -> dict[str, str]:
        """Return the names of the adapters that a text is written with."""
        return {one: self._adapt(one) for one in list_needed(text)}

    # ------------------------------------------------------------------ calls

    def _write_statement(self, node: ast.Expr) -> list[Edit] | None:
        assert isinstance(node.value, ast.Call)
        name = self.scope.name(node.value.func)
        if name in _ASSERTIONS and node.value.args:
            condition, *message = map(self.render, node.value.args)
            if message and isinstance(node.value.args[1], ast.Lambda):
                message = [f"({message[0]})()"]
            return [self.code.replace(node, f"assert {', '.join([condition, *message])}")]
        if name and name.startswith(_MEANINGLESS):
            return [self._remove(node)]
        method = node.value.func.attr if isinstance(node.value.func, ast.Attribute) else ""
        return [self._remove(node)] if method.endswith(_HOOKS) else None

    def _write_definition(
        self, node: ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
    ) -> list[Edit] | None:
        gone = [
            one
            for one in node.decorator_list
            if self.scope.name(one.func if isinstance(one, ast.Call) else one).startswith(
                _MEANINGLESS
            )
        ]
        if not gone:
            return None
        edits = [self.code.remove_decorator(one) for one in gone]
        for part in ast.iter_child_nodes(node):
            if part not in gone:
                edits += self._parts(part)
        return edits

    def _write_call(self, node: ast.Call) -> list[Edit] | None:
        fact = self.facts.get(node._site, Fact())  # type: ignore[attr-defined]
        static = self.scope.name(node.func)
        public = find_public(static) if static else ""
        if not public and len(fact.callees) == 1:
            public = next(iter(fact.callees))
        if public.endswith(".__init__") and not static:
            return self._write_super(node, public)
        method = isinstance(node.func, ast.Attribute) and not static
        if dotted(node.func) == "hasattr" and node.args and self._is_lacking(node.args[0]):
            return [self.code.replace(node, "False")]
        if dotted(node.func) == "getattr" and fact.values:
            return self._write_choice(node, fact)
        if not public or (not static and not method):
            if not public and method and not fact.callees:
                return self._write_unseen_method(node)
            return None
        if not static and not public.startswith("Tensor.") and public not in self.rows:
            return None
        if static.startswith(_MEANINGLESS) and len(node.args) == 1 and public not in self.rows:
            return [self.code.replace(node, self.render(node.args[0]))]
        return self._choose(node, public, static, fact)

    def _write_choice(self, node: ast.Call, fact: Fact) -> list[Edit] | None:
        """Write `getattr(torch.nn, name)`, where Paddle's module has other names or layers."""
        names = {word: self._name_value(node, public) for word, public in fact.values if public}
        module = self.render(node.args[0])
        if not names or all(one == f"{module}.{word}" for word, one in names.items()):
            return None
        texts = ", ".join(f"{word!r}: {one}" for word, one in sorted(names.items()))
        return [self.code.replace(node, f"{{{texts}}}[{self.render(node.args[1])}]")]

    def _is_lacking(self, node: ast.AST) -> bool:
        """Tell whether an expression names something of PyTorch's that Paddle does not have."""
        name = self.scope.name(node)
        return bool(name) and not (self._name_target(find_public(name)) or self._equal(name))

    def _choose(self, node: ast.Call, public: str, static: str, fact: Fact) -> list[Edit] | None:
        """Write the first candidate that gives what was recorded; of none that does, the first."""
        candidates = self._candidates(node, public, static)
        label = f"line {node.lineno}: {public}"
        first = next(candidates, None)
        if first is None:  # its name is listed where it is read
            return None
        if not fact.callees:
            self.done.unseen.append(label)
            return self._put(node, first)
        every = [first, *candidates]
        for graded, nearly in ((True, False), (True, True), (False, False), (False, True)):
            for candidate in every:
                if prove(node, candidate.trial, public, fact, self.space, nearly, graded):
                    if not graded:
                        self.done.unproven.append(f"{label} (another gradient)")
                        return self._put(node, candidate)
                    self.done.proven += 1
                    self.done.rounded += [label] if nearly else []
                    return self._put(node, candidate)
        self.done.unproven.append(label)
        return self._put(node, first)

    def _put(self, node: ast.Call, candidate: Candidate) -> list[Edit]:
        if candidate.plain:
            edits = (
                []
                if candidate.plain == self.code.source(node.func)
                else [self.code.replace(node.func, candidate.plain)]
            )
            if isinstance(node.func, ast.Attribute) and candidate.plain.startswith("."):
                edits = list(self._edits(node.func))
            for part in (*node.args, *node.keywords):
                edits += self._parts(part)
            return edits
        around = next(self.code.parents(node), None)
        joined = isinstance(around, _JOINING) and not (
            isinstance(around, ast.Call | ast.Subscript) and node is not _head(around)
        )
        text = (
            f"({candidate.text})" if joined and not _is_closed(candidate.text) else candidate.text
        )
        return [self.code.replace(node, text)]

    def _parts(self, node: ast.AST) -> list[Edit]:
        made = self._rewrite(node)
        return list(self._edits(node)) if made is None else made

    def _candidates(self, node: ast.Call, public: str, static: str) -> Iterator[Candidate]:
        """Yield what could be written, the simplest first."""
        receiver = node.func.value if isinstance(node.func, ast.Attribute) and not static else None
        slots = Slots(node, receiver, self.render, self.closed)
        is_layer = isinstance(find_torch(public), type)
        starred = any(one.arg is None for one in node.keywords) or any(
            isinstance(one, ast.Starred) for one in node.args
        )
        if public == "torch.nn.Linear" and node._site in self.exposed:  # type: ignore[attr-defined]
            name = "paddle.compat.nn.Linear"
            yield Candidate("", slots.call(name, True), name)
        if public in ADAPTERS or (
            is_layer and starred and public in self.rows and public not in UNTOUCHED
        ):
            adapter = self._adapt(public)
            if adapter:
                yield Candidate("", slots.call(adapter, True), adapter)
        if any(one.arg in RENAMED for one in node.keywords) and public not in self.rows:
            yield from self._renamed(slots, public, static, receiver)  # Paddle's own words first
        rows = self.rows.get(public, ())
        if self.facts.get(node._site, Fact()).inplace:  # type: ignore[attr-defined]
            for row in rows:  # read afterwards in PyTorch's file
                yield from self._exchange(slots, row, write_inplace, "Inplace")
        same = list(self._same(node, slots, public, static, receiver))
        if (
            not is_layer
            and not any(row.defaults for row in rows)
            and public not in _ROWS_FIRST
            and not slots.has_dropped
        ):
            yield from same
            same = []
        for row in rows:
            yield from slots.fill(row)
        yield from same
        yield from self._renamed(slots, public, static, receiver)
        if public in VARIANTS:
            needed = self._adapt_needed(VARIANTS[public])
            for row in rows:
                write = partial(write_variant, public, needed)
                yield from self._exchange(slots, row, write, "Own")
        if is_layer and rows:
            adapter = self._adapt(public)
            if adapter:
                yield Candidate("", slots.call(adapter, True), adapter)

    def _exchange(
        self, slots: Slots, row: Row, write: Callable[[str, str], str], prefix: str
    ) -> Iterator[Candidate]:
        """Yield a row's layer as one that is derived from it. write: takes the new name and the layer's."""
        target = row.target.partition("(")[0]
        name = f"{prefix}{target.rpartition('.')[2]}"
        self.adapters[name] = write(name, target)
        self.space |= _define(self.adapters[name], self.space)
        for one in slots.fill(row):
            texts = [part.replace(target, name, 1) for part in (one.text, one.trial)]
            yield Candidate(*texts)

    def _same(
        self, node: ast.Call, slots: Slots, public: str, static: str, receiver: ast.expr | None
    ) -> Iterator[Candidate]:
        """Yield the call by Paddle's equal name, with the arguments as they are."""
        if receiver is not None:
            method = node.func.attr  # type: ignore[attr-defined]
            if slots.has_dropped:
                yield Candidate(
                    slots.method(method, False), slots.method(method, False, trial=True)
                )
            yield Candidate("", slots.method(method, True, trial=True), f".{method}")
            return
        for name in dict.fromkeys(
            (self._name_target(public), self._equal(public), self._equal(static))
        ):
            if name:
                if slots.has_dropped:
                    yield Candidate(slots.call(name, False, trial=False), slots.call(name, False))
                yield Candidate("", slots.call(name, True), name)

    def _renamed(
        self, slots: Slots, public: str, static: str, receiver: ast.expr | None
    ) -> Iterator[Candidate]:
        """Yield the call with Paddle's usual names of arguments, and what paddle.compat has."""
        if receiver is not None:
            method = public.rpartition(".")[2]
            yield Candidate(
                slots.method(method, False, renamed=True),
                slots.method(method, False, renamed=True, trial=True),
            )
            plain = find_paddle(f"paddle.{method}")
            if plain is not None:
                yield Candidate(
                    slots.function(f"paddle.{method}", trial=False),
                    slots.function(f"paddle.{method}"),
                )
            return
        for name in dict.fromkeys((self._equal(public), self._equal(static))):
            if name:
                yield Candidate(
                    slots.call(name, False, trial=False, renamed=True),
                    slots.call(name, False, renamed=True),
                )
        compat = "paddle.compat" + public.removeprefix("torch")
        if find_paddle(compat) is not None:
            yield Candidate("", slots.call(compat, True), compat)
        signature = _signature(public)
        if signature and not slots.starred:
            target = self._name_target(public)
            if target:
                named = slots.name_arguments(signature)
                if named:
                    yield Candidate(f"{target}({named[0]})", f"{target}({named[1]})")

    def _write_unseen_method(self, node: ast.Call) -> list[Edit] | None:
        """Write a method call that never ran, where its name can only be a tensor's."""
        assert isinstance(node.func, ast.Attribute)
        rows = self.rows.get(f"Tensor.{node.func.attr}", ())
        if (
            node.func.attr in ("type_as", "numel", "new_tensor", "masked_fill_", "nelement")
            and rows
        ):
            slots = Slots(node, node.func.value, self.render, self.closed)
            for candidate in slots.fill(rows[0]):
                self.done.unseen.append(f"line {node.lineno}: Tensor.{node.func.attr}")
                return self._put(node, candidate)
        return None

    def _write_super(self, node: ast.Call, public: str) -> list[Edit] | None:
        """Write `super().__init__(...)` of a class derived from one of PyTorch's layers."""
        row_name = f"torch.nn.{public.removesuffix('.__init__')}"
        rows = self.rows.get(row_name, ())
        if not rows or not (node.args or node.keywords) or row_name in UNTOUCHED:
            return None
        kind = next((one for one in self.code.parents(node) if isinstance(one, ast.ClassDef)), None)
        if kind is not None and any(id(base) in self.adapted_bases for base in kind.bases):
            return None
        slots = Slots(node, None, self.render, self.closed)
        for row in rows:
            for candidate in slots.fill(row):
                inside = candidate.text.partition("(")[2]
                return [self.code.replace(node, f"{self.code.source(node.func)}({inside}")]
        return None

    # ------------------------------------------------------------------ operators

    def _write_operation(self, node: ast.BinOp | ast.Compare) -> list[Edit] | None:
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
        for form in (*_FORMS, *(_BATCHED if sign == "@" else ())):
            if operates(fact, sign, *form):
                texts = [self.closed(left), self.closed(right)]
                return [
                    self.code.replace(left, form[0].format(*texts)),
                    self.code.replace(right, form[1].format(*texts)),
                ]
        self.done.unproven.append(f"line {node.lineno}: {sign}")
        return None

    def _write_membership(
        self, node: ast.AST, left: ast.expr, right: ast.expr, negated: bool
    ) -> list[Edit] | None:
        """Write `a in tensor`, which Paddle would answer by a loop over the first axis."""
        import torch

        calls = self.facts[node._site].calls  # type: ignore[attr-defined]
        if not all(isinstance(call.arguments[1], torch.Tensor) for call in calls):
            return None
        text = f"bool(({self.closed(right)} == {self.closed(left)}).any())"
        return [self.code.replace(node, f"(not {text})" if negated else text)]  # type: ignore[arg-type]

    def _write_store(self, node: ast.Assign) -> list[Edit] | None:
        """Write `tensor[index] = value` as what changes the tensor as PyTorch does, gradients included."""
        fact, target = self.facts.get(node._site), node.targets[0]  # type: ignore[attr-defined]
        if fact is None or not isinstance(target, ast.Subscript):
            return None
        if not fact.calls or stores(fact, "self.__setitem__(index, value)", {}):
            return None
        many = isinstance(target.slice, ast.Tuple)
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        indices = (
            f"({', '.join(map(self._render_index, parts))}{'' if many and parts[1:] else ','})"
        )
        held, value = self.closed(target.value), self.render(node.value)
        if stores(fact, f"self.index_put_({'index' if many else '(index,)'}, value)", {}):
            return [self.code.replace(node, f"{held}.index_put_({indices}, {value})")]
        self.adapters["set_items"] = SET_ITEMS
        if stores(fact, "set_items(self, index, value)", _define(SET_ITEMS, {})):
            return [self.code.replace(node, f"set_items({held}, {indices}, {value})")]
        self.done.unproven.append(f"line {node.lineno}: an item that is set")
        return None

    def _render_index(self, node: ast.expr) -> str:
        """Return the Paddle text of an index that stands outside of square brackets."""
        if not isinstance(node, ast.Slice):
            return self.render(node)
        parts = (node.lower, node.upper, node.step)
        return f"slice({', '.join('None' if one is None else self.render(one) for one in parts)})"

    def closed(self, node: ast.expr) -> str:
        """Return the Paddle text of an expression, in brackets where a method's dot would split it."""
        text = self.render(node)
        simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        return text if simple else f"({text})"

    def _write_augmented(self, node: ast.AugAssign) -> list[Edit] | None:
        fact = self.facts.get(node._site)  # type: ignore[attr-defined]
        sign = SIGNS.get(type(node.op).__name__)
        if fact is None or not fact.calls or sign is None or operates(fact, sign):
            return None
        form = ("{0}", "{1}.astype({0}.dtype)")
        if operates(fact, sign, *form):
            target = self.code.source(node.target)
            return [
                self.code.replace(node.value, f"{self.closed(node.value)}.astype({target}.dtype)")
            ]
        return None


_FORMS: Final = (
    ("{0}.astype({1}.dtype)", "{1}"),
    ("{0}", "{1}.astype({0}.dtype)"),
    ("{0}.astype(paddle.get_default_dtype())", "{1}"),
    ("{0}", "{1}.astype(paddle.get_default_dtype())"),
    ("{0}.astype(paddle.get_default_dtype())", "{1}.astype(paddle.get_default_dtype())"),
)
_PASSED_ON: Final = ast.Call(
    ast.Name("f"), [ast.Starred(ast.Name("a"))], [ast.keyword(None, ast.Name("k"))]
)
"""f(*a, **k)"""
_ROWS_FIRST: Final = frozenset(
    """
    torch.cat torch.concat torch.tensor torch.as_tensor torch.from_numpy
    torch.nn.functional.softmax torch.softmax torch.stack torch.nn.functional.log_softmax
    Tensor.type torch.autograd.Variable Module.register_buffer torch.autocast torch.amp.autocast
    torch.cuda.amp.autocast torch.nn.functional.interpolate torch.amp.autocast_mode.autocast
    torch.cuda.amp.autocast_mode.autocast torch.nn.functional.cross_entropy torch.meshgrid
    """.split()
)
_JOINING: Final = (
    ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Starred, ast.Await,
)  # fmt: skip
"""what binds the text of its parts to what is beside it"""
_STORED: Final = {"self._padding": "self._padding = self._updated_padding"}
"""a setting that is given a value -> what is given it, where Paddle's layer keeps it twice"""
_TENSOR_ATTRIBUTES: Final = {
    "mT": "self.mT",
    "itemsize": "self.element_size()",
    "is_sparse": "self.is_sparse()",
}


def _define(text: str, known: dict[str, Any]) -> dict[str, Any]:
    """Return what a definition binds, nothing if it cannot be executed."""
    import paddle

    space: dict[str, Any] = {"paddle": paddle, "NamedTuple": NamedTuple, **known}
    try:
        exec(text, space)
    except TypeError:  # a base that is a function in Paddle
        return {}
    own = space.keys() - known.keys() - {"paddle", "NamedTuple", "__builtins__"}
    return {name: space[name] for name in own}


def _is_closed(text: str) -> bool:
    """Tell whether an expression stays one, whatever is written beside it."""
    node = ast.parse(text, mode="eval").body
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)


def _head(node: ast.Call | ast.Subscript) -> ast.expr:
    """Return what is called or indexed."""
    return node.func if isinstance(node, ast.Call) else node.value


def _takes(row: Row, count: int, words: Sequence[str | None]) -> bool:
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


@cache
def _signature(public: str) -> tuple[str, ...]:
    held = find_torch(public)
    try:
        names = list(inspect.signature(held).parameters.values())
    except (TypeError, ValueError):
        return ()
    if any(one.kind is one.VAR_POSITIONAL for one in names):
        return ()
    return tuple(one.name for one in names)


def _list_annotations(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for part in ("annotation", "returns"):
            held = getattr(node, part, None)
            if isinstance(held, ast.AST):
                yield from ast.walk(held)


def _insert_adapters(text: str, adapters: Sequence[str]) -> str:
    """Return a file with the definitions that it reads after its imports, and with Paddle imported."""
    try:
        code = Code(text)
    except SyntaxError:
        return text
    if not any(
        isinstance(node, ast.Import) and any(one.name == "paddle" for one in node.names)
        for node in code.tree.body
    ):
        body = code.tree.body
        first = next((node for node in body if not _is_header(node)), body[-1])
        code = code.apply([code.insert(first, "import paddle")])
    adapters = _list_read({node.id for node in code.nodes if isinstance(node, ast.Name)}, adapters)
    if adapters:
        body = code.tree.body
        at = next(
            (
                node
                for node in body
                if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr | ast.Try)
            ),
            body[-1],
        )
        code = code.apply([code.insert(at, "\n\n\n".join(adapters) + "\n\n")])
    if any("(NamedTuple)" in one for one in adapters):
        first = next(node for node in code.tree.body if not _is_header(node))
        code = code.apply([code.insert(first, "from typing import NamedTuple\n")])
    return code.text


def _list_read(names: set[str], adapters: Sequence[str]) -> list[str]:
    """Return the definitions that are read, by the file or by another one of them."""
    for one in reversed(adapters):  # each is read by later ones alone
        if ast.parse(one).body[0].name in names:  # type: ignore[attr-defined]
            names = names | set(re.findall(r"\w+", one.partition("(")[2]))
    return [one for one in adapters if ast.parse(one).body[0].name in names]  # type: ignore[attr-defined]


def _is_header(node: ast.stmt) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
