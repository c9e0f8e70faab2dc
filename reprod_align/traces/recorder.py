"""Records what a model does into a file, while the user's own code runs it.

Nothing is put in the place of anything: the hooks only look, so that results stay the same to the
last bit. A gradient is that of a tensor over all its uses, and so needs no copy of the tensor.
"""

import math
import os
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any
from weakref import ref

from reprod_align.base.tree import leaves
from reprod_align.errors import ReprodError
from reprod_align.traces.file import Array, RecordedTrace, TraceTensor, save_trace
from reprod_align.traces.fingerprint import LENGTH, fingerprint


@contextmanager
def recorded(
    framework: ModuleType,
    ops: ModuleType,
    model: Any,
    path: str | os.PathLike[str],
    mode: str,
    forward: bool,
    backward: bool,
) -> Iterator[None]:
    """Record what `model` does in the block; write it to `path` when the block ends well.

    framework, ops: the backend's `*_side` and `*_sketch`. Raises ReprodError if nothing was
    recorded, or the file cannot be written.
    """
    if mode not in ("whole", "sketch"):
        raise ReprodError(f'mode "whole" or "sketch" expected, got {mode!r}')
    if not framework.is_module(model):
        raise ReprodError(f"a {framework.NAME} model expected, got a {type(model).__name__}")
    recorder = _Recorder(framework, ops, mode, forward, backward)
    with recorder.on(model):
        yield
    save_trace(path, recorder.trace(model))


