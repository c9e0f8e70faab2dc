"""What a call would have given with one thing changed: its operator, a number, its axis, its function.

A change counts only where the same recipe, unchanged, gives what the call gave. So a value that is
due and that a change yields proves the change.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from reprod_align.alignment.lines.names import name_of
from reprod_align.alignment.lines.values import are_equal
from reprod_align.causes.functions import log_softmax, softmax
from reprod_align.model.source.operation import Operation
from reprod_align.model.trace import Array

import numpy as np

_LARGEST = 200_000  # elements
_CLOSE = 1e-9  # relative
_SMALL = 16  # a number that may be one too large or too small
_FEW = 4  # diagonals to either side of the main one; indices that are tried


@dataclass(frozen=True)
class Variant:
    """Another result of a call."""

    words: str
    """what is changed"""
    value: Array


Made = tuple[str, Array]
"""what makes a value, in words, and the value"""


def vary(operation: Operation) -> Iterator[Variant]:
    """Yield what the call would give with one thing changed, the likelier changes first."""
    if len(operation.outputs) != 1 or operation.outputs[0].size > _LARGEST:
        return
    given = operation.outputs[0]
    with np.errstate(all="ignore"):
        for names, family in _FAMILIES:
            if name_of(operation) not in names:
                continue
            makers = [(words, _keep_kind(made, given)) for words, made in family(operation)]
            own = [words for words, made in makers if are_equal(given, made, _CLOSE)]
            named = [words for words in own if words.partition(" ")[0] == name_of(operation)]
            yield from (Variant(f"{words} in place of {(named or own)[0]}", made)
                        for words, made in makers
                        if own and words not in own and not _is_taken(operation, made))  # fmt: skip
        yield from _exchange_held(operation)
        yield from _drop(operation)


def _is_taken(operation: Operation, made: Array) -> bool:
    """Tell whether a change gives what the call takes: then the call is one too many, see `_drop`."""
    return any(one.shape == made.shape and are_equal(one, made, _CLOSE) for one in operation.inputs)


def _keep_kind(made: Any, given: Array) -> Array:
    """Return integers of a kind as the call gives it; floats that are whole numbers are integers."""
    array = np.asarray(made)
    whole = given.dtype.kind in "iu" and array.dtype.kind == "f"
    return array.astype(given.dtype) if whole and (array == np.round(array)).all() else array


def _numbers(operation: Operation) -> list[float]:
    return [float(one) for one in operation.constants
            if isinstance(one, (int, float)) and not isinstance(one, bool)]  # fmt: skip


def _arithmetic(operation: Operation) -> Iterator[Made]:
    """Yield both operands under every operator, then with another number under their own."""
    arrays, numbers = [_plain(one) for one in operation.inputs], _numbers(operation)
    if len(arrays) == 2:
        yield from _combine(arrays[0], arrays[1], _OPERATORS)
    for number in numbers if len(arrays) == 1 else ():
        made = list(_combine(arrays[0], np.float64(number), _OPERATORS, f" {number:g}"))
        yield from made
        given = operation.outputs[0]
        own = {sign: _OPERATORS[sign] for sign, (_, value) in zip(_OPERATORS, made, strict=False)
               if are_equal(given, _keep_kind(value, given), _CLOSE)}  # fmt: skip
        near = (number + 1, number - 1) if abs(number) <= _SMALL else ()
        for other in (number / 2, 2 * number, -number, *near):
            yield from _combine(arrays[0], np.float64(other), own, f" {other:g}")


def _combine(
    x: Array, y: Any, operators: Mapping[str, Callable[..., Any]], number: str = ""
) -> Iterator[Made]:
    if _fits(np.add, [x, np.asarray(y)]):  # otherwise the call is of another kind
        yield from ((f"`{sign}{number}`", function(x, y)) for sign, function in operators.items())


def _comparison(operation: Operation) -> Iterator[Made]:
    arrays = [_plain(one) for one in operation.inputs]
    others: list[Any] = [*arrays[1:2], *(_numbers(operation) if len(arrays) == 1 else ())]
    if operation.outputs[0].dtype.kind == "b" and arrays:
        for other in others:
            yield from _combine(arrays[0], other, _COMPARISONS)


def _plain(array: Array) -> Array:
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _over_axes(operation: Operation) -> Iterator[Made]:
    """Yield what each function along an axis makes of the input."""
    if len(operation.inputs) != 1 or operation.inputs[0].dtype.kind not in "biuf":
        return
    x, shape = _plain(operation.inputs[0]), operation.outputs[0].shape
    alike = next(group for group in _AXIAL if name_of(operation) in group)
    for name, function in alike.items():
        for axis in range(x.ndim) if x.size else ():
            made = np.asarray(function(x, axis=axis))
            if made.ndim < x.ndim == len(shape):
                made = np.expand_dims(made, axis)
            yield f"{name} over axis {axis}", made


def _over_several(operation: Operation) -> Iterator[Made]:
    """Yield Fourier transforms over the last axes, one to three of them."""
    if len(operation.inputs) != 1:
        return
    x = operation.inputs[0]
    for name, function in (("fft", np.fft.fftn), ("ifft", np.fft.ifftn), ("rfft", np.fft.rfftn)):
        if name == "rfft" and x.dtype.kind == "c":
            continue
        for count in range(1, min(x.ndim, 3) + 1):
            axes = tuple(range(x.ndim - count, x.ndim))
            yield f"{name} over axes {axes}", function(x, axes=axes)
        for axis in range(x.ndim - 1):
            yield f"{name} over axis {axis}", function(x, axes=(axis,))


def _triangle(operation: Operation) -> Iterator[Made]:
    if len(operation.inputs) != 1 or operation.inputs[0].ndim < 2:
        return
    x = operation.inputs[0]
    rows, columns = np.indices(x.shape[-2:])
    for diagonal in sorted(range(-_FEW, _FEW + 1), key=abs):
        named = f" of diagonal {diagonal}" if diagonal else ""
        yield f"triu{named}", np.where(columns - rows >= diagonal, x, 0)
        yield f"tril{named}", np.where(columns - rows <= diagonal, x, 0)


def _filling(operation: Operation) -> Iterator[Made]:
    """Yield arrays of one number."""
    given = operation.outputs[0]
    if not given.size or given.dtype.kind not in "biuf" or given.min() != given.max():
        return
    value = given.flat[0]
    numbers = (
        (value, 0, 1) if given.dtype.kind == "b" else (value, 0, 1, value / 2, 2 * value, -value)
    )
    for number in dict.fromkeys(float(one) for one in numbers):
        yield f"{number:g}", np.full(given.shape, number).astype(given.dtype)


def _functions(operation: Operation) -> Iterator[Made]:
    if len(operation.inputs) == 1 and operation.inputs[0].dtype.kind in "biuf":
        x = operation.inputs[0]
        for name, function in _UNARY.items():
            if (x.dtype.kind == "b") == (name == "not"):
                yield name, function(x)


def _ranges(operation: Operation) -> Iterator[Made]:
    """Yield steps from another start."""
    given = operation.outputs[0]
    if operation.inputs or given.ndim != 1 or len(given) < 2 or given.dtype.kind not in "if":
        return
    for start in (0, 1, -1):
        yield f"{given[0] + start:g} at first", given + start
    yield "the steps backwards", given[::-1]


def _places(operation: Operation) -> Iterator[Made]:
    """Yield what each index, or each beginning of a slice, takes of an axis."""
    if len(operation.inputs) != 1:
        return
    x, shape = operation.inputs[0], operation.outputs[0].shape
    for axis in range(x.ndim):
        rest = [*x.shape[:axis], *x.shape[axis + 1 :]]
        length = x.shape[axis]
        for at in {*range(min(length, _FEW)), *range(max(0, length - _FEW), length)}:
            if list(shape) in (rest, [*x.shape[:axis], 1, *x.shape[axis + 1 :]]):
                yield f"index {at} of axis {axis}", x.take([at], axis).reshape(shape)
        if len(shape) == x.ndim and 1 < shape[axis] < length:
            for at in range(min(_FEW, length - shape[axis] + 1)):
                part = x.take(range(at, at + shape[axis]), axis)
                if part.shape == shape:
                    yield f"a slice from {at} of axis {axis}", part


def _repeats(operation: Operation) -> Iterator[Made]:
    """Yield the whole axis again and again, and each of its elements again and again."""
    given = operation.outputs[0]
    if len(operation.inputs) != 1 or operation.inputs[0].ndim != given.ndim:
        return
    x = operation.inputs[0]
    grown = [axis for axis in range(x.ndim) if x.shape[axis] != given.shape[axis]]
    if len(grown) == 1 and x.size and given.shape[grown[0]] % x.shape[grown[0]] == 0:
        (axis,) = grown
        times = given.shape[axis] // x.shape[axis]
        yield f"tile over axis {axis}", np.concatenate([x] * times, axis)
        yield f"repeat_interleave over axis {axis}", x.repeat(times, axis)


def _exchange_held(operation: Operation) -> Iterator[Variant]:
    """Yield the triangles that a mask which a module holds may be meant to be."""
    given = operation.outputs[0]
    held = any(name.startswith("self.") for name in operation.tensors)
    if not held or any(operation.makers) or given.ndim < 2 or given.dtype.kind not in "biuf":
        return
    ones = np.ones(given.shape, given.dtype)
    for name, made in (("lower", np.tril(ones)), ("upper", np.triu(ones))):
        yield Variant(f"the {name} triangle of ones", made)
    yield Variant("all of it exchanged, 1 minus it", 1 - _plain(given))


def _drop(operation: Operation) -> Iterator[Variant]:
    """Yield what the call takes: it is one too many."""
    given = operation.outputs[0]
    for value in operation.inputs:
        if value.shape == given.shape and not are_equal(value, given, _CLOSE):
            yield Variant("what it takes in place of what it gives", value)


def _fits(function: Callable[..., Any], operands: Sequence[Array]) -> bool:
    try:
        function(*operands)
    except ValueError:
        return False
    return True


def _norm(x: Array, axis: int) -> Any:
    return np.sqrt((x.astype(np.float64) ** 2).sum(axis=axis))


def _log_sum(x: Array, axis: int) -> Any:
    largest = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - largest).sum(axis=axis)) + largest.squeeze(axis)


_OPERATORS: Final[Mapping[str, Callable[..., Any]]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "reversed -": lambda x, y: y - x,
    "reversed /": lambda x, y: y / x,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
_COMPARISONS: Final[Mapping[str, Callable[..., Any]]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal, "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
_AXIAL: Final[Sequence[Mapping[str, Callable[..., Any]]]] = (
    {"cumsum": np.cumsum, "cumprod": np.cumprod},
    {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod, "std": np.std,
     "unbiased std": partial(np.std, ddof=1), "var": np.var, "unbiased var": partial(np.var, ddof=1),
     "norm": _norm, "logsumexp": _log_sum},
    {"argmax": np.argmax, "argmin": np.argmin},
    {"softmax": softmax, "log_softmax": log_softmax},
    {"sort": np.sort},
    {"argsort": np.argsort},
    {"flip": np.flip},
    {"any": np.any, "all": np.all},
)  # fmt: skip
"""functions along an axis, those together that are taken for one another"""
_UNARY: Final[Mapping[str, Callable[[Array], Any]]] = {
    "cos": np.cos, "sin": np.sin, "tan": np.tan, "exp": np.exp, "log": np.log, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "square": np.square, "abs": np.abs, "negative": np.negative,
    "floor": np.floor, "ceil": np.ceil, "round": np.round, "sign": np.sign, "tanh": np.tanh,
    "not": np.logical_not,
}  # fmt: skip
_SIGNS: Final = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_FAMILIES: Final[Sequence[tuple[Collection[str], Callable[[Operation], Iterator[Made]]]]] = (
    ({*_SIGNS, "scale", "maximum", "minimum"}, _arithmetic),
    ({"equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal", "logical_and",
      "logical_or", "and", "or", "bitwise_and", "bitwise_or"}, _comparison),
    ({"triu", "tril"}, _triangle),
    ({name for group in _AXIAL for name in group}, _over_axes),
    ({"fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "rfft", "rfft2", "rfftn"}, _over_several),
    ({"zeros", "ones", "zeros_like", "ones_like", "full", "full_like"}, _filling),
    ({"arange"}, _ranges),
    ({"getitem", "slice"}, _places),
    ({"tile", "repeat_interleave"}, _repeats),
    (_UNARY, _functions),
)  # fmt: skip
"""names of calls, and what they could have been"""
