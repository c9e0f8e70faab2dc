"""What could stand in a call's place, the simplest first, and the definitions that it may be written with."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from reprod_align.api.calls import NAMES, ApiRow
from reprod_align.explain.code import Code
from reprod_align.porting.calls.adapters import (
    ADAPTERS,
    HELPERS,
    RESERVED,
    VARIANTS,
    list_needed,
    write_adapter,
    write_inplace,
    write_variant,
)
from reprod_align.porting.calls.forms import list_forms, list_result_forms
from reprod_align.porting.calls.names import Scope, find_object, find_public
from reprod_align.porting.calls.record import Fact
from reprod_align.porting.calls.rows import UNTOUCHED, read_rows
from reprod_align.porting.calls.slots import (
    RENAMED,
    Candidate,
    Forms,
    Render,
    Slots,
    is_starred,
    list_parameters,
)
from reprod_align.porting.calls.training import OPTIMIZERS
from reprod_align.porting.calls.trial import prove

_PASSED_ON: Final = ast.Call(
    ast.Name("f"), [ast.Starred(ast.Name("a"))], [ast.keyword(None, ast.Name("k"))]
)
"""f(*a, **k)"""


_IMPORTED: Final = {
    "(NamedTuple)": "from typing import NamedTuple",
    "nullcontext()": "from contextlib import nullcontext",
    "math.log(": "import math",
    "math.prod(": "import math",
}
"""what a port may be written with -> the statement that imports it"""


def find_equal(name: str) -> str:
    """Return Paddle's name that is PyTorch's, "" if there is none."""
    if name != "torch" and not name.startswith("torch."):
        return ""
    renamed = "paddle" + name.removeprefix("torch")
    plain = renamed.replace("paddle.special.", "paddle.")
    return next((one for one in (renamed, plain) if find_object(one) is not None), "")


def find_target(public: str) -> str:
    """Return what a public name of PyTorch's is called in Paddle, "" if there is no such thing."""
    if public in NAMES:
        return NAMES[public]
    for row in read_rows().get(public, ()):
        name = row.target.partition("(")[0]
        if name.startswith("paddle.") and find_object(name) is not None and row.target[-1] == ")":
            return name
    return find_equal(public)


@dataclass(frozen=True)
class Callee:
    """A call of the file, and what it calls."""

    node: ast.Call
    static: str
    """PyTorch's name as the file writes it; "" where that names nothing of PyTorch's"""
    public: str
    """"torch.cat", "Tensor.view": what ran, or what the name stands for; "" for what is not PyTorch's"""
    fact: Fact

    @property
    def receiver(self) -> ast.expr | None:
        """The expression whose method it is, None where it is none."""
        function = self.node.func
        return function.value if isinstance(function, ast.Attribute) and not self.static else None


