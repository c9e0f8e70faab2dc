"""The kinds of mistakes: one table, each kind a small function from a node to changes of the text.

A kind looks at one node and yields splices with their structural causes. Whether the line runs, and
whether the numbers change, is decided where mutants are drawn.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Final, Literal

from benchmarks.mutants.cause import Cause, canonical, facts_of_call, make_cause
from benchmarks.mutants.source import Source, Splice, last_name, names_in, read_number, spell

import paddle
from paddle import nn

Change = tuple[Splice, Cause]
Changes = Iterator[Change]
When = Literal["built", "called", "any"]


@dataclass(frozen=True)
class Kind:
    """One kind of mistake."""

    change: Callable[[ast.AST, Source], Changes]
    when: When
    """whether the line must run while the model is made, while it is called, or either"""


@dataclass(frozen=True)
class Mutation:
    """One change of a source, before it is known what it does."""

    kind: str
    line: int
    """from 1, in the mutated source as in the original: that of the first byte that is replaced"""
    statement: int
    """the line on which the statement begins"""
    splice: Splice
    before: str
    cause: Cause


_OTHER_FUNCTION: Final = {
    "relu": "gelu", "gelu": "relu", "tanh": "sigmoid", "sigmoid": "tanh", "ReLU": "GELU",
    "GELU": "ReLU", "Tanh": "Sigmoid", "Sigmoid": "Tanh", "silu": "gelu", "Silu": "GELU",
    "softmax": "log_softmax", "zeros": "ones", "ones": "zeros", "zeros_like": "ones_like",
    "ones_like": "zeros_like", "cos": "sin", "sin": "cos", "max": "min", "argmax": "argmin",
    "mean": "sum", "sum": "mean", "maximum": "minimum", "triu": "tril", "tril": "triu",
    "sqrt": "square", "rsqrt": "sqrt", "exp": "expm1", "log": "log1p",
}  # fmt: skip
_AXIS: Final = ("axis", "dim", "start_axis", "stop_axis")
_SIZES: Final = ("shape", "dtype", "name", "num_embeddings", "embedding_dim", "in_features")
_PLAIN: Final = (
    "super", "len", "range", "int", "isinstance", "getattr", "float", "list", "tuple", "zip", "enumerate",
    "hasattr", "Parameter", "ParamAttr", "str", "create_parameter", "assign", "append", "format", "print",
)  # fmt: skip
_MODULES: Final = (
    "paddle",
    "F",
    "nn",
    "self",
    "math",
    "ops",
    "tensor",
    "np",
    "functional",
    "linalg",
)


def _splice(source: Source, node: ast.AST, after: str) -> Splice:
    return Splice(*source.span(node), after)


def _is_layer(call: ast.Call) -> bool:
    """Tell whether a call makes a layer."""
    return last_name(call)[:1].isupper()


def _arguments(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the arguments of a call, with their names; "" where Paddle does not tell the name."""
    names = _parameters(call)
    for at, value in enumerate(call.args):
        if not isinstance(value, ast.Starred):
            yield names[at] if at < len(names) else "", value
    yield from ((it.arg, it.value) for it in call.keywords if it.arg)


def _parameters(call: ast.Call) -> list[str]:
    """Return the names of a call's arguments by position, if it is one of Paddle's functions or layers."""
    name, method = last_name(call), is_method(call)
    homes = (paddle.Tensor,) if method else (nn, nn.functional, paddle)
    if set(names_in(call.func)) & {"self"}:
        return []
    for home in homes:
        try:
            names = [it for it in signature(getattr(home, name)).parameters if it != "self"]
        except (AttributeError, TypeError, ValueError):
            continue
        return names[1:] if method else names
    return []


def is_method(call: ast.Call) -> bool:
    """Tell whether a call works on the value before its dot: x.sum(), not F.relu(x) or self.dense(x)."""
    func = call.func
    return isinstance(func, ast.Attribute) and not set(names_in(func.value)) & set(_MODULES)


