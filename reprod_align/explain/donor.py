"""The reference's code in the port's words: names of modules, functions, keywords and variables.

What the port lacks stands in the reference; a statement of it, translated, is the likeliest edit.
Nothing rests on the translation: what it gives is tried.
"""

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from reprod_align.api import list_entries
from reprod_align.api.calls import ALIASES, NAMES, ApiRow, list_rows
from reprod_align.api.filling import fill
from reprod_align.base import PORT, REFERENCE, Framework
from reprod_align.explain.code import dotted

KEYWORDS: Final[Mapping[str, str]] = {
    "dim": "axis", "eps": "epsilon", "bias": "bias_attr", "lr": "learning_rate", "betas": "betas",
    "inplace": "", "device": "", "requires_grad": "", "memory_format": "", "non_blocking": "",
}  # fmt: skip
"""PyTorch's arguments -> Paddle's; "": Paddle has no such argument"""
_BACK: Final[Mapping[str, str]] = {
    **{theirs: ours for ours, theirs in KEYWORDS.items() if theirs}, "name": "", "stop_gradient": "",
}  # fmt: skip
"""Paddle's arguments -> PyTorch's"""
_LISTED: Final = frozenset({"permute", "view", "repeat", "expand", "reshape"})
"""methods that take numbers one by one in PyTorch and in a list in Paddle"""
PARTS: Final[Mapping[str, Sequence[str]]] = {
    "scaled_dot_product_attention": ("torch.nn.functional.softmax",),
    "batch_norm": ("torch.sqrt",),
    "layer_norm": ("torch.sqrt",),
}
"""functions -> what a port that writes them out calls too"""
_PASSED: Final = frozenset({"contiguous", "to", "type", "cuda", "cpu"})
"""methods that change no number"""
_IDLE: Final = 0.5
"""of the likeness that counts for a statement that did not run: T5's branch for recomputing says more of
what PyTorch says than the branch that runs and lacks an argument"""
_SAME_WORDS: Final = 0.5
"""`a = f(x)` and `a = f(y)` have two thirds of their words in common, `a = f(x)` and `a = b + c` a third"""


def translate_keyword(name: str) -> str:
    """Return the port's name of one of the reference's arguments; "" if the port has none."""
    return PORT.choose(_BACK, KEYWORDS).get(name, name)


def name_setting(setting: str) -> str:
    """Return the port's argument for a setting, which goes by PyTorch's name."""
    return PORT.choose(setting, KEYWORDS.get(setting, setting))


def translate(
    node: Any, names: Mapping[str, str], imports: Mapping[str, str], port: Mapping[str, str]
) -> Any:
    """Return a copy of a node of the reference's tree in the port's words.

    names: variables and attributes ("x", "self.x") of the reference -> the port's. imports, port: what
    the imports of the two files bind.
    """
    return ast.fix_missing_locations(_Translator(names, imports, port).visit(copy.deepcopy(node)))


def translate_by_table(
    node: Any, names: Mapping[str, str], imports: Mapping[str, str], port: Mapping[str, str]
) -> Iterator[Any]:
    """Yield copies of a node in the port's words, one call in each as a row of the table of calls has it.

    The arguments are those of `translate`, which keeps a call's form and changes names alone.
    """
    for at, call in enumerate(_list_calls(node)):
        for row in _find_rows(call, imports):
            made = copy.deepcopy(node)
            translator = _Translator(names, imports, port, (_list_calls(made)[at], row))
            made = translator.visit(made)
            if translator.is_written:
                yield ast.fix_missing_locations(made)


def _list_calls(node: ast.AST) -> list[ast.Call]:
    return [one for one in ast.walk(node) if isinstance(one, ast.Call)]


def _find_rows(call: ast.Call, imports: Mapping[str, str]) -> Sequence[ApiRow]:
    """Return the rows of the table for a call of the reference's, a function or a tensor's method."""
    if PORT.framework == "torch":  # the rows say what PyTorch's calls are in Paddle
        return ()
    rows = _group_rows()
    if name := dotted(call.func):
        first, dot, rest = name.partition(".")
        if found := rows.get(f"{imports.get(first, first)}{dot}{rest}"):
            return found
    own = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return rows.get(f"Tensor.{own}", ())


