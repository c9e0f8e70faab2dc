"""The modules of a package as text: where a name is bound, to what, and which decorators change nothing."""

import ast
import inspect
import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from reprod_align.explain.code import Code, dotted
from reprod_align.porting.gathering.factories import Made
from reprod_align.porting.gathering.reading import (
    Executed,
    Function,
    read_names,
    reads_own_names,
)

_MOST: Final = 3000  # entries of a registry that are looked at; timm's has 1,300


@dataclass(frozen=True)
class Import:
    """A name that stays imported: `from module import name as bound`, or a whole module."""

    bound: str
    module: str
    name: str = ""
    """"" for `import module as bound`"""

    def __str__(self) -> str:
        """Return the statement."""
        if self.name:
            alias = "" if self.name == self.bound else f" as {self.bound}"
            return f"from {self.module} import {self.name}{alias}"
        plain = self.bound == self.module.partition(".")[0]
        return f"import {self.module}" + ("" if plain else f" as {self.bound}")


@dataclass(frozen=True, eq=False)
class Definition:
    """The statements at the top of a module that bind a name."""

    module: "Module"
    name: str
    statements: tuple[ast.stmt, ...]


@dataclass
class Module:
    """A module's source."""

    name: str
    path: Path
    code: Code
    added: dict[str, Import] = field(default_factory=dict)
    """what stands in for the factories that it calls"""

    @cached_property
    def _bound(self) -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.code.tree.body:
            for name in _list_bound(statement) if self._find_looked_up(statement) is None else ():
                others = [one for one in found.get(name, ()) if not _is_declaration(one)]
                found[name] = [*others, statement]
        return found

    @cached_property
    def imports(self) -> dict[str, Import]:
        """What its imports bind, wherever they stand; relative ones in full.

        Of several that bind one name, as in branches, the one that has bound it when the module ran.
        """
        found = dict(self.added)
        for one in self._list_imports():
            if one.bound not in found or not self._has_bound(found[one.bound]):
                found[one.bound] = one
        return found

    def bring(self, brought: Iterable[Import]) -> None:
        """Take imports that the module itself does not have."""
        self.imports.update((one.bound, one) for one in brought)

    def list_missing(self, statement: ast.stmt) -> set[str]:
        """Return the names that a `try` imports from what is not installed here."""
        if not isinstance(statement, ast.Try):
            return set()
        found = (
            Import(one.asname or one.name, self.resolve(node), one.name)
            for node in ast.walk(statement)
            if isinstance(node, ast.ImportFrom)
            for one in node.names
        )
        return {one.bound for one in found if not _is_there(one)}

    def _has_bound(self, found: Import) -> bool:
        """Tell whether a name of the module is what an import would bind; False where it has not run."""
        held = vars(sys.modules[self.name]).get(found.bound) if self.name in sys.modules else None
        return held is not None and bool(found.name) and held is find_bound(found)

    def _list_imports(self) -> Iterator[Import]:
        for node in self.code.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    yield Import(bound, alias.name)
            elif isinstance(node, ast.ImportFrom):
                module = self.resolve(node)
                for alias in node.names:
                    if alias.name == "*":
                        yield from _list_starred(module).values()
                        continue
                    bound = alias.asname or alias.name
                    yield Import(bound, module, alias.name)
        yield from filter(None, map(self._find_looked_up, self.code.tree.body))

    def _find_looked_up(self, statement: ast.stmt) -> Import | None:
        """Return the import that stands for a call which looks a class of layers up in another module.

        Such as `Layer = optional_import("package", name="Layer")[0]`.
        """
        if not isinstance(statement, ast.Assign) or self.name not in sys.modules:
            return None
        value = (
            statement.value.value if isinstance(statement.value, ast.Subscript) else statement.value
        )
        if not isinstance(value, ast.Call) or not isinstance(statement.targets[0], ast.Name):
            return None
        bound = statement.targets[0].id
        held = vars(sys.modules[self.name]).get(bound)
        layer = sys.modules["torch"].nn.Module if "torch" in sys.modules else type(None)
        if not isinstance(held, type) or not issubclass(held, layer) or stays(held.__module__):
            return None
        found = Import(bound, held.__module__, held.__name__)
        return found if found.module != self.name and find_bound(found) is held else None

    def resolve(self, node: ast.ImportFrom) -> str:
        """Return the full name of the module that a statement imports from."""
        if not node.level:
            return node.module or ""
        package = self.name.split(".")
        up = node.level - (self.path.stem == "__init__")
        return ".".join([*package[: len(package) - up], *([node.module] if node.module else [])])

    @cached_property
    def _changes(self) -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.code.tree.body:
            for name in _list_changed(statement):
                found.setdefault(name, []).append(statement)
        return found

    def execute(self) -> ModuleType:
        """Return the module as it is now, run anew under its own name."""
        made = ModuleType(self.name)
        made.__file__, made.__package__ = str(self.path), sys.modules[self.name].__package__
        for one in self.added.values():
            exec(str(one), vars(made))
        exec(compile(self.code.text, str(self.path), "exec", dont_inherit=True), vars(made))
        return made

    def define(self, name: str) -> Definition | None:
        """Return the definition of a name, None if the module does not bind it itself."""
        found = self._bound.get(name)
        if found and name in self._changes:
            chosen = {id(one): one for one in (*found, *self._changes[name])}
            found = sorted(chosen.values(), key=lambda one: one.lineno)
        return Definition(self, name, tuple(found)) if found else None