def _other_value(node: ast.AST) -> str | None:
    """Return another number or the other switch in place of a constant."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return repr(not node.value)
    number = read_number(node)
    if number is None:
        return None
    return repr(number * 2 if number else 1)


def change_argument(node: ast.AST, source: Source) -> Changes:
    """Give a function another number or switch."""
    if not isinstance(node, ast.Call) or _is_layer(node) or last_name(node) in _PLAIN:
        return
    for name, value in _arguments(node):
        after = _other_value(value)
        if after and name not in (*_AXIS, *_SIZES):
            cause = make_cause("argument", name, last_name(node))
            yield _splice(source, value, after), cause


def leave_out_argument(node: ast.AST, source: Source) -> Changes:
    """Leave out an argument that is given by name: the default holds."""
    if not isinstance(node, ast.Call) or len(node.args) + len(node.keywords) < 2:
        return
    for before, keyword in zip([*node.args[-1:], *node.keywords], node.keywords, strict=False):
        if keyword.arg and keyword.arg not in _SIZES and not isinstance(before, ast.Starred):
            start = source.span(before)[1]
            cause = make_cause("argument", keyword.arg, last_name(node))
            yield Splice(start, source.span(keyword)[1], ""), cause


def change_axis(node: ast.AST, source: Source) -> Changes:
    """Take another axis, or exchange two axes of a permutation."""
    if not isinstance(node, ast.Call):
        return
    for name, value in _arguments(node):
        number = read_number(value)
        if name in _AXIS and isinstance(number, int):
            after: object = {-1: -2, 0: 1, 1: 0}.get(number, number - 1)
        elif isinstance(value, ast.List | ast.Tuple) and len(value.elts) > 2:
            axes = [read_number(axis) for axis in value.elts]
            if sorted(it for it in axes if it is not None) != list(range(len(axes))):
                continue
            after = [*axes[:1], *axes[1:3][::-1], *axes[3:]]
        else:
            continue
        cause = make_cause("argument", name or "axis", last_name(node), ["axis", "layout"])
        yield _splice(source, value, repr(after)), cause


def replace_function(node: ast.AST, source: Source) -> Changes:
    """Call another function."""
    if isinstance(node, ast.Attribute) and node.attr in _OTHER_FUNCTION:
        other = _OTHER_FUNCTION[node.attr]
        end = source.span(node)[1]
        facts = ["function", *facts_of_call(node.attr), *facts_of_call(other)]
        cause = make_cause("call", node.attr, facts=facts)
        yield Splice(end - len(node.attr), end, other), cause


def replace_named_function(node: ast.AST, source: Source) -> Changes:
    """Take another activation by its name."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        other = _OTHER_FUNCTION.get(node.value)
        if other and isinstance(source.parent(node), ast.Call | ast.keyword | ast.Subscript):
            facts = ["function", *facts_of_call(node.value), *facts_of_call(other)]
            yield (
                _splice(source, node, repr(other)),
                make_cause("call", node.value, facts=[*facts, "setting:act"]),
            )


def exchange_operator(node: ast.AST, source: Source) -> Changes:
    """Add for subtract, multiply for divide."""
    if not isinstance(node, ast.BinOp) or isinstance(node.left, ast.Constant | ast.JoinedStr):
        return
    other = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}.get(type(node.op))
    found = source.find(r"[-+*/]", source.span(node.left)[1], source.span(node.right)[0])
    if other and found:
        fact = "summand" if other in "+-" else "factor"
        yield Splice(*found, other), make_cause("operator", facts=[fact, *_facts_around(node)])


