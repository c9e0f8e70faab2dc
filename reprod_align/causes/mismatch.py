"""What every cause is given, when it counts as proven, and what known number a factor is."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from reprod_align.api import refer_to
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.difference import gap

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MOST = 10  # inputs that are tried
_SAMPLE = 512  # elements on which a hypothesis must hold before the whole tensor is computed
_ROUGHLY = 1e-6  # relative: a sample may lack the largest value, by which the whole is judged
_DISTINCT = 8  # values: a tensor of fewer may agree with a flexible hypothesis by chance
_NAMED = 1e-9  # relative: how close a factor must be to the number that it is called
_RATES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)


# ------------------------------------------------------------- what a cause is given


@dataclass(frozen=True)
class NamedValue:
    """A value that the code had at hand, and its name."""

    name: str
    values: Floats


@dataclass(frozen=True)
class Mismatch:
    """A tensor of PyTorch's, the port's that should equal it, and what it may be made of."""

    expected: Floats
    actual: Floats
    inputs: Sequence[tuple[str, Array]] = ()
    """what the call, or the code between a composite's children, had at hand: (name, array), in order"""
    kept: Sequence[float] = ()
    """1 - p of the port's dropouts that multiply by it in eval mode (mode='downscale_in_infer')"""

    @cached_property
    def is_telling(self) -> bool:
        """Whether both tensors have enough distinct values to prove a flexible hypothesis."""
        return is_telling(self.expected) and is_telling(self.actual)

    @cached_property
    def sources(self) -> list[NamedValue]:
        """The distinct inputs that broadcast to the shape of `expected`, the latest first."""
        found: list[NamedValue] = []
        for name, array in reversed(self.inputs):
            whole = array.dtype.kind == "f" and _broadcasts(array, self.expected)
            if not (whole and is_telling(array)):
                continue
            values = np.broadcast_to(np.asarray(array, np.float64), self.expected.shape)
            if not any(np.array_equal(values, source.values) for source in found):
                found.append(NamedValue(name, values))
        return found[:_MOST]

    @property
    def widths(self) -> list[int]:
        """The lengths of the inputs' last axes: a factor may be one of them, or its root."""
        return sorted({array.shape[-1] for _, array in self.inputs if array.ndim})

    def both_ways(self) -> Iterator[tuple[Floats, Floats, tuple[str, str]]]:
        """Yield both tensors and whose they are: PyTorch's first, then Paddle's first."""
        yield self.expected, self.actual, (str(REFERENCE), str(PORT))
        yield self.actual, self.expected, (str(PORT), str(REFERENCE))


def _broadcasts(array: Array, like: Floats) -> bool:
    return array.ndim <= like.ndim and all(
        size in (1, whole) for size, whole in zip(array.shape[::-1], like.shape[::-1], strict=False)
    )


def as_floats(array: Array) -> Floats:
    """Return the tensor in float64."""
    return np.asarray(array, dtype=np.float64)


# ------------------------------------------------------------- when a cause is proven


def same(expected: Array, made: Array) -> bool:
    """Tell whether a hypothesis explains the whole tensor."""
    if expected.shape != made.shape:
        return False
    step = expected.size // _SAMPLE
    if step > 1:
        ours, theirs = (it.reshape(-1)[::step] for it in (expected, made))
        if not gap(ours, theirs, relative=_ROUGHLY).ok:
            return False
    return gap(expected, made).ok


def fits(expected: Array, function: Callable[..., Array], *arrays: Array) -> bool:
    """Tell whether expected = function(*arrays), element by element; all of one shape."""
    step = max(1, expected.size // _SAMPLE)
    flat = [array.reshape(-1)[::step] for array in arrays]
    with np.errstate(all="ignore"):
        if not gap(expected.reshape(-1)[::step], function(*flat)).ok:
            return False
        return step == 1 or same(expected, function(*arrays))


def is_telling(array: Array) -> bool:
    """Tell whether the tensor has enough distinct finite values to prove a flexible hypothesis."""
    values = array.reshape(-1)
    values = values[:: max(1, values.size // _SAMPLE)]
    return bool(np.isfinite(values).all()) and np.unique(values).size >= _DISTINCT


# ------------------------------------------------------------- words


def cite(cause: str, entry: str) -> str:
    """Return the cause and the command that shows this entry of the table of APIs, if either is given."""
    return cause + refer_to([entry]) if cause else ""


def head_sizes(width: int) -> list[int]:
    """Return the sizes that heads of this width can have: its divisors but itself and 1."""
    return [size for size in range(2, width // 2 + 1) if width % size == 0]


def name_number(number: float, dims: Sequence[int]) -> str:
    """Return the number and what it is known as: "0.353553 = 1/sqrt(8)"; dims: the tensors' sizes."""
    near = (
        name
        for name, value in _list_known_numbers(dims)
        if abs(number - value) <= _NAMED * abs(value)
    )
    shown = f"{number:.6g}"
    if abs(number - 1) < 1e-4:  # would read as 1
        shown = f"(1 {'-' if number < 1 else '+'} {abs(number - 1):.3g})"
    return " = ".join([shown, *[name for name in dict.fromkeys(near) if name != shown][:2]])


def _list_known_numbers(dims: Sequence[int]) -> Iterator[tuple[str, float]]:
    yield "1/2", 0.5
    for size in sorted({size for dim in dims for size in (dim, *head_sizes(dim)) if size > 1}):
        yield f"1/sqrt({size})", 1 / math.sqrt(size)
        yield f"sqrt({size})", math.sqrt(size)
        yield f"1/{size}", 1 / size
    for rate in _RATES:
        yield f"1/(1 - p) for dropout p = {rate:g}", 1 / (1 - rate)
        yield f"1 - p for dropout p = {rate:g}", 1 - rate
    for base in (2, 10):
        yield f"ln({base})", math.log(base)
        yield f"1/ln({base})", 1 / math.log(base)
    for size in sorted(set(dims)):
        yield f"the size of an axis ({size})", float(size)
    yield "the number of elements", float(math.prod(dims))
    yield "1/the number of elements", 1 / max(1, math.prod(dims))
