"""A source and its syntax tree, with places as bytes; a change of it replaces bytes and nothing else."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(frozen=True)
class Splice:
    """The bytes start..end of a source, and what stands in their place afterwards."""

    start: int
    end: int
    after: str

    def apply(self, text: str) -> str:
        """Return the text with this change; what is outside the span stays byte for byte."""
        held = text.encode()
        return (held[: self.start] + self.after.encode() + held[self.end :]).decode()

    def undo(self, text: str, before: str) -> str:
        """Return the text without this change."""
        return Splice(self.start, self.start + len(self.after.encode()), before).apply(text)


@dataclass
class Source:
    """A source that can be asked where a node stands and what is around it."""

    text: str
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        """Read the tree, and where each line begins."""
        self.tree = ast.parse(self.text)
        self._bytes = self.text.encode()
        self._starts = [0, *accumulate(len(line) for line in self._bytes.split(b"\n"))]
        self._parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }

    def offset(self, line: int, column: int) -> int:
        """Return the place in bytes of a line (from 1) and its column in bytes."""
        return self._starts[line - 1] + line - 1 + column

    def line(self, offset: int) -> int:
        """Return the line (from 1) on which a byte stands."""
        return self._bytes.count(b"\n", 0, offset) + 1

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the bytes of a node, start and end."""
        first = self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return first, self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def cut(self, start: int, end: int) -> str:
        """Return the text of a span."""
        return self._bytes[start:end].decode()

    def code(self, node: ast.AST) -> str:
        """Return the text of a node."""
        return self.cut(*self.span(node))

    def find(self, pattern: str, start: int, end: int) -> tuple[int, int] | None:
        """Return the span of a pattern between two bytes."""
        found = re.compile(pattern.encode()).search(self._bytes, start, end)
        return found.span() if found else None

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what holds a node, from the inside."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def parent(self, node: ast.AST) -> ast.AST:
        """Return what holds a node."""
        return self._parents[node]

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that a node belongs to."""
        return next(it for it in (node, *self.around(node)) if isinstance(it, ast.stmt))

    def function(self, node: ast.AST) -> ast.FunctionDef | None:
        """Return the function that a node belongs to."""
        return next((it for it in self.around(node) if isinstance(it, ast.FunctionDef)), None)

    def call(self, node: ast.AST) -> ast.Call | None:
        """Return the innermost call of which a node is a part, the node itself left out."""
        for it in self.around(node):
            if isinstance(it, ast.Call):
                return it
            if isinstance(it, ast.stmt):
                return None
        return None


def last_name(node: ast.AST) -> str:
    """Return what a function or a value is called: "dense" of self.dense."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return getattr(node, "attr", getattr(node, "id", ""))


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield every name, attribute and keyword in a node."""
    for part in ast.walk(node):
        yield getattr(part, "id", "") or getattr(part, "attr", "") or getattr(part, "arg", "") or ""


def read_number(node: ast.AST) -> int | float | None:
    """Return the number that a node states, with its sign; None if it states none."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError):
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_plain(node: ast.AST) -> bool:
    """Tell whether a node is a constant alone, which may stand anywhere."""
    return isinstance(node, ast.Constant) or read_number(node) is not None


def covering(source: Source, start: int, end: int) -> list[str]:
    """Return every expression but plain constants that holds a span, in one spelling each, inside first.

    An empty span, from which something was taken, is held by what goes on behind it.
    """
    last = max(end, start + 1)
    inside = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.expr) and _holds(source.span(node), start, last)
        if not is_plain(node)
    ]
    return [spell(node) for node in sorted(inside, key=lambda node: _length(source.span(node)))]


def spell(node: ast.AST) -> str:
    """Return the code of a node, however it was laid out."""
    return ast.unparse(node)


def _holds(span: Sequence[int], start: int, end: int) -> bool:
    return span[0] <= start and end <= span[1]


def _length(span: Sequence[int]) -> int:
    return span[1] - span[0]