def exchange_operands(node: ast.AST, source: Source) -> Changes:
    """Exchange the sides of a difference, a quotient or a product of matrices; two arguments."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div | ast.MatMult):
        yield from _exchange(node.left, node.right, source)
    elif isinstance(node, ast.Call) and len(node.args) > 1 and not _is_layer(node):
        first, second = node.args[:2]
        if all(isinstance(it, ast.Name | ast.Attribute | ast.Call) for it in (first, second)):
            yield from _exchange(first, second, source, last_name(node))


def _exchange(first: ast.expr, second: ast.expr, source: Source, owner: str = "") -> Changes:
    (start, middle), (next_one, end) = source.span(first), source.span(second)
    between = source.cut(middle, next_one)
    after = f"{source.code(second)}{between}{source.code(first)}"
    if source.code(first) != source.code(second):
        yield Splice(start, end, after), make_cause("order", owner=owner, facts=["sign"])


def change_constant(node: ast.AST, source: Source) -> Changes:
    """Compute with another number."""
    if not isinstance(node, ast.BinOp) or "mask" in _facts_around(node):
        return
    for side in (node.left, node.right):
        number = read_number(side)
        if number:
            factor = isinstance(node.op, ast.Mult | ast.Div | ast.Pow)
            facts = ["factor" if factor else "summand", *_facts_around(node)]
            yield _splice(source, side, repr(number * 2)), make_cause("constant", facts=facts)


def change_index(node: ast.AST, source: Source) -> Changes:
    """Take another element."""
    if not isinstance(node, ast.Subscript) or "shape" in names_in(node.value):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        number = read_number(part)
        if isinstance(number, int):
            after = repr(-1 if number == 0 else number - 1)
            yield _splice(source, part, after), make_cause("index")


def change_setting(node: ast.AST, source: Source) -> Changes:
    """Make a layer with another epsilon, rate, padding, switch; or without its bias."""
    if not isinstance(node, ast.Call) or not _is_layer(node):
        return
    name = last_name(node)
    for argument, value in _arguments(node):
        after = _other_value(value)
        if argument in ("epsilon", "eps"):
            after = "1e-3"
        elif argument == "p":
            after = "0.4"
        if after and argument not in _SIZES:
            yield _splice(source, value, after), _setting(argument, name)
    if name == "Linear" and len(node.args) == 2 and not node.keywords:
        end = source.span(node)[1]
        yield Splice(end - 1, end, ", bias_attr=False)"), _setting("bias_attr", name)


def _setting(name: str, owner: str) -> Cause:
    return make_cause("setting", name, owner, ["setting", f"argument:{canonical(name)}"])


def change_mask(node: ast.AST, source: Source) -> Changes:
    """Invert a mask, compare it the other way, or give none."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_mask(node.right):
        if read_number(node.left) == 1:
            yield _splice(source, node, source.code(node.right)), make_cause("mask")
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and _about_mask(node, source):
        signs = {
            ast.Eq: "!=",
            ast.NotEq: "==",
            ast.Lt: ">=",
            ast.Gt: "<=",
            ast.LtE: ">",
            ast.GtE: "<",
        }
        sign = signs.get(type(node.ops[0]))
        if sign and source.call(node) or isinstance(source.parent(node), ast.Assign):
            after = f"{source.code(node.left)} {sign} {source.code(node.comparators[0])}"
            yield _splice(source, node, after), make_cause("mask")
    elif isinstance(node, ast.Call) and last_name(node) not in _PLAIN:
        for name, value in _arguments(node):
            if _is_mask(value) and (name or node.args[0] is not value):
                yield _splice(source, value, "None"), make_cause("mask", facts=["argument:mask"])


def change_mask_factor(node: ast.AST, source: Source) -> Changes:
    """Multiply a mask by another number: what should hide a place raises or hardly lowers it."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return
    for number, other in ((node.left, node.right), (node.right, node.left)):
        if _about_mask(other, source) and (read_number(number) or _is_least(number)):
            facts = ["constant", "factor"]
            yield _splice(source, number, "-1.0"), make_cause("mask", facts=facts)


def _is_least(node: ast.AST) -> bool:
    return any(name in ("finfo", "min", "inf") for name in names_in(node))


def _is_mask(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and "mask" in last_name(node)


def _about_mask(node: ast.AST, source: Source) -> bool:
    """Tell whether a node, or the variable that its statement sets, speaks of a mask."""
    statement = source.statement(node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any("mask" in name or "pad" in name for it in (node, *targets) for name in names_in(it))


def change_branch(node: ast.AST, source: Source) -> Changes:
    """Take the other branch."""
    if isinstance(node, ast.If | ast.IfExp):
        test = node.test
        parts = [node.test, *_bodies(node)]
        facts = list(dict.fromkeys(fact for part in parts for fact in _facts_inside(part)))
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            after = source.code(test.operand)
        else:
            after = f"not ({source.code(test)})"
        yield _splice(source, test, after), make_cause("branch", facts=facts)


def _bodies(node: ast.If | ast.IfExp) -> list[ast.AST]:
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return [*node.body, *node.orelse]


def change_layout(node: ast.AST, source: Source) -> Changes:
    """Split, join or lie a matrix in another order."""
    if isinstance(node, ast.keyword) and node.arg in ("transpose_y", "transpose_x"):
        after = _other_value(node.value)
        if after:
            yield _splice(source, node.value, after), make_cause("argument", node.arg)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        parts = node.targets[0].elts
        if len(parts) > 1 and isinstance(node.value, ast.Call | ast.ListComp):
            yield from _relabel(parts[0], parts[1], source)
    elif isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 2:
        call = source.call(node)
        if call and last_name(call) in ("reshape", "view") and isinstance(node.ctx, ast.Load):
            yield from _relabel(node.elts[-2], node.elts[-1], source)


def _relabel(first: ast.expr, second: ast.expr, source: Source) -> Changes:
    for splice, _ in _exchange(first, second, source):
        yield splice, make_cause("layout", facts=["axis", "order"])


def untie(node: ast.AST, source: Source) -> Changes:
    """Make a parameter of its own where another module's is used, or hand none over."""
    if isinstance(node, ast.keyword) and "weight" in (node.arg or ""):
        if isinstance(node.value, ast.Attribute) and node.value.attr == "weight":
            yield _splice(source, node.value, "None"), make_cause("tie", facts=["argument"])
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
        return
    choices = [node.value]
    if isinstance(node.value, ast.IfExp):
        choices = [node.value.body, node.value.orelse]
    for value in choices:
        if isinstance(value, ast.Name | ast.Attribute) and "weight" in last_name(value):
            held = source.code(value)
            after = f"self.create_parameter(shape={held}.shape, dtype={held}.dtype)"
            yield _splice(source, value, after), make_cause("tie")


