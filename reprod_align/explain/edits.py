"""Edits that could make a port faithful, as data: what is replaced, with what, and of which kind.

Each row of ROWS is one kind of mistake: from a statement of the port, and from what the reference says
in its place, it makes the texts that could stand there instead. Which of them is right, a run tells.
"""

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, pairwise, permutations, takewhile
from typing import Any, Final

from reprod_align.api import list_entries
from reprod_align.base import PORT, Framework
from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.explain.donor import find_words, likeness, name_setting

Text = tuple[Any, str]
"""a node, and what could stand in its place; "" for a statement, and for a decorator: nothing"""
_STANDS_FOR: Final[Mapping[type, type]] = {ast.Tuple: ast.List, ast.GeneratorExp: ast.ListComp}
_ALIKE_ENOUGH: Final = 0.35  # a sum and one of its summands are at 0.5
_FEW: Final = 4  # donors of one statement
_MANY: Final = 12  # names that are tried in the place of one
_SMALL: Final = 16  # a whole number up to it may be an axis, an index or an offset


@dataclass(frozen=True)
class Candidate:
    """One change of a file that could be what the port lacks."""

    kind: str
    """the name of its row"""
    edit: Edit
    line: int
    """the first that it changes"""
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class Site:
    """One statement of the port, and what the edits of it are made from."""

    code: Code
    statement: Any
    donor: Any = None
    """the reference's statement that stands for it, in the port's words; None if none does"""
    write_by_table: Callable[[], Iterable[Any]] = tuple
    """gives the reference's statement with one of its calls as a row of the table of calls has it"""
    others: Sequence[Any] = ()
    """further statements of the reference, the likeliest first"""
    missing: Sequence[Any] = ()
    """statements of the reference right before it for which the port has none"""
    after: Sequence[Any] = ()
    """likewise, right after it"""
    numbers: Sequence[Any] = ()
    """numbers, switches and texts that the reference's code or its modules hold"""
    names: Sequence[str] = ()
    """variables and attributes at hand: "x", "self.x" """
    unread: Mapping[str, range] = field(default_factory=dict)
    """variables that are given a value and never read -> the lines in which they may be lacking"""
    idle: Sequence[str] = ()
    """layers that the port makes and does not call"""
    called: Sequence[str] = ()
    """what the reference calls in this function and the port does not: "self.dense" """
    settings: Mapping[str, Any] = field(default_factory=dict)
    """arguments of a layer -> their values in PyTorch, where they differ"""
    takes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """what the `forward` of a layer takes: "self.dense" -> its parameters"""
    tie: tuple[str, str] = "", ""
    """a parameter that shares its values with another in PyTorch alone, and that one: "self.a.weight" """
    given: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    """variables that the reference gives a value and the port lacks -> the port's statement before which
    they could be given it, and the text that does"""
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """objects -> their attributes that the reference reads: "config" """
    switches: Sequence[str] = ()
    """parameters of the port's function that are True, False or None unless they are given"""
    dropouts: Sequence[str] = ()
    """dropouts in stock layers for which the reference has none: "encoder.layers.0.dropout1" """
    stopped: Sequence[tuple[Any, Any]] = ()
    """the first and the last of statements of the function that the reference has in a block without
    gradients"""
    runs: Mapping[Any, Sequence[tuple[Any, Sequence[Any]]]] = field(default_factory=dict)
    """the first of several statements of the body -> the last, and the reference's in their place"""

    @property
    def is_settled(self) -> bool:
        """Whether the reference says the very same here."""
        return self.donor is not None and ast.dump(self.statement) == ast.dump(self.donor)

    @property
    def value(self) -> Any:
        """The expression that the statement carries out: its value, or the condition of a branch."""
        return value_of(self.statement)

    def walk(self, *kinds: type) -> Iterator[Any]:
        """Yield the expressions of the statement that are of these kinds."""
        yield from (node for node in ast.walk(self.value) if isinstance(node, kinds))

    def text(self, node: Any) -> str:
        """Return the port's own text of a node."""
        return self.code.source(node)


def value_of(statement: Any) -> Any:
    """Return what a statement carries out: its value, the condition of a branch, what a loop is over."""
    if isinstance(statement, (ast.If, ast.While)):
        return statement.test
    return statement.iter if isinstance(statement, ast.For) else statement.value


def list_candidates(site: Site, rows: Iterable[str] = ()) -> Iterator[Candidate]:
    """Yield the edits of a statement, row by row, the likeliest first; each text once.

    rows: the kinds that are wanted; all if none is named.
    """
    seen: set[tuple[int, int, str]] = set()
    for kind in rows or ROWS:
        for node, text in ROWS[kind](site):
            if text:
                edit = site.code.replace(node, _bracket(site, node, text))
            elif isinstance(node, ast.expr):
                edit = site.code.remove_decorator(node)
            else:
                edit = site.code.remove(node)
            before = site.text(node)
            if (edit.start, edit.end, edit.text) in seen or _is_same(before, text):
                continue
            seen.add((edit.start, edit.end, edit.text))
            yield Candidate(kind, edit, node.lineno, before, text)


def _is_same(before: str, after: str) -> bool:
    return "".join(before.split()) == "".join(after.split())


def _bracket(site: Site, node: Any, text: str) -> str:
    """Return a text in brackets where what is around it would tear it apart."""
    above = next(site.code.parents(node), None)
    inner = _parse(text)
    loose = isinstance(
        inner, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Lambda)
    ) and not (isinstance(inner, ast.UnaryOp) and isinstance(node, ast.UnaryOp))
    tight = isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Attribute))
    taken = isinstance(above, (ast.Subscript, ast.Call)) and node in (
        getattr(above, "value", None), getattr(above, "func", None),
    )  # fmt: skip
    return f"({text})" if loose and (tight or taken) else text


def _parse(text: str) -> Any:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


# ------------------------------------------------------------------- from the reference's statement


def follow_reference(site: Site) -> Iterator[Text]:
    """What the reference has in the place of a part of the statement, the smallest part first."""
    if site.donor is not None:
        yield from _follow(site, site.donor)


