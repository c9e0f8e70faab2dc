"""Another text of source files, in force while a block lasts; the files themselves stay as they are.

Functions of modules that are loaded get their new code, so that whoever holds them runs it. A model
that is made in the block is made by the new text: its constructors are functions too.
"""

import ast
import gc
import inspect
import linecache
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

_ABSENT: Final = object()
Key = tuple[str, int]
"""a function's qualified name, and which of that name it is"""


class NotAppliedError(Exception):
    """A text that cannot take effect in what is loaded."""


@contextmanager
def overlaid(
    before: Mapping[str, str], after: Mapping[str, str], live: Iterable[type | FunctionType] = ()
) -> Iterator[None]:
    """Put texts of files in force in the block.

    before: file -> its text as it was loaded; after: the same files' other text. live: classes of live
    objects, and functions, which may be in no module's namespace.
    Raises NotAppliedError if a text does not compile, or if what it changes is neither a function nor
    an assignment in a module or a class.
    """
    held = [*live]
    with ExitStack() as stack:
        for file, text in after.items():
            if text != before[file]:
                stack.enter_context(_overlay(file, before[file], text, held))
        yield


def list_live_functions(files: Collection[str]) -> list[FunctionType]:
    """Return every function of some files that exists now, closures and lambdas too."""
    return [
        it for it in gc.get_objects()
        if type(it) is FunctionType and it.__code__.co_filename in files
    ]  # fmt: skip


@contextmanager
def _overlay(
    file: str, before: str, after: str, live: Iterable[type | FunctionType]
) -> Iterator[None]:
    old, new = _narrow(file, before, after)
    named = (sys.modules[name] for name in _name_modules(file, tuple(sys.modules)))
    modules = [module for module in named if _is_of(module, file)]  # a name may be another's by now
    functions = [*_find_functions(file, modules, live)]
    with ExitStack() as stack:
        stack.enter_context(_show(file, after))
        known = _list_code(file, old)
        for function in functions:
            key = _find_key(function.__code__, known)
            code = _list_code(file, new).get(key)
            if code is not None and code != function.__code__:
                stack.enter_context(_set_code(function, _keep_variables(function, code, new)))
        for module in modules:
            stack.enter_context(_assign_anew(module, old, new))
        bared = _list_decorated(old) - _list_decorated(new)
        if bared:
            stack.enter_context(_unwrapped(file, bared, [*modules, *_list_classes(modules, live)]))
        yield


def _narrow(file: str, before: str, after: str) -> tuple[str, str]:
    """Return the function or class of the top level that two texts differ in, empty lines before it.

    To compile a file of 1,500 lines takes 40 ms, a class of it 4. What is imported from the future stays.
    Where they differ elsewhere the whole texts are returned.
    """
    future, spans = _list_top(before)
    first, rest, cut = before.splitlines(True), after.splitlines(True), 0
    while cut < min(len(first), len(rest)) and first[cut] == rest[cut]:
        cut += 1
    more = len(rest) - len(first)
    for start, end in spans:
        if start <= cut < end and first[end:] == rest[end + more :] and end + more > cut:
            blank = (future + "\n" * start) if start else ""
            return blank + "".join(first[start:end]), blank + "".join(rest[start : end + more])
    return before, after


