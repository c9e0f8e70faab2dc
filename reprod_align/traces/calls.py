"""The calls of a model's modules, heard through hooks: every recording of layers starts here.

`layer_outputs`, `record_trace` and the engine's `model.watch` differ in what they keep of a call.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any, Generic, TypeVar

from reprod_align.base.tree import leaves
from reprod_align.errors import ReprodError

import numpy as np
from numpy.typing import NDArray

Kept = TypeVar("Kept")
"""what is kept of one tensor"""


@dataclass
class Call(Generic[Kept]):
    """One call of one module."""

    path: str
    """the module's dotted name, "" for the model itself"""
    index: int
    """0 for the module's first call, 1 for its second, ..."""
    parent: int | None
    """number of the call in which it happened; None for the outermost"""
    inputs: dict[str, Kept] = field(default_factory=dict)
    outputs: dict[str, Kept] = field(default_factory=dict)
    began: int = 0
    finished: int = -1
    """ticks of one clock, which counts beginnings and ends of calls; -1 if an error ended it"""

    @property
    def key(self) -> tuple[str, int]:
        """Module and call index, which name the call on either side."""
        return self.path, self.index


Hear = Callable[[Call[Kept], Any], Any]
"""Takes a call and its (args, kwargs) or its output; returns what takes their place, None to keep"""


class Listener(Generic[Kept]):
    """Hears every call of the modules that it is put on."""

    def __init__(self, framework: ModuleType, begin: Hear[Kept], end: Hear[Kept]) -> None:
        """Call `begin` before and `end` after each call; framework: the backend's `side`."""
        self.calls: list[Call[Kept]] = []
        self._fw, self._on_begin, self._on_end = framework, begin, end
        self._open: list[int] = []
        self._counts: Counter[str] = Counter()
        self._clock = 0

    @property
    def open(self) -> list[Call[Kept]]:
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
        call: Call[Kept] = Call(path, self._counts[path], parent, began=self.tick())
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

    def keep(call: Call[None], output: Any) -> None:
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
