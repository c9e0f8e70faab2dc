"""Writes the Paddle file: every expression of PyTorch's as the simplest that gives the recorded result."""

import ast
import inspect
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Final

from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.porting.calls.adapters import ADAPTERS, write_adapter
from reprod_align.porting.calls.record import SIGNS, Call, Fact, Weight
from reprod_align.porting.calls.rows import NAMES, UNTOUCHED, Row, fill, read_rows
from reprod_align.porting.calls.settings import write_setting
from reprod_align.porting.calls.torch_names import Scope, find_public, find_torch, is_torch
from reprod_align.porting.calls.values import NoCounterpart, agrees, to_paddle

_DROPPED: Final = ("device", "non_blocking", "memory_format", "pin_memory", "layout", "inplace")
_RENAMED: Final = {"dim": "axis", "eps": "epsilon", "dims": "axis"}
_RANDOM: Final = frozenset(
    """
    dropout dropout2d rand randn rand_like randn_like randint randperm normal_ uniform_ bernoulli
    bernoulli_ normal multinomial empty empty_like new_empty trunc_normal_ exponential_
    kaiming_normal_ kaiming_uniform_ xavier_normal_ xavier_uniform_ orthogonal_ alpha_dropout
    gumbel_softmax feature_alpha_dropout rrelu randint_like random_ sparse_ dropout1d dropout3d
    """.split()
)
_MEANINGLESS: Final = (
    "torch.jit",
    "torch.fx",
    "torch.compiler",
    "torch._C._log_api_usage_once",
    "torch._dynamo",
    "torch.utils._pytree",
)


@dataclass
class Written:
    """The file, and what is known of its calls."""

    text: str
    proven: int = 0
    """calls that gave the recorded results"""
    unproven: list[str] = field(default_factory=list)
    """calls that ran, and that no candidate reproduced: "line 12: torch.foo" """
    unseen: list[str] = field(default_factory=list)
    """calls that never ran: converted, not proven"""
    unknown: list[str] = field(default_factory=list)
    """what stays PyTorch's"""


@dataclass(frozen=True)
class Candidate:
    """A text that could stand in a call's place."""

    text: str
    trial: str
    """the same, with a variable in place of each argument"""
    plain: str = ""
    """the callee alone, where only that changes"""


def write_paddle(code: Code, facts: dict[int, Fact]) -> Written:
    """Return the Paddle file of a PyTorch file whose nodes are numbered, from what its run gave."""
    return _Writer(code, facts).write()


@cache
def find_paddle(name: str) -> Any:
    """Return what a dotted name of Paddle's stands for, None if there is no such thing."""
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return None