def follow_table(site: Site) -> Iterator[Text]:
    """What the table of calls says for a call of the reference's in the place of the statement."""
    for donor in site.write_by_table():
        yield from _follow(site, donor)


def follow_others(site: Site) -> Iterator[Text]:
    """The same from statements of the reference that stand elsewhere."""
    for donor in site.others[:_FEW]:
        yield from _follow(site, donor)
        other = value_of(donor)
        alike = [one for one in _list_handed(site) if likeness(one, other) > _ALIKE_ENOUGH]
        yield from ((one, ast.unparse(other)) for one in alike if one is not site.value)


def _follow(site: Site, donor: Any) -> Iterator[Text]:
    ours, theirs = site.value, value_of(donor)
    whole = likeness(ours, theirs) > _ALIKE_ENOUGH or _set_the_same(site.statement, donor)
    found = [pair for pair in _list_differences(ours, theirs) if whole or pair[0] is not ours]
    for one, other in found:
        yield from _put(site, one, other)
    for one, _ in found:
        for above in site.code.parents(one):
            if above is site.statement:
                break
            met = next((right for left, right in _pair_trees(ours, theirs) if left is above), None)
            if met is not None and isinstance(above, ast.expr):
                yield from _put(site, above, met)
    if whole:
        yield from _put(site, ours, theirs)


def _set_the_same(statement: Any, donor: Any) -> bool:
    """Tell whether two statements give a value to variables of the same names."""
    own, other = (
        [ast.unparse(one) for one in getattr(it, "targets", ())] for it in (statement, donor)
    )
    return bool(own) and own == other


def _put(site: Site, node: Any, donor: Any) -> Iterator[Text]:
    """Yield a donor in the place of a node; rather with the node's own text where the donor holds it."""
    if ast.dump(node) == ast.dump(donor):
        return
    if isinstance(node, ast.Call) and isinstance(donor, ast.Call):
        yield from _complete_call(site, node, donor)
    inside = [part for part in ast.walk(donor) if isinstance(part, ast.expr) and part is not donor]
    alike = [part for part in inside if find_words(part) and likeness(part, node) > 0.6]
    if alike:
        whole = ast.unparse(donor)
        part = ast.unparse(max(alike, key=lambda one: likeness(one, node)))
        if whole.count(part) == 1:
            yield node, whole.replace(part, site.text(node))
    yield node, ast.unparse(donor)


def _complete_call(site: Site, node: ast.Call, donor: ast.Call) -> Iterator[Text]:
    """Yield a call with an argument of the donor's that it lacks, or without one that the donor lacks."""
    own, theirs = ({one.arg for one in call.keywords} for call in (node, donor))
    text = site.text(node)
    for keyword in donor.keywords:
        if keyword.arg is not None and keyword.arg not in own:
            yield node, _add_argument(text, node, ast.unparse(keyword))
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in theirs:
            yield node, _drop_argument(site, node, keyword)
    if not node.keywords:
        for extra in donor.args[len(node.args) :]:
            yield node, _add_argument(text, node, ast.unparse(extra))
        return
    used = {*own, *(one.id for one in ast.walk(node) if isinstance(one, ast.Name))}
    for extra in donor.args:
        if isinstance(extra, ast.Name) and extra.id not in used:
            if extra.id in site.takes.get(dotted(node.func), ()):
                yield node, _add_argument(text, node, f"{extra.id}={extra.id}")


def _drop_argument(site: Site, node: ast.Call, argument: ast.expr | ast.keyword) -> str:
    """Return a call's text without one of its arguments."""
    every = (*node.args, *node.keywords)
    rest = (ast.unparse(one) if isinstance(one, ast.keyword) else site.text(one)
            for one in every if one is not argument)  # fmt: skip
    return f"{site.text(node.func)}({', '.join(rest)})"


def _add_argument(text: str, node: ast.Call, argument: str) -> str:
    given = bool(node.args or node.keywords)
    inner = text.rstrip()[:-1].rstrip().removesuffix(",")
    return f"{inner}{', ' if given else ''}{argument})"


