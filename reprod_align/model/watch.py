"""Hooks on every module: they record each call, and can put given values in place of the model's.

Beside tensors, numbers, texts and None in an output are compared; other objects are named.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import ModuleType
from typing import Any, Literal, Protocol

from reprod_align.base.blocks import Array
from reprod_align.base.tree import (
    Held,
    IsTensor,
    give_back,
    leaves,
    list_copies,
    plain_leaves,
    replace,
)
from reprod_align.model.recorder import OperationRecorder
from reprod_align.model.source import RunEnd, Wanted, Which
from reprod_align.model.store import Shelf
from reprod_align.model.trace import Call, Leaf, Trace
from reprod_align.traces.recorder import Listener

import numpy as np

_COMPARED = "biufcSU"  # kinds of arrays


def read_values(
    output: object, is_tensor: IsTensor
) -> tuple[dict[str, Array | None], dict[str, str]]:
    """Return the values in an output that can be compared, by path, and the classes of the other objects."""
    values: dict[str, Array | None] = {}
    objects: dict[str, str] = {}
    for path, part in plain_leaves(output, is_tensor).items():
        read = None if part is None else _read(part)
        if part is None or read is not None:
            values[path] = read
        else:
            objects[path] = type(part).__name__
    return values, objects


def _read(part: Any) -> Array | None:
    """Return a value as an array, None if it is no plain value."""
    if isinstance(part, Enum) and not isinstance(part, (int, float, str)):
        return np.array(str(part))
    if isinstance(part, (bytes, bytearray)):
        return np.array(bytes(part).hex())
    if isinstance(part, (range, slice)):
        return np.array(repr(part))
    if isinstance(part, Set):
        return np.array(repr(sorted(map(repr, part))))
    if isinstance(part, (bool, int, float, complex, str, np.generic, np.ndarray)):
        array = np.array(part)
        if array.dtype.kind == "O" and isinstance(part, int):  # larger than any integer of numpy's
            array = np.array(str(part))
        return array if array.dtype.kind in _COMPARED else None
    return None


Keep = Literal["none", "ends", "outputs", "values", "all"]
"""Which arrays a trace holds: the model's own outputs and their gradients ("ends"), every module's
outputs, every module's inputs and outputs ("values"), or the gradients of both too ("all")"""


@dataclass(frozen=True)
class Pin:
    """What takes a tensor's place. None: the tensor's own stays."""

    array: Array | None
    gradient: Array | None
    differentiable: bool = False
    """the reference can be differentiated here: go on as if this side could"""
    ends: bool = False
    """no gradient goes further back from here"""


class Pins(Protocol):
    """Tells what to pin at a call. Asked with the arrays that arrived, by leaf path."""

    def inputs(self, call: Call) -> Mapping[str, Pin]:
        """Return pins for the leaves of call.inputs."""

    def outputs(self, call: Call) -> Mapping[str, Pin]:
        """Return pins for the leaves of call.outputs."""


class _NoPins:
    def inputs(self, call: Call) -> Mapping[str, Pin]:
        return {}

    def outputs(self, call: Call) -> Mapping[str, Pin]:
        return {}


NO_PINS: Pins = _NoPins()