@cache
def _group_rows() -> Mapping[str, Sequence[ApiRow]]:
    """Return the rows of the table by their names, but for those that call a helper of their own."""
    found: dict[str, list[ApiRow]] = {}
    for row in list_rows():
        called = {one.func.id for one in _list_calls(ast.parse(row.target))
                  if isinstance(one.func, ast.Name)}  # fmt: skip
        if called <= vars(builtins).keys():
            found.setdefault(row.name, []).append(row)
    return found


class _Translator(ast.NodeTransformer):
    def __init__(
        self,
        names: Mapping[str, str],
        imports: Mapping[str, str],
        port: Mapping[str, str],
        chosen: tuple[ast.Call, ApiRow] | None = None,
    ) -> None:
        """chosen: a call, and the row by which it is written."""
        self._names, self._imports, self._chosen = names, imports, chosen
        self._bound = sorted(port.items(), key=lambda one: -len(one[1]))
        self.is_written = False
        """whether the chosen call was"""

    def visit_Name(self, node: ast.Name) -> Any:  # noqa: N802 - ast calls it so
        if node.id in self._names:
            return ast.parse(self._names[node.id], mode="eval").body
        return self._rename(node) or node

    def visit_Attribute(self, node: ast.Attribute) -> Any:  # noqa: N802
        name = dotted(node)
        if name in self._names:
            return ast.parse(self._names[name], mode="eval").body
        return self._rename(node) or self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> Any:  # noqa: N802
        name = translate_keyword(node.arg or "") or ("" if node.arg else None)
        return None if name == "" else ast.keyword(name, self.visit(node.value))

    def visit_Call(self, node: ast.Call) -> Any:  # noqa: N802
        if self._chosen is not None and node is self._chosen[0]:
            return self._write(node, self._chosen[1]) or node
        self._rename_keywords(node)
        bound = self._is_bound_by_partial(node)
        made = self.generic_visit(node)
        if bound and isinstance(made, ast.Call):
            given = ast.Starred(ast.Name("given", ast.Load()), ast.Load())
            whole: Any = ast.parse("lambda *given: 0", mode="eval").body
            whole.body = ast.Call(made.args[0], [*made.args[1:], given], made.keywords)
            return whole
        if not isinstance(node.func, ast.Attribute) or not isinstance(made, ast.Call):
            return made
        own = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(made.func, ast.Attribute) and not self._is_function(made.func):
            return _translate_method(own, made.func.value, made)
        return made

    def _write(self, node: ast.Call, row: ApiRow) -> ast.expr | None:
        """Return a call as a row has it; None if it gives an argument that the row has no place for."""
        names = list(row.arguments)
        more = len(node.args) > len(names) and row.star is None
        if more or any(isinstance(one, ast.Starred) for one in node.args):
            return None
        texts = [ast.unparse(self.visit(one)) for one in node.args]
        if row.star is not None:
            texts[row.star :] = ["".join(f"{one}, " for one in texts[row.star :])]
        given = dict(zip(names, texts, strict=False))
        for one in node.keywords:
            if one.arg in names:
                given[one.arg] = ast.unparse(self.visit(one.value))
            elif KEYWORDS.get(one.arg or "", one.arg) != "":
                return None
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        held = (
            ast.unparse(self.visit(holder)) if row.name.startswith("Tensor.") and holder else "self"
        )
        text = fill(row, given, held)
        if text is None:
            return None
        self.is_written = True
        made: ast.expr = _Shortener(self._bound).visit(ast.parse(text, mode="eval").body)
        return made

    def _find_full_name(self, node: ast.expr) -> str:
        """Return the name of a function or module from its package on, by the reference's imports."""
        first, dot, rest = dotted(node).partition(".")
        return f"{self._imports.get(first, first)}{dot}{rest}"

    def _is_bound_by_partial(self, node: ast.Call) -> bool:
        """Tell whether a call is of functools.partial, which the port does not import."""
        is_partial = self._find_full_name(node.func) == "functools.partial"
        return is_partial and bool(node.args) and "functools" not in str(self._bound)

    def _rename_keywords(self, node: ast.Call) -> None:
        """Give the arguments of a function, or of the one that `partial` takes, Paddle's names."""
        called = node.args[0] if self._is_bound_by_partial(node) else node.func
        names = _find_keywords().get(self._find_full_name(called), {})
        for keyword in node.keywords:
            keyword.arg = names.get(keyword.arg or "", keyword.arg)

    def _is_function(self, node: ast.Attribute) -> bool:
        first = dotted(node).partition(".")[0]
        return first == "self" or first in dict(self._bound)

    def _rename(self, node: ast.expr) -> ast.expr | None:
        """Return the port's name of a name of the reference's framework; None if it is none."""
        name = self._find_full_name(node)
        if name.partition(".")[0] != REFERENCE.framework:
            return None
        wanted = _find_counterparts(PORT.framework).get(name) or _guess(name)
        return _shorten(wanted, self._bound)


