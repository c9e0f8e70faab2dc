"""Records what a model does into a file, while the user's own code runs it.

Every recording of layers starts with `Listener`, which hears the calls of a model's modules;
`record_outputs`, `record_trace` and the engine's `model.watch` differ in what they keep of a call.

The hooks only look and replace nothing, so results stay the same to the last bit. A gradient is
that of a tensor over all its uses, and so needs no copy of the tensor.
"""

import math
import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import Any, Generic, TypeVar
from weakref import ref

from reprod_align.base.tree import leaves
from reprod_align.errors import ReprodError
from reprod_align.traces import Rank, RecordedTrace, TraceTensor, save_trace
from reprod_align.traces.sketch import LENGTH, sketch_with_rows

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")
"""what is kept of one tensor"""


@dataclass
class ModuleCall(Generic[Item]):
    """One call of one module."""

    path: str
    """the module's dotted name, "" for the model itself"""
    index: int
    """0 for the module's first call, 1 for its second, ..."""
    parent: int | None
    """number of the call in which it happened; None for the outermost"""
    inputs: dict[str, Item] = field(default_factory=dict)
    outputs: dict[str, Item] = field(default_factory=dict)
    began: int = 0
    finished: int = -1
    """ticks of one clock, which counts beginnings and ends of calls; -1 if an error ended it"""
    graded: bool = True
    """whether gradients could flow when it began: False under `no_grad`"""

    @property
    def key(self) -> tuple[str, int]:
        """Module and call index, which name the call on either side."""
        return self.path, self.index


Hear = Callable[[ModuleCall[Item], Any], Any]
"""Takes a call and its (args, kwargs) or its output; returns what takes their place, None to keep"""


class Listener(Generic[Item]):
    """Hears every call of the modules that it is put on."""

    def __init__(self, framework: ModuleType, begin: Hear[Item], end: Hear[Item]) -> None:
        """Call `begin` before and `end` after each call; framework: the backend's `side`."""
        self.calls: list[ModuleCall[Item]] = []
        self._fw, self._on_begin, self._on_end = framework, begin, end
        self._open: list[int] = []
        self._counts: Counter[str] = Counter()
        self._clock = 0

    @property
    def open(self) -> list[ModuleCall[Item]]:
        """The calls that are under way, the innermost last."""
        return [self.calls[number] for number in self._open]

    @contextmanager
    def on(self, modules: Iterable[tuple[str, Any]]) -> Iterator[None]:
        """Hook the modules, given with their paths; the hooks come off on exceptions too."""
        handles: list[Any] = []
        try:
            for path, module in modules:
                handles.append(self._fw.before_call(module, partial(self._begin, path)))
                handles.append(self._fw.after_call(module, partial(self._end, path)))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def tick(self) -> int:
        """Advance the clock and return its time."""
        self._clock += 1
        return self._clock

    def _begin(self, path: str, args: Any, kwargs: Any) -> Any:
        parent = self._open[-1] if self._open else None
        call: ModuleCall[Item] = ModuleCall(
            path,
            self._counts[path],
            parent,
            began=self.tick(),
            graded=self._fw.can_gradients_flow(),
        )
        self._counts[path] += 1
        self._open.append(len(self.calls))
        self.calls.append(call)
        return self._on_begin(call, (args, kwargs))

    def _end(self, path: str, output: Any) -> Any:
        call = self.calls[self._open.pop()]
        while call.path != path:  # an inner call raised, and the model's code went on
            call = self.calls[self._open.pop()]
        call.finished = self.tick()
        return self._on_end(call, output)


@contextmanager
def record_outputs(
    framework: ModuleType, model: Any, names: Sequence[str]
) -> Iterator[dict[str, NDArray[np.generic]]]:
    """Collect the first tensor that each named module returns in the block, in call order.

    framework: the backend's `side`. Of several calls the last counts. Raises ReprodError for a
    name that the model lacks, or, when the block ends, for a module that was not called.
    """
    modules = dict(framework.modules(model))
    _require(names, modules, "the model has no layer {}")
    outputs: dict[str, NDArray[np.generic]] = {}

    def keep(call: ModuleCall[None], output: Any) -> None:
        for tensor in leaves(output, framework.is_tensor).values():
            outputs[call.path] = framework.array(tensor)
            return

    listener: Listener[None] = Listener(framework, lambda call, given: None, keep)
    with listener.on((name, modules[name]) for name in names):
        yield outputs
    called = {call.path for call in listener.calls}
    _require(names, called, "{} did not run: call the model inside the block")
    _require(names, outputs, "{} returned no tensor")