class Definitions:
    """The classes and functions that a port is given beside its own code."""

    def __init__(
        self, code: Code, scope: Scope, facts: Iterable[Fact], exact: bool = False
    ) -> None:
        """Start with none. scope: the file's, whose names are taken; facts: of every place in it.

        exact: whether variants that serve precision alone are taken where the layer itself would do.
        """
        self._scope, self._facts, self._exact = scope, tuple(facts), exact
        self._texts: dict[str, str] = {}
        """by the public name of what they stand for, or by their own"""
        self._taken = {getattr(node, "name", "") for node in code.nodes} | {
            node.id for node in code.nodes if isinstance(node, ast.Name)
        }
        self.space: dict[str, Any] = {}
        """what they define"""

    def add(self, key: str, text: str) -> bool:
        """Take a definition; tell whether it can be executed."""
        made = execute_definition(text, self.space)
        if made:
            self._texts[key] = text
            self.space |= made
        return bool(made)

    def bring(self, text: str) -> str:
        """Take the helpers that a text is written with; return it with the names that they have here.

        One whose name the file has already, if only for a variable, has another.
        """
        for name in sorted(HELPERS.keys() & set(re.findall(r"(?<!\.)\b\w+", text))):
            own = f"own_{name}" if name in self._taken else name
            word = rf"(?<!\.)\b{name}\b"
            if own not in self._texts:
                written = self.bring(
                    re.sub(word, "__own__", HELPERS[name])
                )  # its own helpers come first
                self.add(own, written.replace("__own__", own).strip())
            text = re.sub(word, own, text)
        return text

    def adapt(self, public: str) -> str:
        """Return the name of a definition that takes PyTorch's arguments, "" if none can be made."""
        if public not in self._texts:
            plain = public.rpartition(".")[2]
            own = find_public(self._scope.imports.get(plain, "")) == public  # what the import bound
            name = plain if own or plain not in self._taken else f"Torch{plain}"
            needed = self._adapt_needed(ADAPTERS.get(public, ""))
            text = self.bring(write_adapter(public, name, read_rows().get(public, ()), needed))
            if not self.add(public, text):
                return ""
            self._taken.add(name)
            made = (one for one in self._facts if public in one.callees)
            if not all(self.serves(name, public, one) for one in made):
                self._texts[f"plain {public}"] = self._texts.pop(public)
                needed = self._adapt_needed(VARIANTS[public])
                text = write_variant(public, needed, f"Torch{name}", name)
                self.add(public, self.bring(text))
        return _name_definition(self._texts[public])

    def vary(self, public: str) -> Callable[[str, str], str]:
        """Return what writes a layer with another forward pass, from its name and the layer's."""
        write = partial(write_variant, public, self._adapt_needed(VARIANTS[public]))
        return lambda name, target: self.bring(write(name, target))

    def serves(self, target: str, public: str, fact: Fact | None) -> bool:
        """Tell whether a class gives, with PyTorch's arguments, what a layer that has a variant gave.

        As far as float32 holds it is enough where the variant gives no more.
        """
        if public not in VARIANTS or fact is None:
            return True

        def gives(name: str, nearly: bool, space: Mapping[str, Any] = self.space) -> bool:
            trial = f"{name}(*star, **rest)"
            return prove(_PASSED_ON, trial, public, fact, dict(space), nearly) is not False

        reserved = public in RESERVED
        if gives(target, reserved) and not (reserved and self._exact):
            return True
        variant = execute_definition(self.vary(public)("Varied", target), self.space)
        return gives(target, True) and not gives("Varied", False, self.space | variant)

    def _adapt_needed(self, text: str) -> dict[str, str]:
        """Return the names of the adapters that a text is written with."""
        return {one: self.adapt(one) for one in list_needed(text)}

    def insert_into(self, text: str) -> str:
        """Return a file with those that it reads after its imports, and with Paddle imported."""
        try:
            code = Code(text)
        except SyntaxError:
            return text
        names = (one.name for node in code.tree.body if isinstance(node, ast.Import)
                 for one in node.names)  # fmt: skip
        if "paddle" not in names:
            code = code.apply([code.insert(_find_statement(code, _is_header), "import paddle")])
        read = self._list_read({node.id for node in code.nodes if isinstance(node, ast.Name)})
        if read:
            at = _find_place(code, {_name_definition(one) for one in read})
            code = code.apply([code.insert(at, "\n\n\n".join(read) + "\n\n\n")])
        for words, line in _IMPORTED.items():
            if any(words in one for one in (*read, text)) and line not in code.text:
                code = code.apply([code.insert(_find_statement(code, _is_header), f"{line}\n")])
        return code.text

    def _list_read(self, names: set[str]) -> list[str]:
        """Return the definitions that are read by their names, or by another one of them."""
        texts = list(self._texts.values())
        for one in reversed(texts):  # each is read by later ones alone
            if _name_definition(one) in names:
                parts = ast.walk(ast.parse(one))
                names = names | {part.id for part in parts if isinstance(part, ast.Name)}
        return [one for one in texts if _name_definition(one) in names]


def execute_definition(text: str, known: dict[str, Any]) -> dict[str, Any]:
    """Return what a definition binds, nothing if it cannot be executed."""
    import paddle

    space: dict[str, Any] = {"paddle": paddle, "NamedTuple": NamedTuple, **known}
    try:
        exec(text, space)
    except TypeError:  # a base that is a function in Paddle
        return {}
    own = space.keys() - known.keys() - {"paddle", "NamedTuple", "__builtins__"}
    return {name: space[name] for name in own}


def _name_definition(text: str) -> str:
    return ast.parse(text).body[0].name  # type: ignore[attr-defined, no-any-return]


def _find_statement(code: Code, is_before: Callable[[ast.stmt], bool]) -> ast.stmt:
    """Return the first statement that is not one of those before it, else the last."""
    body = code.tree.body
    return next((node for node in body if not is_before(node)), body[-1])


def _find_place(code: Code, names: set[str]) -> ast.stmt:
    """Return the statement that definitions go before: the first behind the imports, or one that reads them.

    Something else may stand between the imports, as `__all__` does.
    """
    body = code.tree.body
    kinds = ast.Import | ast.ImportFrom | ast.Expr | ast.Try
    place = 0
    for at, statement in enumerate(body):
        read = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}
        if isinstance(statement, ast.ClassDef | ast.FunctionDef) or read & names:
            break
        place = at + 1 if isinstance(statement, kinds) else place
    return body[min(place, len(body) - 1)]


def _is_header(node: ast.stmt) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


