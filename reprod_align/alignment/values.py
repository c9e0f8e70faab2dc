"""Compares outputs that are no tensors: numbers as numbers, by the same rules, texts exactly."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from reprod_align.alignment.noise import Judge, Noise
from reprod_align.alignment.pairing import Pairing
from reprod_align.base.difference import Gap
from reprod_align.model.trace import Array, Trace

import numpy as np

_AGREE = Gap(0.0, 0.0, 0.0)
_DIFFER = Gap(np.inf, 0.0, 0.0)
_TEXT = "SU"  # kinds of arrays
Value = Array | None


@dataclass(frozen=True)
class ValueGap:
    """Two outputs of which one at least is no tensor, and how far they are apart."""

    torch_name: str
    """its path in PyTorch's output; the next in Paddle's"""
    paddle_name: str
    expected: Value
    actual: Value
    gap: Gap


def find_value(run: Trace, name: str) -> Value:
    """Return an output of a run by its path, tensor or not; None if there is none."""
    leaf = run.outputs.get(name)
    return run.values.get(name) if leaf is None else leaf.array


def compare_values(
    pairing: Pairing, reference: Trace, port: Trace, noise: Noise | None = None
) -> list[ValueGap]:
    """Compare the outputs that are no tensors, each with what stands for it, a number or a tensor."""
    found = []
    for first, second in pair_values(pairing, reference, port):
        ours, theirs = find_value(reference, first), find_value(port, second)
        judge = Judge(noise, partial(find_value, name=first))
        found.append(ValueGap(first, second, ours, theirs, _compare(ours, theirs, judge)))
    return found


def _compare(ours: Value, theirs: Value, judge: Judge) -> Gap:
    if ours is None or theirs is None:
        return _AGREE if ours is theirs else _DIFFER
    if ours.dtype.kind in _TEXT or theirs.dtype.kind in _TEXT:
        same = ours.dtype.kind == theirs.dtype.kind and np.array_equal(ours, theirs)
        return _AGREE if same else _DIFFER
    # True is 1
    first, second = (
        one.astype(np.int64) if one.dtype.kind == "b" else one for one in (ours, theirs)
    )
    if first.size == second.size == 1:  # a tensor of one element stands for a number
        first, second = first.reshape(()), second.reshape(())
    return judge.compare(first, second, 0.0)


def pair_values(pairing: Pairing, reference: Trace, port: Trace) -> Iterator[tuple[str, str]]:
    """Yield the paths of the outputs that stand for each other where one at least is no tensor.

    By name; those that are left in order, if they are as many and of the same kinds.
    """
    ours, theirs = _list_free(pairing, reference, port)
    shared = [name for name in ours if name in theirs]
    yield from ((name, name) for name in shared)
    first, second = ([name for name in free if name not in shared and free[name] is not None]
                     for free in (reference.values, port.values))  # fmt: skip
    kinds = (
        [_kind(one[name]) for name in names]
        for one, names in ((reference.values, first), (port.values, second))
    )
    if first and list(next(kinds)) == list(next(kinds)):
        yield from zip(first, second, strict=True)


def list_unpaired(pairing: Pairing, reference: Trace, port: Trace) -> tuple[list[str], list[str]]:
    """Return the outputs of each side, no tensors and not None, without a counterpart."""
    pairs = list(pair_values(pairing, reference, port))
    met = {first for first, _ in pairs}, {second for _, second in pairs}
    sides = zip((reference.values, port.values), met, strict=True)
    left = [[n for n, one in values.items() if one is not None and n not in known]
            for values, known in sides]  # fmt: skip
    return left[0], left[1]


def _list_free(
    pairing: Pairing, reference: Trace, port: Trace
) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """Return the values of each side, with the tensors that stand where the other side has a value."""
    pairs: Sequence[tuple[str, str]] = [
        (pair.expected, pair.actual) for pair in pairing.output_pairs(reference, port)
    ]
    taken = {first for first, _ in pairs}, {second for _, second in pairs}
    # a tensor of Paddle's where PyTorch has None is one more than asked for
    wanted = set(port.values), {name for name, one in reference.values.items() if one is not None}
    ours, theirs = (
        run.values | {name: leaf.array for name, leaf in run.outputs.items()
                      if name in names and name not in known}
        for run, known, names in zip((reference, port), taken, wanted, strict=True)
    )  # fmt: skip
    return ours, theirs


def _kind(value: Value) -> str:
    kind = "" if value is None else value.dtype.kind
    return "f" if kind in "biu" else kind
