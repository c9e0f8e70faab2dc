"""The functions that networks apply element by element, in float64, and a port that takes another."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from reprod_align.causes.entries import cite, cite_function
from reprod_align.causes.mismatch import Mismatch
from reprod_align.causes.numbers import Floats, as_floats, fits, is_telling, same

import numpy as np

_FEWEST = 4  # elements on either side of zero, which show a slope
_LACKING = "{}: PyTorch applies it here, Paddle does not"
_EXTRA = "{}: Paddle applies it here, PyTorch does not"

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


def explain_function(mismatch: Mismatch) -> str:
    """Explain one side as a function of the other: a function missing, or one too many."""
    if not mismatch.is_telling:
        return ""
    expected, actual = mismatch.expected, mismatch.actual
    if words := _exchange_softmax(expected, actual):
        return words
    for source, made, words in ((actual, expected, _LACKING), (expected, actual, _EXTRA)):
        for name, function in FUNCTIONS.items():
            if name != "identity" and fits(made, function, source):
                return cite_function(words.format(name))
        if name := _name_softmax(source, made):
            return words.format(name)
    return ""


def explain_exchanged_function(mismatch: Mismatch) -> str:
    """Explain the two sides as different functions of one input."""
    if not mismatch.is_telling:
        return ""
    for _, array in mismatch.inputs:
        x = as_floats(array)
        if x.shape != mismatch.expected.shape or not is_telling(x):
            continue
        ours, theirs = _name_function(x, mismatch.expected), _name_function(x, mismatch.actual)
        if ours and theirs:
            return _compare(ours, theirs)
    return ""


def _exchange_softmax(expected: Floats, actual: Floats) -> str:
    """Explain probabilities on one side and their logarithms on the other."""
    for p, logs, names in (
        (expected, actual, ("log_softmax", "softmax")),
        (actual, expected, ("softmax", "log_softmax")),
    ):
        near = any(np.abs(p.sum(axis) - 1).max() <= 1e-9 for axis in range(p.ndim))
        if near and p.min() >= 0 and fits(p, np.exp, logs):
            return f"{names[0]} in Paddle, {names[1]} in PyTorch"
    return ""


def _name_softmax(x: Floats, made: Floats) -> str:
    """Return "softmax over axis 1" or "log_softmax over axis 1" if that makes `made` of x, or ""."""
    for axis in reversed(range(x.ndim)):
        if x.shape[axis] < 2:
            continue
        if made.min() >= 0 and same(made, softmax(x, axis)):
            return f"softmax over axis {axis}"
        if made.max() <= 0 and same(made, _log_softmax(x, axis)):
            return f"log_softmax over axis {axis}"
    return ""


def _name_function(x: Floats, made: Floats) -> str:
    """Return the function that makes `made` of x, or ""."""
    names = [name for name, function in FUNCTIONS.items() if fits(made, function, x)]
    if "identity" in names:
        return "identity"
    if names:
        return names[0] if len(names) == 1 else f"{names[0]} (or {names[1]}: the same here)"
    return _name_softmax(x, made) or _name_slope(x, made)


def _name_slope(x: Floats, made: Floats) -> str:
    """Name a LeakyReLU or an ELU of any slope: the elements below zero show it."""
    below = x < 0
    if not _FEWEST <= below.sum() <= x.size - _FEWEST:
        return ""
    negative = np.expm1(np.minimum(x, 0))
    for name, values in (("LeakyReLU (slope {})", x), ("ELU (alpha {})", negative)):
        at = np.abs(np.where(below, values, 0)).argmax()
        slope = float(made.flat[at] / values.flat[at])
        if slope and same(made, np.where(below, slope * values, x)):
            return name.format(f"{slope:.6g}")
    return ""


def _compare(ours: str, theirs: str) -> str:
    (name, _, axis), (other, _, other_axis) = (it.partition(" over ") for it in (ours, theirs))
    if axis and name == other and axis != other_axis:
        words = f"{name} over {other_axis} instead of {axis}: set axis={axis.removeprefix('axis ')}"
        return cite(words, "softmax-axis")
    if ours == "identity":
        return cite_function(_EXTRA.format(theirs))
    if theirs == "identity":
        return cite_function(_LACKING.format(ours))
    return cite_function(f"the function is {theirs} in Paddle and {ours} in PyTorch")