def _require(names: Sequence[str], present: Container[str], problem: str) -> None:
    missing = [repr(name) for name in names if name not in present]
    if missing:
        raise ReprodError(f"layer_outputs: {problem.format(', '.join(missing))}")


@contextmanager
def record_model(
    framework: ModuleType,
    ops: ModuleType,
    model: Any,
    path: str | os.PathLike[str],
    mode: str,
    forward: bool,
    backward: bool,
    rank: Rank | None = None,
) -> Iterator[None]:
    """Record what `model` does in the block; write it to `path` when the block ends well.

    framework, ops: the backend's `side` and `trace`. rank: which of a parallel run this process is.
    Raises ReprodError if nothing was recorded,
    or the file cannot be written.
    """
    if mode not in ("whole", "sketch"):
        raise ReprodError(f'mode "whole" or "sketch" expected, got {mode!r}')
    if not framework.is_module(model):
        raise ReprodError(f"a {framework.NAME} model expected, got a {type(model).__name__}")
    recorder = _ModelListener(framework, ops, mode, forward, backward)
    with recorder.on(model):
        yield
    save_trace(path, replace(recorder.trace(model), rank=rank))


@dataclass(eq=False)
class _Seen:
    """A tensor that passed by, in one version; modules often hand the very same one on."""

    tensor: ref[Any]
    version: int
    value: TraceTensor | None = None
    hooked: bool = False
    gradient: TraceTensor | None = None
    arrived: int = -1
    """when the gradient did"""