def _list_bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds, imports aside."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield statement.name
    elif isinstance(statement, ast.If | ast.Try | ast.With | ast.For):
        for part in ast.iter_child_nodes(statement):
            if isinstance(part, ast.stmt):
                yield from _list_bound(part)
            elif isinstance(part, ast.ExceptHandler):
                for held in part.body:
                    yield from _list_bound(held)
    elif not isinstance(statement, ast.Import | ast.ImportFrom):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _is_declaration(statement: ast.stmt) -> bool:
    """Tell whether a definition has a decorator and no code: an overload, which the next one replaces."""
    if not isinstance(statement, Function) or not statement.decorator_list:
        return False
    return all(
        isinstance(one, ast.Pass)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in statement.body
    )


def _list_changed(statement: ast.stmt) -> Iterator[str]:
    """Yield the names whose values a statement at the top changes: a registry's entries."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            yield function.value.id
    elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
        for decorator in statement.decorator_list:  # @REGISTRY.register("its name")
            words = dotted(decorator.func) if isinstance(decorator, ast.Call) else ""
            if "." in words:
                yield words.partition(".")[0]
    elif isinstance(statement, ast.Assign | ast.AugAssign):
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        ):
            while isinstance(target, ast.Subscript | ast.Attribute):
                target = target.value
                if isinstance(target, ast.Name):
                    yield target.id


class Library:
    """The modules that were opened."""

    def __init__(self, executed: Executed = Executed()) -> None:  # noqa: B008
        """Start with none."""
        self.executed = executed
        self._modules: dict[str, Module | None] = {}
        self._coming: dict[tuple[str, str], bool] = {}
        self.left: set[tuple[str, str]] = set()
        """the classes that stay imported: a module's name, and the class's there"""
        self.chosen: list[str] = []
        """the calls of factories, each with what stands in its place"""

    def open(self, name: str) -> Module | None:
        """Return a module, None for one without Python source."""
        if name not in self._modules:
            self._modules[name] = _open(name)
        return self._modules[name]

    def list_lacking(self, error: str, held: Container[tuple[str, str]]) -> list[Made]:
        """Return the factories of classes that are not in the file, those that an error names first.

        Of a class that the error names a factory may give the original, though the file has a copy.
        """
        made = [one for one in self.executed.made if not stays(one.kind.__module__)]
        named = [one for one in made if error == describe_foreign(one.kind)]
        return named + [
            one
            for one in made
            if one not in named and (one.kind.__module__, one.kind.__name__) not in held
        ]

    def replace_factory(
        self, made: Sequence[Made], own: str, holds: Callable[[str, int], bool]
    ) -> bool:
        """Write a class in place of the first call that can be written so; tell whether there was one.

        own: the source's module. holds: whether a line of a module is in the file. Of calls of local names,
        which another one has chosen, those of the source itself alone count.
        """
        for is_local in (False, True):
            for one in made:
                for module in self._list_of_files({one.file}):
                    call = one.find(module.code)
                    name = dotted(call.func).partition(".")[0] if call else ""
                    known = name in module.imports or module.define(name) is not None
                    if holds(module.name, one.span[0]) and (
                        module.name == own if is_local else known
                    ):
                        if self._write_class(module, one):
                            return True
        return False

    def bring_along(self, taken: Iterable[tuple[str, str]]) -> bool:
        """Take along the classes that were taken and stay imported as well; tell whether there are any.

        An object of the one is none of the other: a mode's member, where a function asks for its kind.
        """
        both = self.left.intersection(taken)
        self._coming.update((key, True) for key in both)
        self.left -= both
        return bool(both)

    def forget(self, executed: Executed) -> None:
        """Go on with what another run called; the factories are those of the first one."""
        self.executed = replace(executed, made=self.executed.made)
        self._coming.clear()

    def _write_class(self, module: Module, made: Made) -> bool:
        call, kind = made.find(module.code), made.kind
        found = Import(kind.__name__, kind.__module__, kind.__name__)
        while module.imports.get(found.bound, found) != found or module.define(found.bound):
            found = Import(f"{found.bound}_", found.module, found.name)
        text = made.write(module.code, found.bound)
        if call is None or text is None:
            return False
        self.chosen.append(" ".join(f"{module.code.source(call)} -> {text}".split()))
        code = module.code.apply([module.code.replace(call, text)])
        added = {**module.added, found.bound: found}
        for maker in (one.maker for one in made.given if one.maker):
            added[maker.__name__] = Import(maker.__name__, maker.__module__, maker.__name__)
        self._modules[module.name] = Module(module.name, module.path, code, added)
        return True

    def list_handling(self) -> list[Module]:
        """Return the modules whose functions handled tensors, packages that stay aside."""
        return self._list_of_files({file for file, _ in self.executed.handling})

    def _list_of_files(self, files: set[str]) -> list[Module]:
        named = [
            name
            for name, held in list(sys.modules.items())
            if isinstance(held, ModuleType) and not stays(name)
            and os.path.realpath(vars(held).get("__file__") or "") in files  # lazy ones may raise
        ]  # fmt: skip
        return [one for one in map(self.open, sorted(named)) if one is not None]

    def trace(self, found: Import) -> Import:
        """Return an import of something of PyTorch's that a neighbour passes on as PyTorch's own."""
        one: Import | None = found
        for _ in range(20):  # modules may import each other
            if one is None:
                break
            if is_torch(one.module):  # also the module itself, by a star import
                return Import(found.bound, one.module, one.name)
            if not one.name:
                break
            module = self.open(one.module)
            one = module.imports.get(one.name) if module else None
        return found

    def find_module(self, found: Import) -> ModuleType | None:
        """Return the module that an import binds, None if it binds something else or PyTorch's."""
        if found.name:
            held = find_bound(found)
        else:
            held = sys.modules.get(
                found.module if found.bound != found.module.partition(".")[0] else found.bound
            )
        if not isinstance(held, ModuleType) or stays(held.__name__):
            return None
        return held

    def find_home(self, found: Import) -> tuple[Module, str] | None:
        """Return the module that defines what is imported, and its name there; None: leave the import.

        An import stays where it gives a module, or something that handles nothing of PyTorch's.
        """
        if not found.name or is_torch(found.module):
            return None
        held = find_bound(found)
        if isinstance(held, ModuleType):
            return None
        home = getattr(held, "__module__", None) if isinstance(held, type | FunctionType) else None
        if stays(home or found.module):
            return None
        name = getattr(held, "__name__", found.name) if home else found.name
        for module_name, own in ((home, name), (home, found.name), (found.module, found.name)):
            module = self.open(module_name) if module_name else None
            if module is not None and module.define(own):
                if self._comes_along(module, own, held):
                    return module, own
                if isinstance(held, type):
                    self.left.add((module.name, own))
                return None
        module = self.open(found.module)
        further = module.imports.get(found.name) if module else None
        return self.find_home(further) if further and further != found else None

    def locate(self, found: Import) -> tuple[str, str]:
        """Return the module that binds what is imported, through what others pass on, and its name there."""
        for _ in range(20):  # modules may import each other
            module = self.open(found.module) if found.name and not stays(found.module) else None
            if module is None or module.define(found.name) or found.name not in module.imports:
                break
            found = module.imports[found.name]
        return found.module, found.name

    def _comes_along(self, module: Module, name: str, held: Any) -> bool:
        """Tell whether a definition reaches PyTorch: it is of layers, or it handled tensors when it ran."""
        key = (module.name, name)
        if key not in self._coming:
            self._coming[key] = True  # while it is looked at: what refers to itself
            self._coming[key] = self._reaches(module, name, held)
        return self._coming[key]

    def _reaches(self, module: Module, name: str, held: Any) -> bool:
        torch = sys.modules["torch"]
        definition = module.define(name)
        assert definition is not None
        if isinstance(held, type) and issubclass(held, torch.nn.Module | torch.autograd.Function):
            return True
        if isinstance(held, type | FunctionType):
            for statement in definition.statements:
                if self.executed.handles(
                    str(module.path), find_first_line(statement), statement.end_lineno or 0
                ):
                    return True
            if isinstance(held, type):
                held_inside = [one for one in vars(held).values() if isinstance(one, dict | list)]
                return any(map(self._holds_torch, held_inside)) or any(
                    base is not held and base.__module__ != "builtins" and self._is_gathered(base)
                    for base in held.__mro__[1:-1]
                )
            nodes = (node for one in definition.statements for node in ast.walk(one))
            if any(map(reads_own_names, nodes)) and self._handles(module):
                return True  # what looks names up among those that handled tensors
            names = {one for statement in definition.statements for one in read_names(statement)}
            values = [vars(sys.modules[module.name]).get(one) for one in names]
            if any(_is_store(one) and self._holds_torch(one) for one in values):
                return True  # what looks into a registry that comes along
            if any(place in self.executed for place in self._list_places(module, definition)):
                return False
            return any(map(_is_torch_object, values))
        return self._holds_torch(held) or self._is_gathered(type(held))

    def _handles(self, module: Module) -> bool:
        """Tell whether a module's own functions handled tensors."""
        last = len(module.code.text.splitlines())
        return self.executed.handles(str(module.path), 1, last)

    def _holds_torch(self, value: Any, depth: int = 3) -> bool:
        """Tell whether a value is PyTorch's, handled something of it, or holds what does."""
        if _is_torch_object(value):
            return True
        if isinstance(value, type):
            return issubclass(value, sys.modules["torch"].nn.Module)
        if isinstance(value, FunctionType):
            line = value.__code__.co_firstlineno
            return self.executed.handles(os.path.realpath(value.__code__.co_filename), line, line)
        if depth == 0 or isinstance(value, ModuleType) or value is None:
            return False
        if isinstance(
            value, dict
        ):  # what it holds: the values() of a lazy one may import and raise
            return any(
                self._holds_torch(one, depth - 1) for one in list(dict.values(value))[:_MOST]
            )
        if isinstance(value, list | tuple | set | frozenset):
            return any(self._holds_torch(one, depth - 1) for one in list(value)[:_MOST])
        if isinstance(value, partial):
            return self._holds_torch(value.func, depth - 1) or self._holds_torch(
                value.args, depth - 1
            )
        kind = type(value)
        inside = (
            []
            if stays(kind.__module__)
            else [one for one in vars(kind).values() if isinstance(one, dict | list)]
        )
        inside += list(peek(value, "__dict__", {}).values())
        return any(self._holds_torch(one, depth - 1) for one in inside[:50])

    def _list_places(self, module: Module, definition: Definition) -> list[tuple[str, int]]:
        return [(str(module.path), find_first_line(one)) for one in definition.statements]

    def _is_gathered(self, kind: type) -> bool:
        """Tell whether a class comes along."""
        if stays(kind.__module__):
            return False
        module = self.open(kind.__module__)
        if module is None or not module.define(kind.__name__):
            return False
        return self._comes_along(module, kind.__name__, kind)