def _list_differences(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the smallest parts in which two trees differ, with a text of their own."""
    if ast.dump(one) == ast.dump(other):
        return
    parts = list(_pair_parts(one, other))
    for left, right in parts:
        yield from _list_differences(left, right)
    if not parts or _name_arguments(one) != _name_arguments(other):
        yield one, other


def _name_arguments(node: Any) -> set[str | None]:
    """Return the names of a call's arguments by keyword; none for another node."""
    return {one.arg for one in getattr(node, "keywords", ())}


def _pair_trees(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the parts that stand in the same place of two trees."""
    yield one, other
    for left, right in _pair_parts(one, other):
        yield from _pair_trees(left, right)


def _pair_parts(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of two nodes that stand for each other; nothing if the nodes themselves differ."""
    if _find_form(one) is not _find_form(other):
        return
    if isinstance(one, ast.Call):
        yield from _pair_parts_of_calls(one, other)
        return
    for name, value in ast.iter_fields(one):
        rest = getattr(other, name, None)
        if isinstance(value, list):
            if not isinstance(rest, list) or len(value) != len(rest):
                return
            both = zip(value, rest, strict=True)
            if not all(isinstance(a, ast.expr) or _is_alike(a, b) for a, b in both):
                return
        elif not isinstance(value, ast.expr) and not _is_alike(value, rest):
            return
    for name, value in ast.iter_fields(one):
        rest = getattr(other, name)
        if isinstance(value, ast.expr) and isinstance(rest, ast.expr):
            yield value, rest
        elif isinstance(value, list):
            yield from ((a, b) for a, b in zip(value, rest, strict=True) if isinstance(a, ast.expr))


def _find_form(node: Any) -> type:
    """Return a node's kind; a tuple is written for a list, and a list is made in place of a generator."""
    return _STANDS_FOR.get(type(node), type(node))


def _pair_parts_of_calls(one: ast.Call, other: ast.Call) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of two calls; of a function and the method of its name, which has a receiver."""
    named = {keyword.arg: keyword.value for keyword in other.keywords}
    ours, theirs = one.args, other.args
    if _last_name(one) == _last_name(other) and abs(len(ours) - len(theirs)) == 1:
        method, function = sorted((one, other), key=lambda it: len(it.args))
        receiver = getattr(method.func, "value", None)
        if receiver is not None and likeness(receiver, function.args[0]) > _ALIKE_ENOUGH:
            ours, theirs = (
                [receiver, *it.args] if it is method else it.args for it in (one, other)
            )
    elif len(ours) == len(theirs):
        yield one.func, other.func
    if len(ours) != len(theirs):
        return
    yield from zip(ours, theirs, strict=True)
    yield from ((it.value, named[it.arg]) for it in one.keywords if it.arg in named)


def _is_alike(value: Any, rest: Any) -> bool:
    if isinstance(value, ast.AST):
        return isinstance(rest, ast.AST) and ast.dump(value) == ast.dump(rest)
    return bool(value == rest)


# ------------------------------------------------------------------- one mistake each


def set_argument(site: Site) -> Iterator[Text]:
    """A layer is set otherwise than PyTorch's: its argument."""
    for call in site.walk(ast.Call):
        named = {one.arg: one for one in call.keywords}
        for setting, value in site.settings.items():
            name = name_setting(setting)
            if name in named:
                yield named[name].value, repr(value)
            elif (
                dotted(call.func)[-1:].isalnum()
                and dotted(call.func).rpartition(".")[2][:1].isupper()
            ):
                made = ", ".join(f"{one}={value!r}" for one in name.split("="))  # a bias may be two
                yield call, _add_argument(site.text(call), call, made)


def tie_parameters(site: Site) -> Iterator[Text]:
    """A parameter is one of its own in place of another's: it is that one, or is set to it."""
    own, twin = site.tie
    if not own:
        return
    held = {dotted(one) for one in getattr(site.statement, "targets", ())}
    for node in site.walk(ast.Call, ast.Constant):
        if isinstance(node, ast.Call) and own in held:
            inside = map(dotted, (one for one in ast.walk(node) if isinstance(one, ast.expr)))
            yield from ((node, name) for name in dict.fromkeys(inside) if name in site.names)
        if isinstance(node, ast.Constant) and node.value is None:
            given = [name for name in site.names if name.isidentifier()]
            yield from ((node, name) for name in ([twin] if twin else given if own in held else []))
    if twin and isinstance(site.statement, _PLAIN):
        yield site.statement, f"{site.text(site.statement)}{_begin_line(site)}{own} = {twin}"


def define_first(site: Site) -> Iterator[Text]:
    """A variable that the reference reads here is computed first: the statement that does, and its use."""
    for node, text in follow_reference(site) if site.given else ():
        words = {
            one.id for one in ast.walk(_parse(text) or ast.Pass()) if isinstance(one, ast.Name)
        }
        for before, statement in (site.given[name] for name in words if name in site.given):
            if _start(before) <= _start(node):
                between = site.text(_span(_start(before), _start(node)))
                end = f"{_begin_line(site, before)}{between}{_bracket(site, node, text)}"
                yield _span(_start(before), _end(node)), f"{statement}{end}"


def silence_dropouts(site: Site) -> Iterator[Text]:
    """A stock layer drops out what PyTorch's does not: its rate is zero from the constructor on."""
    made = [dotted(one) for one in getattr(site.statement, "targets", ())]
    for own in (one.removeprefix("self.") for one in made if one.startswith("self.")):
        for path in site.dropouts:
            _, found, inside = f".{path}".partition(f".{own}.")
            holder, number, rest = _split_at_number(f"self.{own}.{inside}")
            lines = [f"{holder}.p = 0.0"]
            if number:
                lines = [f"for layer in {holder}:", f"    layer.{rest}.p = 0.0"]
            if found:
                yield site.statement, _begin_line(site).join([site.text(site.statement), *lines])


def _split_at_number(path: str) -> tuple[str, str, str]:
    """Split "self.layers.0.dropout" into "self.layers", "0" and "dropout"; all is the first without one."""
    parts = path.split(".")
    at = next((at for at, part in enumerate(parts) if part.isdigit()), len(parts))
    return ".".join(parts[:at]), "".join(parts[at : at + 1]), ".".join(parts[at + 1 :])


def exchange_field(site: Site) -> Iterator[Text]:
    """Another setting of the same object: `config.intermediate_size` for `4 * config.hidden_size`."""
    for node in site.walk(ast.Attribute, ast.BinOp):
        parts = [one for one in ast.walk(node) if isinstance(one, ast.Attribute)]
        named = {dotted(one).rpartition(".")[0] for one in parts} & site.fields.keys()
        if len(parts) == 1 and len(named) == 1:
            own = parts[0].attr
            holder = named.pop()
            ranked = sorted(site.fields[holder], key=lambda one: -_share(one, own))
            yield from ((node, f"{holder}.{one}") for one in ranked[:_MANY])


def exchange_number(site: Site) -> Iterator[Text]:
    """Another number, switch or text: of the reference's, or one near."""
    for node in site.walk(ast.Constant):
        whole, value = _read_number(site, node)
        for other in chain(site.numbers, _list_near(value)):
            if _is_of_kind(other, value) and other != value:
                yield whole, repr(other)


def _is_of_kind(one: Any, other: Any) -> bool:
    return type(one) is type(other) or {type(one), type(other)} <= {int, float}


def _read_number(site: Site, node: ast.Constant) -> tuple[Any, Any]:
    """Return a number's node and its value, its sign included."""
    above = next(site.code.parents(node), None)
    if isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.USub):
        return above, -node.value  # type: ignore[operator]
    return node, node.value


def _list_near(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        ahead = [value + 1, value - 1] if value < 0 else [value - 1, value + 1]
        near = [*ahead, -value, 0, 1, 2, -1, -2] if abs(value) <= _SMALL else []
        yield from dict.fromkeys([*near, 2 * value, value // 2])
    elif isinstance(value, float):
        yield from (value / 2, 2 * value, -value, 0.0, 1.0, value / 10, 10 * value)


def give_argument(site: Site) -> Iterator[Text]:
    """An argument that the table of APIs gives such a call, or a variable under its own name."""
    for call in site.walk(ast.Call):
        named, text = {one.arg: one for one in call.keywords}, site.text(call)
        last = _last_name(call)
        for name, value in _list_known_arguments(PORT.framework).get(last, ()):
            if name in named:
                yield named[name].value, value
            else:
                yield call, _add_argument(text, call, f"{name}={value}")
        if dotted(call.func).startswith("self."):
            used = {one.id for one in site.walk(ast.Name)}
            taken = site.takes.get(dotted(call.func), site.names)
            for name in site.names[:_MANY]:
                if name.isidentifier() and name not in {*used, *named} and name in taken:
                    yield call, _add_argument(text, call, f"{name}={name}")


def _last_name(call: ast.Call) -> str:
    """Return what a call calls, without what holds it: "dense" of `self.dense(x)`."""
    return dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")


@cache
def _list_known_arguments(port: Framework) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the last name of a function -> arguments by name, as the entries of the table of APIs call it.

    Numbers are those of the examples and no other's, but for axes and the like.
    """
    found: dict[str, dict[tuple[str, str], None]] = {}
    examples = ("paddle_side", "plain") if port == "paddle" else ("torch_side",)
    for entry in list_entries():
        for example in (getattr(type(entry), name, None) for name in examples):
            text = (
                textwrap.dedent(inspect.getsource(example)) if inspect.isfunction(example) else ""
            )
            for call in ast.walk(ast.parse(text)):
                if isinstance(call, ast.Call):
                    last = _last_name(call)
                    for one in call.keywords:
                        if one.arg and _is_plain(one.value):
                            found.setdefault(last, {})[one.arg, ast.unparse(one.value)] = None
    return {name: list(given) for name, given in found.items()}


def _is_plain(node: ast.expr) -> bool:
    """Tell whether a value is a switch, a text, or an axis."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return False
    return isinstance(value, (bool, str)) or value in (-1, 0, 1)


_OPERATORS: Final[Mapping[type, str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Pow: "**", ast.Mod: "%",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|",
}  # fmt: skip
_TAKEN_FOR: Final[Mapping[str, str]] = {
    "+": "-*", "-": "+", "*": "/+", "/": "*", "//": "/%", "%": "//", "**": "*", "&": "|", "|": "&", "@": "*",
}  # fmt: skip


def exchange_operator(site: Site) -> Iterator[Text]:
    """Another operator between the same operands."""
    for node in site.walk(ast.BinOp):
        left, right = site.text(node.left), site.text(node.right)
        right = f"({right})" if isinstance(node.right, ast.BinOp) else right
        left = f"({left})" if isinstance(node.left, ast.BinOp) else left
        sign = _OPERATORS.get(type(node.op), "")
        for other in ("//",) if sign == "%" else _TAKEN_FOR.get(sign, ""):
            yield node, f"{left} {other} {right}"
    for node in site.walk(ast.UnaryOp):
        if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            yield node, site.text(node.operand)


def exchange_operands(site: Site) -> Iterator[Text]:
    """The same operands, arguments or elements in another order."""
    for node in site.walk(ast.BinOp):
        sign = _OPERATORS.get(type(node.op))
        if sign is not None and sign not in "+*&|":
            left, right = (
                f"({text})" if isinstance(one, ast.BinOp) else text
                for one, text in ((n, site.text(n)) for n in (node.left, node.right))
            )
            yield node, f"{right} {sign} {left}"
    yield from _exchange_parts(site, site.walk(ast.List, ast.Tuple, ast.Call))


def exchange_targets(site: Site) -> Iterator[Text]:
    """What a call returns is unpacked in another order: `q, k, v = ...` for `k, q, v = ...`.

    Names in the order in which the function itself returns them stay: what is wrong there was done before.
    """
    targets = getattr(site.statement, "targets", ())
    unpacked = [one for one in targets if isinstance(one, ast.Tuple)]
    said = [*_list_returned(site)] if unpacked else []
    yield from _exchange_parts(site, unpacked, said)


def _list_returned(site: Site) -> Iterator[ast.Expr]:
    """Yield the tuples that a function of the file returns which a statement calls."""
    name = dotted(site.value.func).rpartition(".")[2] if isinstance(site.value, ast.Call) else ""
    functions = (one for one in site.code.nodes if isinstance(one, ast.FunctionDef))
    found = [one for one in functions if one.name == name]
    for function in found if len(found) == 1 else ():
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                inner = (one for one in ast.walk(node.value) if isinstance(one, ast.Tuple))
                yield from map(ast.Expr, inner)


def _exchange_parts(site: Site, nodes: Iterable[Any], said: Sequence[Any] = ()) -> Iterator[Text]:
    """said: further statements whose order of names is right."""
    for node in nodes:
        parts = node.args if isinstance(node, ast.Call) else node.elts
        texts = [site.text(one) for one in parts]
        if not 2 <= len(parts) <= 5:
            continue
        for order in _list_orders((site.donor, *said), parts):
            start, end = parts[0], parts[-1]
            if isinstance(node, ast.Call):
                rest = [site.text(keyword.value) for keyword in node.keywords]
                words = [
                    f"{k.arg}={v}" if k.arg else f"**{v}"
                    for k, v in zip(node.keywords, rest, strict=True)
                ]
                yield (
                    node,
                    f"{site.text(node.func)}({', '.join([*(texts[at] for at in order), *words])})",
                )
            elif start is not end:
                opening, closing = ("[", "]") if isinstance(node, ast.List) else ("(", ")")
                bare = isinstance(node, ast.Tuple) and not site.text(node).startswith("(")
                made = ", ".join(texts[at] for at in order)
                yield node, made if bare else f"{opening}{made}{closing}"


def _list_orders(said: Sequence[Any], parts: Sequence[Any]) -> Iterator[Sequence[int]]:
    """Yield orders of a few things: pairs exchanged first, then all if they are the axes of a tensor.

    said: statements that are right, of the reference's. Two names that one has in this order are not
    exchanged: where their values are, that was done by what hands them on.
    """
    count, places = len(parts), range(len(parts))
    for first in places:
        for second in range(first + 1, count):
            pair = dotted(parts[first]), dotted(parts[second])
            if any(_has_in_order(one, *pair) for one in said):
                continue
            order = [*places]
            order[first], order[second] = second, first
            yield order
    numbers = [one.value for one in parts if isinstance(one, ast.Constant)]
    if count <= 4 and sorted(map(repr, numbers)) == [str(at) for at in places]:
        yield from permutations(places)


def _has_in_order(donor: Any, first: str, second: str) -> bool:
    """Tell whether the reference's statement names two things once each, in this order."""
    if donor is None or not (first and second):
        return False
    pair = (first, second)
    named = _list_names(value_of(donor))
    found = [one for name in named for one in pair if f"{name}.".startswith(f"{one}.")]
    return found == [*pair]


def _list_names(node: ast.AST) -> Iterator[str]:
    """Yield the names and attributes of an expression, in the order of its text."""
    if dotted(node):
        yield dotted(node)
        return
    for child in ast.iter_child_nodes(node):
        yield from _list_names(child)


_COMPARISONS: Final[Mapping[type, Sequence[str]]] = {
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.Lt: (">=", "<=", ">"), ast.LtE: ("<", ">"),
    ast.Gt: ("<=", ">=", "<"), ast.GtE: (">", "<"), ast.Is: ("is not",), ast.IsNot: ("is",),
    ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip


def exchange_comparison(site: Site) -> Iterator[Text]:
    """Another comparison of the same values, in what is computed."""
    if not isinstance(site.statement, (ast.If, ast.While)):
        deciding = {inner for node in site.walk(ast.IfExp) for inner in ast.walk(node.test)}
        yield from _compare_otherwise(
            site, (one for one in site.walk(ast.Compare) if one not in deciding)
        )


def _compare_otherwise(site: Site, nodes: Iterable[Any]) -> Iterator[Text]:
    for node in nodes:
        if len(node.ops) == 1:
            left, right = site.text(node.left), site.text(node.comparators[0])
            for sign in _COMPARISONS.get(type(node.ops[0]), ()):
                yield node, f"{left} {sign} {right}"


def exchange_condition(site: Site) -> Iterator[Text]:
    """Another condition: another comparison, `and` for `or`, turned round; or one of its two values."""
    branches = isinstance(site.statement, (ast.If, ast.While))
    tests = [site.value] if branches else [node.test for node in site.walk(ast.IfExp)]
    inside = (node for test in tests for node in ast.walk(test) if isinstance(node, ast.Compare))
    yield from _compare_otherwise(site, inside)
    for node in site.walk(ast.BoolOp):
        sign = " or " if isinstance(node.op, ast.And) else " and "
        yield node, sign.join(site.text(one) for one in node.values)
        for one in node.values:
            yield node, site.text(one)
    for node in site.walk(ast.UnaryOp):
        if isinstance(node.op, (ast.Not, ast.Invert)):
            yield node, site.text(node.operand)
    for node in site.walk(ast.IfExp):
        yield node, site.text(node.body)
        yield node, site.text(node.orelse)
    if branches and not _is_own_choice(site, site.value):
        yield site.value, ast.unparse(ast.UnaryOp(ast.Not(), site.value))


def _is_own_choice(site: Site, test: Any) -> bool:
    """Tell whether a condition is a field of a configuration that the reference does not read.

    It chooses between two ways to compute the same, as a fused kernel: turned, it leads around a fault.
    """
    if not isinstance(test, ast.Attribute) or dotted(test).count(".") != 1 + dotted(
        test
    ).startswith("self."):
        return False
    donors = [one for one in (site.donor, *site.others) if one is not None]
    return bool(donors) and not any(test.attr in find_words(one) for one in donors)


def set_switch(site: Site) -> Iterator[Text]:
    """A switch is handed on as it came: it is True or False, here and wherever the function hands it on."""
    for call in site.walk(ast.Call):
        for keyword in call.keywords:
            held = keyword.value
            if isinstance(held, ast.Name) and held.id in site.switches and keyword.arg:
                for value in ("True", "False"):
                    yield held, value
                    yield from _exchange_everywhere(site, keyword, f"{keyword.arg}={value}")


def _exchange_everywhere(site: Site, node: ast.keyword, text: str) -> Iterator[Text]:
    """Yield a text in all places of the function that say the same as a node, the first of which it is."""
    function = _find_function(site, node)
    same = [one for one in ast.walk(function or node)
            if isinstance(one, ast.keyword) and ast.dump(one) == ast.dump(node)]  # fmt: skip
    same.sort(key=_start)
    if len(same) > 1 and same[0] is node:
        made = text
        for one, after in pairwise(same):
            made += site.text(_span(_end(one), _start(after))) + text
        yield _span(_start(node), _end(same[-1])), made


_ALIKE: Final[Sequence[Sequence[str]]] = (
    ("relu", "gelu", "tanh", "sigmoid", "silu", "swish", "leaky_relu", "elu", "softplus", "relu6", "mish"),
    ("ReLU", "GELU", "Tanh", "Sigmoid", "Silu", "Swish", "LeakyReLU", "ELU", "Softplus", "Hardswish"),
    ("softmax", "log_softmax"), ("zeros", "ones"), ("zeros_like", "ones_like"), ("cos", "sin"),
    ("max", "min", "mean", "sum"), ("argmax", "argmin"), ("maximum", "minimum"), ("triu", "tril"),
    ("exp", "log"), ("sqrt", "rsqrt", "square"), ("add", "subtract"), ("multiply", "divide"),
    ("floor", "ceil", "round"), ("LayerNorm", "RMSNorm"), ("Adam", "AdamW"), ("mse_loss", "l1_loss"),
    ("tile", "repeat_interleave"),
    ("concat", "stack"), ("any", "all"), ("std", "var"),
)  # fmt: skip


def exchange_function(site: Site) -> Iterator[Text]:
    """Another function of the same kind."""
    for node in site.walk(ast.Attribute, ast.Name):
        last = node.attr if isinstance(node, ast.Attribute) else node.id
        for group in _ALIKE:
            if last in group:
                text = site.text(node)
                yield from ((node, text.removesuffix(last) + other) for other in group)
    for node in site.walk(ast.Constant):
        for group in _ALIKE[:1]:
            if node.value in group:
                yield from ((node, repr(other)) for other in group)


def exchange_repeats(site: Site) -> Iterator[Text]:
    """The whole is repeated in place of each element, or the other way round: heads, beams, masks."""
    for call in site.walk(ast.Call):
        last = _last_name(call)
        *holder, repeats = [site.text(one) for one in call.args] or [""]
        start = site.text(call.func).removesuffix(last)
        if last == "tile" and call.args and isinstance(call.args[-1], (ast.List, ast.Tuple)):
            counts = [site.text(one) for one in call.args[-1].elts]
            found = [axis for axis, count in enumerate(counts) if count != "1"]
            if len(found) == 1:
                words = [*holder, counts[found[0]], f"axis={found[0]}"]
                yield call, f"{start}repeat_interleave({', '.join(words)})"
        elif last == "repeat_interleave" and len(call.keywords) == 1 and repeats:
            axis = call.keywords[0].value
            if isinstance(axis, ast.Constant) and isinstance(axis.value, int):
                for after in range(4):
                    listed = ", ".join([*["1"] * axis.value, repeats, *["1"] * after])
                    yield call, f"{start}tile({', '.join([*holder, f'[{listed}]'])})"


def drop_foreign_call(site: Site) -> Iterator[Text]:
    """A call that the reference makes nowhere in its function is one too many."""
    donors = [one for one in (site.donor, *site.others) if one is not None]
    theirs = {_last_name(node) for one in donors for node in ast.walk(one)
              if isinstance(node, ast.Call)}  # fmt: skip
    for node in site.walk(ast.Call) if donors else ():
        if _last_name(node) not in theirs:
            own = node.func.value if isinstance(node.func, ast.Attribute) else None
            if own is not None and (not dotted(own) or dotted(own) in site.names):
                yield node, site.text(own)
            elif node.args:
                yield node, site.text(node.args[0])


def drop_call(site: Site) -> Iterator[Text]:
    """A call, an operand, an argument or one of two values is one too many."""
    for node in site.walk(ast.Tuple) if isinstance(site.statement, ast.Return) else ():
        if len(node.elts) == 2:
            yield from ((node, site.text(one)) for one in node.elts)
    for node in site.walk(ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield node, site.text(node.func.value)
        for one in node.args[:2]:
            yield node, site.text(one)
        for one in (*node.args, *node.keywords):
            yield node, _drop_argument(site, node, one)
    for node in site.walk(ast.BinOp):
        yield node, site.text(node.left)
        yield node, site.text(node.right)
    for node in site.walk(ast.Attribute):
        if node.attr in ("T", "mT"):
            yield node, site.text(node.value)


def drop_statement(site: Site) -> Iterator[Text]:
    """A statement is one too many: a call alone, a new value of what has one, a tie of two parameters."""
    own = site.statement
    targets = getattr(own, "targets", [getattr(own, "target", None)])
    names = [one.id for one in targets if isinstance(one, ast.Name)]
    renewed = len(names) == len(targets) and {*names} & {one.id for one in site.walk(ast.Name)}
    tied = isinstance(site.value, ast.Attribute) and dotted(targets[0]).count(".") > 1
    if isinstance(own, (ast.Expr, ast.AugAssign)) or (
        isinstance(own, ast.Assign) and (renewed or tied)
    ):
        yield own, ""


def add_statement(site: Site) -> Iterator[Text]:
    """A statement that the reference has before this one and the port lacks: each, then all.

    Or the reference says in several statements what the port says in this one.
    """
    own, indent = site.text(site.statement), _begin_line(site)
    if site.donor is not None and _set_the_same(site.statement, site.donor):
        run = [*takewhile(lambda one: _set_the_same(site.statement, one), site.after)]
        if run:
            yield site.statement, indent.join(map(ast.unparse, [site.donor, *run]))
    texts = [ast.unparse(one).replace("\n", indent) for one in site.missing]
    for text in texts:
        yield site.statement, f"{text}{indent}{own}"
    if len(texts) > 1:
        yield site.statement, f"{indent.join(texts)}{indent}{own}"


def replace_run(site: Site) -> Iterator[Text]:
    """The reference says in other statements, more of them or fewer, what several of the port's say."""
    for last, donors in site.runs.get(site.statement, ()):
        whole = _span(_start(site.statement), _end(last))
        indent = _begin_line(site)
        lines = [line for one in donors for line in ast.unparse(one).splitlines()]
        yield whole, indent.join(lines)


def stop_gradient(site: Site) -> Iterator[Text]:
    """The reference runs these statements without gradients: `with torch.no_grad():`."""
    for first, last in site.stopped:
        lines = site.code.text.splitlines(keepends=True)[first.lineno - 1 : last.end_lineno]
        lines[0] = lines[0][first.col_offset :]
        inside = "    ".join(lines).rstrip()  # joined, each line but the first moves to the right
        head = PORT.choose("with torch.no_grad():", "with paddle.no_grad():")
        yield _span(_start(first), _end(last)), f"{head}{_begin_line(site, first)}    {inside}"


def free_gradient(site: Site) -> Iterator[Text]:
    """A block, or a decorator of the function, stops gradients: `with paddle.no_grad():`."""
    for node in site.code.parents(site.statement):
        if isinstance(node, ast.With):
            stopping = [one for one in node.items if stops_gradients(one.context_expr)]
            others = [one for one in node.items if one not in stopping]
            if stopping and others:
                first, last = node.items[0].context_expr, node.items[-1]
                whole = _span(_start(first), _end(last.optional_vars or last.context_expr))
                yield whole, ", ".join(map(ast.unparse, others))
            elif stopping:
                yield node, _write_body(site.code, node)
        elif isinstance(node, ast.FunctionDef):
            yield from ((one, "") for one in node.decorator_list if stops_gradients(one))
            return


def stops_gradients(node: ast.expr) -> bool:
    """Tell whether a block or a decorator lets no gradient flow, as `paddle.no_grad()` does."""
    call = node.func if isinstance(node, ast.Call) else node
    name = dotted(call).rpartition(".")[2]
    given = [one.value for one in getattr(node, "args", ()) if isinstance(one, ast.Constant)]
    return name in ("no_grad", "inference_mode") or (
        name == "set_grad_enabled" and given == [False]
    )


def _write_body(code: Code, node: ast.With) -> str:
    """Return the lines of a block, indented as the statement that begins it; comments stay."""
    first = node.body[0]
    if first.lineno == node.lineno:
        return "; ".join(map(code.source, node.body))
    lines = code.text.splitlines(keepends=True)[: node.end_lineno]
    above = max(one.context_expr.end_lineno or 0 for one in node.items)
    lines = lines[above:]
    surplus = first.col_offset - node.col_offset
    kept = [one if one[:surplus].strip(" \t") else one[surplus:] for one in lines]
    return "".join(kept).strip()


def _begin_line(site: Site, beside: Any = None) -> str:
    """Return what begins another statement after that of a site, or after one beside it."""
    end = "\r\n" if "\r\n" in site.code.text else "\n"
    return end + " " * int((beside or site.statement).col_offset)


_HIDING: Final = (-1e4, -1e9, float("-inf"))
"""what masks add to a score that is to be hidden"""
_INFINITE: Final = (
    "-float('inf')",
    '-float("inf")',
    "float('-inf')",
    'float("-inf")',
    "-math.inf",
    "-np.inf",
)
"""which makes a row that is hidden as a whole NaN"""


def pass_mask(site: Site) -> Iterator[Text]:
    """A mask is not handed on, or too weak: a variable in the place of `None`, or of what a call lacks."""
    masks = [name for name in site.names if name.isidentifier() and "mask" in name.lower()]
    for node in site.walk(ast.Constant):
        if node.value is None:
            above = next(site.code.parents(node), None)
            own = (above.arg if isinstance(above, ast.keyword) else None) or ""
            ranked = sorted(masks, key=lambda name: -_share(name, own))
            if isinstance(above, (ast.Call, ast.keyword)):
                yield from ((node, name) for name in ([own] if own in site.names else []) + ranked)
        elif isinstance(node.value, float):
            whole, value = _read_number(site, node)
            if value < 0:
                yield from ((whole, _write_number(other)) for other in _HIDING if other != value)
    for node in site.walk(ast.UnaryOp, ast.Call):
        if "".join(site.text(node).split()) in _INFINITE:
            yield from ((node, _write_number(other)) for other in _HIDING if math.isfinite(other))
    passed = {one.id for one in site.walk(ast.Name)}
    for call in site.walk(ast.Call):
        words = {one.arg for one in call.keywords}
        layer = dotted(call.func)
        if (layer.startswith("self.") or layer in site.takes) and None not in words:
            taken = site.takes.get(layer) or _list_parameters(site.code)
            pairs = ((word, name) for name in masks if name not in passed
                     for word in taken if "mask" in word.lower() and word not in words)  # fmt: skip
            for word, name in sorted(pairs, key=lambda pair: -_share(*pair)):
                yield call, _add_argument(site.text(call), call, f"{word}={name}")


def turn_mask(site: Site) -> Iterator[Text]:
    """A mask of 1 for what counts is added to scores as it stands: it hides what counts, or nothing."""
    words = find_words(site.statement)
    if isinstance(site.statement, ast.Assign) and any("mask" in one.lower() for one in words):
        for node in site.walk(ast.BinOp):
            if isinstance(node.op, ast.Mult) and isinstance(node.left, _VALUES):
                yield node.left, f"1 - {site.text(node.left)}"
        whole = site.text(site.value)
        sum_of_two = isinstance(site.value, ast.BinOp) and isinstance(
            site.value.op, (ast.Add, ast.Sub)
        )
        if sum_of_two or isinstance(site.value, (ast.Compare, ast.BoolOp, ast.IfExp)):
            whole = f"({whole})"
        yield site.value, f"(1 - {whole}) * {_HIDING[0]}"
        yield site.value, f"1 - {whole}"


def adapt_value(site: Site) -> Iterator[Text]:
    """A value is not of the form that is wanted: an element of it, another shape, another dtype."""
    for node in _list_handed(site):
        text = site.text(node)
        own = f"({text})" if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)) else text
        yield from ((node, f"{own}{form}") for form in _FORMS)
        above = next(site.code.parents(node), None)
        if isinstance(above, ast.Call) and dotted(above.func).rpartition(".")[2] in _CONDITIONED:
            yield node, f'{own}.astype("bool")'
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            held = site.text(node.value)
            others = (at for at in (0, 1) if at != node.slice.value)
            yield from ((node, f"{held}[{at}]{form}") for at in others for form in ("", *_PLACES))


_VALUES: Final = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_PLACES: Final = ("[:, 0]", "[:, -1]")
_FORMS: Final = ("[0]", ".unsqueeze(-1)", ".squeeze(-1)", *_PLACES)
_CONDITIONED: Final = ("where", "masked_fill", "masked_select")
"""functions that take booleans: elsewhere they would take a value out of the comparison"""


def _list_handed(site: Site) -> Iterator[Any]:
    """Yield what a statement hands on: its value, the arguments of its calls, operands and elements."""
    found = [site.value]
    for node in site.walk(ast.Call, ast.BinOp, ast.Tuple):
        if isinstance(node, ast.Call):
            found += [*node.args, *(one.value for one in node.keywords)]
        else:
            found += node.elts if isinstance(node, ast.Tuple) else [node.left, node.right]
    yield from (node for node in found if isinstance(node, (*_VALUES, ast.BinOp)))


def _write_number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


@lru_cache(maxsize=16)
def _list_parameters(code: Code) -> Sequence[str]:
    """Return the parameters and keywords of a file."""
    named = (node.arg for node in code.nodes if isinstance(node, (ast.arg, ast.keyword)))
    return [name for name in dict.fromkeys(named) if name]


def exchange_statements(site: Site) -> Iterator[Text]:
    """Two statements, one after the other, that stand in the other order."""
    first = site.statement
    for above in [*site.code.parents(first)][:1]:  # what a lambda gives stands in no block
        for block in (held for _, held in ast.iter_fields(above) if isinstance(held, list)):
            second = block[block.index(first) + 1 :][:1] if first in block else []
            if second and isinstance(first, _PLAIN) and isinstance(second[0], _PLAIN):
                between = _span(_end(first), _start(second[0]))
                both = _span(_start(first), _end(second[0]))
                yield both, f"{site.text(second[0])}{site.text(between)}{site.text(first)}"


_PLAIN: Final = (ast.Assign, ast.AugAssign, ast.Expr)


def _start(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def _span(start: tuple[int, int], end: tuple[int, int]) -> ast.Pass:
    """Return a node that stands for a part of a file, as `ast` gives places."""
    line, column = end
    return ast.Pass(lineno=start[0], col_offset=start[1], end_lineno=line, end_col_offset=column)


def exchange_name(site: Site) -> Iterator[Text]:
    """Another variable, or another attribute of the same object."""
    for node in site.walk(ast.Name, ast.Attribute):
        name = dotted(node)
        if not name or not isinstance(node.ctx, ast.Load) or name not in site.names:
            continue
        own = name.startswith("self.")
        alike = [
            other for other in site.names if other.startswith("self.") == own and other != name
        ]
        ranked = sorted(alike, key=lambda other: -_share(name, other))
        yield from ((node, other) for other in ranked[:_MANY])


def _share(name: str, other: str) -> float:
    first, second = set(name.split("_")), set(other.split("_"))
    return len(first & second) / max(len(first | second), 1)


def use_unread(site: Site) -> Iterator[Text]:
    """A layer is made and never called, or a variable computed and never read: here is its place."""
    for name in site.idle:
        yield from ((node, f"{name}({site.text(node)})") for node in _list_values(site))
    named = [node for node in site.walk(ast.Name) if not _is_called(site, node)]
    # a condition is true or false: nothing is added to it
    summed = () if isinstance(site.statement, (ast.If, ast.While)) else (site.value, *named)
    for name, lines in site.unread.items():
        if site.statement.lineno in lines:
            for node in summed:
                yield from ((node, f"{site.text(node)} {sign} {name}") for sign in "+*")
            yield from ((node, name) for node in named)


def _is_called(site: Site, node: Any) -> bool:
    """Tell whether a node is what a call calls, or what an attribute is taken of."""
    above = next(site.code.parents(node), None)
    return isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and above.func is node)


def add_call(site: Site) -> Iterator[Text]:
    """A call that the reference makes here and the port does not."""
    yield from _call_as_beside(site)
    values = [*_list_values(site)]
    for name in site.called:
        yield from ((node, f"{name}({site.text(node)})") for node in values)


def _call_as_beside(site: Site) -> Iterator[Text]:
    """Yield for a statement that only renames a variable the calls that the function makes of others.

    `q = q` beside `k = self.rotary(k, offset)` may lack `self.rotary(q, offset)`.
    """
    name = site.value
    function = _find_function(site, site.statement)
    if not isinstance(site.statement, ast.Assign) or not isinstance(name, ast.Name):
        return
    for node in ast.walk(function) if function is not None else ():
        call = node.value if isinstance(node, ast.Assign) else None
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name):
            rest = [site.text(one) for one in (*call.args[1:], *call.keywords)]
            yield name, f"{site.text(call.func)}({', '.join([name.id, *rest])})"


def _find_function(site: Site, node: ast.AST) -> ast.FunctionDef | None:
    """Return the innermost function around a node."""
    around = (one for one in site.code.parents(node) if isinstance(one, ast.FunctionDef))
    return next(around, None)


def _list_values(site: Site) -> Iterator[Any]:
    """Yield what a statement hands on: the whole, the arguments of its calls, the operands of its sums.

    For a variable that only renames another one, that statement comes first: a call that is left out
    leaves `x = y` behind.
    """
    values = [site.value]
    for node in site.walk(ast.Call, ast.BinOp):
        values += node.args if isinstance(node, ast.Call) else (node.left, node.right)
    for value in values:
        given = _find_given(site, value) if isinstance(value, ast.Name) else None
        yield from (value,) if given is None else (given, value)


def _find_given(site: Site, name: ast.Name) -> Any:
    """Return the variable whose value the last assignment above a statement gives another; None if none."""
    function = _find_function(site, site.statement)
    given = [
        node
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.Assign)
        and node.lineno < site.statement.lineno
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name.id
    ]
    last = max(given, key=lambda node: node.lineno, default=None)
    return last.value if last is not None and isinstance(last.value, ast.Name) else None


def add_summand(site: Site) -> Iterator[Text]:
    """A summand or a factor that the port leaves out."""
    for sign in "+-*":
        for name in site.names[:_MANY]:
            if not name.startswith("self."):
                yield site.value, f"{site.text(site.value)} {sign} {name}"


Row = Callable[[Site], Iterable[Text]]
ROWS: Final[Mapping[str, Row]] = {
    "tie": tie_parameters,
    "setting": set_argument,
    "reference": follow_reference,
    "table": follow_table,
    "definition": define_first,
    "stopped-gradient": free_gradient,
    "gradient-not-stopped": stop_gradient,
    "foreign-call": drop_foreign_call,
    "unread": use_unread,
    "run": replace_run,
    "missing-call": add_call,
    "missing-statement": add_statement,
    "elsewhere": follow_others,
    "number": exchange_number,
    "mask": pass_mask,
    "mask-sense": turn_mask,
    "switch": set_switch,
    "stock-dropout": silence_dropouts,
    "field": exchange_field,
    "form": adapt_value,
    "repeat": exchange_repeats,
    "unpacking": exchange_targets,
    "statement-order": exchange_statements,
    "operator": exchange_operator,
    "function": exchange_function,
    "order": exchange_operands,
    "comparison": exchange_comparison,
    "condition": exchange_condition,
    "argument": give_argument,
    "surplus": drop_call,
    "surplus-statement": drop_statement,
    "name": exchange_name,
    "missing-summand": add_summand,
}
"""kind of mistake -> what makes its candidates, the likeliest first"""