class _ModelListener:
    """Listens to every module, and keeps the tensors that pass by."""

    def __init__(
        self, framework: ModuleType, ops: ModuleType, mode: str, forward: bool, backward: bool
    ) -> None:
        self.fw, self.ops, self.mode = framework, ops, mode
        self.forward, self.backward = forward, backward
        self._listener: Listener[_Seen] = Listener(framework, self._begin, self._end)
        self._recording = True
        self._seen: dict[int, _Seen] = {}
        self._handles: list[Any] = []

    @contextmanager
    def on(self, model: Any) -> Iterator[None]:
        """Record until the block ends."""
        try:
            with self._listener.on(self.fw.modules(model)):
                yield
        finally:
            self._recording = False  # hooks on tensors live as long as their graph: they do nothing
            for handle in self._handles:
                handle.remove()

    def trace(self, model: Any) -> RecordedTrace:
        """Return what was seen, the parameters' gradients and the buffers as they are now."""
        if not self._listener.calls:
            raise ReprodError("nothing was recorded: call the model inside the block")
        passes = self._list_forward_tensors() if self.forward else []
        if self.backward:
            passes += self._list_backward_tensors(model)
        tensors = enumerate(passes + self._list_buffers(model))
        ordered = tuple(replace(tensor, order=number) for number, tensor in tensors)
        return RecordedTrace(self.fw.NAME, self.mode, ordered)

    # ------------------------------------------------------------------ while the model runs

    def _begin(self, call: ModuleCall[_Seen], given: Any) -> None:
        for at, tensor in leaves(given, self.fw.is_tensor).items():
            call.inputs[at] = self._see(tensor)

    def _end(self, call: ModuleCall[_Seen], output: Any) -> None:
        inputs = set(call.inputs.values())
        for at, tensor in leaves(output, self.fw.is_tensor).items():
            call.outputs[at] = seen = self._see(tensor)
            if self.backward and seen not in inputs:
                self._hook_gradient(seen, tensor)

    def _see(self, tensor: Any) -> _Seen:
        """Return what is known of the tensor; anew if it was changed in place since."""
        version = self.fw.count_changes(tensor)
        seen = self._seen.get(id(tensor))
        if seen is None or seen.tensor() is not tensor or seen.version != version:
            seen = self._seen[id(tensor)] = _Seen(ref(tensor), version)
            if self.forward:
                seen.value = self._keep_value(tensor)
        return seen

    def _hook_gradient(self, seen: _Seen, tensor: Any) -> None:
        if seen.hooked or not self.fw.carries_gradient(tensor):
            return
        seen.hooked = True
        handle = self.fw.on_gradient(tensor, partial(self._note_gradient, seen))
        if self.ops.is_leaf(tensor):  # a parameter handed out: its hook would outlive the graph
            self._handles.append(handle)

    def _note_gradient(self, seen: _Seen, gradient: Any) -> None:
        if self._recording:
            seen.gradient, seen.arrived = self._keep_value(gradient), self._listener.tick()

    def _keep_value(self, tensor: Any, transposed: bool = False) -> TraceTensor:
        """Return what is kept of the tensor; its place is filled in later."""
        dtype, shape = str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape)
        whole = self.mode == "whole" or math.prod(shape) <= LENGTH
        if whole:
            values, rows = self.fw.array(tensor), None
        else:
            values, rows = sketch_with_rows(tensor.t() if transposed else tensor, self.ops)
        return TraceTensor("", 0, 0, "", "", dtype, shape, whole, transposed, False, values, rows)

    # ------------------------------------------------------------------ afterwards

    def _list_forward_tensors(self) -> list[TraceTensor]:
        """Return inputs and outputs in the order of time."""
        found: list[tuple[int, TraceTensor]] = []
        for call in self._listener.calls:
            inputs = set(call.inputs.values())
            passes = [("input", call.began, call.inputs), ("output", call.finished, call.outputs)]
            for phase, tick, tensors in passes:
                for at, seen in tensors.items():
                    assert seen.value is not None  # `forward` says whether values are kept at all
                    tensor = _place(seen.value, *call.key, at, phase)
                    again = phase == "output" and seen in inputs
                    found.append((tick, replace(tensor, passed_on=again)))
        return [tensor for _, tensor in sorted(found, key=lambda timed: timed[0])]

    def _list_backward_tensors(self, model: Any) -> list[TraceTensor]:
        """Return gradients in the order of arrival; a parameter's comes after its module's outputs'."""
        arrived: dict[str, int] = {}
        timed: list[tuple[tuple[float, int, int], TraceTensor]] = []
        for call in self._listener.calls:
            for at, seen in call.outputs.items():
                if seen.gradient is None or seen in call.inputs.values():
                    continue
                arrived[call.path] = max(seen.arrived, arrived.get(call.path, 0))
                tensor = _place(seen.gradient, *call.key, at, "gradient")
                timed.append(((seen.arrived, 0, -call.finished), tensor))
        for number, tensor in enumerate(self._list_parameter_gradients(model)):
            timed.append(((arrived.get(tensor.module, math.inf), 1, -number), tensor))
        if not timed:
            raise ReprodError(
                "no gradient was recorded: run the backward pass inside the block, or say "
                "backward=False"
            )
        return [tensor for _, tensor in sorted(timed, key=lambda pair: pair[0])]

    def _list_parameter_gradients(self, model: Any) -> Iterator[TraceTensor]:
        turned = self.ops.transposed_parameters(model)
        for module, role, parameter in self._list_tensors(model, parameters=True):
            gradient = self.ops.gradient(parameter)
            if gradient is not None:
                transposed = (f"{module}.{role}" if module else role) in turned
                value = self._keep_value(gradient, transposed)
                yield _place(value, module, 0, role, "parameter gradient")

    def _list_buffers(self, model: Any) -> list[TraceTensor]:
        return [
            _place(self._keep_value(buffer), module, 0, role, "buffer")
            for module, role, buffer in self._list_tensors(model, parameters=False)
        ]

    def _list_tensors(self, model: Any, parameters: bool) -> Iterator[tuple[str, str, Any]]:
        """Yield module, role and tensor of every parameter or buffer, a shared one once."""
        found: set[int] = set()
        for path, module in self.fw.modules(model):
            for role, tensor, is_parameter in self.fw.own_tensors(module):
                if is_parameter == parameters and id(tensor) not in found:
                    found.add(id(tensor))
                    yield path, role, tensor


def _place(value: TraceTensor, module: str, call: int, leaf: str, phase: str) -> TraceTensor:
    return replace(value, module=module, call=call, leaf=leaf, phase=phase)
