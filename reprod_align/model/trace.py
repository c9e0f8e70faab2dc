"""What a model did: the inputs, outputs and gradients of every module call. Knows numpy only.

Every array is a copy that nothing writes to, so that one array may stand for several tensors.
"""

import mmap
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from reprod_align.model.source.operation import Operation
from reprod_align.traces import calls

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_LARGE = 2**20  # bytes; a copy of so many or more lies in a file
_SMALL = 2**12  # bytes; not worth looking whether the same is kept already
_mapped: "WeakSet[mmap.mmap]" = WeakSet()


@dataclass
class Leaf:
    """One tensor that went into a module or came out of it."""

    array: Array
    differentiable: bool
    """whether a gradient can flow through it"""
    gradient: Array | None = None
    """of the loss; of an input, this call's share of it alone; None if none arrived"""


Call = calls.Call[Leaf]
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
    operations: list[Operation] = field(default_factory=list)
    """what the user's code called in the modules that were wanted"""

    @property
    def outputs(self) -> Mapping[str, Leaf]:
        """The model's own outputs."""
        return self.calls[0].outputs if self.calls else {}

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


def keep_copy(array: Array) -> Array:
    """Return a copy of `array`. A large one lies in a temporary file, mapped, not in memory.

    The file has no name and goes with the array. Where there is no room for it, memory is taken.
    """
    if array.nbytes < _LARGE:
        return np.array(array)
    whole = np.ascontiguousarray(array)
    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            _write(file, whole.reshape(-1).view(np.uint8))
            pages = mmap.mmap(file.fileno(), whole.nbytes)
    except OSError:
        return np.array(array)
    _mapped.add(pages)
    return np.frombuffer(pages, whole.dtype).reshape(whole.shape)


def unload() -> None:
    """Let go of the memory in which arrays of files have been read; they are read again if needed."""
    if sys.platform == "win32":  # there the system must see to it
        return
    for pages in list(_mapped):
        pages.madvise(mmap.MADV_DONTNEED)


def _write(file: Any, data: Array) -> None:
    """Write all of it: an unbuffered file takes at most 2 GiB at a time."""
    while data.size:
        data = data[file.write(data) :]


class Shelf:
    """Keeps copies of arrays, equal ones once: what one module returns, the next one takes."""

    def __init__(self) -> None:
        """Begin with an empty one."""
        self._kept: dict[Hashable, list[Array]] = defaultdict(list)

    def keep(self, array: Array) -> Array:
        """Return a copy of `array`, the same one as before if an equal one was kept."""
        if array.nbytes < _SMALL:
            return np.array(array)
        sample = array.flat[:: array.size // 16].tobytes()
        alike = self._kept[array.shape, array.dtype.str, sample]
        for other in alike:
            if _same_bytes(array, other):
                return other
        alike.append(keep_copy(array))
        return alike[-1]


def _same_bytes(array: Array, other: Array) -> bool:
    """Tell whether two arrays of one shape and dtype are equal to the bit: -0.0 is not 0.0."""
    ours, theirs = (np.ascontiguousarray(one).reshape(-1).view(np.uint8) for one in (array, other))
    if array.nbytes % 8 == 0:
        ours, theirs = ours.view(np.uint64), theirs.view(np.uint64)
    return bool((ours == theirs).all())