class _Writer:
    def __init__(self, code: Code, facts: dict[int, Fact]) -> None:
        self.code, self.facts = code, facts
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
        self.exposed = self._find_exposed()
        self._settle()
        self.adapted_bases = self._find_adapted_bases()

    def write(self) -> Written:
        edits = [*self._imports(), *self._edits(self.code.tree)]
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
        if id(node) in self.adapted_bases or (public in self.dynamic and not self._is_kind(node)):
            adapter = self._adapt(public)
            if adapter:
                return adapter
        target = self._name_target(public) or self._name_target(name)
        if target:
            return target
        held = find_torch(name)
        if (held is not None or is_torch(name)) and _is_literal(repr(held)):
            return repr(held)
        if isinstance(held, type) and self._is_compared(node):
            return "()"  # isinstance(x, ()): nothing of Paddle's is one
        self.done.unknown.append(f"line {node.lineno}: {name}")  # type: ignore[attr-defined]
        return name

    def _name_linear(self, node: ast.AST) -> str:
        """Return the class, or in a comparison both, where the weights of some lie as PyTorch's."""
        plain, compat = "paddle.nn.Linear", "paddle.compat.nn.Linear"
        made = {site for site, fact in self.facts.items() if "torch.nn.Linear" in fact.callees}
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
        return renamed if find_paddle(renamed) is not None else ""

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
                if name in ADAPTERS:
                    found.add(name)
        return found

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
            name = plain if plain not in self.taken else f"Torch{plain}"
            text = write_adapter(public, name, self.rows.get(public, ()))
            space = _define(text)
            if not space:
                return ""
            self.adapters[public] = text
            self.taken.add(name)
            self.space |= space
        tree = ast.parse(self.adapters[public]).body[0]
        return tree.name  # type: ignore[attr-defined, no-any-return]

    def _find_exposed(self) -> set[int]:
        """Return the calls that make a Linear whose weight is read or shared as PyTorch's matrix.

        A class derived from Linear that reads its own weight is 0 among them.
        """
        found: set[int] = set()
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
        made = {site for site, fact in self.facts.items() if "torch.nn.Linear" in fact.callees}
        named = {
            node._site  # type: ignore[attr-defined]
            for node in self.code.nodes
            if isinstance(node, ast.Call) and self.scope.name(node.func)
        }
        return found | (made - named if found - named - {0} else set())

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

    # ------------------------------------------------------------------ calls

    def _write_statement(self, node: ast.Expr) -> list[Edit] | None:
        assert isinstance(node.value, ast.Call)
        name = self.scope.name(node.value.func)
        if name == "torch._assert":
            parts = [self.render(one) for one in node.value.args]
            return [self.code.replace(node, f"assert {', '.join(parts)}")]
        if name and name.startswith(_MEANINGLESS):
            return [self._remove(node)]
        method = node.value.func.attr if isinstance(node.value.func, ast.Attribute) else ""
        if (
            method.endswith("state_dict_pre_hook")
            or method.endswith("state_dict_post_hook")
            or method.endswith("state_dict_hook")
        ):
            return [self._remove(node)]
        return None

    def _write_definition(
        self, node: ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
    ) -> list[Edit] | None:
        gone = []
        for decorator in node.decorator_list:
            held = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = self.scope.name(held)
            if name.startswith(
                (
                    "torch.jit",
                    "torch.fx",
                    "torch.compiler",
                    "torch.compile",
                    "torch._dynamo",
                    "torch.amp.custom",
                    "torch.cuda.amp.custom",
                )
            ):
                gone.append(decorator)
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
        if not public or (not static and not method):
            if not public and method and not fact.callees:
                return self._write_unseen_method(node)
            return None
        if not static and not public.startswith("Tensor.") and public not in self.rows:
            return None
        if (
            static
            and dotted(node.func)
            and public
            in ("torch.jit.script", "torch.jit.ignore", "torch.jit.unused", "torch.compile")
            and len(node.args) == 1
        ):
            return [self.code.replace(node, self.render(node.args[0]))]
        return self._choose(node, public, static, fact)

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
        for candidate in chain([first], candidates):
            if self._prove(node, candidate, public, fact):
                self.done.proven += 1
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
        slots = _Slots(node, self, receiver)
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
        if any(one.arg in _RENAMED for one in node.keywords) and public not in self.rows:
            yield from self._renamed(slots, public, static, receiver)  # Paddle's own words first
        rows = self.rows.get(public, ())
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
        if is_layer and rows:
            adapter = self._adapt(public)
            if adapter:
                yield Candidate("", slots.call(adapter, True), adapter)

    def _same(
        self, node: ast.Call, slots: "_Slots", public: str, static: str, receiver: ast.expr | None
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
        self, slots: "_Slots", public: str, static: str, receiver: ast.expr | None
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
            slots = _Slots(node, self, node.func.value)
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
        slots = _Slots(node, self, None)
        for row in rows:
            for candidate in slots.fill(row):
                inside = candidate.text.partition("(")[2]
                return [self.code.replace(node, f"{self.code.source(node.func)}({inside}")]
        return None

    # ------------------------------------------------------------------ proof

    def _prove(self, node: ast.Call, candidate: Candidate, public: str, fact: Fact) -> bool | None:
        """Tell whether a candidate gives what was recorded; None if nothing could be tried."""
        random = public.rpartition(".")[2] in _RANDOM
        tried = None
        for call in fact.calls:
            slots = _bind(node, call)
            try:
                values = self.space | {name: to_paddle(value) for name, value in slots.items()}
                if call.receiver is not None:
                    values["self"] = to_paddle(call.receiver)
            except NoCounterpart:
                continue
            tried = True
            drawn = random or call.random or bool(call.keywords.get("dropout_p"))  # keyed draws
            if not _run(candidate.trial, values, call, drawn):
                return False
        return tried

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
        sign = SIGNS.get(type(operator).__name__)
        if sign is None or self._operates(fact, sign, "{0}", "{1}"):
            return None
        for form in _FORMS:
            if self._operates(fact, sign, *form):
                texts = [self.closed(left), self.closed(right)]
                return [
                    self.code.replace(left, form[0].format(*texts)),
                    self.code.replace(right, form[1].format(*texts)),
                ]
        return None

    def closed(self, node: ast.expr) -> str:
        """Return the Paddle text of an expression, in brackets where a method's dot would split it."""
        text = self.render(node)
        simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        return text if simple else f"({text})"

    def _write_augmented(self, node: ast.AugAssign) -> list[Edit] | None:
        fact = self.facts.get(node._site)  # type: ignore[attr-defined]
        sign = SIGNS.get(type(node.op).__name__)
        if (
            fact is None
            or not fact.calls
            or sign is None
            or self._operates(fact, sign, "{0}", "{1}")
        ):
            return None
        form = ("{0}", "{1}.astype({0}.dtype)")
        if self._operates(fact, sign, *form):
            target = self.code.source(node.target)
            return [
                self.code.replace(node.value, f"{self.closed(node.value)}.astype({target}.dtype)")
            ]
        return None

    def _operates(self, fact: Fact, sign: str, left: str, right: str) -> bool:
        import torch

        for call in fact.calls:
            first, second = call.arguments
            with torch.no_grad():
                expected = eval(f"a {sign} b", {"a": first, "b": second})
            try:
                values = {"a": to_paddle(first), "b": to_paddle(second)}
            except NoCounterpart:
                return True
            made = Call((), {}, expected, default_dtype=call.default_dtype)
            if not _run(
                f"{left.format('a', 'b')} {sign} {right.format('a', 'b')}", values, made, False
            ):
                return False
        return True


_FORMS: Final = (
    ("{0}.astype({1}.dtype)", "{1}"),
    ("{0}", "{1}.astype({0}.dtype)"),
    ("{0}.astype(paddle.get_default_dtype())", "{1}"),
    ("{0}", "{1}.astype(paddle.get_default_dtype())"),
    ("{0}.astype(paddle.get_default_dtype())", "{1}.astype(paddle.get_default_dtype())"),
)
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
_TAKING_WEIGHTS: Final = ("torch.nn.functional.linear",)
"""functions that take the weight of a Linear, whichever way it lies"""
_TENSOR_ATTRIBUTES: Final = {"mT": "self.mT", "itemsize": "self.element_size()"}


def _run(text: str, values: dict[str, Any], call: Call, random: bool) -> bool:
    import paddle

    kept = paddle.get_default_dtype()
    space = {"paddle": paddle, **values}
    try:
        if call.default_dtype is not None:
            paddle.set_default_dtype(str(call.default_dtype).removeprefix("torch."))
        with paddle.no_grad():
            made = eval(text, space)
        if call.after is not None:
            return agrees(space["self"] if "self" in values else space["a0"], call.after, random)
        return agrees(made, call.result, random)
    except Exception:
        return False
    finally:
        paddle.set_default_dtype(kept)


def _define(text: str) -> dict[str, Any]:
    """Return what a definition binds, nothing if it cannot be executed."""
    import paddle

    space: dict[str, Any] = {"paddle": paddle}
    try:
        exec(text, space)
    except TypeError:  # a base that is a function in Paddle
        return {}
    return {name: held for name, held in space.items() if name not in ("paddle", "__builtins__")}


class _Slots:
    """The arguments of a call: their texts, and a variable for each."""

    def __init__(self, node: ast.Call, writer: _Writer, receiver: ast.expr | None) -> None:
        self.node, self.writer = node, writer
        self.receiver = receiver
        self.starred = any(isinstance(one, ast.Starred) for one in node.args) or any(
            one.arg is None for one in node.keywords
        )
        self.has_dropped = any(one.arg in _DROPPED for one in node.keywords)

    @property
    def _self(self) -> str:
        assert self.receiver is not None
        return self.writer.closed(self.receiver)

    def _list(self, whole: bool, trial: bool, renamed: bool = False) -> list[str]:
        found = []
        for at, one in enumerate(self.node.args):
            if isinstance(one, ast.Starred):
                found.append("*star" if trial else self.writer.render(one))
            else:
                found.append(f"a{at}" if trial else self.writer.render(one))
        for keyword in self.node.keywords:
            if keyword.arg is None:
                found.append("**rest" if trial else f"**{self.writer.render(keyword.value)}")
            elif whole or keyword.arg not in _DROPPED:
                name = _RENAMED.get(keyword.arg, keyword.arg) if renamed else keyword.arg
                found.append(
                    f"{name}={f'k_{keyword.arg}' if trial else self.writer.render(keyword.value)}"
                )
        return found

    def call(self, name: str, whole: bool, trial: bool = True, renamed: bool = False) -> str:
        """Return the call of a function by its name."""
        return f"{name}({', '.join(self._list(whole, trial, renamed))})"

    def method(self, name: str, whole: bool, renamed: bool = False, trial: bool = False) -> str:
        """Return the call of a method of the receiver."""
        held = "self" if trial else self._self
        return f"{held}.{name}({', '.join(self._list(whole, trial, renamed))})"

    def function(self, name: str, trial: bool = True) -> str:
        """Return the call of a function with the receiver as its first argument."""
        held = "self" if trial else self._self
        return f"{name}({', '.join([held, *self._list(False, trial)])})"

    def fill(self, row: Row) -> Iterator[Candidate]:
        """Yield a row's code with the arguments."""
        names, positions = list(row.arguments), self.node.args
        if row.star is None and (self.starred or len(positions) > len(names)):
            return
        if not {k.arg for k in self.node.keywords if k.arg not in _DROPPED} <= set(names):
            return
        texts, trials = {}, {}
        if row.star is not None:
            positions, rest = positions[: row.star], positions[row.star :]
            if any(isinstance(one, ast.Starred) for one in positions):
                return
            texts[names[row.star]] = "".join(f"{self.writer.render(one)}, " for one in rest)
            trials[names[row.star]] = "".join(
                "*star, " if isinstance(one, ast.Starred) else f"a{at}, "
                for at, one in enumerate(rest, row.star)
            )
        for at, one in enumerate(positions):
            texts[names[at]], trials[names[at]] = self.writer.render(one), f"a{at}"
        for keyword in self.node.keywords:
            if keyword.arg in names:
                texts[keyword.arg] = self.writer.render(keyword.value)
                trials[keyword.arg] = (
                    repr(keyword.value.value)
                    if isinstance(keyword.value, ast.Constant)
                    else f"k_{keyword.arg}"
                )
        trials = {n: (texts[n] if _is_literal(texts[n]) else t) for n, t in trials.items()}
        held = self._self if self.receiver is not None else "self"
        try:
            text, trial = fill(row, texts, held), fill(row, trials, "self")
        except SyntaxError:
            return
        if text is not None and trial is not None:
            yield Candidate(text, trial)

    def name_arguments(self, signature: Sequence[str]) -> tuple[str, str] | None:
        """Return the arguments with positions as names, as text and as variables."""
        if len(self.node.args) > len(signature):
            return None
        texts, trials = [], []
        for at, one in enumerate(self.node.args):
            before = "" if at == 0 else f"{_RENAMED.get(signature[at], signature[at])}="
            texts.append(before + self.writer.render(one))
            trials.append(f"{before}a{at}")
        for keyword in self.node.keywords:
            if keyword.arg not in _DROPPED:
                name = _RENAMED.get(keyword.arg or "", keyword.arg)
                texts.append(f"{name}={self.writer.render(keyword.value)}")
                trials.append(f"{name}=k_{keyword.arg}")
        return ", ".join(texts), ", ".join(trials)


def _is_closed(text: str) -> bool:
    """Tell whether an expression stays one, whatever is written beside it."""
    node = ast.parse(text, mode="eval").body
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant)


