"""Gathers what a model needs into one file: its definitions, in an order in which they can be run."""

import ast
import builtins
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import Final

from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.porting.gathering.modules import (
    Definition,
    Import,
    Library,
    Module,
    find_bound,
    find_first_line,
    is_torch,
    list_idle,
    peek,
    write_imports,
)
from reprod_align.porting.gathering.reading import (
    Executed,
    Function,
    is_called,
    list_reads,
    read_names,
    reads_own_names,
)
from reprod_align.porting.source import Source

_ROUNDS: Final = 30  # rehearsals
NOT_PORTED: Final = "is not ported: the model was built and run without it"
_NOT_RUN: Final = f'raise NotImplementedError("{{}} {NOT_PORTED}")'
_MISSING: Final = re.compile(r"NameError: name '(\w+)' is not defined")
_LOOKING: Final = (("getattr", 2), ("getattr", 3), ("vars", 1))
"""what looks a name up in a module, and with how many arguments"""
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
    chosen: tuple[str, ...] = ()
    """calls that chose a class, each with what stands in its place"""


def bring_call(source: Source, executed: Executed) -> tuple[Source, tuple[Import, ...]]:
    """Return the source with names in its call in place of `__import__("package").Model`, and their imports.

    What is imported so is ported as what the file imports is; what handles nothing of PyTorch's stays.
    """
    try:
        code = Code(source.call)
    except SyntaxError:
        return source, ()
    library, brought, edits = Library(executed), dict[str, Import](), list[Edit]()
    for node in (one for one in code.nodes if isinstance(one, ast.Attribute)):
        found = _find_imported(node)
        if found is None or not (is_torch(found.module) or library.find_home(found)):
            continue
        named = find_bound(found) if found.name else sys.modules[found.module]
        if getattr(source.module, found.bound, named) is not named:
            continue  # the file means something else by that name
        brought[found.bound] = found
        edits.append(
            code.replace(node, found.bound if found.name else f"{found.bound}.{node.attr}")
        )
    if not brought:
        return source, ()
    return replace(source, made_by=code.splice(edits)), tuple(brought.values())


def _import_called(call: ast.Call) -> ModuleType | None:
    """Return the module that `__import__("a")` or `import_module("a.b")` imports; other calls: None."""
    name, word = dotted(call.func), getattr(call.args[0], "value", None) if call.args else None
    if not isinstance(word, str) or name.rpartition(".")[2] not in ("__import__", "import_module"):
        return None
    alone = name == "__import__" and len(call.args) + len(call.keywords) == 1
    return __import__(word) if alone else import_module(word)


def _find_imported(node: ast.Attribute) -> Import | None:
    """Return what `__import__("a").b.C` names, the first of the chain that is no module; None for others."""
    names, held = [node.attr], node.value
    while isinstance(held, ast.Attribute):
        names.insert(0, held.attr)
        held = held.value
    module = _import_called(held) if isinstance(held, ast.Call) else None
    if module is not None and module.__name__ == "torch":
        return Import("torch", "torch") if len(names) == 1 else None
    for name in names[:-1]:
        module = getattr(module, name, None)
        if not isinstance(module, ModuleType):
            return None
    if module is None or isinstance(getattr(module, names[-1], None), ModuleType):
        return None
    return Import(names[-1], module.__name__, names[-1])