def describe_foreign(kind: type) -> str:
    """Return what a rehearsal says of a layer whose class is neither in the file nor PyTorch's."""
    return f"a layer of {kind.__module__}.{kind.__qualname__} is made by what stays imported"


def list_foreign(model: Any, name: str) -> Iterator[type]:
    """Yield the classes of a model's outermost layers that are neither in its file nor PyTorch's."""
    for child in model.children():
        kind = type(child)
        if kind.__module__ == name or stays(kind.__module__):
            yield from list_foreign(child, name)
        else:
            yield kind


def find_first_line(statement: ast.stmt) -> int:
    """Return where a definition begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _is_store(value: Any) -> bool:
    """Tell whether a value may hold others: a container, or an object of a class of the package's own."""
    if isinstance(value, type | FunctionType | ModuleType):
        return False
    return isinstance(value, dict | list | tuple | set) or not stays(type(value).__module__)


def peek(held: Any, name: str, otherwise: Any = None) -> Any:
    """Return an attribute of any object; a stand-in for a package that is missing may raise anything."""
    try:
        return getattr(held, name, otherwise)
    except Exception:
        return otherwise


def _is_torch_object(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return is_torch(value.__name__)
    return is_torch(peek(value, "__module__") or "") or is_torch(type(value).__module__)


def _list_starred(module: str) -> dict[str, Import]:
    """Return what `from module import *` binds."""
    try:
        held = import_module(module)
    except (Exception, SystemExit):
        return {}
    names = getattr(held, "__all__", None) or [one for one in vars(held) if not one.startswith("_")]
    return {name: Import(name, module, name) for name in names}


def write_imports(found: Iterable[Import]) -> list[str]:
    """Return the statements, one for each module; of what is not installed here, one that binds None."""
    texts: list[str] = []
    names: dict[str, list[str]] = {}
    for one in sorted(set(found), key=str):
        if not _is_there(one):
            texts.append(f"try:\n    {one}\nexcept ImportError:\n    {one.bound} = None")
        elif one.name:
            head, _, name = str(one).partition(" import ")
            names.setdefault(head, []).append(name)
        else:
            texts.append(str(one))
    for head, several in names.items():
        text = f"{head} import {', '.join(several)}"
        if len(text) > _WIDTH:
            text = f"{head} import (\n" + "".join(f"    {name},\n" for name in several) + ")"
        texts.append(text)
    return sorted(texts)


def _is_there(found: Import) -> bool:
    try:
        module = import_module(found.module)
        if found.name and not hasattr(module, found.name):
            import_module(f"{found.module}.{found.name}")
    except (Exception, SystemExit):
        return False
    return True


_WIDTH: Final = 88  # of a line of imports, as black has it
_STAYING: Final = frozenset(
    """
    torch numpy einops scipy PIL builtins typing_extensions huggingface_hub safetensors tqdm yaml packaging
    pytest reprod_align beartype jaxtyping
    """.split()
)
"""packages that are never taken along"""


def is_torch(module: str) -> bool:
    """Tell whether a module is PyTorch's."""
    return module.partition(".")[0] == "torch"


def stays(module: str) -> bool:
    """Tell whether nothing of a module is taken along."""
    top = module.partition(".")[0]
    return top in _STAYING or top in sys.stdlib_module_names


def _open(name: str) -> Module | None:
    try:
        file = getattr(import_module(name), "__file__", None) or ""
        path = Path(os.path.realpath(file))
        if path.suffix == ".py":
            return Module(name, path, Code(path.read_text(encoding="utf-8")))
    except (Exception, SystemExit):
        pass
    return None


def find_bound(found: Import) -> Any:
    """Return what an import of a name binds, None if there is no such thing."""
    try:
        return getattr(import_module(found.module), found.name, None)
    except (Exception, SystemExit):
        return None


def list_idle(module: Module, statement: ast.stmt, executed: Executed) -> Iterator[ast.expr]:
    """Yield the decorators of a definition and its methods after which it is what it was.

    Those of the standard library and of packages that always stay imported are not among them.
    """
    if not isinstance(statement, ast.ClassDef | Function):
        return
    space = vars(sys.modules[module.name]) if module.name in sys.modules else {}
    held = space.get(statement.name)
    yield from _list_of(module, statement, held, space)
    if isinstance(statement, ast.ClassDef) and isinstance(held, type):
        for node in statement.body:
            if isinstance(node, Function):
                yield from _list_of(module, node, vars(held).get(node.name), space)


def _list_of(
    module: Module, node: ast.ClassDef | Function, held: Any, space: dict[str, Any]
) -> Iterator[ast.expr]:
    held = peek(held, "__func__", held)  # a class method, a static method
    wrappers, last = _unwrap(held)
    if isinstance(node, ast.ClassDef):
        if not isinstance(last, type) or last.__name__ != node.name or _is_extended(last, node):
            return
    elif not _is_plain(last, module, node):
        return
    for decorator in node.decorator_list:
        words = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        found = _resolve(words, space)
        home = peek(found, "__module__") or type(found).__module__
        if found is None or stays(home) or home == "torch":
            continue
        if peek(found, "__qualname__", "") not in wrappers:
            yield decorator


def _unwrap(held: Any) -> tuple[set[str], Any]:
    """Return the functions that made the wrappers around something, and what they wrap."""
    wrappers: set[str] = set()
    for _ in range(20):
        inner = peek(held, "__wrapped__")
        if inner is None:
            break
        code = peek(held, "__code__")
        name = code.co_qualname if code else type(held).__qualname__
        wrappers.add(name.partition(".<locals>")[0])
        held = inner
    return wrappers, held


def _is_extended(held: type, node: ast.ClassDef) -> bool:
    """Tell whether a class has attributes that its text does not give it."""
    bound = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    bound |= {one.name for one in node.body if isinstance(one, Function | ast.ClassDef)}
    return any(name not in bound and not name.startswith("_") for name in vars(held))


def _is_plain(held: Any, module: Module, node: Function) -> bool:
    """Tell whether a function is the one that a definition makes."""
    if not isinstance(held, FunctionType):
        return False
    code = held.__code__
    place = (inspect.getsourcefile(code) or code.co_filename, code.co_firstlineno)
    return place[1] == find_first_line(node) and place[0].endswith(module.path.name)


def _resolve(words: str, space: dict[str, Any]) -> Any:
    """Return what a dotted name stands for in a module."""
    first, *rest = words.split(".")
    held = space.get(first)
    for part in rest:
        held = peek(held, part)
    return held
