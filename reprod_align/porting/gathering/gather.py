"""Gathers what a model needs into one file: its definitions, in an order in which they can be run."""

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from reprod_align.porting.code import Code, Edit
from reprod_align.porting.gathering.executed import Place
from reprod_align.porting.gathering.modules import Definition, Import, Library, Module, write_import
from reprod_align.porting.source import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
_NOT_RUN: Final = 'raise NotImplementedError("not ported: the model was built and run without it")'
_Key = tuple[str, str]
"""a module's name, and a name that it binds"""


@dataclass(frozen=True)
class Gathered:
    """A file that stands by itself."""

    text: str
    neighbours: tuple[str, ...] = ()
    """the other modules that something was taken from"""
    left_out: tuple[str, ...] = ()
    """functions whose content was left out: nothing ran them, and they need more of the package"""


def gather(source: Source, executed: frozenset[Place]) -> Gathered:
    """Return the source file, made independent of the PyTorch code of its package.

    A file that needs none of it is taken whole; else what the call reaches. executed: the functions
    that building and running the model calls.
    """
    library = Library()
    module = library.open(source.name)
    if module is None:
        return Gathered(source.path.read_text(encoding="utf-8"))
    if not any(library.find_home(one) for one in module.imports.values()):
        return Gathered(write_whole(module))
    work = _Gatherer(library, executed)
    for name in sorted(_read_names(ast.parse(source.call))):
        work.require(module, name)
    return work.finish(module)


def write_whole(module: Module) -> str:
    """Return a module's text with its relative imports written in full."""
    edits = [
        module.code.replace(node, "\n".join(
            str(module.imports[alias.asname or alias.name]) for alias in node.names
        ).replace("\n", f"\n{' ' * node.col_offset}"))
        for node in module.code.nodes if isinstance(node, ast.ImportFrom) and node.level
    ]  # fmt: skip
    return module.code.apply(edits).text


@dataclass
class _Piece:
    """A definition on its way into the file."""

    definition: Definition
    whole: bool
    """whether it is run on import: then nothing of it is left out"""
    first: dict[str, _Key] = field(default_factory=dict)
    """what it reads when it is defined"""
    later: dict[str, _Key] = field(default_factory=dict)
    """what it reads when it is called"""