def _head(node: ast.Call | ast.Subscript) -> ast.expr:
    """Return what is called or indexed."""
    return node.func if isinstance(node, ast.Call) else node.value


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return False
    return True


def _bind(node: ast.Call, call: Call) -> dict[str, Any]:
    """Return the recorded value of each variable of a trial."""
    values: dict[str, Any] = {}
    given = list(call.arguments)
    stars = [at for at, one in enumerate(node.args) if isinstance(one, ast.Starred)]
    if stars:
        first = stars[0]
        values |= {f"a{at}": given[at] for at in range(first)}
        after = (
            len(node.args) - 1 - first
        )  # with two stars their split is not known: nothing is proven
        values["star"] = given[first : len(given) - after]
        values |= {f"a{first + at}": given[at - after - 1] for at in range(1, after + 1)}
    else:
        values |= {f"a{at}": value for at, value in enumerate(given)}
    words = {one.arg for one in node.keywords if one.arg}
    values |= {f"k_{name}": call.keywords[name] for name in words if name in call.keywords}
    values["rest"] = {name: value for name, value in call.keywords.items() if name not in words}
    return values


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


def _is_init(call: ast.Call) -> bool:
    name = dotted(call.func).rpartition(".")[2]
    return name.endswith("_") or name.startswith("init") or "normal" in name or "uniform" in name


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
    read = {node.id for node in code.nodes if isinstance(node, ast.Name)}
    adapters = [one for one in adapters if ast.parse(one).body[0].name in read]  # type: ignore[attr-defined]
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
        code = code.apply([code.insert(at, "\n\n".join(adapters) + "\n\n")])
    return code.text


def _is_header(node: ast.stmt) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
