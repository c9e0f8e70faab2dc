"""Which modules of the port hold a line of its code."""

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import paddle


def find_places(line: int, module: ModuleType, model: Any) -> Iterator[str]:
    """Yield the names of modules that hold this line of code, and those right above and below.

    A layer of the framework is below the module whose code made it, with all that it is made of.
    """
    classes = _classes_of(line, module)
    layers = dict(model.named_sublayers(include_self=True))
    own = [path for path, layer in layers.items() if type(layer).__module__ == module.__name__]
    holders = {path for path in own if _has_class(layers[path], classes)}
    for path in layers:
        above = _nearest(path, own)
        if path in holders or above in holders:
            yield path
    for path in holders:
        yield _nearest(path, own)


def find_running(line: int, path: Path, model: Any, run: Callable[[], None]) -> Iterator[str]:
    """Yield the modules during whose calls a line runs, where no class of the file mentions its function.

    Such as a function that a layer of the framework's is given by name. run: calls the model.
    """
    names = {id(layer): name for name, layer in model.named_sublayers(include_self=True)}
    found: set[str] = set()

    def watch(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != str(path):
            return None
        if event == "line" and frame.f_lineno == line:
            around: FrameType | None = frame
            while around is not None and id(around.f_locals.get("self")) not in names:
                around = around.f_back
            found.update([] if around is None else [names[id(around.f_locals["self"])]])
        return watch

    sys.settrace(watch)
    try:
        run()
    finally:
        sys.settrace(None)
    yield from sorted(found)


def _has_class(layer: Any, names: set[str]) -> bool:
    return any(kind.__name__ in names for kind in type(layer).__mro__)


def _nearest(path: str, own: Sequence[str]) -> str:
    """Return the first module around one that is of the mutated file; "" the model."""
    path = path.rpartition(".")[0]
    while path and path not in own:
        path = path.rpartition(".")[0]
    return path


def _classes_of(line: int, module: ModuleType) -> set[str]:
    """Return the layer whose source holds the line, or those that use the function that does."""
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    for node in tree.body:
        if node.lineno <= line <= (node.end_lineno or 0):
            name = getattr(node, "name", "")
            kind = getattr(module, name, None)
            if isinstance(kind, type) and issubclass(kind, paddle.nn.Layer):
                return {name}
            return _users(name, tree)
    return set()


def _users(name: str, tree: ast.Module, depth: int = 3) -> set[str]:
    """Return the classes that mention a function, themselves or through another function."""
    found: set[str] = set()
    for node in tree.body:
        mentions = {getattr(it, "id", getattr(it, "attr", "")) for it in ast.walk(node)}
        if name in mentions and getattr(node, "name", name) != name:
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
            elif depth:
                found |= _users(getattr(node, "name", ""), tree, depth - 1)
    return found