class Proposer:
    """Yields what could be written for calls."""

    def __init__(
        self, definitions: Definitions, exposed: set[int], render: Render, close: Render
    ) -> None:
        """Take the Linear layers whose weights lie as PyTorch's; render, close: as `Slots` takes them."""
        self._definitions, self._exposed = definitions, exposed
        self._render, self._close = render, close

    def fill_slots(
        self, node: ast.Call, receiver: ast.expr | None, forms: Forms = MappingProxyType({})
    ) -> Slots:
        """Return the arguments of a call, some of them in other forms."""
        return Slots(node, receiver, self._render, self._close, forms)

    def list_varied(self, callee: Callee) -> Iterator[Candidate]:
        """Yield what could be written where no candidate will do as it is.

        The positions as one list, arguments in other forms, the result in another form.
        """
        node, receiver = callee.node, callee.receiver
        if len(node.args) > 1 or any(isinstance(one, ast.Starred) for one in node.args):
            slots = self.fill_slots(node, receiver)
            name = f".{node.func.attr}" if receiver is not None else find_equal(callee.public)  # type: ignore[attr-defined]
            if name:
                yield Candidate(slots.write_listed(name, False), slots.write_listed(name, True))
        for forms in list_forms(node, receiver, callee.fact):
            yield from self.list_candidates(callee, forms)
        for forms, form in list_result_forms(node, callee.fact):
            for one in self.list_candidates(callee, forms):
                text = one.text or self._write_plainly(callee, one.plain, forms)
                yield Candidate(form.format(text), form.format(one.trial), reserved=one.reserved)

    def _write_plainly(self, callee: Callee, name: str, forms: Forms = MappingProxyType({})) -> str:
        """Return the text of a candidate that exchanges what is called alone."""
        slots = self.fill_slots(callee.node, callee.receiver, forms)
        if name.startswith("."):
            return slots.write_method(name[1:], True)
        return slots.write_call(name, True, trial=False)

    def list_candidates(
        self, callee: Callee, forms: Forms = MappingProxyType({})
    ) -> Iterator[Candidate]:
        """Yield what could be written, the simplest first; forms: of arguments, as `Slots` takes them."""
        node, public = callee.node, callee.public
        slots = self.fill_slots(node, callee.receiver, forms)
        rows = tuple(
            replace(row, target=self._definitions.bring(row.target))
            for row in read_rows().get(public, ())
        )
        is_layer = isinstance(find_object(public), type)
        if public == "torch.nn.Linear" and node._site in self._exposed:  # type: ignore[attr-defined]
            yield _name_callee(slots, "paddle.compat.nn.Linear")
        if public == "torch.nn.modules.linear.Linear.__init__" and 0 in self._exposed:  # a base's
            yield _name_callee(slots, "paddle.compat.nn.Linear.__init__")
        if public in ADAPTERS or (
            is_layer and is_starred(node) and rows and public not in UNTOUCHED
        ):
            yield from self._adapt(slots, public)
        if not rows and any(one.arg in RENAMED for one in node.keywords):
            yield from _rename_arguments(slots, callee)  # Paddle's own words first
        if callee.fact.inplace:  # read afterwards in PyTorch's file
            yield from self._exchange(slots, rows, write_inplace, "Inplace")
        rows_first = is_layer or slots.has_dropped or any(
            row.defaults or row.is_first for row in rows
        )  # fmt: skip
        own = _keep_name(slots, callee)
        filled: Iterator[Candidate] = (one for row in rows for one in slots.fill(row))
        if public.startswith(OPTIMIZERS):
            filled = chain(filled, self._scale_rates(slots, rows))
        if slots.starred:
            filled = chain(
                filled, (_name_callee(slots, one) for one in map(_find_same, rows) if one)
            )
        for several in (filled, own) if rows_first else (own, filled):
            yield from several
        yield from _rename_arguments(slots, callee)
        if public in VARIANTS:
            yield from self._exchange(slots, rows, self._definitions.vary(public), "Own")
        if rows and (
            is_layer or is_starred(node)
        ):  # a variant; a function with PyTorch's arguments
            yield from (
                replace(one, reserved=public in RESERVED) for one in self._adapt(slots, public)
            )

    def _scale_rates(self, slots: Slots, rows: Sequence[ApiRow]) -> Iterator[Candidate]:
        """Yield an optimizer whose groups have rates of their own, which Paddle takes as factors."""
        for row in rows:
            name = self._definitions.bring("scale_rates")
            for one in slots.fill(row):
                if text := _join_rates(one.text, name):
                    yield Candidate(text, _join_rates(one.trial, name))

    def _adapt(self, slots: Slots, public: str) -> Iterator[Candidate]:
        adapter = self._definitions.adapt(public)
        if adapter:
            yield _name_callee(slots, adapter)

    def _exchange(
        self, slots: Slots, rows: Sequence[ApiRow], write: Callable[[str, str], str], prefix: str
    ) -> Iterator[Candidate]:
        """Yield the layers of rows as ones that are derived from them.

        write: takes the new name and the layer's; prefix: what the new name begins with.
        """
        for row in rows:
            target = row.target.partition("(")[0]
            name = f"{prefix}{target.rpartition('.')[2]}"
            reserved = prefix == "Own" and find_public(row.name) in RESERVED
            self._definitions.add(name, write(name, target))
            for one in slots.fill(row):
                text, trial = (part.replace(target, name, 1) for part in (one.text, one.trial))
                yield Candidate(text, trial, reserved=reserved)