def gather(
    source: Source,
    executed: Executed,
    rehearse: Callable[[str], str] = lambda text: "",
    needed: Sequence[str] = (),
    watch: Callable[[Module], Executed] = lambda module: Executed(),
    brought: Sequence[Import] = (),
) -> Gathered:
    """Return the source file, made independent of the PyTorch code of its package.

    A file that needs none of it is taken whole; else what the call reaches. executed: the functions
    that building and running the model calls. rehearse: imports a gathered text, builds its model and runs
    it, and returns the error: a function that it needs, on import above all, is taken too. needed: such
    errors of the port, which takes another way than PyTorch's model where a type is asked for. watch: returns
    what building and running the model calls in the source with classes in place of its factories. brought:
    what the call imports beside the file, see `bring_call`.
    """
    library = Library(executed)
    module = library.open(source.name)
    if module is None:
        return Gathered(source.path.read_text(encoding="utf-8"))
    module.bring(brought)
    if not any(
        library.find_home(one) or library.find_module(one) for one in module.imports.values()
    ):
        further = "".join(f"\n{one}\n" for one in brought if one.bound not in module.code.text)
        return Gathered(write_whole(module) + further)
    calls = source.made_by or source.call
    if source.script:
        calls = f"{calls}, {source.script.call}"
    work = None
    inherited = [one for one in executed.made if one.is_inherited]
    library.replace_factory(inherited, module.name, lambda name, _: name == source.name)
    for _ in range(_ROUNDS):
        if work is None:
            module = library.open(source.name) or module
            module.bring(brought)
            if module.added:  # the classes themselves may take another way than their factories
                library.forget(watch(module))
            work = _Gatherer(library, read_names(ast.parse(calls)))
            for name in sorted(work.called):
                work.require(module, name)
            work.require_what_ran()
            for error in needed:
                work.take(error)
        made = work.finish(module)
        if library.bring_along(work.pieces):
            work = None
            continue
        error = rehearse(made.text)
        if not work.take(error):
            lacking = library.list_lacking(error, work.pieces) if error else []
            if not library.replace_factory(lacking, module.name, work.holds):
                break
            work = None
    return made


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

    @property
    def has_hook(self) -> bool:
        """Whether it is a class that does something whenever a class is derived from it."""
        inside = (part for one in self.definition.statements for part in getattr(one, "body", ()))
        return any(getattr(part, "name", "") == "__init_subclass__" for part in inside)