class _Shortener(ast.NodeTransformer):
    """Writes the port's framework's names as the port's imports bind them."""

    def __init__(self, bound: Sequence[tuple[str, str]]) -> None:
        self._bound = bound

    def visit_Attribute(self, node: ast.Attribute) -> Any:  # noqa: N802 - ast calls it so
        name = dotted(node)
        if name.partition(".")[0] == PORT.framework:
            return _shorten(name, self._bound)
        return self.generic_visit(node)


def _shorten(name: str, bound: Sequence[tuple[str, str]]) -> ast.expr:
    """Return a full name as imports bind it; bound: aliases with what they stand for, longest first."""
    for alias, whole in bound:
        if name == whole or name.startswith(f"{whole}."):
            return ast.parse(alias + name[len(whole) :], mode="eval").body
    return ast.parse(name, mode="eval").body


def _guess(name: str) -> str:
    if PORT.framework == "torch":
        aliases = {theirs: ours for ours, theirs in ALIASES.items()}
        package, dot, last = name.rpartition(".")
        package = package.replace("paddle.optimizer", "paddle.optim").replace("paddle", "torch", 1)
        return f"{package}{dot}{aliases.get(last, last)}" if dot else "torch"
    package, _, last = name.rpartition(".")
    if not package:
        return "paddle"
    package = package.replace("torch", "paddle", 1).replace("paddle.optim", "paddle.optimizer")
    if package == "paddle" and last in ("softmax", "sigmoid", "relu", "gelu", "dropout"):
        package = "paddle.nn.functional"
    return f"{package}.{ALIASES.get(last, last)}"


@cache
def _find_counterparts(port: Framework) -> Mapping[str, str]:
    """Return the reference's names -> the port's, where the API table's entries or calls have one."""
    if port == "torch":
        usual = _find_counterparts("paddle")
        return {theirs: ours for ours, theirs in reversed([*usual.items()])}
    found = {**NAMES, "torch.nn.MultiheadAttention": "paddle.nn.MultiHeadAttention"}
    for entry in list_entries():
        ours, theirs = (text.split("(")[0].strip() for text in entry.apis[:2])
        named = ours.startswith("torch.") and theirs.startswith("paddle.")
        named = named and _is_name(ours) and _is_name(theirs)
        if named and _is_class(ours) == _is_class(theirs):
            found.setdefault(ours, theirs)
    for row in list_rows():
        name, _, inside = row.target.partition("(")
        first = inside.partition(")")[0].partition(",")[0]
        if _is_class(row.name) or (name.startswith("paddle.") and first in row.arguments[:1]):
            found.setdefault(row.name, name)
    return found


@cache
def _find_keywords() -> Mapping[str, Mapping[str, str]]:
    """Return PyTorch's functions -> their arguments' names -> Paddle's, as the API table has them."""
    found: dict[str, dict[str, str]] = {}
    for row in list_rows():
        call = ast.parse(row.target, mode="eval").body
        for one in call.keywords if isinstance(call, ast.Call) else ():
            if one.arg and isinstance(one.value, ast.Name) and one.value.id in row.arguments:
                found.setdefault(row.name, {}).setdefault(one.value.id, one.arg)
    return found


