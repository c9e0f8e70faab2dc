"""What a model did: the inputs, outputs and gradients of every module call. Knows numpy only.

Every array is a copy that nothing writes to, so that one array may stand for several tensors.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reprod_align.base.blocks import Array
from reprod_align.model.source.operation import Operation
from reprod_align.traces import recorder

import numpy as np

__all__ = ["Call", "Leaf", "Trace"]
_SUMMED = 4096  # words of eight bytes that one sum stands for


@dataclass
class Leaf:
    """One tensor that went into a module or came out of it."""

    array: Array
    differentiable: bool
    """whether a gradient can flow through it"""
    gradient: Array | None = None
    """of the loss; of an input, this call's share of it alone; None if none arrived"""


Call = recorder.Call[Leaf]
"""One call of one module, with its tensors by their paths"""


@dataclass
class Trace:
    """One forward pass, and the backward pass if there was one."""

    calls: list[Call] = field(default_factory=list)
    """in the order in which they began"""
    loss: float | None = None
    gradients: dict[str, Array] = field(default_factory=dict)
    """of the parameters, by name, in the framework's own layout; those that got one"""
    buffers: dict[str, Array] = field(default_factory=dict)
    """after the pass"""
    drawn: dict[Any, Any] = field(default_factory=dict)
    """the random draws: place and number -> shape"""
    values: dict[str, Array | None] = field(default_factory=dict)
    """of the model's own outputs, those that are no tensors and can be compared: numbers, texts, None"""
    objects: dict[str, str] = field(default_factory=dict)
    """the others, each with its class"""
    input_gradients: dict[str, Array | None] | None = None
    """of the float inputs, by name or number, None where none arrived; None: they were not asked for"""
    generators: dict[str, float] = field(default_factory=dict)
    """of the generators outside the framework, those that were drawn from, with their next number"""
    changed: dict[str, Array | None] = field(default_factory=dict)
    """the attributes, neither parameters nor buffers, that the calls so far have changed, as
    "module.attribute"; those of numbers with their numbers"""
    operations: list[Operation] = field(default_factory=list)
    """what the user's code called in the modules that were wanted"""
    graph: str | None = None
    """a digest of the backward pass without its dropout, equal only for equal passes; None: not known"""
    deferred: bool = False
    """whether the backward pass was left out, since a run in the other mode may do the same"""

    @property
    def outputs(self) -> Mapping[str, Leaf]:
        """The model's own outputs."""
        return self.calls[0].outputs if self.calls else {}

    @property
    def holds_inputs(self) -> bool:
        """Whether what the modules were given was kept."""
        return any(call.inputs for call in self.calls)

    def digest(self, whole: bool = True) -> str:
        """Return what only a run with the same outputs, gradients and buffers, bit by bit, has too.

        whole: False: of the outputs alone, which are read much faster.
        """
        made = hashlib.blake2b(digest_size=16)
        outputs = {name: leaf.array for name, leaf in self.outputs.items()}
        for arrays in (outputs, self.gradients, self.buffers) if whole else (outputs,):
            for name, array in arrays.items():
                made.update(f"{name} {array.dtype} {array.shape}\0".encode())
                made.update(_sum_words(array))
        return made.hexdigest()

    def by_key(self) -> dict[tuple[str, int], Call]:
        """Return the calls by module and index."""
        return {call.key: call for call in self.calls}

    def counts(self) -> Counter[str]:
        """Return how often each module was called."""
        return Counter(call.path for call in self.calls)

    def calls_by_end(self) -> Iterator[Call]:
        """Yield the calls in the order in which they ended: children before their parents."""
        done = [call for call in self.calls if call.finished >= 0]
        yield from sorted(done, key=lambda call: call.finished)

    def parent_path(self, call: Call) -> str:
        """Return the module in whose forward code the call stands; "" for the model's own."""
        return "" if call.parent is None else self.calls[call.parent].path


def _sum_words(array: Array) -> bytes:
    """Return sums of the array's bits, and what is too short for one: reading is most of the work."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = data.size // (8 * _SUMMED) * (8 * _SUMMED)
    sums: Array = data[:whole].view(np.uint64).reshape(-1, _SUMMED).sum(axis=1)
    left: Array = data[whole:]
    return sums.tobytes() + left.tobytes()