class _Gatherer:
    """Follows names from definition to definition."""

    def __init__(self, library: Library, called: set[str]) -> None:
        """called: the names that the call of the model reads, which stay imported with it."""
        self.library, self.executed, self.called = library, library.executed, called
        self.pieces: dict[_Key, _Piece] = {}
        self.imports: dict[_Key, Import] = {}
        self.left_out: dict[int, Function] = {}
        self.read: set[str] = set()
        self.written: set[int] = set()
        self.taken: set[int] = set()
        """functions that a rehearsal needed"""
        self.searched: set[str] = set()
        """modules in which something is looked up by its name"""
        self.idle: dict[int, tuple[_Key, ast.expr]] = {}
        """decorators that return what they are given, for what their registry is not in the file"""

    def holds(self, module: str, line: int) -> bool:
        """Tell whether a line of a module is in the file."""
        return any(
            key[0] == module and find_first_line(one) <= line <= (one.end_lineno or 0)
            for key, piece in self.pieces.items()
            for one in piece.definition.statements
        )

    def require(
        self, module: Module, name: str, whole: bool = False, imported: bool = False
    ) -> _Key | None:
        """Take a name that a module reads, and what it needs; None for a builtin or a local name.

        imported: whether it is what the module imports by a name that it defines too.
        """
        key, definition = self._find(module, name, imported)
        if key is not None and definition is not None:
            known = self.pieces.get(key)
            if known is None or (whole and not known.whole):
                self.pieces[key] = _Piece(definition, whole)
                self._follow(self.pieces[key])
        return key

    def take(self, error: str) -> bool:
        """Take what a rehearsal ended without; tell whether there is anything.

        That is the content of the functions whose error it is, or a name that only annotations read, which
        `typing.get_type_hints` evaluates.
        """
        found = self._take_annotated(error)
        found = self._take_functions(lambda name: f"{name} {NOT_PORTED}" in error) or found
        if found:
            self.require_what_ran()
        return found

    def _take_functions(self, is_needed: Callable[[str], bool]) -> bool:
        """Take the bodies of left-out functions that are needed, and of those that these call by name."""
        taken: list[Function] = []
        for piece in list(self.pieces.values()):
            for node, name in name_functions(piece.definition.statements):
                if id(node) in self.left_out and is_needed(name):
                    del self.left_out[id(node)]
                    self.taken.add(id(node))
                    taken.append(node)
            if taken:
                self._follow(piece)
        called = {part.func.id for node in taken for part in ast.walk(node)
                  if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}  # fmt: skip
        if called:
            self._take_functions(lambda name: name in called)
        return bool(taken)

    def _take_annotated(self, error: str) -> bool:
        """Take a name that is not defined, of the modules whose annotations read it."""
        missing, found = _MISSING.search(error), False
        for piece in list(self.pieces.values()) if missing else ():
            module, name = piece.definition.module, missing[1] if missing else ""
            read = (node for part in piece.definition.statements for node in ast.walk(part))
            if any(isinstance(node, ast.Name) and node.id == name for node in read):
                key = self.require(module, name)
                if key and piece.first.get(name) != key:
                    piece.first[name], found = key, True
        return found

    def require_what_ran(self) -> None:
        """Take what no name leads to: definitions that handled tensors, and the registries that are there."""
        for _ in range(5):
            before = len(self.pieces)
            self._require_registries()
            self._require_entries()
            self._require_namespaces()
            held = {
                id(one) for piece in self.pieces.values() for one in piece.definition.statements
            }
            near = {piece.definition.module.name for piece in self.pieces.values()}
            for module in self.library.list_handling():
                for statement in module.code.tree.body:
                    if isinstance(statement, ast.ClassDef | Function) and id(statement) not in held:
                        last = statement.end_lineno or 0
                        if self.executed.handles(
                            str(module.path), find_first_line(statement), last
                        ) and (
                            module.name in near
                            or self._is_entered(module, statement)
                            or self._is_derived(module, statement)
                        ):
                            self.require(module, statement.name)
            if len(self.pieces) == before:
                return

    def find_unit(self, module: Module, words: str) -> str:
        """Return the part of "a.b.c" that is taken as one: what the module aliases in it lead to."""
        parts = words.split(".")
        found = None if module.define(parts[0]) else module.imports.get(parts[0])
        if found is None or len(parts) == 1:
            return parts[0]
        held = self.library.find_module(found)
        for at, part in enumerate(parts[1:], 2):
            if held is None:
                return parts[0]
            below = peek(held, part)
            if not isinstance(below, ModuleType):
                return ".".join(parts[:at])
            held = below if self.library.find_module(Import(part, held.__name__, part)) else None
        return parts[0]

    def _find(
        self, module: Module, words: str, imported: bool = False
    ) -> tuple[_Key | None, Definition | None]:
        """Return a name's key and its definition; no definition: imported; no key: builtin or local."""
        name = self.find_unit(module, words)
        definition = None if imported else module.define(name)
        if definition is None:
            found = module.imports.get(name)
            if "." in name:
                first, _, last = name.rpartition(".")
                held = self.library.find_module(module.imports[first.partition(".")[0]])
                for part in first.split(".")[1:]:
                    held = getattr(held, part)
                found = Import(last, held.__name__, last) if held is not None else None
            if found is None:
                return None, None
            home = self.library.find_home(found)
            if home is None:
                if "." in name:
                    found = module.imports[name.partition(".")[0]]
                    return self._keep_import(found, found.bound), None
                return self._keep_import(found, name), None
            definition = home[0].define(home[1])
            assert definition is not None
        return (definition.module.name, definition.name), definition

    def _keep_import(self, found: Import, name: str) -> _Key:
        found = self.library.trace(found)
        top = found.module.partition(".")[0]
        if not found.name and found.bound == top and found.module != top:  # `import a.b` binds a
            self.imports[(f"{found.module}:", found.module)] = found
            found = Import(top, top)
        key = (f"{found.module}:{found.name}", name)
        self.imports[key] = found
        return key

    def _follow(self, piece: _Piece) -> None:
        module, statements = piece.definition.module, piece.definition.statements
        own = (module.name, piece.definition.name)
        for statement in statements:
            for decorator in list_idle(module, statement, self.executed):
                if id(decorator) not in self.idle:
                    self.idle[id(decorator)] = own, decorator
            reads = list_reads(
                statement,
                lambda node: piece.whole or id(node) in self.taken or self._runs(module, node),
                self.idle,
            )
            missing = module.list_missing(statement)
            for words in sorted(reads.first - missing):
                name = self.find_unit(module, words)
                is_base = name == own[1] and name in module.imports and _derives(statement, name)
                if key := self.require(module, name, is_called(name, statements), is_base):
                    piece.first[self._bind(name, key)] = key
            for words in sorted(reads.later):
                name = self.find_unit(module, words)
                if key := self.require(module, name, piece.whole):
                    piece.later[self._bind(name, key)] = key
            self.left_out |= {id(node): node for node in reads.skipped}
            if piece.whole:
                for node in ast.walk(statement):
                    self.left_out.pop(id(node), None)

    def _require_registries(self) -> None:
        """Keep the decorators that enter what they decorate into a registry that is in the file."""
        for number, (key, decorator) in list(self.idle.items()):
            module = self.pieces[key].definition.module
            words = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if self._fills(module, words):
                del self.idle[number]
                for name in read_names(decorator):
                    if found := self.require(module, self.find_unit(module, name), whole=True):
                        self.pieces[key].first[self._bind(self.find_unit(module, name), found)] = (
                            found
                        )

    def _require_entries(self) -> None:
        """Keep calls at the top, `register("name", Block)`, that enter a piece into a registry there."""
        for key, piece in list(self.pieces.items()):
            module, statements = piece.definition.module, piece.definition.statements
            for statement in module.code.tree.body:
                call = statement.value if isinstance(statement, ast.Expr) else None
                if not isinstance(call, ast.Call) or statement in statements:
                    continue
                given = (*call.args, *(one.value for one in call.keywords))
                names = {one.id for one in given if isinstance(one, ast.Name)}
                words = dotted(call.func)
                if piece.definition.name in names and words and self._fills(module, words):
                    definition = replace(piece.definition, statements=(*statements, statement))
                    self.pieces[key] = _Piece(definition, piece.whole)
                    self._follow(self.pieces[key])

    def _require_namespaces(self) -> None:
        """Take what is looked up by name in `globals()`, or in a module: all that handled tensors."""
        for piece in list(self.pieces.values()):
            module = piece.definition.module
            for statement in piece.definition.statements:
                for node in self._walk_kept(statement):
                    searched = (
                        module if reads_own_names(node) else self._find_searched(module, node)
                    )
                    if searched is not None:
                        self.searched.add(searched.name)
        for name in sorted(self.searched):
            if searched := self.library.open(name):
                self._require_bound(searched)

    def _require_bound(self, module: Module) -> None:
        """Take what a module binds that handled tensors, and other names of what is in the file."""
        for statement in module.code.tree.body:
            if isinstance(statement, ast.ClassDef | Function):
                last = statement.end_lineno or 0
                if self.executed.handles(str(module.path), find_first_line(statement), last):
                    self.require(module, statement.name)
            elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
                if self._find(module, statement.value.id)[0] in self.pieces:
                    for target in statement.targets:
                        if isinstance(target, ast.Name):
                            self.require(module, target.id)
        for bound, found in list(module.imports.items()):
            home = self.library.find_home(found) if found.module in sys.modules else None
            definition = home[0].define(home[1]) if home else None
            if (
                home
                and definition
                and any(
                    self.executed.handles(
                        str(home[0].path), find_first_line(one), one.end_lineno or 0
                    )
                    for one in definition.statements
                )
            ):
                self.require(module, bound)

    def _walk_kept(self, statement: ast.stmt) -> Iterator[ast.AST]:
        """Yield the nodes of a statement, what is left out aside."""
        waiting: list[ast.AST] = [statement]
        while waiting:
            node = waiting.pop()
            if id(node) not in self.left_out:
                yield node
                waiting += ast.iter_child_nodes(node)

    def _find_searched(self, module: Module, node: ast.AST) -> Module | None:
        """Return the module of the package in which `getattr(module, name)` or `vars(module)` looks."""
        words = dotted(node.func) if isinstance(node, ast.Call) else ""
        if not isinstance(node, ast.Call) or (words, len(node.args)) not in _LOOKING:
            return None
        found = module.imports.get(dotted(node.args[0]))
        if found is None or any(isinstance(one, ast.Constant) for one in node.args[1:2]):
            return None
        held = self.library.find_module(found)
        return self.library.open(held.__name__) if held else None

    def _is_entered(self, module: Module, statement: ast.ClassDef | Function) -> bool:
        """Tell whether a decorator enters a definition into a registry that is in the file."""
        words = (
            dotted(one.func if isinstance(one, ast.Call) else one)
            for one in statement.decorator_list
        )
        return any(self._fills(module, one) for one in words if one)

    def _is_derived(self, module: Module, statement: ast.ClassDef | Function) -> bool:
        """Tell whether a class is derived from one that is in the file, which may keep a list of such."""
        bases = (dotted(one) for one in getattr(statement, "bases", ()))
        return any(self._find(module, one)[0] in self.pieces for one in bases if one)

    def _fills(self, module: Module, words: str) -> bool:
        """Tell whether a decorator is of a registry that is in the file, or reads one."""
        held, definition = self._find(module, words.partition(".")[0])
        if held is None or definition is None:
            return False
        if "." in words:
            return held in self.pieces
        names = {one for part in definition.statements for one in read_names(part)}
        found = [self._find(definition.module, name) for name in sorted(names)]
        return any(
            key in self.pieces and not isinstance(one.statements[0], ast.ClassDef | Function)
            for key, one in found
            if key is not None and one is not None
        )

    def _bind(self, name: str, key: _Key) -> str:
        """Return what stands for a key in the text: of "module.name" that stays imported, the module."""
        return name.partition(".")[0] if key in self.imports else name

    def _runs(self, module: Module, node: Function) -> bool:
        line = min(one.lineno for one in (node, *node.decorator_list))
        return (str(module.path), line) in self.executed

    # ------------------------------------------------------------------ writing

    def finish(self, own: Module) -> Gathered:
        """Return the file."""
        self._require_what_checks()
        self._keep_what_needs_no_more(own)
        self._unite()
        self.read, self.written = self._list_read(), set()
        names = self._choose_names()
        written = [self._write(key, names) for key in self._order(own)]
        body = ast.parse("\n\n".join(written))
        used = set(_list_read_outside(body)) | {one.partition(".")[0] for one in self.called}
        used |= {node.name for node in body.body if isinstance(node, ast.ClassDef | Function)}
        kept = [self._rename(key, one, names) for key, one in self.imports.items() if key in names]
        imports = write_imports(one for one in kept if _is_used(one, used))
        header = ["from __future__ import annotations", *imports]
        others = {key[0] for key in self.pieces} - {own.name}
        left = [node.name for node in self.left_out.values()]
        text = "\n".join(header) + "\n\n\n" + "\n\n\n".join(filter(None, written)) + "\n"
        chosen = tuple(self.library.chosen)
        return Gathered(text, tuple(sorted(others)), tuple(sorted(set(left))), chosen)

    def _require_what_checks(self) -> None:
        """Take functions that would stay imported and read classes of which the file has copies.

        `isinstance(column, SparseFeat)` there asks for the class that stayed behind.
        """
        for found in list(self.imports.values()):
            home = self.library.locate(found)
            near = {piece.definition.module.name: piece.definition.module
                    for piece in self.pieces.values()}  # fmt: skip
            module = near.get(home[0])
            definition = module.define(home[1]) if module and home not in self.pieces else None
            if module is None or definition is None:
                continue
            names = {one for part in definition.statements if isinstance(part, Function)
                     for one in read_names(part)}  # fmt: skip
            keys = (self._find(module, name)[0] for name in sorted(names))
            if any(isinstance(self.pieces[key].definition.statements[0], ast.ClassDef)
                   for key in keys if key in self.pieces):  # fmt: skip
                self.pieces[home] = _Piece(definition, False)
                self._follow(self.pieces[home])

    def _keep_what_needs_no_more(self, own: Module) -> None:
        """Take the content of functions that nothing ran where all that they need is there.

        Of neighbours, of methods with names as `__reduce__` alone: Python calls them by itself.
        """
        for piece in self.pieces.values():
            module = piece.definition.module
            for node, _ in name_functions(piece.definition.statements):
                if id(node) not in self.left_out or (module is not own and node.name[:2] != "__"):
                    continue
                names = {
                    self.find_unit(module, words)
                    for part in node.body
                    for words in read_names(part)
                }
                needed = {name: self._find(module, name)[0] for name in names}
                if all(
                    key is None or key in self.pieces or key in self.imports
                    for key in needed.values()
                ):
                    piece.later |= {
                        self._bind(name, key): key for name, key in needed.items() if key
                    }
                    del self.left_out[id(node)]

    def _unite(self) -> None:
        """Read from the file what is in it, wherever it is imported from."""
        for key, found in list(self.imports.items()):
            home = self.library.locate(found)
            if home in self.pieces:
                del self.imports[key]
                for piece in self.pieces.values():
                    for reads in (piece.first, piece.later):
                        reads |= {name: home for name, one in reads.items() if one == key}

    def _list_read(self) -> set[str]:
        """Return the attributes and the words that what is in the file reads."""
        found: set[str] = set()
        statements = (one for piece in self.pieces.values() for one in piece.definition.statements)
        for node in (node for one in statements for node in self._walk_kept(one)):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
        return found

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
        return (
            one
            if names[key] == one.bound or "." in key[1]  # of `import a.b`, which binds a
            else Import(names[key], one.module, one.name)
        )

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
                place(needed, later or is_called(needed[1], piece.definition.statements))
            needs = piece.later.values() if later or piece.has_hook else ()  # it runs on import
            if piece.has_hook:  # with the classes that are derived from it
                done[key] = None
            for needed in needs:
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
        statements = [one for one in piece.definition.statements if id(one) not in self.written]
        self.written |= set(map(id, statements))  # one statement may bind several names
        texts = [
            _cut(
                module.code,
                statement,
                list(self._edit(module.code, statement, renamed, key, names)),
            )
            for statement in statements
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
        kept = {
            id(function)
            for function, name in name_functions([statement])
            if "." not in name or function.name in self.read or function.name[:2] == "__"
        }
        for one in ast.walk(statement):
            body = one.body if isinstance(one, ast.ClassDef) else []
            if body and all(id(part) in self.left_out and id(part) not in kept for part in body):
                kept.add(id(body[0]))  # a class needs something
        for function, name in name_functions([statement]):
            if id(function) in self.left_out:
                keeps = id(function) in kept
                yield _empty(code, function, name) if keeps else _drop(code, function)
        for node in ast.walk(statement):
            for decorator in getattr(node, "decorator_list", ()):
                if id(decorator) in self.idle:
                    yield code.remove_decorator(decorator)
        for node in ast.walk(statement):
            if self._find_searched(self.pieces[key].definition.module, node):
                assert isinstance(node, ast.Call)
                name, other = [*map(code.source, node.args[1:]), "", ""][:2]
                text = f"globals().get({name}, {other})" if other else f"globals()[{name}]"
                yield code.replace(node, text if name else "globals()")
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and dotted(node) in renamed:
                yield code.replace(node, renamed[dotted(node)])
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in renamed:
                yield code.replace(node, renamed[node.id])
            elif isinstance(node, ast.ImportFrom) and (
                node.level or self._takes_any(key, node, statement)
            ):
                yield self._write_inner_import(code, node, key, names, statement)
        if names[key] != key[1] and isinstance(statement, ast.ClassDef | Function):
            yield code.rename(statement, names[key])
        elif names[key] != key[1]:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id == key[1]:
                    yield code.replace(node, names[key])

    def _takes_any(self, key: _Key, node: ast.ImportFrom, statement: ast.stmt) -> bool:
        """Tell whether something that an import inside a definition binds is in the file."""
        bound = (one.asname or one.name for one in node.names if one.name != "*")
        return any(self._find_taken(key, name, statement) for name in bound)

    def _find_taken(self, key: _Key, name: str, statement: ast.stmt) -> _Key | None:
        """Return the key of what is in the file by a name, None if only the statement itself binds it."""
        module = self.pieces[key].definition.module
        found, definition = self._find(module, name)
        if found not in self.pieces or definition is None or statement in definition.statements:
            return None
        if name in module.list_missing(statement):
            return None
        return found

    def _write_inner_import(
        self,
        code: Code,
        node: ast.ImportFrom,
        key: _Key,
        names: dict[_Key, str],
        statement: ast.stmt,
    ) -> Edit:
        """Return the edit of an import inside a definition: what is in the file is not imported."""
        module = self.pieces[key].definition.module
        kept = []
        for one in node.names:
            bound = one.asname or one.name
            found = self._find_taken(key, bound, statement) if one.name != "*" else None
            if found in names:
                kept += [f"{bound} = {names[found]}"] if names[found] != bound else []
            else:
                kept.append(str(Import(bound, module.resolve(node), one.name)))
        separator = "\n" + " " * node.col_offset
        return code.replace(node, separator.join(kept) or "pass")


def _derives(statement: ast.stmt, name: str) -> bool:
    """Tell whether a class is derived from one of its own name, which was imported before it."""
    bases = statement.bases if isinstance(statement, ast.ClassDef) else []
    return any(isinstance(one, ast.Name) and one.id == name for one in bases)


def name_functions(statements: Iterable[ast.stmt]) -> Iterator[tuple[Function, str]]:
    """Yield the functions of a definition, each with its name: "Class.method" of one in a class."""
    waiting: list[tuple[ast.AST, str]] = [(one, "") for one in statements]
    while waiting:
        node, outer = waiting.pop(0)
        name = outer
        if isinstance(node, ast.ClassDef | Function):
            name = f"{outer}.{node.name}" if outer else node.name
            if isinstance(node, Function):
                yield node, name
        waiting += [(child, name) for child in ast.iter_child_nodes(node)]


def _list_read_outside(node: ast.AST, hidden: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the names in a tree, those aside that a function around them imports for itself."""
    if isinstance(node, Function):
        hidden |= {bound for part in node.body for bound in _list_own_imports(part)}
    if isinstance(node, ast.Name) and node.id not in hidden:
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _list_read_outside(child, hidden)


def _list_own_imports(node: ast.AST) -> Iterator[str]:
    """Yield what the imports in a statement bind, those of functions in it aside."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (one.asname or one.name.partition(".")[0] for one in node.names)
    elif not isinstance(node, Function | ast.ClassDef | ast.expr):
        for child in ast.iter_child_nodes(node):
            yield from _list_own_imports(child)


def _is_used(one: Import, used: set[str]) -> bool:
    """Tell whether an import is read; one of a module is kept, since others may read what it brings."""
    return not one.name or one.bound in used


def _drop(code: Code, node: Function) -> Edit:
    """Return the edit that takes a method out, its decorators with it."""
    whole = code.remove(node)
    if not node.decorator_list or whole.text:
        return whole
    return Edit(code.remove_decorator(node.decorator_list[0]).start, whole.end, "")


def _empty(code: Code, node: Function, name: str) -> Edit:
    """Return the edit that leaves a function's docstring and an error."""
    body = (
        node.body[1:] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body
    )
    start, end = code.replace(body[0], ""), code.replace(body[-1], "")
    first = body[0]
    decorators = getattr(first, "decorator_list", [])
    at = code.replace(decorators[0], "").start - 1 if decorators else start.start
    return Edit(at, end.end, _NOT_RUN.format(name))


def _cut(code: Code, statement: ast.stmt, edits: Iterable[Edit]) -> str:
    """Return the text of a statement, its decorators included, after the edits."""
    decorators = getattr(statement, "decorator_list", [])
    start = min(code.replace(node, "").start for node in (statement, *decorators)) - bool(
        decorators
    )
    return code.cut(start, code.replace(statement, "").end, edits)