def _is_name(text: str) -> bool:
    """Tell whether a text is a dotted name: some entries describe their API in words."""
    return all(part.isidentifier() for part in text.split("."))


def _is_class(name: str) -> bool:
    return name.rpartition(".")[2][:1].isupper()


@cache
def _find_casts() -> Mapping[str, str]:
    """Return the methods that change the type of a tensor alone -> Paddle's name of the type."""
    calls = [(row.name.removeprefix("Tensor."), ast.parse(row.target, mode="eval").body)
             for row in list_rows() if row.name.startswith("Tensor.") and not row.arguments]  # fmt: skip
    return {
        name: str(call.args[0].value)
        for name, call in calls
        if isinstance(call, ast.Call) and dotted(call.func) == "self.astype"
        and isinstance(call.args[0], ast.Constant)
    }  # fmt: skip


def _translate_method(name: str, holder: ast.expr, call: ast.Call) -> ast.expr:
    """Return a call of a tensor's method as the port's framework has it."""
    args = call.args
    if PORT.framework == "torch":
        return _write_method_of_torch(name, holder, call)
    if name in _PASSED:
        return holder
    if name == "size":
        shape = ast.Attribute(holder, "shape", ast.Load())
        return ast.Subscript(shape, args[0], ast.Load()) if args else shape
    if name in _find_casts() and not args:
        method = ast.Attribute(holder, "astype", ast.Load())
        return ast.Call(method, [ast.Constant(_find_casts()[name])], [])
    own = "swapaxes" if name == "transpose" and len(args) == 2 else ALIASES.get(name, name)
    if name in _LISTED and (
        len(args) > 1 or (args and not isinstance(args[0], (ast.Tuple, ast.List)))
    ):
        args = [ast.List(args, ast.Load())]
    return ast.Call(ast.Attribute(holder, own, ast.Load()), args, call.keywords)


def _write_method_of_torch(name: str, holder: ast.expr, call: ast.Call) -> ast.expr:
    """Return a call of a tensor's method of Paddle's as PyTorch has it."""
    args, aliases = call.args, {theirs: ours for ours, theirs in ALIASES.items()}
    if name in ("astype", "cast") and args and isinstance(args[0], ast.Constant):
        kind = ast.Attribute(ast.Name("torch", ast.Load()), str(args[0].value), ast.Load())
        return ast.Call(ast.Attribute(holder, "to", ast.Load()), [kind], [])
    own = aliases.get(name, name)
    return ast.Call(ast.Attribute(holder, own, ast.Load()), args, call.keywords)


# -------------------------------------------------------------------- statements side by side


Statement = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr


def list_statements(function: ast.AST) -> list[Any]:
    """Return the simple statements and the branches of a function, in order; a lambda returns its body."""
    if isinstance(function, ast.Lambda):
        return [ast.copy_location(ast.Return(function.body), function.body)]
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, (ast.If, ast.For)) or (isinstance(node, Statement) and node.value)
    ]
    plain = [node for node in found if not is_text(node)]
    return sorted(plain, key=lambda node: (node.lineno, node.col_offset))


def is_text(node: Any) -> bool:
    """Tell whether a statement is a text alone, as a docstring is."""
    value = getattr(node, "value", None)
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


@lru_cache(maxsize=10_000)
def find_words(node: ast.AST) -> Counter[str]:
    """Return the names, attributes and numbers of a node, which tell how alike two are.

    The node must stay as it is.
    """
    words: Counter[str] = Counter()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            words[part.id] += 1
        elif isinstance(part, ast.Attribute):
            words[part.attr] += 1
        elif isinstance(part, ast.Constant):
            words[repr(part.value)] += 1
        elif isinstance(part, ast.operator):
            words[type(part).__name__] += 1
    return words


def likeness(one: ast.AST, other: ast.AST) -> float:
    """Return how alike two nodes are, by their words: 1 the same, 0 nothing in common."""
    first, second = find_words(one), find_words(other)
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 0.0


