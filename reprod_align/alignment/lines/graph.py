"""The recorded calls of one side as a graph: what each does, the values they share, who made what.

An edge is the very tensor that one call gave and another takes, or the same value where no tensor tells.
Across the sides, values are matched by what they hold.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from reprod_align.api.calls import ALIASES
from reprod_align.base.blocks import Array
from reprod_align.base.difference import gap
from reprod_align.model.source import RETURN, Operation
from reprod_align.model.trace import HIDDEN

import numpy as np

LARGEST = 4_000_000
"""elements of an array that is sorted, or worked out, to be held against others"""


class KnownValues:
    """Arrays, found again by value: as they are, or with their elements in another order."""

    def __init__(self, arrays: Iterable[Array], relative: float) -> None:
        """relative: how far equal ones may be apart."""
        self._relative = relative
        self.arrays: list[Array] = []
        self._by_size: dict[int, list[int]] = {}
        self._bare: list[Array] = []
        self._sums: list[float] = []
        self._asked: dict[tuple[int, bool], tuple[Array, list[int]]] = {}
        for array in arrays:
            bare = _strip(array)
            self._by_size.setdefault(bare.size, []).append(len(self.arrays))
            self.arrays.append(array)
            self._bare.append(bare)
            self._sums.append(_sum(bare))

    def find_equal(self, array: Array) -> list[int]:
        """Return the numbers of the arrays of the same shape and values."""
        return self._find(array, in_order=True)

    def find_alike(self, array: Array) -> list[int]:
        """Return the numbers of the arrays that hold the same values, in whatever shape and order.

        One that repeats another along its first axes, as a batch of one position each, holds the same.
        """
        return self._find(array, in_order=False)

    def knows_order(self, array: Array) -> bool:
        """Tell whether an array of these values in this order is there, in whatever shape."""
        flat = _strip(array).reshape(-1)
        others = (self._bare[at].reshape(-1) for at in self.find_alike(array))
        return any(are_equal(one, flat, self._relative) for one in others)

    def knows(self, array: Array) -> bool:
        """Tell whether an array of these values is there, in whatever shape and order.

        Whole numbers that are all the same, such as ones to be counted, tell nothing: they are known.
        """
        return (array.dtype.kind in "biu" and is_one_number(array)) or self.holds(array)

    def holds(self, array: Array) -> bool:
        """Tell whether an array of these values is there, in whatever shape and order."""
        return bool(self.find_equal(array)) or bool(self.find_alike(array))

    def _find(self, array: Array, in_order: bool) -> list[int]:
        asked = self._asked.get((id(array), in_order))
        if asked is None or asked[0] is not array:
            bare = _strip(array)
            near = [at for at in self._by_size.get(bare.size, ()) if self._is_near(bare, at)]
            if in_order:
                found = [at for at in near if are_equal(self.arrays[at], array, self._relative)]
            else:
                found = [at for at in near if are_alike(self._bare[at], bare, self._relative)]
            asked = self._asked[id(array), in_order] = array, found
        return asked[1]

    def _is_near(self, array: Array, at: int) -> bool:
        ours, theirs = self._sums[at], _sum(array)
        return abs(ours - theirs) <= 10 * self._relative * max(abs(ours), abs(theirs)) + 1e-300


ROUGH = 1e-3
"""relative: how far two tables may be apart; float32's sines of 4,000 positions are apart by 2e-4"""


def is_one_number(array: Array) -> bool:
    """Tell whether an array holds the same number several times, and nothing else."""
    return array.size > 1 and bool(array.min() == array.max())


def are_equal(expected: Array, actual: Array, relative: float) -> bool:
    """Tell whether two arrays agree in shape and values; booleans are 0 and 1."""
    return (
        expected.shape == actual.shape
        and gap(_widen_integers(expected), _widen_integers(actual), relative).ok
    )