@dataclass(frozen=True)
class _Value:
    """What is kept of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    whole: bool
    values: Array


@dataclass(eq=False)
class _Seen:
    """A tensor that passed by, in one version; modules often hand the very same one on."""

    tensor: ref[Any]
    version: int
    value: _Value | None = None
    hooked: bool = False
    gradient: _Value | None = None
    arrived: int = -1
    """when the gradient did"""


@dataclass(frozen=True)
class _Place:
    """An input or output of a call."""

    module: str
    call: int
    tick: int
    leaf: str
    phase: str
    passed_on: bool
    seen: _Seen


class _Recorder:
    """Hooks on every module, and what they saw."""

    def __init__(
        self, framework: ModuleType, ops: ModuleType, mode: str, forward: bool, backward: bool
    ) -> None:
        self.fw, self.ops, self.mode = framework, ops, mode
        self.forward, self.backward = forward, backward
        self._open = True
        self._clock = 0
        self._places: list[_Place] = []
        self._calls: Counter[str] = Counter()
        self._stack: list[tuple[str, int, Set[_Seen]]] = []
        self._seen: dict[int, _Seen] = {}
        self._handles: list[Any] = []

    @contextmanager
    def on(self, model: Any) -> Iterator[None]:
        """Hook every module; the hooks come off whatever happens."""
        try:
            for path, module in self.fw.modules(model):
                self._handles.append(self.fw.before_call(module, partial(self._before, path)))
                self._handles.append(self.fw.after_call(module, self._after))
            yield
        finally:
            self._open = False  # hooks on tensors stay as long as their graph, and do nothing
            for handle in self._handles:
                handle.remove()

    def trace(self, model: Any) -> RecordedTrace:
        """Return what was seen, the parameters' gradients and the buffers as they are now."""
        if not self._calls:
            raise ReprodError("nothing was recorded: call the model inside the block")
        passes = self._forward_tensors() if self.forward else []
        if self.backward:
            passes += self._backward_tensors(model)
        tensors = enumerate(passes + self._buffers(model))
        ordered = tuple(replace(tensor, order=number) for number, tensor in tensors)
        return RecordedTrace(self.fw.NAME, self.mode, ordered)

    # ------------------------------------------------------------------ while the model runs

    def _before(self, path: str, args: Any, kwargs: Any) -> None:
        call = self._calls[path]
        self._calls[path] += 1
        tensors = leaves((args, kwargs), self.fw.is_tensor)
        seen = {at: self._find(tensor) for at, tensor in tensors.items()}
        self._stack.append((path, call, set(seen.values())))
        tick = self._tick()
        for at, one in seen.items():
            self._keep(one)
            self._places.append(_Place(path, call, tick, at, "input", False, one))

    def _after(self, output: Any) -> None:
        path, call, inputs = self._stack.pop()
        tick = self._tick()
        for at, tensor in leaves(output, self.fw.is_tensor).items():
            seen = self._find(tensor)
            self._keep(seen)
            passed_on = seen in inputs
            self._places.append(_Place(path, call, tick, at, "output", passed_on, seen))
            if self.backward and not passed_on:
                self._hook(seen, tensor)

    def _find(self, tensor: Any) -> _Seen:
        """Return what is known of the tensor; anew if it was changed in place since."""
        version = self.ops.version(tensor)
        seen = self._seen.get(id(tensor))
        if seen is None or seen.tensor() is not tensor or seen.version != version:
            seen = self._seen[id(tensor)] = _Seen(ref(tensor), version)
        return seen

    def _keep(self, seen: _Seen) -> None:
        if self.forward and seen.value is None:
            seen.value = self._value(seen.tensor())

    def _hook(self, seen: _Seen, tensor: Any) -> None:
        if seen.hooked or not self.fw.carries_gradient(tensor):
            return
        seen.hooked = True
        handle = self.fw.on_gradient(tensor, partial(self._gradient, seen))
        if self.ops.is_leaf(tensor):  # a parameter handed out: its hook would outlive the graph
            self._handles.append(handle)

    def _gradient(self, seen: _Seen, gradient: Any) -> None:
        if self._open:
            seen.gradient, seen.arrived = self._value(gradient), self._tick()

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _value(self, tensor: Any, transposed: bool = False) -> _Value:
        dtype, shape = str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape)
        if self.mode == "whole" or math.prod(shape) <= LENGTH:
            return _Value(dtype, shape, True, self.fw.array(tensor))
        laid = tensor.t() if transposed else tensor
        return _Value(dtype, shape, False, fingerprint(laid, self.ops))

    # ------------------------------------------------------------------ afterwards

    def _forward_tensors(self) -> list[TraceTensor]:
        return [
            _described(place, place.phase, place.seen.value)
            for place in self._places
            if place.seen.value is not None
        ]

    def _backward_tensors(self, model: Any) -> list[TraceTensor]:
        """Return gradients as they came; a parameter's after those of its module's outputs."""
        arrived: dict[str, int] = {}
        keyed: list[tuple[tuple[float, int, int], TraceTensor]] = []
        for place in self._places:
            if place.phase == "input" or place.passed_on or place.seen.gradient is None:
                continue
            arrived[place.module] = max(place.seen.arrived, arrived.get(place.module, 0))
            tensor = _described(place, "gradient", place.seen.gradient)
            keyed.append(((place.seen.arrived, 0, -place.tick), tensor))
        for number, tensor in enumerate(self._parameter_gradients(model)):
            keyed.append(((arrived.get(tensor.module, math.inf), 1, -number), tensor))
        if not keyed:
            raise ReprodError(
                "no gradient was recorded: run the backward pass inside the block, or say "
                "backward=False"
            )
        return [tensor for _, tensor in sorted(keyed, key=lambda pair: pair[0])]

    def _parameter_gradients(self, model: Any) -> Iterator[TraceTensor]:
        turned = self.ops.transposed_parameters(model)
        for module, role, parameter in self._own_tensors(model, parameters=True):
            gradient = self.ops.gradient(parameter)
            if gradient is not None:
                transposed = (f"{module}.{role}" if module else role) in turned
                value = self._value(gradient, transposed)
                yield _of_module(module, role, "parameter gradient", value, transposed)

    def _buffers(self, model: Any) -> list[TraceTensor]:
        return [
            _of_module(module, role, "buffer", self._value(buffer))
            for module, role, buffer in self._own_tensors(model, parameters=False)
        ]

    def _own_tensors(self, model: Any, parameters: bool) -> Iterator[tuple[str, str, Any]]:
        """Yield module, role and tensor of every parameter or buffer, a shared one once."""
        found: set[int] = set()
        for path, module in self.fw.modules(model):
            for role, tensor, is_parameter in self.fw.own_tensors(module):
                if is_parameter == parameters and id(tensor) not in found:
                    found.add(id(tensor))
                    yield path, role, tensor


def _described(place: _Place, phase: str, value: _Value) -> TraceTensor:
    return TraceTensor(
        module=place.module,
        call=place.call,
        order=0,
        leaf=place.leaf,
        phase=phase,
        transposed=False,
        passed_on=place.passed_on,
        **vars(value),
    )


def _of_module(
    module: str, role: str, phase: str, value: _Value, transposed: bool = False
) -> TraceTensor:
    return TraceTensor(
        module=module,
        call=0,
        order=0,
        leaf=role,
        phase=phase,
        transposed=transposed,
        passed_on=False,
        **vars(value),
    )