def pair_statements(
    port: Sequence[Any], donors: Sequence[Any], ran: Callable[[Any], bool] = lambda _: True
) -> list[tuple[int, int]]:
    """Return which statements stand for each other, in order: the most alike in sum.

    ran: tells whether a statement of the port ran: of two branches that do the same the one that runs
    stands for the donor's.
    """
    table = [[0.0] * (len(donors) + 1) for _ in range(len(port) + 1)]
    alike = [
        [likeness(one, other) * (1.0 if ran(one) else _IDLE) for other in donors] for one in port
    ]
    for i in range(len(port) - 1, -1, -1):
        for j in range(len(donors) - 1, -1, -1):
            table[i][j] = max(
                table[i + 1][j], table[i][j + 1], table[i + 1][j + 1] + alike[i][j] ** 2
            )
    found, i, j = [], 0, 0
    while i < len(port) and j < len(donors):
        if alike[i][j] and table[i][j] == table[i + 1][j + 1] + alike[i][j] ** 2:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif table[i][j] == table[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def pair_exchanged(
    port: Sequence[Any], donors: Sequence[Any], met: Collection[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return which of the statements that are left stand for each other in another order.

    met: those that are paired already. Two stand for each other if they give one variable its value and
    have half of their words in common, the most alike first.
    """
    own, others = {i for i, _ in met}, {j for _, j in met}
    alike = [
        (likeness(one, other), i, j)
        for i, one in enumerate(port)
        for j, other in enumerate(donors)
        if i not in own and j not in others and _name_target(one) == _name_target(other) != ""
    ]
    found: list[tuple[int, int]] = []
    for share, i, j in sorted(alike, key=lambda one: -one[0]):
        if share >= _SAME_WORDS and i not in own and j not in others:
            found.append((i, j))
            own.add(i)
            others.add(j)
    return found


def _name_target(statement: Any) -> str:
    """Return the one variable that a statement gives a value; "" if it is no such statement."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return dotted(targets[0]) if len(targets) == 1 else ""


def map_names(pairs: Iterable[tuple[Any, Any]], at_hand: Collection[str] = ()) -> dict[str, str]:
    """Return the reference's variables and attributes -> the port's, by what stands in the same places.

    pairs: statements that stand for each other, the port's first. at_hand: what the port has besides. A
    name that both have speaks for itself once.
    """
    votes: dict[str, Counter[str]] = {}
    pairs = list(pairs)
    known = {dotted(node) for port, _ in pairs for node in ast.walk(port)} - {""} | {*at_hand}
    for port, donor in pairs:
        for one, other in align_nodes(port, donor):
            ours, theirs = dotted(other), dotted(one)
            if ours and theirs and ours.count(".") == theirs.count(".") <= 1:
                votes.setdefault(ours, Counter({ours: 1} if ours in known else {}))[theirs] += 1
    return {
        name: found.most_common(1)[0][0]
        for name, found in votes.items()
        if name.partition(".")[0] == found.most_common(1)[0][0].partition(".")[0] == "self"
        or "." not in name
    }


def align_nodes(one: Any, other: Any) -> Iterable[tuple[Any, Any]]:
    """Yield the names that stand in the same places of two trees."""
    if dotted(one) and dotted(other):
        yield one, other
    elif isinstance(one, ast.Call) and isinstance(other, ast.Call):
        named = {keyword.arg: keyword.value for keyword in other.keywords}
        pairs = [(one.func, other.func), *zip(one.args, other.args, strict=False)]
        pairs += [(it.value, named[it.arg]) for it in one.keywords if it.arg in named]
        for first, second in pairs:
            yield from align_nodes(first, second)
    elif type(one) is type(other):
        for name, value in ast.iter_fields(one):
            rest = getattr(other, name, None)
            if isinstance(value, ast.AST) and isinstance(rest, ast.AST):
                yield from align_nodes(value, rest)
            elif isinstance(value, list) and isinstance(rest, list):
                for first, second in zip(value, rest, strict=False):
                    if isinstance(first, ast.AST) and isinstance(second, ast.AST):
                        yield from align_nodes(first, second)
