"""Hooks on every module: they record each call, and can put given values in place of the model's."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Literal, Protocol

from reprod_align.base.tree import leaves, replace
from reprod_align.model.trace import Array, Call, Leaf, Shelf, Trace

import numpy as np

Keep = Literal["none", "ends", "outputs", "all"]
"""Which arrays a trace holds: the model's own outputs and their gradients ("ends"), every module's
outputs, or every module's inputs and outputs and the gradients of both"""


@dataclass(frozen=True)
class Pin:
    """What takes a tensor's place. None: the tensor's own stays."""

    array: Array | None
    gradient: Array | None
    differentiable: bool = False
    """the reference can be differentiated here: go on as if this side could"""


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

    def __init__(self, framework: ModuleType, keep: Keep, pins: Pins = NO_PINS) -> None:
        """Record what `keep` says; `pins` are put in as the values pass by."""
        self.fw, self.keep, self.pins = framework, keep, pins
        self.trace = Trace()
        self._shelf = Shelf()
        self._stack: list[int] = []
        self._counts: Counter[str] = Counter()
        self._clock = 0
        self._pinned: list[Any] = []

    @contextmanager
    def on(self, modules: Iterable[tuple[str, Any]]) -> Iterator[None]:
        """Hook the modules; the hooks come off whatever happens."""
        handles: list[Any] = []
        try:
            for path, module in modules:
                handles.append(self.fw.before_call(module, partial(self._before, path)))
                handles.append(self.fw.after_call(module, self._after))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def place(self) -> list[tuple[str, int]]:
        """Return the calls that are open, the innermost last."""
        return [self.trace.calls[number].key for number in self._stack]

    def inside(self) -> str:
        """Return the innermost module that is open: where an error was raised."""
        return self.trace.calls[self._stack[-1]].path if self._stack else ""

    def kept_alive(self, scalar: Any) -> Any:
        """Return `scalar` plus nothing: pinned tensors that it does not reach get a zero gradient."""
        if not self._pinned:
            return scalar
        nothing = [np.zeros(())] * len(self._pinned)
        return scalar + self.fw.weighted_sum(self._pinned, nothing)

    def _before(self, path: str, args: Any, kwargs: Any) -> Any:
        parent = self._stack[-1] if self._stack else None
        call = Call(path, self._counts[path], parent, began=self._tick())
        self._counts[path] += 1
        self._stack.append(len(self.trace.calls))
        self.trace.calls.append(call)
        if self.keep != "all":
            return None
        given = (args, kwargs)
        tensors = leaves(given, self.fw.is_tensor)
        call.inputs = {at: self._leaf(tensor) for at, tensor in tensors.items()}
        pins = self.pins.inputs(call)
        return replace(given, self.fw.is_tensor, partial(self._passed, call.inputs, pins))

    def _after(self, output: Any) -> Any:
        call = self.trace.calls[self._stack.pop()]
        call.finished = self._tick()
        if self.keep == "none" or (self.keep == "ends" and self._stack):
            return None
        tensors = leaves(output, self.fw.is_tensor)
        call.outputs = {at: self._leaf(tensor) for at, tensor in tensors.items()}
        if self.keep == "outputs":
            return None
        pins = self.pins.outputs(call)
        return replace(output, self.fw.is_tensor, partial(self._passed, call.outputs, pins))

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _leaf(self, tensor: Any) -> Leaf:
        return Leaf(self._shelf.keep(self.fw.view(tensor)), bool(self.fw.carries_gradient(tensor)))

    def _passed(
        self, kept: Mapping[str, Leaf], pins: Mapping[str, Pin], at: str, tensor: Any
    ) -> Any:
        """Return what goes on in the tensor's place, its gradient hooked."""
        leaf, pin = kept[at], pins.get(at)
        if pin is not None and pin.array is not None:
            tensor = self.fw.pinned(tensor, self.fw.constant(pin.array, tensor))
            if pin.differentiable and not leaf.differentiable:
                tensor = self.fw.differentiable(tensor)
        elif leaf.differentiable:  # others may use the same tensor
            tensor = self.fw.alias(tensor)
        if self.fw.carries_gradient(tensor):
            self.fw.on_gradient(tensor, partial(self._gradient, leaf, pin))
            if pin is not None and pin.gradient is not None:
                self._pinned.append(tensor)
        return tensor

    def _gradient(self, leaf: Leaf, pin: Pin | None, gradient: Any) -> Any:
        leaf.gradient = self._shelf.keep(self.fw.view(gradient))
        if pin is None or pin.gradient is None:
            return None
        return self.fw.constant(pin.gradient, gradient)
