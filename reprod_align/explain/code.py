"""A source file as text and as a syntax tree, and edits of it that leave every other line as it is."""

import ast
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

Node = ast.expr | ast.stmt


@dataclass(frozen=True)
class Edit:
    """Text that takes the place of the bytes from `start` to `end` of a UTF-8 file."""

    start: int
    end: int
    text: str


class Code:
    """A module's source."""

    def __init__(self, text: str) -> None:
        """Parse `text`. Raises SyntaxError."""
        self.text = text
        self.tree = ast.parse(text)
        self._bytes = text.encode()
        self._lines = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree, parents first."""
        return list(ast.walk(self.tree))

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    def parents(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what the node stands in, from the inside out."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def names(self, *names: str) -> Iterator[ast.Name]:
        """Yield the places at which one of the names is read."""
        for node in self.nodes:
            if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
                yield node

    def calls(self, line: int | None = None) -> Iterator[ast.Call]:
        """Yield the calls, or those that a line is part of, the innermost last."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and (line is None or covers(node, line)):
                yield node

    def attributes(self, name: str, line: int | None = None) -> Iterator[ast.Attribute]:
        """Yield the places that read attribute `name`, or those of one line."""
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and node.attr == name:
                if line is None or covers(node, line):
                    yield node

    def source(self, node: ast.AST) -> str:
        """Return the text of a node; of one that has no place in the file, what stands for it."""
        if getattr(node, "end_col_offset", None) is None:
            return ast.unparse(node)
        start, end = self._span(node)  # type: ignore[arg-type]
        return self._bytes[start:end].decode()

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of a byte, both from 1, the column in characters."""
        line = bisect_right(self._lines, offset) - 1
        return line + 1, len(self._bytes[self._lines[line] : offset].decode()) + 1

    def offset(self, line: int, column: int) -> int:
        """Return the byte at a line and a column, as `place` gives them."""
        start = self._lines[line - 1]
        text = self._bytes[start : self._lines[line]].decode()
        return start + len(text[: column - 1].encode())

    def replace(self, node: Node | ast.arg | ast.keyword, text: str) -> Edit:
        """Return the edit that puts `text` in place of a node."""
        return Edit(*self._span(node), text)

    def remove(self, statement: ast.stmt) -> Edit:
        """Return the edit that takes a statement out; an emptied block keeps a `pass`."""
        block = next(
            held for _, held in ast.iter_fields(next(self.parents(statement)))
            if isinstance(held, list) and statement in held
        )  # fmt: skip
        start, end = self._span(statement)
        if len(block) == 1:
            return Edit(start, end, "pass")
        return Edit(self._lines[statement.lineno - 1], self._lines[_last_line(statement)], "")

    def rename_keyword(self, keyword: ast.keyword, name: str) -> Edit:
        """Return the edit that gives an argument another name."""
        start, _ = self._span(keyword)
        return Edit(start, start + len((keyword.arg or "").encode()), name)

    def remove_decorator(self, decorator: ast.expr) -> Edit:
        """Return the edit that takes a decorator off, its line with it."""
        return Edit(self._lines[decorator.lineno - 1], self._lines[_last_line(decorator)], "")

    def insert(self, before: ast.stmt, text: str) -> Edit:
        """Return the edit that puts whole lines before a statement, indented as it is."""
        decorators = getattr(before, "decorator_list", [])
        line = min(node.lineno for node in (before, *decorators))
        at = self._lines[line - 1]
        rows = [f"{' ' * before.col_offset}{row}".rstrip() for row in text.splitlines()]
        return Edit(at, at, "".join(f"{row}\n" for row in rows))

    def rename(self, definition: ast.stmt, name: str) -> Edit:
        """Return the edit that gives a function or class another name."""
        start, end = self._span(definition)
        words = self._bytes[start:end].split(b"(")[0].split(b":")[0]
        old = getattr(definition, "name", "").encode()
        at = start + words.rindex(old)
        return Edit(at, at + len(old), name)

    def _span(self, node: Node | ast.arg | ast.keyword) -> tuple[int, int]:
        start = self._lines[node.lineno - 1] + node.col_offset
        end = self._lines[_last_line(node) - 1] + (node.end_col_offset or 0)
        return start, end

    def apply(self, edits: Iterable[Edit]) -> "Code":
        """Return the code with the edits made; see `splice`. Raises SyntaxError."""
        return Code(self.splice(edits))

    def splice(self, edits: Iterable[Edit]) -> str:
        """Return the text with the edits made; of two that overlap, the first given counts."""
        return self.cut(0, len(self._bytes), edits)

    def cut(self, start: int, end: int, edits: Iterable[Edit]) -> str:
        """Return the text between two bytes with the edits in it made, as `splice` makes them."""
        made: list[Edit] = []
        for edit in edits:
            if all(edit.end <= one.start or edit.start >= one.end for one in made):
                made.append(edit)
        content = self._bytes[start:end]
        for edit in sorted(made, key=lambda edit: edit.start, reverse=True):
            before, after = content[: edit.start - start], content[edit.end - start :]
            content = before + edit.text.encode() + after
        return content.decode()


@lru_cache(maxsize=64)
def parse_code(text: str) -> Code:
    """Return a text's code, parsed once. Raises SyntaxError."""
    return Code(text)


def _last_line(node: Node | ast.arg | ast.keyword) -> int:
    return node.end_lineno or node.lineno


def covers(node: Node, line: int) -> bool:
    """Tell whether a line is one of the node's."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def dotted(node: ast.AST) -> str:
    """Return "paddle.nn.Linear" for such an expression, "" for another one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=256)
def list_imports(tree: ast.Module) -> dict[str, str]:
    """Return what a module's imports bind: {"F": "torch.nn.functional", "Tensor": "torch.Tensor"}."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                bound[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            before = "." * node.level + (node.module or "")
            dot = "." if node.module else ""
            bound |= {
                alias.asname or alias.name: f"{before}{dot}{alias.name}" for alias in node.names
            }
    return bound