def _join_rates(text: str, name: str) -> str:
    """Return an optimizer's text with its rate and groups from that helper; "" if it lacks one of them."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    named = {one.arg: one.value for one in call.keywords}
    if not {"parameters", "learning_rate"} <= named.keys():
        return ""
    scaled = ast.Call(ast.Name(name), [named["parameters"], named["learning_rate"]], [])
    rest = [one for one in call.keywords if one.arg not in ("parameters", "learning_rate")]
    call.keywords = [ast.keyword(None, scaled), *rest]
    return ast.unparse(ast.fix_missing_locations(call))


def _name_callee(slots: Slots, name: str) -> Candidate:
    """Return the candidate that exchanges what is called, and leaves the arguments."""
    if slots.forms:
        return Candidate(slots.write_call(name, True, trial=False), slots.write_call(name, True))
    return Candidate("", slots.write_call(name, True), name)


def _find_same(row: ApiRow) -> str:
    """Return the name of what a row calls with the same arguments by the same names, "" if it does not."""
    call = ast.parse(row.target, mode="eval").body
    if not isinstance(call, ast.Call) or row.defaults or row.star is not None:
        return ""
    placed = [ast.unparse(one) for one in call.args]
    named = [one.arg for one in call.keywords if one.arg == ast.unparse(one.value)]
    same = placed == list(row.arguments[: len(placed)]) and len(named) == len(call.keywords)
    return ast.unparse(call.func) if same else ""


def _lists_sizes(node: ast.Call) -> bool:
    """Tell whether a call gives sizes one by one, not as one tuple."""
    return len(node.args) > 1 or (len(node.args) == 1 and isinstance(node.args[0], ast.Constant))


def _keep_name(slots: Slots, callee: Callee) -> Iterator[Candidate]:
    """Yield the call by Paddle's equal name, with the arguments as they are."""
    if callee.receiver is not None:
        method = callee.node.func.attr  # type: ignore[attr-defined]
        if slots.has_dropped:
            yield Candidate(
                slots.write_method(method, False), slots.write_method(method, False, trial=True)
            )
        trial = slots.write_method(method, True, trial=True)
        if slots.forms:
            yield Candidate(slots.write_method(method, True), trial)
        else:
            yield Candidate("", trial, f".{method}")
        return
    found = (find_target(callee.public), find_equal(callee.public), find_equal(callee.static))
    for name in filter(None, dict.fromkeys(found)):
        if _lists_sizes(callee.node) and list_parameters(name)[:2] == ("shape", "dtype"):
            yield Candidate(slots.write_listed(name, False), slots.write_listed(name, True))
        if slots.has_dropped:
            yield Candidate(
                slots.write_call(name, False, trial=False), slots.write_call(name, False)
            )
        yield _name_callee(slots, name)


def _rename_arguments(slots: Slots, callee: Callee) -> Iterator[Candidate]:
    """Yield the call with Paddle's usual names of arguments, and what paddle.compat has."""
    public = callee.public
    if callee.receiver is not None:
        method = public.rpartition(".")[2]
        yield Candidate(
            slots.write_method(method, False, renamed=True),
            slots.write_method(method, False, renamed=True, trial=True),
        )
        name = f"paddle.{method}"
        if find_object(name) is not None:
            yield Candidate(slots.write_function(name, trial=False), slots.write_function(name))
        return
    for name in filter(None, dict.fromkeys((find_equal(public), find_equal(callee.static)))):
        yield Candidate(
            slots.write_call(name, False, trial=False, renamed=True),
            slots.write_call(name, False, renamed=True),
        )
    compat = "paddle.compat" + public.removeprefix("torch")
    if find_object(compat) is not None:
        yield _name_callee(slots, compat)
    target, signature = find_target(public), list_parameters(public)
    if target and signature and not slots.starred:
        named = slots.name_arguments(signature)
        if named:
            yield Candidate(f"{target}({named[0]})", f"{target}({named[1]})")