def leave_out_call(node: ast.AST, source: Source) -> Changes:
    """Return or hand on what a call takes in place of what it gives."""
    if not isinstance(node, ast.Call) or _is_layer(node) or last_name(node) in _PLAIN:
        return
    kept = _first_input(node)
    if kept is not None and not isinstance(kept, ast.Constant | ast.Starred | ast.List):
        name = last_name(node)
        cause = make_cause("call", name, facts=facts_of_call(name))
        yield _splice(source, node, source.code(kept)), cause


def _first_input(call: ast.Call) -> ast.expr | None:
    """Return the value that a call works on: the object of a method, or the first argument."""
    if isinstance(call.func, ast.Attribute) and is_method(call):
        return call.func.value
    return call.args[0] if call.args else None


def leave_out_summand(node: ast.AST, source: Source) -> Changes:
    """Leave out one side of a sum."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        if not any(isinstance(it, ast.Constant | ast.JoinedStr) for it in (node.left, node.right)):
            for kept in (node.left, node.right):
                facts = ["operator", *_facts_around(node)]
                cause = make_cause("summand", facts=facts)
                yield _splice(source, node, source.code(kept)), cause
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        after = source.code(node.target)
        yield _splice(source, node, after), make_cause("summand", facts=["operator"])


def move_call(node: ast.AST, source: Source) -> Changes:
    """Exchange two calls that follow each other, in one expression or in two lines."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Call):
        inner = node.args[0]
        if inner.args and not _is_layer(node) and not _is_layer(inner):
            for splice, _ in _exchange(node.func, inner.func, source):
                yield splice, _moved(node, inner)
    body = getattr(node, "body", None)
    for first, second in zip(body, body[1:], strict=False) if isinstance(body, list) else ():
        pair = [it.value for it in (first, second) if isinstance(it, ast.Assign)]
        calls = [it for it in pair if isinstance(it, ast.Call)]
        if len(calls) == 2 and spell(first.targets[0]) == spell(second.targets[0]):
            for splice, _ in _exchange(calls[0], calls[1], source):
                yield splice, _moved(*calls)


def _moved(first: ast.Call, second: ast.Call) -> Cause:
    names = [last_name(first), last_name(second)]
    facts = [fact for name in names for fact in facts_of_call(name)]
    return make_cause("call", names[0], facts=["order", *facts])


