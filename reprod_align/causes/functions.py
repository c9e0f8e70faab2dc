"""The functions that networks apply, in float64, and a port that applies another, none, or one too many."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from reprod_align.base import PORT, REFERENCE
from reprod_align.causes.mismatch import Floats, Mismatch, as_floats, cite, fits, is_telling, same

import numpy as np

_FEWEST = 4  # elements on either side of zero, which show a slope

ElementFunction = Callable[[Floats], Floats]


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)); x may be complex."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def softmax(x: Floats, axis: int) -> Floats:
    """Return the softmax over one axis."""
    grown = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(grown / grown.sum(axis=axis, keepdims=True))


def log_softmax(x: Floats, axis: int) -> Floats:
    """Return the logarithm of the softmax over one axis."""
    moved = x - x.max(axis=axis, keepdims=True)
    return np.asarray(moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True)))


def _erf(x: Floats) -> Floats:
    return np.fromiter(map(math.erf, x.reshape(-1).tolist()), np.float64, x.size).reshape(x.shape)


def _tanh_gelu(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def _leaky(slope: float, x: Floats) -> Floats:
    return np.where(x >= 0, x, slope * x)


def _elu(alpha: float, x: Floats) -> Floats:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _hard_sigmoid(x: Floats) -> Floats:
    return np.clip(x / 6 + 0.5, 0, 1)


FUNCTIONS: Final[Mapping[str, ElementFunction]] = {
    "identity": lambda x: x,
    "ReLU": lambda x: np.maximum(x, 0),
    "gelu (erf)": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "gelu (approximate='tanh')": _tanh_gelu,
    "gelu (x sigmoid(1.702 x))": lambda x: x * sigmoid(1.702 * x),
    "SiLU": lambda x: x * sigmoid(x),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "LeakyReLU (slope 0.01)": partial(_leaky, 0.01),
    "LeakyReLU (slope 0.1)": partial(_leaky, 0.1),
    "LeakyReLU (slope 0.2)": partial(_leaky, 0.2),
    "ELU": partial(_elu, 1.0),
    "SELU": lambda x: 1.0507009873554804934193349852946 * _elu(1.6732632423543772848170429916717, x),
    "softplus": partial(np.logaddexp, 0.0),
    "Hardswish": lambda x: x * _hard_sigmoid(x),
    "Hardsigmoid": _hard_sigmoid,
    "Hardsigmoid (slope 0.2)": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "Hardtanh": lambda x: np.clip(x, -1, 1),
    "ReLU6": lambda x: np.clip(x, 0, 6),
    "Mish": lambda x: x * np.tanh(np.logaddexp(0.0, x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "abs": np.abs,
    "square": np.square,
    "squared ReLU": lambda x: np.maximum(x, 0) ** 2,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
}  # fmt: skip
"""of each element"""

# The entry of the table of APIs: the first name found in a function's words decides.
_ENTRIES: Final = {
    "gelu (": "gelu",
    "SELU": "selu",
    "Hardsigmoid": "hardsigmoid",
    "Hardswish": "hardswish",
    "Hardtanh": "clamp",
    "LeakyReLU": "leaky-relu-at-zero",
}


def explain_function(mismatch: Mismatch) -> str:
    """Explain one side as a function of the other: a function missing, or one too many."""
    if not mismatch.is_telling:
        return ""
    for made, source, names in mismatch.both_ways():
        name = _name_function(source, made)
        if name and name != "identity":
            return _say_lacking(name, *names)
    return ""


def explain_exchanged_function(mismatch: Mismatch) -> str:
    """Explain the two sides as different functions of one input."""
    if not mismatch.is_telling:
        return ""
    for _, array in mismatch.inputs:
        x = as_floats(array)
        if x.shape != mismatch.expected.shape or not is_telling(x):
            continue
        ours = _name_function(x, mismatch.expected)
        if ours and (theirs := _name_function(x, mismatch.actual)):
            return _compare(ours, theirs)
    return ""


def _name_function(x: Floats, made: Floats) -> str:
    """Return the function that makes `made` of x, or ""."""
    names = [name for name, function in FUNCTIONS.items() if fits(made, function, x)]
    if len(names) > 1 and names[0] != "identity":
        return f"{names[0]} (or {names[1]}: the same here)"
    return names[0] if names else _name_softmax(x, made) or _name_slope(x, made)


def _name_softmax(x: Floats, made: Floats) -> str:
    """Return "softmax over axis 1" or "log_softmax over axis 1" if that makes `made` of x, or ""."""
    for axis in reversed([axis for axis, size in enumerate(x.shape) if size > 1]):
        if made.min() >= 0 and same(made, softmax(x, axis)):
            return f"softmax over axis {axis}"
        if made.max() <= 0 and same(made, log_softmax(x, axis)):
            return f"log_softmax over axis {axis}"
    return ""


def _name_slope(x: Floats, made: Floats) -> str:
    """Name a LeakyReLU or an ELU of any slope: the elements below zero show it."""
    below = x < 0
    if not _FEWEST <= below.sum() <= x.size - _FEWEST:
        return ""
    for name, function in (("LeakyReLU (slope {})", _leaky), ("ELU (alpha {})", _elu)):
        values = np.where(below, function(1.0, x), 0)
        at = np.abs(values).argmax()
        slope = float(made.flat[at] / values.flat[at])
        if slope and same(made, function(slope, x)):
            return name.format(f"{slope:.6g}")
    return ""


def _compare(ours: str, theirs: str) -> str:
    (name, _, axis), (other, _, other_axis) = (it.partition(" over ") for it in (ours, theirs))
    if axis and name == other and axis != other_axis:
        words = f"{name} over {other_axis} instead of {axis}: set axis={axis.removeprefix('axis ')}"
        return cite(words, "softmax-axis")
    if ours == "identity":
        return _say_lacking(theirs, str(PORT), str(REFERENCE))
    if theirs == "identity":
        return _say_lacking(ours, str(REFERENCE), str(PORT))
    return _cite(f"the function is {theirs} in {PORT} and {ours} in {REFERENCE}")


def _say_lacking(name: str, side: str, other: str) -> str:
    return _cite(f"{name}: {side} applies it here, {other} does not")


def _cite(words: str) -> str:
    """Return the words and the entry of the function that they name, if there is one."""
    entry = next((slug for name, slug in _ENTRIES.items() if name in words), "")
    return cite(words, entry)
