"""The functions that networks apply element by element, in float64, and how a port mistakes them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from reprod_align.causes.numbers import Floats, as_floats, fits, is_telling, name_number, same
from reprod_align.model.trace import Array

import numpy as np

_FEWEST = 4  # elements on either side of zero, which tell a slope

Function = Callable[[Floats], Floats]


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x))."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def _erf(x: Floats) -> Floats:
    return np.fromiter(map(math.erf, x.reshape(-1).tolist()), np.float64, x.size).reshape(x.shape)


def _gelu(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + _erf(x / math.sqrt(2))))


def _tanh_gelu(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def _leaky(slope: float, x: Floats) -> Floats:
    return np.where(x >= 0, x, slope * x)


def _elu(x: Floats) -> Floats:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _selu(x: Floats) -> Floats:
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _softplus(x: Floats) -> Floats:
    return np.logaddexp(0.0, x)


def _hard_sigmoid(x: Floats) -> Floats:
    return np.clip(x / 6 + 0.5, 0, 1)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "identity": lambda x: x,
    "ReLU": lambda x: np.maximum(x, 0),
    "gelu (erf)": _gelu,
    "gelu (approximate='tanh')": _tanh_gelu,
    "gelu (x sigmoid(1.702 x))": lambda x: x * sigmoid(1.702 * x),
    "SiLU": lambda x: x * sigmoid(x),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "LeakyReLU (slope 0.01)": partial(_leaky, 0.01),
    "LeakyReLU (slope 0.1)": partial(_leaky, 0.1),
    "LeakyReLU (slope 0.2)": partial(_leaky, 0.2),
    "ELU": _elu,
    "SELU": _selu,
    "softplus": _softplus,
    "Hardswish": lambda x: x * _hard_sigmoid(x),
    "Hardsigmoid": _hard_sigmoid,
    "Hardsigmoid (slope 0.2)": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "Hardtanh": lambda x: np.clip(x, -1, 1),
    "ReLU6": lambda x: np.clip(x, 0, 6),
    "Mish": lambda x: x * np.tanh(_softplus(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "abs": np.abs,
    "square": np.square,
    "squared ReLU": lambda x: np.maximum(x, 0) ** 2,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
}  # fmt: skip


def softmax(x: Floats, axis: int) -> Floats:
    """Return the softmax over one axis."""
    grown = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(grown / grown.sum(axis=axis, keepdims=True))


def _log_softmax(x: Floats, axis: int) -> Floats:
    moved = x - x.max(axis=axis, keepdims=True)
    return np.asarray(moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True)))


def factor_cause(expected: Floats, actual: Floats, dims: Sequence[int] = ()) -> str:
    """Explain the difference by a factor, or by a number that was added."""
    filled = expected != 0
    if np.unique(expected[filled]).size < 2:
        return ""
    at = int(np.argmax(np.abs(expected)))
    factor = float(actual.flat[at] / expected.flat[at])
    if factor == -1 and same(-expected, actual):
        return "Paddle's values have the opposite sign: a minus is missing or too many"
    if factor and abs(factor - 1) > 1e-9 and same(factor * expected, actual):
        named = name_number(factor, (*dims, *expected.shape))
        return f"Paddle's values are PyTorch's times {named}: one side scales, the other does not"
    added = float(actual.flat[at] - expected.flat[at])
    if np.ptp(expected) and same(expected + added, actual):
        return f"Paddle's values are PyTorch's plus the constant {added:.6g}"
    return ""


def rounding_cause(expected: Floats, actual: Floats) -> str:
    """Explain the difference by a cast to a narrower type."""
    if not is_telling(expected):
        return ""
    for name, cast in _CASTS.items():
        with np.errstate(all="ignore"):
            if np.array_equal(cast(expected), actual) and not same(expected, actual):
                return f"Paddle's values are PyTorch's rounded to {name}: remove the cast to {name}"
            if np.array_equal(cast(actual), expected) and not same(expected, actual):
                return f"PyTorch's values are Paddle's rounded to {name}: the port lacks a cast to {name}"
    return ""


def _bfloat16(x: Floats) -> Floats:
    bits = x.astype(np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return as_floats((rounded & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32))


_CASTS: Final[Mapping[str, Function]] = {
    "float32": lambda x: as_floats(x.astype(np.float32)),
    "float16": lambda x: as_floats(x.astype(np.float16)),
    "bfloat16": _bfloat16,
}


def clipping_cause(expected: Floats, actual: Floats) -> str:
    """Explain the difference by a clip on one side."""
    if not is_telling(expected) or not is_telling(actual):
        return ""
    low, high = float(actual.min()), float(actual.max())
    if same(np.clip(expected, low, high), actual):
        return f"Paddle clips the values to {_bounds(low, high, expected)}, PyTorch does not"
    low, high = float(expected.min()), float(expected.max())
    if same(np.clip(actual, low, high), expected):
        return f"PyTorch clips the values to {_bounds(low, high, actual)}, Paddle does not"
    return ""


def _bounds(low: float, high: float, unclipped: Floats) -> str:
    words = [f"at least {low:.6g}"] if unclipped.min() < low else []
    return " and ".join(words + ([f"at most {high:.6g}"] if unclipped.max() > high else []))


def function_cause(expected: Floats, actual: Floats) -> str:
    """Explain one side as a function of the other: a function missing, or one too many."""
    if not is_telling(expected) or not is_telling(actual):
        return ""
    for source, made, words in (
        (actual, expected, "{}: PyTorch applies it here, Paddle does not"),
        (expected, actual, "{}: Paddle applies it here, PyTorch does not"),
    ):
        for name, function in FUNCTIONS.items():
            if name != "identity" and fits(made, function, source):
                return words.format(name)
        for name, axis, values in _softmaxes(source, made):
            if same(made, values):
                return words.format(f"{name} over axis {axis}")
    return ""


def _softmaxes(x: Floats, made: Floats) -> Iterator[tuple[str, int, Floats]]:
    for axis in reversed(range(x.ndim)):
        if x.shape[axis] > 1 and made.min() >= 0:
            yield "softmax", axis, softmax(x, axis)
        if x.shape[axis] > 1 and made.max() <= 0:
            yield "log_softmax", axis, _log_softmax(x, axis)


def exchanged_function_cause(expected: Floats, actual: Floats, inputs: Sequence[Array]) -> str:
    """Explain the two sides as different functions of one input."""
    if not is_telling(expected) or not is_telling(actual):
        return ""
    for x in map(as_floats, inputs):
        if x.shape != expected.shape or not is_telling(x):
            continue
        ours, theirs = _function_of(x, expected), _function_of(x, actual)
        if ours and theirs:
            return _in_words(ours, theirs)
    return ""


def _function_of(x: Floats, made: Floats) -> str:
    names = [name for name, function in FUNCTIONS.items() if fits(made, function, x)]
    if "identity" in names:
        return "identity"
    if names:
        return names[0] if len(names) == 1 else f"{names[0]} (or {names[1]}: the same here)"
    for name, axis, values in _softmaxes(x, made):
        if same(made, values):
            return f"{name} over axis {axis}"
    return _sloped(x, made)


def _sloped(x: Floats, made: Floats) -> str:
    """Name a LeakyReLU or an ELU of any slope: what is below zero tells it."""
    below = x < 0
    if not _FEWEST <= below.sum() <= x.size - _FEWEST:
        return ""
    for name, values in (
        ("LeakyReLU (slope {})", x),
        ("ELU (alpha {})", np.expm1(np.minimum(x, 0))),
    ):
        at = np.abs(np.where(below, values, 0)).argmax()
        slope = float(made.flat[at] / values.flat[at])
        if slope and same(made, np.where(below, slope * values, x)):
            return name.format(f"{slope:.6g}")
    return ""


def _in_words(ours: str, theirs: str) -> str:
    (name, _, axis), (other, _, other_axis) = (it.partition(" over ") for it in (ours, theirs))
    if axis and name == other and axis != other_axis:
        return f"{name} over {other_axis} instead of {axis}: set axis={axis.removeprefix('axis ')}"
    if ours == "identity":
        return f"{theirs}: Paddle applies it here, PyTorch does not"
    if theirs == "identity":
        return f"{ours}: PyTorch applies it here, Paddle does not"
    return f"the function is {theirs} in Paddle and {ours} in PyTorch"