def are_alike(expected: Array, actual: Array, relative: float) -> bool:
    """Tell whether two arrays hold the same values, in whatever shape and order."""
    if expected.size != actual.size:
        return False
    ours, theirs = _widen_integers(expected).reshape(-1), _widen_integers(actual).reshape(-1)
    if gap(ours, theirs, relative).ok:
        return True
    if expected.size > LARGEST or ours.dtype.kind == "c":
        return False
    return gap(np.sort(ours), np.sort(theirs), relative).ok


def _strip(array: Array) -> Array:
    """Return the array without first axes along which it only repeats itself."""
    while array.ndim and len(array):
        if len(array) > 1 and not np.array_equal(array[1:], array[:-1]):
            break
        array = array[0]
    return array


def _widen_integers(array: Array) -> Array:
    """Return integers and booleans as float64: the two sides often differ in such a dtype alone.

    Floats far below zero become one number: masks by -1e4, by the lowest float and by -inf, and
    scores that they are added to, hide the same.
    """
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    return np.maximum(array, -HIDDEN) if array.dtype.kind == "f" else array


def _sum(array: Array) -> float:
    """Return the sum of the magnitudes of what is finite."""
    if array.dtype.kind not in "biufc":
        return 0.0
    plain = _widen_integers(array)
    sizes = np.abs(plain.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    with np.errstate(all="ignore"):
        return float(np.where(np.isfinite(sizes), sizes, 0.0).sum())


_NAMES: Final[Mapping[str, str]] = {
    **ALIASES, "truediv": "divide", "rtruediv": "divide", "true_divide": "divide",
    "rsub": "subtract", "rmul": "multiply", "radd": "add",
    "swapaxes": "transpose", "T": "transpose", "mT": "transpose", "t": "transpose",
    "flatten": "reshape", "unflatten": "reshape",
    "bmm": "matmul", "rmatmul": "matmul", "to": "cast", "type": "cast", "astype": "cast",
    "float": "cast", "double": "cast", "long": "cast", "neg": "scale", "rpow": "pow",
    "expand_as": "expand", "broadcast_to": "expand", "amax": "max", "amin": "min", "less": "less_than",
    "invert": "logical_not",
}  # fmt: skip


def name_of(operation: Operation) -> str:
    """Return what a call does, by one name for both frameworks and for operator and function."""
    name = operation.name.strip("_")
    return _NAMES.get(name, name)


def trace_back(
    operations: Sequence[Operation],
    value: Array,
    before: int,
    passes: Callable[[Array], bool] = lambda array: True,
    accepts: Callable[[Operation], bool] = lambda operation: operation.child is None,
) -> Iterator[int]:
    """Yield the numbers of the calls before `before` that `value` was made by, the last one first.

    passes: which inputs are followed. accepts: at which calls, if they made a value, it goes on.
    """
    numbers = {operation: at for at, operation in enumerate(operations)}
    waiting, seen = [find_maker(operations, value, before)], set[int]()
    while waiting:
        at = waiting.pop()
        if at is None or at in seen or not accepts(operations[at]):
            continue
        seen.add(at)
        yield at
        taken = operations[at].inputs
        makers = operations[at].makers or [None] * len(taken)
        for maker, one in zip(makers, taken, strict=True):
            if passes(one):
                waiting.append(numbers.get(maker) if maker is not None
                               else find_maker(operations, one, at))  # fmt: skip


def find_maker(operations: Sequence[Operation], value: Array, before: int) -> int | None:
    """Return the number of the last call before `before` that gave this value; None if none did."""
    made = (at for at in range(before - 1, -1, -1)
            if operations[at].name != RETURN
            and any(is_same(value, one) for one in operations[at].outputs))  # fmt: skip
    return next(made, None)


def is_same(value: Array, made: Array) -> bool:
    """Tell whether two arrays of one side are the same value: to the bit, NaN included."""
    if value is made or value.shape != made.shape:
        return value is made
    exact = value.dtype.kind in "fc" and made.dtype.kind in "fc"
    return bool(np.array_equal(value, made, equal_nan=exact))
