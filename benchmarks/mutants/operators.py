"""Changes of one line of a port, through its syntax tree; the line numbers of the file stay.

Each mutation carries the words of a right cause: patterns, each found in a message that says what was
changed. A message that shows both calls says it too; that is judged in `scoring`.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Mutation:
    """One change: where, into what, and what a right cause says."""

    kind: str
    line: int
    """from 1"""
    start: int
    end: int
    """bytes of the line that are replaced"""
    before: str
    after: str
    words: tuple[str, ...]
    """patterns; a message in which one is found names the cause"""

    def apply(self, source: str) -> str:
        """Return the source with this change."""
        lines = source.encode().split(b"\n")
        at = self.line - 1
        lines[at] = lines[at][: self.start] + self.after.encode() + lines[at][self.end :]
        return b"\n".join(lines).decode()


FUNCTIONS: Final = ("relu", "gelu", "tanh", "sigmoid", "silu", "swish", "softmax", "log_softmax")
_EXCHANGED: Final = {
    "relu": "gelu", "gelu": "relu", "tanh": "sigmoid", "sigmoid": "tanh", "ReLU": "GELU",
    "GELU": "ReLU", "Tanh": "Sigmoid", "Sigmoid": "Tanh", "silu": "gelu", "Silu": "GELU",
    "softmax": "log_softmax", "zeros": "ones", "ones": "zeros", "zeros_like": "ones_like",
    "ones_like": "zeros_like", "cos": "sin", "sin": "cos", "max": "min", "argmax": "argmin",
    "mean": "sum", "sum": "mean", "maximum": "minimum", "triu": "tril", "tril": "triu",
}  # fmt: skip
_FUNCTION_WORDS: Final = (
    r"\b(relu|gelu|tanh|sigmoid|silu|softmax|identity|abs)\b.*\b(PyTorch|Paddle)\b",
)
_HELD: Final = (r"a tensor that Paddle's module makes",)  # the one that the changed line makes
_MASK: Final = (
    r"\bmask(ed|s|ing)?\b", r"nothing is masked", r"everything is masked", r"is inverted", r"causal",
)  # fmt: skip
_SUM: Final = (
    r"computes .* Paddle ", r"opposite sign", r"\bminus\b", r"does not add", r"adds .* (once more|where)",
    r"plus the constant", r"values are PyTorch's plus", *_HELD,
)  # fmt: skip
_SCALE: Final = (
    r"\btimes\b", r"scaled", r"plus the constant", r"computes .* Paddle ",
    r"adds -?[\d.e+]+ where PyTorch adds", *_HELD,
)  # fmt: skip
_AXIS: Final = (
    r"axis -?\d+ instead", r"instead of axis", r"\bover (axis|axes)", r"softmax is over", r"over the queries",
    r"permuted", r"transpose", r"axes? (is|are) in another order", r"along axis",
)  # fmt: skip
_INDEX: Final = (
    r"\bindex(es)?\b", r"\bindices\b", r"\btoken\b", r"\bposition", r"\bfirst\b", r"\blast\b", r"\bblocks\b",
    r"\boffset\b", r"\brow\b",
)  # fmt: skip
_DROPOUT: Final = (r"dropout", r"\bdrops\b", r"draws random numbers")
_NORM: Final = (r"norm is missing", r"norm\b.*(PyTorch|Paddle)", r"normalis")
_SETTING: Final = (r"Settings differ: (?!scale)", r"no counterpart of this")
_LAYOUT: Final = (
    r"permuted", r"transpose", r"reshape", r"axes", r"split .* heads|heads .* split", r"blocks", r"merged",
)  # fmt: skip
_EPSILON: Final = (r"\beps(ilon)?\b",)
_SWAP: Final = (
    r"exchanged", r"swapped", r"order", r"\b(query|key|value) is\b", r"computes .* Paddle ", r"opposite sign",
    r"transposed", r"passes on",
)  # fmt: skip


def mutate(source: str, lines: frozenset[int]) -> list[Mutation]:
    """Return every mutation of these lines, in the order of the file; each parses."""
    tree, text = ast.parse(source), source.encode().split(b"\n")
    found: list[Mutation] = []
    for node in ast.walk(tree):
        if getattr(node, "lineno", 0) in lines and node.lineno == node.end_lineno:  # type: ignore[attr-defined]
            found += [m for change in CHANGES for m in change(node, text[node.lineno - 1])]  # type: ignore[attr-defined]
    unique = {(m.line, m.start, m.end, m.after): m for m in found if m.before != m.after}
    parsing = [mutation for mutation in unique.values() if _parses(mutation.apply(source))]
    return sorted(parsing, key=lambda m: (m.line, m.start, m.after))


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _replace(
    kind: str, node: ast.AST, line: bytes, after: str, words: Sequence[str], start: int | None = None,
    end: int | None = None,
) -> Mutation:  # fmt: skip
    first = node.col_offset if start is None else start  # type: ignore[attr-defined]
    last = node.end_col_offset if end is None else end  # type: ignore[attr-defined]
    before = line[first:last].decode()
    return Mutation(kind, node.lineno, first, last, before, after, tuple(words))  # type: ignore[attr-defined]


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _exchange_operator(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    if not isinstance(node, ast.BinOp):
        return
    other = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}.get(type(node.op))
    between = line[node.left.end_col_offset : node.right.col_offset]
    found = re.search(rb"[-+*/]", between)
    if other is None or found is None or isinstance(node.left, ast.Constant | ast.JoinedStr):
        return
    if node.left.end_lineno != node.right.lineno or b"//" in between:
        return
    at = (node.left.end_col_offset or 0) + found.start()
    words = _SUM if other in "+-" else _SCALE
    yield _replace("operator", node, line, other, (*words, *_MASK, *_SETTING), at, at + 1)


def _change_constant(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    """Change a number that takes part in arithmetic."""
    if not isinstance(node, ast.BinOp):
        return
    for side in (node.left, node.right):
        value = side.value if isinstance(side, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value:
            words = (*_SCALE, *_SUM, *_MASK, *_INDEX, *_SETTING)
            yield _replace("constant", side, line, repr(value * 2), words)


def _change_axis(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    if not isinstance(node, ast.keyword) or node.arg not in ("axis", "dim"):
        return
    number = _number(node.value)
    if number is not None:
        other = {-1: -2, 0: 1, 1: 0}.get(number, number - 1)
        yield _replace("axis", node.value, line, repr(other), (*_AXIS, *_LAYOUT))


def _number(node: ast.AST) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _exchange_axes(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    """Exchange two axes of a transpose that leave the rank alone."""
    if not isinstance(node, ast.List | ast.Tuple) or len(node.elts) < 3:
        return
    axes = [_number(axis) for axis in node.elts]
    if sorted(axis for axis in axes if axis is not None) == list(range(len(axes))):
        swapped = [*axes[:1], *axes[1:3][::-1], *axes[3:]]
        yield _replace("axis", node, line, repr(swapped), (*_AXIS, *_LAYOUT))


def _flip_boolean(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
        if isinstance(node.value.value, bool):
            words = (
                *_LAYOUT,
                r"bias",
                r"approximate",
                r"unbiased",
                *_FUNCTION_WORDS,
                *_DROPOUT,
                *_SETTING,
                r"is (True|False) in Paddle: (True|False) gives",
            )
            if node.arg == "normalize_before":
                words = (*words, r"passes on", *_SUM)
            yield _replace("boolean", node.value, line, repr(not node.value.value), words)


def _change_keyword(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    """Change an epsilon, a rate; drop a keyword argument."""
    if not isinstance(node, ast.Call):
        return
    for keyword in node.keywords:
        value = keyword.value
        if keyword.arg in ("epsilon", "eps") and value.lineno == value.end_lineno == node.lineno:
            yield _replace("epsilon", value, line, "1e-3", _EPSILON)
        elif keyword.arg in ("epsilon", "eps", "mask", "attn_mask", "transpose_y", "keepdim"):
            continue
    if len(node.args) + len(node.keywords) < 2:
        return
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in ("name", "dtype", "shape"):
            continue
        kept = [
            *map(_text, node.args),
            *(_text(one) for one in node.keywords if one is not keyword),
        ]
        after = f"{_text(node.func)}({', '.join(kept)})"
        words = _words_of_argument(keyword.arg)
        yield _replace("dropped argument", node, line, after, words)


def _words_of_argument(name: str) -> tuple[str, ...]:
    if "mask" in name:
        return _MASK
    if name in ("epsilon", "eps"):
        return _EPSILON
    if name in ("p", "dropout", "training") or "dropout" in name:
        return _DROPOUT
    if name in ("axis", "dim", "perm", "keepdim", "transpose_y", "transpose_x"):
        return (*_AXIS, *_LAYOUT)
    if "bias" in name:
        return (r"\bbias\b",)
    return (rf"\b{name}\b", *_SUM, *_INDEX, *_FUNCTION_WORDS, *_MASK)


def _change_rate(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    """Change the rate of a dropout, made or called."""
    if not isinstance(node, ast.Call) or "ropout" not in _text(node.func) or not node.args:
        return
    made = _text(node.func).endswith("Dropout")
    rates = [a.value for a in node.keywords if a.arg == "p"] or node.args[0 if made else 1 :][:1]
    if rates and rates[0].lineno == rates[0].end_lineno == node.lineno:
        yield _replace("dropout rate", rates[0], line, "0.4", _DROPOUT)


def _drop_call(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    """Replace f(x, ...) by x, and x.f(...) by x."""
    if not isinstance(node, ast.Call):
        return
    name = _text(node.func)
    last = name.rpartition(".")[2]
    if last in ("super", "len", "range", "int", "isinstance", "getattr", "float", "list", "tuple"):
        return
    modules = ("paddle", "F", "nn", "self", "math", "ops", "tensor", "paddle.nn.functional")
    method = isinstance(node.func, ast.Attribute) and name.rpartition(".")[0] not in modules
    method = method and not name.startswith(("self.", "paddle.", "nn.", "F."))
    kept = node.func.value if method else node.args[0] if node.args else None  # type: ignore[attr-defined]
    if kept is None or isinstance(kept, ast.Constant | ast.Starred):
        return
    told = rf"computes the output of {re.escape(last)}", rf"PyTorch calls `self\.{re.escape(last)}\("
    words = (*_words_of_call(last), r"passes on", *told)
    yield _replace("dropped call", node, line, _text(kept), words)


_LAYOUT_CALLS: Final = ("transpose", "reshape", "flatten", "permute", "squeeze")


def _words_of_call(name: str) -> tuple[str, ...]:
    lowered = name.lower()
    if "drop" in lowered:
        return _DROPOUT
    if "norm" in lowered:
        return _NORM
    if any(word in lowered for word in _LAYOUT_CALLS):
        return _LAYOUT
    if any(function in lowered for function in FUNCTIONS) or "act" in lowered:
        return (*_FUNCTION_WORDS, r"applies it here")
    if "mask" in lowered:
        return _MASK
    return (rf"\b{re.escape(name)}\b", *_FUNCTION_WORDS, *_LAYOUT, *_SCALE)


def _flip_comparison(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    signs = {ast.Eq: "!=", ast.NotEq: "==", ast.Lt: ">", ast.Gt: "<", ast.LtE: ">", ast.GtE: "<"}
    other = signs.get(type(node.ops[0]))
    if other:
        after = f"{_text(node.left)} {other} {_text(node.comparators[0])}"
        words = (*_MASK, *_SUM, *_INDEX, *_FUNCTION_WORDS, *_SETTING)
        yield _replace("comparison", node, line, after, words)


def _swap_arguments(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return
    first, second = node.args[:2]
    if isinstance(first, ast.Name) and isinstance(second, ast.Name) and first.id != second.id:
        start, end = first.col_offset, second.end_col_offset
        between = line[first.end_col_offset : second.col_offset].decode()
        yield _replace(
            "swapped arguments", node, line, f"{second.id}{between}{first.id}", _SWAP, start, end
        )


def _change_index(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    """Take another element, or begin a slice one later."""
    if not isinstance(node, ast.Subscript):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        number = _number(part)
        if number is not None and ".shape" not in _text(node.value):
            yield _replace("index", part, line, repr(-1 if number == 0 else number - 1), _INDEX)


def _exchange_function(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    if not isinstance(node, ast.Attribute) or node.attr not in _EXCHANGED:
        return
    start = (node.end_col_offset or 0) - len(node.attr)
    other = _EXCHANGED[node.attr]
    words = (*_FUNCTION_WORDS, *_MASK, *_INDEX, rf"{node.attr}.*{other}|{other}.*{node.attr}",
             r"takes the .* Paddle", r"sum of squares", r"same all along", *_SCALE)  # fmt: skip
    yield _replace("function", node, line, other, words, start, node.end_col_offset)


def _leave_out_bias(node: ast.AST, line: bytes) -> Iterator[Mutation]:
    if isinstance(node, ast.Call) and _text(node.func).endswith("Linear") and len(node.args) == 2:
        if not node.keywords:
            after = f"{_text(node)[:-1]}, bias_attr=False)"
            yield _replace("layer argument", node, line, after, (r"\bbias\b",))


CHANGES: Final[Sequence[Callable[[ast.AST, bytes], Iterator[Mutation]]]] = (
    _exchange_operator, _change_constant, _change_axis, _exchange_axes, _flip_boolean, _change_keyword,
    _change_rate, _drop_call, _flip_comparison, _swap_arguments, _change_index, _exchange_function,
    _leave_out_bias,
)  # fmt: skip