def repeat_call(node: ast.AST, source: Source) -> Changes:
    """Apply a module or a function twice."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        name = last_name(node)
        if not _is_layer(node) and name not in _PLAIN and not isinstance(node.args[0], ast.Starred):
            after = f"{source.code(node.func)}({source.code(node)})"
            cause = make_cause("call", name, facts=facts_of_call(name))
            yield _splice(source, node, after), cause


def change_table(node: ast.AST, source: Source) -> Changes:
    """Make a table, a scale or a bias of positions with another number."""
    layer = source.call(node)
    if layer is not None and _is_layer(layer):
        return
    parts: list[tuple[str, ast.expr]] = []
    if isinstance(node, ast.BinOp):
        parts = [("", node.left), ("", node.right)]
    elif isinstance(node, ast.Call) and not _is_layer(node) and last_name(node) not in _PLAIN:
        parts = list(_arguments(node))
    for name, part in parts:
        number = read_number(part)
        if number and name not in (*_AXIS, *_SIZES):
            facts = [
                "table",
                "factor",
                "summand",
                *([f"argument:{canonical(name)}"] if name else []),
            ]
            yield _splice(source, part, repr(number * 2)), make_cause("constant", facts=facts)


def permute_result(node: ast.AST, source: Source) -> Changes:
    """Return the values in another order along the last axis."""
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Name | ast.Call | ast.Tuple):
        value = node.value.elts[0] if isinstance(node.value, ast.Tuple) else node.value
        after = f"paddle.roll({source.code(value)}, 1, -1)"
        facts = ["index", *facts_of_call("roll")]
        yield _splice(source, value, after), make_cause("layout", facts=facts)


def take_another_value(node: ast.AST, source: Source) -> Changes:
    """Hand a call another variable of the same function."""
    function = source.function(node)
    if not isinstance(node, ast.Call) or function is None or _is_layer(node):
        return
    if last_name(node) in _PLAIN:
        return
    for _, value in _arguments(node):
        if isinstance(value, ast.Name) and "mask" not in value.id:
            for other in _earlier_values(function, value):
                cause = make_cause("value", facts=["order", "argument"])
                yield _splice(source, value, other), cause


def _earlier_values(function: ast.FunctionDef, value: ast.Name) -> Iterator[str]:
    """Yield the two variables that were set last before this one is used."""
    held = {it.arg: 0 for it in function.args.args[1:3]}
    for it in ast.walk(function):
        if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store) and it.lineno < value.lineno:
            held[it.id] = max(it.lineno, held.get(it.id, 0))
    order = sorted(held, key=lambda name: (held[name], name))
    yield from [name for name in order if name != value.id and "mask" not in name][-2:]


def cut_gradient(node: ast.AST, source: Source) -> Changes:
    """Cut the result of a call off from the gradient."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        if isinstance(node.targets[0], ast.Name) and not _is_layer(node.value):
            after = f"{source.code(node.value)}.detach()"
            yield (
                _splice(source, node.value, after),
                make_cause("call", "detach"),
            )


def _facts_around(node: ast.AST) -> list[str]:
    """Return the facts that follow from what an expression is about."""
    return ["mask"] if any("mask" in name for name in names_in(node)) else []


def _facts_inside(node: ast.AST) -> Iterator[str]:
    """Yield the facts that name a call of some code, and what its names are about."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and last_name(part) not in _PLAIN:
            yield from facts_of_call(last_name(part))
    words = " ".join(names_in(node)).lower()
    yield from (word for word in ("dropout", "mask", "norm") if word in words)


KINDS: Final[Mapping[str, Kind]] = {
    "argument value": Kind(change_argument, "called"),
    "argument left out": Kind(leave_out_argument, "called"),
    "axis": Kind(change_axis, "called"),
    "function": Kind(replace_function, "any"),
    "activation by name": Kind(replace_named_function, "any"),
    "operator": Kind(exchange_operator, "called"),
    "operand order": Kind(exchange_operands, "called"),
    "constant": Kind(change_constant, "called"),
    "index": Kind(change_index, "called"),
    "layer setting": Kind(change_setting, "built"),
    "mask": Kind(change_mask, "called"),
    "mask factor": Kind(change_mask_factor, "called"),
    "branch": Kind(change_branch, "any"),
    "layout": Kind(change_layout, "called"),
    "tie": Kind(untie, "built"),
    "call left out": Kind(leave_out_call, "called"),
    "summand left out": Kind(leave_out_summand, "called"),
    "call moved": Kind(move_call, "called"),
    "call repeated": Kind(repeat_call, "called"),
    "number in a table": Kind(change_table, "built"),
    "result permuted": Kind(permute_result, "called"),
    "another value": Kind(take_another_value, "called"),
    "gradient cut": Kind(cut_gradient, "called"),
}
"""The table of kinds; a mutant is drawn from each in turn."""


def mutate(kind: str, source: Source, lines: frozenset[int]) -> list[Mutation]:
    """Return every mutation of one kind that begins on one of these lines, in the file's order."""
    found: dict[tuple[int, str], Mutation] = {}
    for node in ast.walk(source.tree):
        for splice, cause in KINDS[kind].change(node, source):
            before, line = source.cut(splice.start, splice.end), source.line(splice.start)
            at = source.statement(node)
            first = line if hasattr(at, "body") else at.lineno
            if before != splice.after and {line, first} & lines:
                found[splice.start, splice.after] = Mutation(
                    kind, line, first, splice, before, cause
                )
    return [found[key] for key in sorted(found)]


def parses(text: str) -> bool:
    """Tell whether a mutated source is still Python."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