class Watch:
    """Records one forward and backward pass of a model into `trace`."""

    def __init__(
        self,
        framework: ModuleType,
        keep: Keep,
        pins: Pins = NO_PINS,
        wanted: Wanted | None = None,
        graded: bool = True,
    ) -> None:
        """Record what `keep` says; `pins` are put in as the values pass by.

        wanted: modules whose own code is recorded call by call. graded: False: gradients are off,
        and every float tensor counts as differentiable.
        """
        self.fw, self.keep, self.pins, self.graded = framework, keep, pins, graded
        self._last = None if wanted is None else wanted.last
        recorded = wanted if wanted is not None and wanted.calls else None
        self._inner = None if recorded is None else OperationRecorder(framework, recorded)
        self._listener: Listener[Leaf] = Listener(framework, self._begin, self._end)
        self.trace = Trace(self._listener.calls)
        if self._inner is not None:
            self.trace.operations = self._inner.operations
        self._shelf = Shelf()
        self._pinned: list[Any] = []
        self._handed: dict[tuple[str, int], list[tuple[Any, Any, int]]] = {}
        """call -> tensors that it was given, their stand-ins, how often these had been changed in place"""
        self._copies: dict[tuple[str, int], list[Held]] = {}
        """call -> lists and dicts that it was given, of which it got copies"""

    def on(self, modules: Iterable[tuple[str, Any]]) -> AbstractContextManager[None]:
        """Hook the modules in the block, given with their paths."""
        named = dict(modules)
        if self._inner is not None:
            self._inner.know(named)
        return self._listener.on(named.items())

    def end(self) -> Trace:
        """Return the trace and let go of it: hooks in a graph that the model keeps may hold this object."""
        trace, self._shelf, self._inner, self._pinned = self.trace, Shelf(), None, []
        self._handed, self._copies = {}, {}
        del self.trace, self._listener
        return trace

    @contextmanager
    def ending_if_raised(self) -> Iterator[None]:
        """Let go of the trace if the block raises: no garbage collector sees tensors that hold a hook."""
        try:
            yield
        except BaseException:
            self.end()
            raise

    def hear_operations(self) -> AbstractContextManager[None]:
        """Record in the block what the wanted modules' own code calls. Enter it last."""
        return nullcontext() if self._inner is None else self._inner.on()

    def has_set(self, hook: object) -> bool:
        """Tell whether a hook on a gradient is one of its own, which record and pin."""
        return isinstance(hook, partial) and getattr(hook.func, "__self__", None) is self

    def place(self) -> list[tuple[str, int]]:
        """Return the calls that are open, the innermost last."""
        return [call.key for call in self._listener.open]

    def inside(self) -> str:
        """Return the innermost module that is open: where an error was raised."""
        return self._listener.open[-1].path if self._listener.open else ""

    def include_pinned(self, scalar: Any) -> Any:
        """Return `scalar` plus zero times each pinned tensor: one it does not reach gets gradient 0."""
        if not self._pinned:
            return scalar
        zeros = [np.zeros(())] * len(self._pinned)
        return scalar + self.fw.weighted_sum(self._pinned, zeros)

    def _begin(self, call: Call, given: Any) -> Any:
        if self._inner is not None:
            self._inner.begin(call, given)
            with self._inner.paused():
                return self._take(call, given)
        return self._take(call, given)

    def _take(self, call: Call, given: Any) -> Any:
        if self.keep not in ("values", "all"):
            return None
        call.inputs = self._leaves(given)
        self._end_run(call, "inputs")
        if self.keep == "values":
            return None
        handed = self._handed[call.key] = list[tuple[Any, Any, int]]()
        passed = self._pass_on(given, call.inputs, self.pins.inputs(call), handed)
        self._copies[call.key] = [*list_copies(given, passed)]
        return passed

    def _give_back(self, call: Call) -> None:
        """Repeat a call's changes in place: it made them to stand-ins of the tensors that it was given.

        What it put into a list or a dict goes into the caller's own.
        """
        handed = self._handed.pop(call.key, ())
        for tensor, passed, changes in handed:
            if self.fw.count_changes(passed) != changes and passed.shape == tensor.shape:
                self.fw.overwrite(tensor, passed)
        own = {id(passed): tensor for tensor, passed, _ in handed}
        for held in self._copies.pop(call.key, ()):
            give_back(held, lambda part: own.get(id(part), part))

    def _end(self, call: Call, output: Any) -> Any:
        if self._inner is None:
            self._give_back(call)
            return self._give(call, output)
        with self._inner.paused():
            self._give_back(call)
            passed = self._give(call, output)
        self._inner.end(call, output, output if passed is None else passed)
        return passed

    def _give(self, call: Call, output: Any) -> Any:
        if self.keep == "none" or (self.keep == "ends" and self._listener.open):
            return None
        call.outputs = self._leaves(output)
        if call is self.trace.calls[0]:
            self.trace.values, self.trace.objects = read_values(output, self.fw.is_tensor)
        self._end_run(call, "outputs")
        if self.keep in ("outputs", "values"):
            return None
        return self._pass_on(output, call.outputs, self.pins.outputs(call))

    def _end_run(self, call: Call, which: Which) -> None:
        """Raise RunEnd if this is the last that is wanted of the run."""
        if self._last == (call.key, which):
            raise RunEnd

    def _leaves(self, value: Any) -> dict[str, Leaf]:
        return {
            at: self._make_leaf(tensor) for at, tensor in leaves(value, self.fw.is_tensor).items()
        }

    def _pass_on(
        self,
        value: Any,
        kept: Mapping[str, Leaf],
        pins: Mapping[str, Pin],
        handed: list[tuple[Any, Any, int]] | None = None,
    ) -> Any:
        """Return a value with what goes on in place of its tensors, each noted in `handed`."""

        def take_place(at: str, tensor: Any) -> Any:
            passed = self._pass_tensor(kept, pins, at, tensor)
            if handed is not None and passed is not tensor:
                handed.append((tensor, passed, self.fw.count_changes(passed)))
            return passed

        return replace(value, self.fw.is_tensor, take_place)

    def _make_leaf(self, tensor: Any) -> Leaf:
        array = self._shelf.keep(self.fw.view(tensor))
        flows = bool(self.fw.carries_gradient(tensor)) if self.graded else array.dtype.kind == "f"
        return Leaf(array, flows)

    def _pass_tensor(
        self, kept: Mapping[str, Leaf], pins: Mapping[str, Pin], at: str, tensor: Any
    ) -> Any:
        """Return what goes on in the tensor's place, its gradient hooked."""
        leaf, pin = kept[at], pins.get(at)
        if pin is not None and pin.array is not None:
            tensor = self.fw.pin(tensor, self.fw.constant(pin.array, tensor))
            if pin.differentiable and not leaf.differentiable:
                tensor = self.fw.make_differentiable(tensor)
        elif leaf.differentiable:  # its gradient is this use's share alone
            tensor = tensor.clone()
        if pin is not None and pin.ends and self.fw.carries_gradient(tensor):
            tensor = self.fw.make_differentiable(tensor)
        if self.fw.carries_gradient(tensor):
            self.fw.on_gradient(tensor, partial(self._pin_gradient, leaf, pin))
            if pin is not None and pin.gradient is not None:
                self._pinned.append(tensor)
        return tensor

    def _pin_gradient(self, leaf: Leaf, pin: Pin | None, gradient: Any) -> Any:
        leaf.gradient = self._shelf.keep(self.fw.view(gradient))
        if pin is None or pin.gradient is None:
            return None
        return self.fw.constant(pin.gradient, gradient)