class _Gatherer:
    """Follows names from definition to definition."""

    def __init__(self, library: Library, executed: frozenset[Place]) -> None:
        self.library, self.executed = library, executed
        self.pieces: dict[_Key, _Piece] = {}
        self.imports: dict[_Key, Import] = {}
        self.left_out: dict[int, Function] = {}

    def require(self, module: Module, name: str, whole: bool = False) -> _Key | None:
        """Take a name that a module reads, and what it needs; None for a builtin or a local name."""
        definition = module.define(name)
        if definition is None:
            found = module.imports.get(name)
            if found is None:
                return None
            home = self.library.find_home(found)
            if home is None:
                found = self.library.trace(found)
                key = (f"{found.module}:{found.name}", name)
                self.imports[key] = found
                return key
            definition = home[0].define(home[1])
            assert definition is not None
        key = (definition.module.name, definition.name)
        known = self.pieces.get(key)
        if known is None or (whole and not known.whole):
            self.pieces[key] = _Piece(definition, whole)
            self._follow(self.pieces[key])
        return key

    def _follow(self, piece: _Piece) -> None:
        for statement in piece.definition.statements:
            first, later, skipped = self._split(piece, statement)
            for names, keys, on_import in (
                (first, piece.first, True),
                (later, piece.later, piece.whole),
            ):
                for name in sorted(names):
                    called = names is later or self._is_function(piece, name)
                    whole = on_import and called
                    key = self.require(piece.definition.module, name, whole)
                    if key is not None:
                        keys[name] = key
            self.left_out |= {id(node): node for node in skipped}
            if piece.whole:
                for node in ast.walk(statement):
                    self.left_out.pop(id(node), None)

    def _is_function(self, piece: _Piece, name: str) -> bool:
        """Tell whether a name read on import is called then: a decorator, a function in a value."""
        return name in {
            node.id
            for statement in piece.definition.statements
            for called in _list_called(statement)
            for node in ast.walk(called)
            if isinstance(node, ast.Name)
        }

    def _split(
        self, piece: _Piece, statement: ast.stmt
    ) -> tuple[set[str], set[str], list[Function]]:
        """Return the names read on definition, those read later, and the functions that nothing runs."""
        first: set[str] = set()
        later: set[str] = set()
        skipped: list[Function] = []
        if isinstance(statement, Function):
            self._split_function(piece, statement, first, later, skipped)
        elif isinstance(statement, ast.ClassDef):
            for part in (
                *statement.bases,
                *(word.value for word in statement.keywords),
                *statement.decorator_list,
            ):
                first |= _read_names(part)
            for held in statement.body:
                if isinstance(held, Function):
                    self._split_function(piece, held, first, later, skipped)
                else:
                    first |= _read_names(held)
        else:
            first |= _read_names(statement)
        return first, later, skipped

    def _split_function(
        self,
        piece: _Piece,
        node: Function,
        first: set[str],
        later: set[str],
        skipped: list[Function],
    ) -> None:
        arguments = node.args
        for part in (
            *node.decorator_list,
            *arguments.defaults,
            *filter(None, arguments.kw_defaults),
        ):
            first |= _read_names(part)
        line = min(one.lineno for one in (node, *node.decorator_list))
        runs = (str(piece.definition.module.path), line) in self.executed
        if piece.whole or runs:
            for held in node.body:
                later |= _read_names(held)
        else:
            skipped.append(node)

    # ------------------------------------------------------------------ writing

    def finish(self, own: Module) -> Gathered:
        """Return the file."""
        self._keep_what_needs_no_more()
        names = self._choose_names()
        written = [self._write(key, names) for key in self._order(own)]
        imports = sorted(
            {write_import(self._rename(key, one, names)) for key, one in self.imports.items()}
        )
        header = ["from __future__ import annotations", *imports]
        others = {key[0] for key in self.pieces} - {own.name}
        left = [node.name for node in self.left_out.values()]
        text = "\n".join(header) + "\n\n\n" + "\n\n\n".join(written) + "\n"
        return Gathered(text, tuple(sorted(others)), tuple(sorted(set(left))))

    def _keep_what_needs_no_more(self) -> None:
        """Take the content of a function that nothing ran where all that it needs is there."""
        for piece in self.pieces.values():
            module = piece.definition.module
            for node in [n for n in self.left_out.values() if n in _functions(piece.definition)]:
                names = set().union(*map(_read_names, node.body))
                needed = {name: self._find_key(module, name) for name in names}
                if all(
                    key is None or key in self.pieces or key in self.imports
                    for key in needed.values()
                ):
                    piece.later |= {name: key for name, key in needed.items() if key}
                    del self.left_out[id(node)]

    def _find_key(self, module: Module, name: str) -> _Key | None:
        """Return the key of a name without taking it; None for a local name or a builtin."""
        if module.define(name):
            return module.name, name
        found = module.imports.get(name)
        if found is None:
            return None
        home = self.library.find_home(found)
        if home is not None:
            return home[0].name, home[1]
        found = self.library.trace(found)
        key = (f"{found.module}:{found.name}", name)
        self.imports[key] = found
        return key

    def _choose_names(self) -> dict[_Key, str]:
        """Return a name of its own for everything in the file."""
        taken: dict[str, _Key] = {}
        chosen: dict[_Key, str] = {}
        for key in (*self.pieces, *self.imports):
            name, number = key[1], 2
            while name in taken or (name != key[1] and hasattr(builtins, name)):
                name, number = f"{key[1]}_{number}", number + 1
            taken[name], chosen[key] = key, name
        return chosen

    def _rename(self, key: _Key, one: Import, names: dict[_Key, str]) -> Import:
        return one if names[key] == one.bound else Import(names[key], one.module, one.name)

    def _order(self, own: Module) -> list[_Key]:
        """Return the definitions, each after what it reads when it is defined."""
        ranks = {key: (key[0] == own.name, -at) for at, key in enumerate(self.pieces)}
        done: dict[_Key, None] = {}
        open_now: set[_Key] = set()

        def place(key: _Key, later: bool) -> None:
            if key in done or key in open_now or key not in self.pieces:
                return
            open_now.add(key)
            piece = self.pieces[key]
            for needed in piece.first.values():
                place(needed, later or self._is_function(piece, needed[1]))
            if later:  # it runs on import
                for needed in piece.later.values():
                    place(needed, True)
            done[key] = None

        for key in sorted(self.pieces, key=lambda key: ranks[key]):
            place(key, self.pieces[key].whole)
        return list(done)

    def _write(self, key: _Key, names: dict[_Key, str]) -> str:
        """Return a definition's text, with what is left out and the names that were chosen."""
        piece = self.pieces[key]
        module = piece.definition.module
        held = {
            name: names[found]
            for name, found in (piece.first | piece.later).items()
            if found in names
        }
        renamed = {name: new for name, new in held.items() if name != new}
        texts = [
            _cut(
                module.code,
                statement,
                list(self._edit(module.code, statement, renamed, key, names)),
            )
            for statement in piece.definition.statements
        ]
        return "\n\n".join(texts)

    def _edit(
        self,
        code: Code,
        statement: ast.stmt,
        renamed: dict[str, str],
        key: _Key,
        names: dict[_Key, str],
    ) -> Iterator[Edit]:
        for node in ast.walk(statement):
            if id(node) in self.left_out and isinstance(node, Function):
                yield _empty(code, node)
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in renamed:
                yield code.replace(node, renamed[node.id])
        if names[key] != key[1] and isinstance(statement, ast.ClassDef | Function):
            yield code.rename(statement, names[key])
        elif names[key] != key[1]:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id == key[1]:
                    yield code.replace(node, names[key])