@lru_cache(maxsize=32)
def _list_top(text: str) -> tuple[str, Sequence[tuple[int, int]]]:
    """Return what is imported from the future, and the lines of functions and classes of the top level.

    Lines count from 0; a function whose name is given twice is left out.
    """
    tree = ast.parse(text)
    future = [
        node
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    held = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    names = Counter(node.name for node in held)
    spans = [
        (min(part.lineno for part in (node, *node.decorator_list)) - 1, node.end_lineno or 0)
        for node in held
        if names[node.name] == 1
    ]
    return "; ".join(map(ast.unparse, future)), spans


@contextmanager
def _show(file: str, text: str) -> Iterator[None]:
    """Let whoever asks for a line of the file read the other text."""
    kept = linecache.cache.get(file)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        yield
    finally:
        linecache.cache.pop(file)
        if kept is not None:
            linecache.cache[file] = kept


def _keep_variables(function: FunctionType, code: CodeType, text: str) -> CodeType:
    """Return code that takes the variables of the code around it which the function has.

    A closure that a text would give further ones stays as it is: it is made anew, or not at all.
    """
    own = function.__code__
    idle = sorted({*own.co_freevars} - {*code.co_freevars})
    if {*code.co_freevars} - {*own.co_freevars}:
        return own
    if not idle:
        return code
    tree, line = ast.parse(text), code.co_firstlineno
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            first = min([node.lineno, *(it.lineno for it in getattr(node, "decorator_list", []))])
            if first == line and getattr(node, "name", "<lambda>") == code.co_name:
                _mention(node, idle)
    whole = compile(ast.fix_missing_locations(tree), own.co_filename, "exec", dont_inherit=True)
    fits = (it for it in _walk(whole) if (it.co_qualname, it.co_firstlineno) == (
        code.co_qualname, line) and it.co_freevars == own.co_freevars)  # fmt: skip
    return next(fits, own)


def _mention(node: ast.FunctionDef | ast.Lambda, names: Sequence[str]) -> None:
    """Let a function name variables that it does not use."""
    unused = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
    if isinstance(node, ast.Lambda):
        node.body = ast.IfExp(ast.Constant(True), node.body, unused)
    else:
        node.body.append(ast.If(ast.Constant(False), [ast.Expr(unused)], []))


@lru_cache(maxsize=32)
def _list_decorated(text: str) -> frozenset[str]:
    """Return the qualified names of the functions of a text that have decorators."""
    return frozenset(name for name, node in _list_defined(ast.parse(text)) if node.decorator_list)


def _list_defined(tree: ast.AST, before: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield before + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _list_defined(node, f"{before}{node.name}.")


def _list_classes(
    modules: Iterable[ModuleType], live: Iterable[type | FunctionType]
) -> Iterator[type]:
    """Yield the classes of modules and those of live objects, with what they are derived from."""
    found = [*live, *(one for module in modules for one in vars(module).values())]
    yield from {base: None for one in found if isinstance(one, type) for base in one.__mro__}


@contextmanager
def _unwrapped(
    file: str, names: Collection[str], holders: Iterable[type | ModuleType]
) -> Iterator[None]:
    """Put functions of a file in the place of their wrappers, which a text has taken off."""
    with ExitStack() as stack:
        for holder in holders:
            for name, held in [*vars(holder).items()]:
                inner = _unwrap(held) if isinstance(held, FunctionType) else held
                if inner is held or inner.__qualname__ not in names:
                    continue
                if inner.__code__.co_filename == file:
                    stack.callback(setattr, holder, name, held)
                    setattr(holder, name, inner)
        yield


@contextmanager
def _set_code(function: FunctionType, code: CodeType) -> Iterator[None]:
    own = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = own


@contextmanager
def _assign_anew(module: ModuleType, before: str, after: str) -> Iterator[None]:
    """Carry out what a text assigns otherwise: names of the module, and its functions' defaults."""
    own = _dump_statements(before)
    changed = [node for node in ast.parse(after).body if ast.dump(node) not in own]
    space = vars(module)
    kept = dict(space)
    with ExitStack() as stack:
        try:
            for node in changed:
                if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                    _execute(node, space)
                elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    stack.enter_context(_set_defaults(node, space.get(node.name), space))
            yield
        finally:
            for name in [*space]:
                if space[name] is not kept.get(name, _ABSENT):
                    del space[name]
            space.update(kept)


@lru_cache(maxsize=32)
def _dump_statements(text: str) -> Collection[str]:
    return {ast.dump(node) for node in ast.parse(text).body}


@contextmanager
def _set_defaults(node: ast.stmt, held: Any, space: dict[str, Any]) -> Iterator[None]:
    """Give a function, or each method of a class, the defaults that its text says."""
    with ExitStack() as stack:
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    inner = _unwrap(vars(held).get(part.name)) if isinstance(held, type) else None
                    stack.enter_context(_set_defaults(part, inner, space))
        elif isinstance(node, ast.FunctionDef) and isinstance(held, FunctionType):
            function = _unwrap(held)
            kept = function.__defaults__, function.__kwdefaults__
            stack.callback(lambda: _give_defaults(function, *kept))
            _give_defaults(function, *_read_defaults(node, space, *kept))
        yield


def _give_defaults(function: Any, positional: Any, named: Any) -> None:
    function.__defaults__, function.__kwdefaults__ = positional, named


def _read_defaults(node: ast.FunctionDef, space: dict[str, Any], *kept: Any) -> tuple[Any, Any]:
    """Return a function's defaults; as they were where one cannot be worked out."""
    arguments = node.args
    try:
        positional = tuple(_evaluate(one, space) for one in arguments.defaults) or None
        named = {
            argument.arg: _evaluate(value, space)
            for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if value is not None
        }
    except Exception:  # such as a name of the class that holds the function
        return kept[0], kept[1]
    return positional, named or None


def _evaluate(node: ast.expr, space: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<default>", "eval"), space)


def _execute(node: ast.stmt, space: dict[str, Any]) -> None:
    try:
        exec(compile(ast.Module([node], []), space.get("__file__", ""), "exec"), space)
    except Exception as error:
        raise NotAppliedError(f"line {node.lineno}: {error}") from error


@lru_cache(maxsize=8)
def _name_modules(file: str, loaded: Collection[str]) -> Sequence[str]:
    """Return which of the modules that are loaded come from a file: of thousands, so looked up once."""
    return [name for name in loaded if _is_of(sys.modules[name], file)]


def _is_of(module: object, file: str) -> bool:
    return isinstance(module, ModuleType) and vars(module).get("__file__") == file


def _find_functions(
    file: str, modules: Iterable[ModuleType], live: Iterable[type | FunctionType]
) -> Iterator[FunctionType]:
    """Yield the functions that are written in a file, each once."""
    seen = {id(vars(module)) for module in modules}
    waiting: list[Any] = [value for module in modules for value in [*vars(module).values()]]
    waiting += [it for it in live if isinstance(it, FunctionType)]
    held = {base for it in live if isinstance(it, type) for base in it.__mro__}
    waiting += held
    names = {module.__name__ for module in modules}
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type):
            if value.__module__ in names or value in held:
                waiting += vars(value).values()
        elif isinstance(value, property):
            waiting += [value.fget, value.fset]
        elif isinstance(value, (staticmethod, classmethod)):
            waiting.append(value.__func__)
        elif isinstance(value, FunctionType):
            if value.__code__.co_filename == file:
                if id(value.__globals__) not in seen:  # its module may be in no list of modules
                    seen.add(id(value.__globals__))
                    waiting += value.__globals__.values()
                yield value
            waiting += [value.__dict__.get("__wrapped__"), *_list_cells(value)]


def _list_cells(function: FunctionType) -> Iterator[Any]:
    """Yield the functions that a decorator's wrapper calls."""
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # it is empty
            continue
        if isinstance(content, FunctionType):
            yield content


def _unwrap(value: Any) -> Any:
    plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    return inspect.unwrap(plain) if callable(plain) else plain


def _find_key(code: CodeType, known: Mapping[Key, CodeType]) -> Key:
    """Return the name of a function's code in the text that it was loaded from."""
    wanted = code.co_qualname, code.co_firstlineno
    keys = [
        key for key, one in known.items() if (one.co_qualname, one.co_firstlineno) == wanted
    ]  # of several lambdas in a line, the one that reads the same
    same = (key for key in keys if known[key] == code)
    return next(same, keys[0] if keys else (code.co_qualname, -1))


@lru_cache(maxsize=32)
def _list_code(file: str, text: str) -> Mapping[Key, CodeType]:
    """Return the code of every function of a text."""
    try:
        whole = compile(text, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise NotAppliedError(str(error)) from error
    counts: Counter[str] = Counter()
    found = {}
    for code in _walk(whole):
        found[code.co_qualname, counts[code.co_qualname]] = code
        counts[code.co_qualname] += 1
    return found


def _walk(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _walk(constant)
