"""What functions and classes stand in the frameworks' modules: a port must leave them as they are."""

import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, Final

_ROOTS: Final = {
    "paddle": "patches-framework", "paddlenlp": "patches-framework",
    "numpy": "patches-comparison", "math": "patches-comparison", "builtins": "patches-comparison",
    "operator": "patches-comparison", "json": "patches-comparison",
    "reprod_align": "patches-comparison", "multiprocessing": "patches-comparison",
    "_io": "patches-comparison", "_thread": "patches-comparison",
}  # fmt: skip
_DESCRIPTORS: Final = (classmethod, staticmethod, property)  # not callable by themselves


class Fingerprint:
    """Functions, classes and their code, as they stood when it was made."""

    def __init__(self) -> None:
        """Note what stands in every module of the frameworks that is loaded."""
        self._held = {place: (value, _read_code(value)) for place, value in _walk()}

    def list_changes(self) -> list[tuple[str, str]]:
        """Return the code of the refusal and the name of each function that is another one now."""
        now = dict(_walk())
        changes = []
        for place, (value, code) in self._held.items():
            module = place[0]
            if module not in sys.modules:
                continue
            found = now.get(place)
            if found is not value or _read_code(found) is not code:
                changes.append((_ROOTS[module.partition(".")[0]], ".".join(filter(None, place))))
        return changes

    def put_back(self) -> None:
        """Let every function be again what it was."""
        now = dict(_walk())
        for (module, kind, name), (value, code) in self._held.items():
            if module not in sys.modules:
                continue
            holder = vars(sys.modules[module])[kind] if kind else sys.modules[module]
            if now.get((module, kind, name)) is not value:
                setattr(holder, name, value)
            if isinstance(value, FunctionType) and value.__code__ is not code:
                value.__code__ = code


def _is_function(value: Any) -> bool:
    return callable(value) or isinstance(value, _DESCRIPTORS)


def _read_code(value: Any) -> Any:
    return value.__code__ if isinstance(value, FunctionType) else None


def _walk() -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Yield (module, class, name) and the function, class or property that stands there."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in _ROOTS or not isinstance(module, ModuleType):
            continue
        for key, value in list(vars(module).items()):
            if not _is_function(value):
                continue
            yield (name, "", key), value
            if isinstance(value, type) and getattr(value, "__module__", "") == name:
                for inner, member in list(vars(value).items()):
                    if _is_function(member):
                        yield (name, key, inner), member
    framework = sys.modules.get("paddle")
    tensor = getattr(framework, "Tensor", None)
    for inner, member in list(vars(tensor).items()) if isinstance(tensor, type) else ():
        if _is_function(member):
            yield ("paddle", "Tensor", inner), member