def _functions(definition: Definition) -> list[ast.AST]:
    return [node for statement in definition.statements for node in ast.walk(statement)
            if isinstance(node, Function)]  # fmt: skip


def _empty(code: Code, node: Function) -> Edit:
    """Return the edit that leaves a function's docstring and an error."""
    body = (
        node.body[1:] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body
    )
    start, end = code.replace(body[0], ""), code.replace(body[-1], "")
    first = body[0]
    decorators = getattr(first, "decorator_list", [])
    at = code.replace(decorators[0], "").start - 1 if decorators else start.start
    return Edit(at, end.end, _NOT_RUN)


def _cut(code: Code, statement: ast.stmt, edits: Iterable[Edit]) -> str:
    """Return the text of a statement, its decorators included, after the edits."""
    decorators = getattr(statement, "decorator_list", [])
    start = min(code.replace(node, "").start for node in (statement, *decorators)) - bool(
        decorators
    )
    end = code.replace(statement, "").end
    moved = [Edit(one.start - start, one.end - start, one.text) for one in edits]
    text = code.text.encode()[start:end].decode()
    return Code(text).apply(moved).text


def _read_names(node: ast.AST) -> set[str]:
    """Return the names that a node reads, annotations aside."""
    names: set[str] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Name):
            names.add(one.id)
        for part, held in ast.iter_fields(one):
            if part in ("annotation", "returns"):
                continue
            waiting += [
                item
                for item in (held if isinstance(held, list) else [held])
                if isinstance(item, ast.AST)
            ]
    return names


def _list_called(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield what is called while a statement is defined: decorators, and calls in values."""
    if isinstance(statement, Function | ast.ClassDef):
        yield from statement.decorator_list
        for held in statement.body if isinstance(statement, ast.ClassDef) else []:
            yield from _list_called(held)
    else:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield node.func
