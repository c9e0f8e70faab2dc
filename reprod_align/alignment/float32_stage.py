"""Compares the two sides in float32, measured by what float32 does to the reference itself.

How far PyTorch's own float32 run is from its float64 run is the noise floor: it is large where
activations are large or layers many, and no fixed tolerance knows it beforehand.
"""

from collections.abc import Iterator, Mapping

from reprod_align.alignment.comparing import Pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.runner import Runner
from reprod_align.base.difference import Gap, gap, magnitude
from reprod_align.model.leaf import LeafPair, pair_leaves
from reprod_align.model.side import ModelFailure
from reprod_align.model.trace import Array, Leaf, Trace

import numpy as np

ROUNDS_MORE = 30.0
"""times PyTorch's own rounding: beyond it the port's formula is worth a look"""
_EPSILON = float(np.finfo(np.float32).eps)


def compare_float32(runner: Runner, findings: Findings, done: Pass) -> None:
    """Run both sides in float32, eval mode, and add a check, remarks and findings.

    done: the pass in float64, which found the outputs equal.
    """
    try:
        with runner.reference.working("float32"), runner.port.working("float32"):
            reference = runner.run_reference(False, keep="outputs")
            port = runner.run_port(False, "outputs")
    except ModelFailure as error:
        findings.remark(f"not compared in float32: {error}")
        return
    exact = done.reference
    gaps = [_noise_gap(pair, exact.outputs, reference.outputs, port.outputs)
            for pair in done.pairs if _is_float(exact.outputs[pair.expected])]  # fmt: skip
    if not gaps:
        return
    finite = all(np.isfinite(found.difference) for _, found in gaps)
    times, worst = max(gaps, key=lambda one: one[0])
    findings.check("forward", f"outputs in float32, {times:.1f} x PyTorch's rounding",
                worst.relative, finite, worst.relative / max(times, 1e-300))  # fmt: skip
    if finite and times <= ROUNDS_MORE:
        return
    path, other, found = next(_first_places(runner, exact, reference, port), ("", "", worst))
    if not finite:
        findings.add("forward", path, other, "in float32 the port overflows or gives NaN where "
                  f"PyTorch's float32 is finite; in float64 both agree. {found.words}", found)  # fmt: skip
    else:
        findings.remark(f"in float32 {path or 'the model'} rounds {times:.0f} times as much as "
                     "PyTorch's own float32; in float64 both agree: an equal formula, "
                     "but a less exact one")  # fmt: skip


def _first_places(
    runner: Runner, exact: Trace, reference: Trace, port: Trace
) -> Iterator[tuple[str, str, Gap]]:
    """Yield the paired modules whose outputs leave the noise floor, in the order of their ends."""
    ideal, rounded = exact.by_key(), reference.by_key()
    for call in port.ended():
        key = runner.pairing.names.get(call.path), call.index
        if key[0] is None or key not in ideal or key not in rounded:
            continue
        ours = ideal[key[0], key[1]].outputs
        for pair in pair_leaves(ours, call.outputs):
            if (
                not _is_float(ours[pair.expected])
                or pair.expected not in rounded[key[0], key[1]].outputs
            ):
                continue
            times, found = _noise_gap(pair, ours, rounded[key[0], key[1]].outputs, call.outputs)
            if times > ROUNDS_MORE:
                yield key[0], call.path, found


def _noise_gap(
    pair: LeafPair, exact: Mapping[str, Leaf], rounded: Mapping[str, Leaf], port: Mapping[str, Leaf]
) -> tuple[float, Gap]:
    """Return how far the port's float32 is from float64, in units of PyTorch's; and the gap."""
    ideal = pair.to_port(exact[pair.expected].array)
    floor = _apart(ideal, pair.to_port(rounded[pair.expected].array)).difference
    found = _apart(ideal, port[pair.actual].array)
    unit = max(floor, _EPSILON * magnitude(ideal))
    if found.difference == 0 or floor == np.inf:  # PyTorch's own float32 is not finite either
        return 0.0, _apart(ideal, ideal)
    return (found.difference / unit if unit else np.inf), found


def _apart(ideal: Array, actual: Array) -> Gap:
    return gap(ideal, actual.astype(np.float64))


def _is_float(leaf: Leaf) -> bool:
    return leaf.array.dtype.kind == "f" and leaf.array.size > 0
