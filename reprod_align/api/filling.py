"""Writes a row of the table of calls with a call's arguments."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from reprod_align.api.calls import ApiRow


def fill(row: ApiRow, given: Mapping[str, str], receiver: str = "self") -> str | None:
    """Return a row's code with the texts of the arguments; None where one that it needs is not given."""
    held = {**row.defaults, **given}
    if not set(given) <= set(row.arguments):
        return None
    tree = ast.parse(row.target, mode="eval").body
    missing = set(row.arguments) - set(held)
    kept = {
        id(one): _keep_keywords(one, held, set(given), missing, receiver)
        for one in ast.walk(tree)
        if isinstance(one, ast.Call)
    }  # they are filled: an argument's text may read a name that is an argument's
    for one in ast.walk(tree):
        if isinstance(one, ast.Call):
            one.keywords = []
    if isinstance(tree, ast.Call):
        while tree.args and _read(tree.args[-1]) & missing:
            tree.args.pop()
    if _read(tree) & missing:
        return None
    filled = _Filling(held, receiver, kept).visit(tree)
    return ast.unparse(_bind_repeated(filled, [*held.values(), receiver]))


def _bind_repeated(tree: ast.expr, texts: Sequence[str]) -> ast.expr:
    """Bind to a name what a row reads more than once and what calls something: it is called once."""
    uses: dict[str, list[ast.expr]] = {}
    conditional = {id(one) for branch in _list_conditional(tree) for one in ast.walk(branch)}
    for given, node in _walk_as_run(tree):
        if any(isinstance(one, ast.Call) for one in ast.walk(node)):
            uses.setdefault(given, []).append(node)
    names = (name for name in (f"held_{n}" if n else "held" for n in count())
             if not any(name in text for text in texts))  # fmt: skip
    bound: dict[int, ast.expr] = {}
    for nodes in uses.values():
        if len(nodes) > 1 and id(nodes[0]) not in conditional:
            name = next(names)
            bound[id(nodes[0])] = ast.NamedExpr(ast.Name(name, ast.Store()), nodes[0])
            bound |= {id(one): ast.Name(name, ast.Load()) for one in nodes[1:]}
    return _Binding(bound).visit(tree) if bound else tree


class _Binding(ast.NodeTransformer):
    def __init__(self, bound: Mapping[int, ast.expr]) -> None:
        self.bound = bound

    def visit(self, node: ast.AST) -> Any:
        found = self.bound.get(id(node))
        return self.generic_visit(node) if found is None else found


def _list_conditional(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of an expression that may not run, or run later."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            yield from node.values[1:]
        elif isinstance(
            node, ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
        ):
            yield node


def _walk_as_run(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a row was given, with its argument's name, in the order in which Python evaluates it."""
    given = getattr(node, "_given", None)
    if isinstance(node, ast.expr) and given is not None:
        yield given, node
        return
    parts = (
        [node.test, node.body, node.orelse]
        if isinstance(node, ast.IfExp)
        else ast.iter_child_nodes(node)
    )
    for part in parts:
        yield from _walk_as_run(part)


def _keep_keywords(
    call: ast.Call, held: Mapping[str, str], given: set[str], missing: set[str], receiver: str
) -> list[ast.keyword]:
    """Return the keywords of a call whose arguments are given, filled."""
    kept = []
    for keyword in call.keywords:
        needed = _read(keyword.value) & set(held)
        if _read(keyword.value) & missing:
            continue
        value = _fold(_Filling(held, receiver, {}).visit(keyword.value))
        if not (isinstance(value, ast.Constant) and value.value is None) or (
            keyword.arg in ("weight", "bias", "axis", "size") and needed & given
        ):
            kept.append(ast.keyword(keyword.arg, value))
    return kept


def _read(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


class _Filling(ast.NodeTransformer):
    def __init__(
        self, held: Mapping[str, str], receiver: str, kept: Mapping[int, list[ast.keyword]]
    ) -> None:
        self.held, self.receiver, self.kept = held, receiver, kept

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == "self":
            return _parse_given(self.receiver, "self")
        text = self.held.get(node.id)
        return node if text is None else _parse_given(text, node.id)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Fill a call; a starred tuple becomes arguments."""
        self.generic_visit(node)
        node.args = _unpack(node.args)
        node.keywords += self.kept.get(id(node), [])
        return _fold(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Fill an index; of a list that is written out the element is left."""
        self.generic_visit(node)
        return _fold(node)

    def visit_List(self, node: ast.List) -> ast.AST:
        """Fill a list; a starred tuple becomes elements."""
        self.generic_visit(node)
        node.elts = _unpack(node.elts)
        return node


def _unpack(parts: list[ast.expr]) -> list[ast.expr]:
    return [
        part
        for one in parts
        for part in (
            one.value.elts
            if isinstance(one, ast.Starred) and isinstance(one.value, ast.Tuple)
            else [one]
        )
    ]


def _parse_given(text: str, name: str) -> ast.expr:
    made = ast.parse(f"({text})", mode="eval").body
    made._given = name  # type: ignore[attr-defined]
    return made


def _fold(node: ast.expr) -> ast.expr:
    """Return what an expression of constants is."""
    if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Constant):
        return node.body if node.test.value else node.orelse
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Tuple | ast.List):
        at = node.slice.value if isinstance(node.slice, ast.Constant) else None
        before = node.value.elts[: at + 1] if isinstance(at, int) else []
        if isinstance(at, int) and len(before) > at >= 0:
            if not any(isinstance(one, ast.Starred) for one in before):
                return node.value.elts[at]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "float" and node.args:
        held = node.args[0]
        if isinstance(held, ast.Constant) and isinstance(held.value, int | float):
            return ast.Constant(float(held.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        if isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        left, right = node.left, node.right
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            if isinstance(left.value, int) and isinstance(right.value, float):
                return ast.Constant(round(left.value - right.value, 12))
    return node
