"""What a model keeps between its calls besides its parameters, and how it is made to forget it.

A counter, a cache, a list that grows, a buffer that a forward pass writes to: each call would
depend on those before it.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from reprod_align.model.store import Array, keep_copy

import numpy as np

_CONTAINERS = (dict, OrderedDict, defaultdict, list, set, deque)
_DEPTH = 4  # containers within containers
_MANY = 10_000  # elements above which a container's own contents are kept, not what they hold
_LIBRARIES = {"torch", "paddle", "numpy", "builtins", "types", "functools", "typing", "collections"}
_FRAMEWORKS_OWN = {"_parameters", "_buffers", "_modules", "_sub_layers"}


class State:
    """What some modules hold now: their attributes, what these contain, and tensors that change."""

    def __init__(self, framework: ModuleType, modules: Iterable[Any], tensors: list[Any]) -> None:
        """Keep the modules' attributes and contents. tensors: those that no optimizer changes."""
        self._fw, self._tensors = framework, [one for one in tensors if framework.has_values(one)]
        self._attributes = [(m, dict(vars(m)), dict(m._buffers)) for m in modules]
        self._contents = [*self._keep_contents()]
        self._values: list[Array] | None = None
        """of the tensors, when the first call began"""
        self._has_begun = False

    def begin_anew(self) -> None:
        """Forget the calls since the tensors were last given values, or since this was made."""
        if self._values is None:
            self._values = [keep_copy(self._fw.view(tensor)) for tensor in self._tensors]
        elif self._has_begun:
            self.restore()
            self._restore_values()
        self._has_begun = True

    def expect_values(self) -> None:
        """Forget the calls; the tensors are about to be given other values."""
        if self._has_begun:
            self.restore()
            self._restore_values()
        self._has_begun, self._values = False, None

    def restore(self) -> None:
        """Give the modules their attributes and contents back as they were, the objects themselves."""
        for module, attributes, buffers in self._attributes:
            for name in vars(module).keys() - attributes.keys():
                vars(module).pop(name)
            vars(module).update(attributes)
            module._buffers.clear()
            module._buffers.update(buffers)
        for put_back in self._contents:
            put_back()

    def _restore_values(self) -> None:
        """Give the tensors the values that were noted, those that have others now."""
        for tensor, values in zip(self._tensors, self._values or (), strict=False):
            if not np.array_equal(self._fw.view(tensor), values):
                self._fw.set_values(tensor, values)

    def _keep_contents(self) -> Iterator[Callable[[], None]]:
        seen: set[int] = set()
        for _, attributes, _ in self._attributes:
            for name, value in attributes.items():
                if name not in _FRAMEWORKS_OWN and not name.endswith("_hooks"):
                    yield from self._keep(value, _DEPTH, seen)

    def _keep(self, value: Any, depth: int, seen: set[int]) -> Iterator[Callable[[], None]]:
        """Yield what puts a value's contents back, and those of what it holds."""
        if depth < 0 or id(value) in seen:
            return
        held = self._contents_of(value)
        if held is None:
            return
        seen.add(id(value))
        if not isinstance(held, tuple):
            yield _put_back(held)
        parts = held.values() if isinstance(held, dict) else held
        if len(parts) <= _MANY:
            for part in parts:
                yield from self._keep(part, depth - 1, seen)

    def _contents_of(self, value: Any) -> Any:
        """Return the container that a value is, or an object's attributes; None of anything else."""
        if type(value) in _CONTAINERS or isinstance(value, tuple):
            return value
        if self._fw.is_tensor(value) or self._fw.is_module(value) or isinstance(value, type):
            return None
        theirs = type(value).__module__.partition(".")[0] in _LIBRARIES
        return None if theirs else getattr(value, "__dict__", None)


def _put_back(container: Any) -> Callable[[], None]:
    """Return what gives a container the contents that it has now."""
    kept = container.copy()

    def put_back() -> None:
        if isinstance(container, list):
            container[:] = kept
            return
        container.clear()
        (container.extend if isinstance(container, deque) else container.update)(kept)

    return put_back
