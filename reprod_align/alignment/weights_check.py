"""Weights that were converted before: are they the reference's, and what was done to them if not?"""

from collections.abc import Iterator, Mapping
from itertools import permutations

from reprod_align.alignment.findings import Findings
from reprod_align.base.difference import gap
from reprod_align.causes.entries import cite
from reprod_align.match import Match, TensorPair
from reprod_align.model.trace import Array

import numpy as np

_CONVERTED = 1e-6
"""relative: a weight may have gone through float32 on its way"""

Weights = Mapping[str, Array]


def add_differing_weights(
    found: Match, torch: Weights, paddle: Weights, findings: Findings
) -> None:
    """Compare the weights that the Paddle model holds with PyTorch's; add a finding for each that differs."""
    for pair in found.pairs:
        for name, expected in pair.to_paddle(torch).items():
            apart = gap(expected, paddle[name], _CONVERTED)
            if not apart.ok and not _fits_another_way(pair, torch, paddle[name]):
                cause = find_cause(name, expected, paddle)
                text = cause or f"the weight differs; {apart.words}"
                findings.add("weights", " + ".join(pair.torch), name, text, apart, kind="weight")
    findings.check("weights", "weights as they came", 0.0, not findings.report.findings)


def _fits_another_way(pair: TensorPair, torch: Weights, actual: Array) -> bool:
    """Tell whether a bare parameter, which could lie in two ways, lies in the other."""
    if len(pair.torch) > 1 or len(pair.paddle) > 1:
        return False
    whole = torch[pair.torch[0]]
    return any(_equal(lay(whole), actual) for (lay,) in pair.choices)


def find_cause(name: str, expected: Array, paddle: Weights) -> str:
    """Return what was done to Paddle's weight `name`, where something known was; "" otherwise."""
    actual = paddle[name]
    if not actual.any():
        return "the weight is all zeros in Paddle: it was not converted"
    for words, made in _mistakes(expected):
        if _equal(made, actual):
            return words
    if expected.size and (expected != expected.flat[0]).any():
        for other, values in paddle.items():
            if other != name and _equal(expected, values):
                return f"the values that belong here are in {other}"
    scale = _constant_ratio(expected, actual)
    return f"the weight is {scale:.6g} times PyTorch's" if scale else ""


def _mistakes(expected: Array) -> Iterator[tuple[str, Array]]:
    """Yield known mistakes of conversion: in words, and what each makes of the weight."""
    if not expected.ndim:
        return
    if expected.ndim == 2:
        words = "not transposed: a Linear weight is (out, in) in PyTorch and (in, out) in Paddle"
        yield cite(words, "linear-weight"), expected.T
    yield "the sign is wrong", -expected
    yield "the rows are in reverse order", expected[::-1]
    if expected.shape[0] > 1:
        for by in (1, -1):
            yield f"shifted by {by} along the first axis", np.roll(expected, by, axis=0)
    for parts in (2, 3, 4):
        for axis in range(min(expected.ndim, 2)):
            yield from _reordered(expected, parts, axis)


def _reordered(expected: Array, parts: int, axis: int) -> Iterator[tuple[str, Array]]:
    """Yield the tensor with its blocks (q, k, v; gates) in every other order."""
    if expected.shape[axis] % parts:
        return
    blocks = np.split(expected, parts, axis=axis)
    for order in list(permutations(range(parts)))[1:]:
        words = f"its {parts} blocks (gates, or q k v) are in the order {order} along axis {axis}"
        yield words, np.concatenate([blocks[at] for at in order], axis=axis)


def _equal(expected: Array, actual: Array) -> bool:
    return expected.shape == actual.shape and gap(expected, actual, _CONVERTED).ok


def _constant_ratio(expected: Array, actual: Array) -> float:
    if expected.shape != actual.shape or not expected.all():
        return 0.0
    ratios = actual / expected
    first = float(ratios.flat[0])
    return first if np.allclose(ratios, first, rtol=1e-5, atol=0) else 0.0
