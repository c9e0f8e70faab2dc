"""What a model's modules hold: parameters and buffers by name, and what is kept between calls.

A counter, a cache, a list that grows, a buffer that a forward pass writes to: each call would depend on
those before it. `State` takes them back to where they were.
"""

import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from reprod_align.base.blocks import Array
from reprod_align.model.side import TensorInfo
from reprod_align.model.store import keep_copy, keep_own

import numpy as np

_CONTAINERS = (dict, OrderedDict, defaultdict, list, set, deque)
_DEPTH = 4  # containers within containers
_MANY = 10_000  # elements above which a container's own contents are kept, not what they hold
_LIBRARIES = {"torch", "paddle", "numpy", "builtins", "types", "functools", "typing", "collections"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class _Undo(NamedTuple):
    """How to undo a change in place. A model holds hundreds of such objects: a tuple is cheap."""

    put_back: Callable[[], object]
    is_changed: Callable[[], object]


class State:
    """What some modules hold now: their attributes, what these contain, and tensors that change."""

    def __init__(self, framework: ModuleType, modules: Iterable[Any], tensors: list[Any]) -> None:
        """Keep the modules' attributes and contents. tensors: those that no optimizer changes."""
        self._fw, self._tensors = framework, [one for one in tensors if framework.has_values(one)]
        self._attributes = [(m, dict(vars(m)), dict(self._read_buffers(m))) for m in modules]
        self._contents: dict[tuple[int, str], list[_Undo]] = {}
        """by module and attribute"""
        self._keep_contents()
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
            own = self._read_buffers(module)
            own.clear()
            own.update(buffers)
        for several in self._contents.values():
            for kept in several:
                kept.put_back()

    def read_changed(self, names: Mapping[int, str]) -> dict[str, Array | None]:
        """Return the attributes that are not as they were, as "module.attribute", with their numbers.

        names: the modules', by id. None: an attribute that holds other things than numbers.
        """
        values = {
            id(tensor): before
            for tensor, before in zip(self._tensors, self._values or (), strict=False)
        }
        found: dict[str, Array | None] = {}
        inherited = _list_inherited(self._fw)
        for module, before, buffers in self._attributes:
            held, own = vars(module), self._read_buffers(module)
            if added := own.keys() - buffers.keys():  # Paddle keeps a tensor there
                held = {**held, **{name: own[name] for name in added}}
            for name, value in held.items():
                kept = self._contents.get((id(module), name))
                if kept is None and value is before.get(name, held) and id(value) not in values:
                    continue  # most of them
                if name in inherited:
                    continue
                changed = kept is not None and any(one.is_changed() for one in kept)
                if changed or self._is_other(before, buffers, name, value, values):
                    path = names.get(id(module), type(module).__name__)
                    found[f"{path}.{name}".lstrip(".")] = self._read_numbers(value)
        return found

    def _read_buffers(self, module: Any) -> dict[str, Any]:
        """Return the module's own dict of its buffers."""
        buffers: dict[str, Any] = self._fw.contents(module)[1]
        return buffers

    def _is_other(
        self,
        before: Mapping[str, Any],
        buffers: Mapping[str, Any],
        name: str,
        value: Any,
        values: Mapping[int, Array],
    ) -> bool:
        """Tell whether an attribute was set to another value, or is a tensor with other values."""
        if name not in before:
            return True
        if value is before[name]:
            changing = id(value) in values and name not in buffers
            return changing and not np.array_equal(self._fw.view(value), values[id(value)])
        plain = isinstance(value, _PLAIN) and isinstance(before[name], _PLAIN)
        return not plain or value != before[name]

    def _read_numbers(self, value: Any) -> Array | None:
        """Return the numbers that a value holds, in order; None if it holds anything else."""
        if self._fw.is_tensor(value):
            return keep_copy(self._fw.view(value)).reshape(-1)
        if isinstance(value, (int, float, np.ndarray, np.generic)) and not isinstance(value, bool):
            array: Array = np.array(value).reshape(-1)
            return array if array.dtype.kind in "biuf" else None
        if isinstance(value, Mapping):
            value = list(value.values())
        if not isinstance(value, (list, tuple, deque)) or len(value) > _MANY:
            return None
        parts = [self._read_numbers(part) for part in value]
        whole = [part for part in parts if part is not None]
        return np.concatenate([*whole, np.zeros(0)]) if len(whole) == len(parts) else None

    def _restore_values(self) -> None:
        """Give the tensors the values that were noted, those that have others now."""
        for tensor, values in zip(self._tensors, self._values or (), strict=False):
            if not np.array_equal(self._fw.view(tensor), values):
                self._fw.set_values(tensor, values)

    def _keep_contents(self) -> None:
        seen: set[int] = set()
        for module, attributes, _ in self._attributes:
            number, own = id(module), {id(held) for held in self._fw.contents(module)}
            for name, value in attributes.items():
                if type(value) in _PLAIN or id(value) in own or name.endswith("_hooks"):
                    continue
                if type(value) in _CONTAINERS and not value:  # most containers of a model
                    if id(value) not in seen:
                        seen.add(id(value))
                        self._contents[number, name] = [_Undo(value.clear, value.__len__)]
                elif kept := [*self._keep(value, _DEPTH, seen)]:
                    self._contents[number, name] = kept

    def _keep(self, value: Any, depth: int, seen: set[int]) -> Iterator[_Undo]:
        """Yield what puts a value's contents back, and those of what it holds."""
        if depth < 0 or type(value) in _PLAIN or id(value) in seen:
            return
        stateful = None if type(value) in _CONTAINERS else _keep_in_place(value)
        if stateful is not None:
            seen.add(id(value))
            yield stateful
            return
        held = self._read_contents(value)
        if held is None:
            return
        seen.add(id(value))
        if not isinstance(held, tuple):
            yield _keep_container(held)
        parts = held.values() if isinstance(held, dict) else held
        if len(parts) <= _MANY:
            for part in parts:
                yield from self._keep(part, depth - 1, seen)

    def _read_contents(self, value: Any) -> Any:
        """Return the container that a value is, or an object's attributes; None of anything else."""
        if type(value) in _CONTAINERS or isinstance(value, tuple):
            return value
        if self._fw.is_tensor(value) or self._fw.is_module(value) or isinstance(value, type):
            return None
        theirs = type(value).__module__.partition(".")[0] in _LIBRARIES
        return None if theirs else getattr(value, "__dict__", None)


@cache
def _list_inherited(framework: ModuleType) -> frozenset[str]:
    """Return the attributes that every module of a framework has."""
    return frozenset(vars(framework.Module()))


def _keep_in_place(value: Any) -> _Undo | None:
    """Return what keeps an array, or a generator of random numbers; None of anything else."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        copy = value.copy()
        return _Undo(
            lambda: np.copyto(value, copy), lambda: not np.array_equal(value, copy, equal_nan=True)
        )
    if isinstance(value, np.random.Generator):
        before = value.bit_generator.state
        return _Undo(
            lambda: setattr(value.bit_generator, "state", before),
            lambda: repr(value.bit_generator.state) != repr(before),
        )
    if isinstance(value, np.random.RandomState):
        legacy = value.get_state()
        return _Undo(
            lambda: value.set_state(legacy), lambda: repr(value.get_state()) != repr(legacy)
        )
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        numbers = value.getstate()
        return _Undo(lambda: value.setstate(numbers), lambda: value.getstate() != numbers)
    return None


def _keep_container(container: Any) -> _Undo:
    """Return what gives a container the contents that it has now."""
    kept = container.copy()

    def put_back() -> None:
        if isinstance(container, list):
            container[:] = kept
            return
        container.clear()
        (container.extend if isinstance(container, deque) else container.update)(kept)

    return _Undo(put_back, lambda: not _holds_same(container, kept))


def _holds_same(container: Any, kept: Any) -> bool:
    """Tell whether a container holds the very same things; equal numbers and texts count as the same."""
    if len(container) != len(kept):
        return False
    if isinstance(container, set):
        return bool(container == kept)
    if isinstance(container, dict):
        pairs = [(value, kept.get(key, kept)) for key, value in container.items()]
    else:
        pairs = [*zip(container, kept, strict=True)]
    return all(
        now is then or isinstance(now, _PLAIN) and isinstance(then, _PLAIN) and now == then
        for now, then in pairs
    )


class HeldTensor(NamedTuple):
    """A tensor and the module that holds it."""

    name: str
    path: str
    module: Any
    role: str
    tensor: Any
    is_parameter: bool


class HeldTensors:
    """All tensors of a model, in the order of its modules; a shared one occurs under each name."""

    def __init__(self, framework: ModuleType, model: Any) -> None:
        """Take the backend's `side` and a model of its framework."""
        self.fw, self.model = framework, model

    def __iter__(self) -> Iterator[HeldTensor]:
        """Yield each tensor with its name; the model is asked anew each time."""
        for path, module in self.fw.modules(self.model):
            for role, tensor, is_parameter in self.fw.own_tensors(module):
                name = f"{path}.{role}" if path else role
                yield HeldTensor(name, path, module, role, tensor, is_parameter)

    def parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield every parameter once, with its name."""
        seen: set[int] = set()
        for held in self:
            if held.is_parameter and id(held.tensor) not in seen:
                seen.add(id(held.tensor))
                yield held.name, held.tensor

    def describe(self, ties: Mapping[int, str]) -> dict[str, TensorInfo]:
        """Return what is known of every tensor by name; ties: of `choose_names`."""
        return {
            held.name: TensorInfo(
                name=held.name,
                owner=held.path,
                role=held.role,
                shape=tuple(held.tensor.shape),
                is_float=bool(held.tensor.is_floating_point()),
                is_parameter=held.is_parameter,
                is_trainable=held.is_parameter and bool(self.fw.carries_gradient(held.tensor)),
                is_persistent=bool(self.fw.is_persistent(held.module, held.role)),
                tie=ties[id(held.tensor)],
            )
            for held in self
        }

    def copy_values(self) -> dict[str, Array]:
        """Return a copy of every tensor by name, in the framework's own layout."""
        return {held.name: keep_copy(self.fw.view(held.tensor)) for held in self}

    def copy_buffers(self) -> dict[str, Array]:
        """Return a copy of every tensor that is not a parameter, by name."""
        return {
            held.name: keep_copy(self.fw.view(held.tensor))
            for held in self
            if not held.is_parameter
        }

    def set_gradients(self, gradients: Mapping[str, Array]) -> None:
        """Give every parameter its gradient; one that is not named loses its own."""
        for name, parameter in self.parameters():
            self.fw.set_gradient(parameter, gradients.get(name))

    def copy_gradients(self) -> dict[str, Array]:
        """Return a copy of each parameter's gradient, where it has one."""
        found = ((name, self.fw.gradient(tensor)) for name, tensor in self.parameters())
        return {name: keep_copy(gradient) for name, gradient in found if gradient is not None}

    def take_gradients(self) -> dict[str, Array]:
        """Return each parameter's gradient, where it has one; the parameters lose them."""
        taken: dict[str, Array] = {}
        for name, parameter in self.parameters():
            gradient = self.fw.gradient(parameter)
            self.fw.set_gradient(parameter, None)
            if gradient is not None:
                taken[name] = keep_own(gradient)
        return taken


def choose_names(held: Iterable[HeldTensor], layers: Set[str]) -> dict[int, str]:
    """Return the name that stands for all names of each tensor, by id: its first, if a layer has none.

    layers: the framework's own, which tell how the tensor is used: a bare parameter doesn't.
    """
    chosen: dict[int, HeldTensor] = {}
    for one in held:
        known = chosen.setdefault(id(one.tensor), one)
        if known.path not in layers and one.path in layers:
            chosen[id(one.tensor)] = one
    return {tensor: one.name for tensor, one in chosen.items()}
