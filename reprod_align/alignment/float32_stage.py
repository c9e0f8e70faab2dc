"""Compares the two sides in float32, measured by what float32 does to the reference itself.

How far PyTorch's own float32 run is from its float64 run is the noise floor: it is large where
activations are large or layers many, and no fixed tolerance knows it beforehand.
"""

from collections.abc import Iterator, Mapping, Sequence

from reprod_align.alignment.comparing import WHOLE_ROUNDING, Pass
from reprod_align.alignment.details import add_float32, add_floor
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.runner import Runner
from reprod_align.base import REFERENCE
from reprod_align.base.difference import Gap, gap
from reprod_align.base.local import measure_ordinary
from reprod_align.model.side import ModelFailure
from reprod_align.model.trace import Call, Leaf, LeafPair, Trace, pair_leaves

import numpy as np

ROUNDS_MORE = 30.0
"""times PyTorch's own rounding: beyond it the port's formula is worth a look"""
_EPSILON = float(np.finfo(np.float32).eps)


def compare_float32(runner: Runner, findings: Findings, done: Pass) -> None:
    """Run both sides in float32, eval mode, and add a check, remarks and findings.

    done: the pass in float64, which found the outputs equal.
    """
    runner.put_back()
    try:
        with runner.reference.working("float32"):  # one side at a time: copies of both take memory
            rounded = runner.run_reference(False, keep="outputs", backward=False)
        with runner.port.working("float32"):
            port = runner.run_port(False, "outputs", backward=False)
    except ModelFailure as error:
        findings.remark(f"not compared in float32: {error}")
        return
    exact = done.reference
    add_floor(findings, exact, rounded)
    add_float32(runner, findings, rounded, port)
    gaps = list(_compare_outputs(done.pairs, exact.outputs, rounded.outputs, port.outputs))
    if not gaps:
        return
    finite = all(np.isfinite(found.difference) for _, found in gaps)
    times, worst = max(gaps, key=lambda one: one[0])
    what, noise = (
        f"outputs in float32, {times:.1f} x {REFERENCE}'s rounding",
        worst.relative / max(times, 1e-300),
    )
    findings.check("forward", what, worst.relative, finite, noise)
    if finite and times <= ROUNDS_MORE:
        return
    path, other, found = next(_find_places(runner, done, rounded, port), ("", "", worst))
    if finite:
        findings.remark(
            f"in float32 {path or 'the model'} rounds {times:.0f} times as much as {REFERENCE}'s own "
            "float32; in float64 both agree: the formula is equal, but less exact"
        )
    else:
        text = (
            f"in float32 the port overflows or gives NaN where {REFERENCE}'s float32 is finite; "
            f"in float64 both agree. {found.words}"
        )
        findings.add("forward", path, other, text, found, kind="float32-overflow")


def _find_places(
    runner: Runner, done: Pass, rounded: Trace, port: Trace
) -> Iterator[tuple[str, str, Gap]]:
    """Yield the paired modules whose outputs leave the noise floor, in the order of their ends.

    What differs in float64 too is divided between modules in another way there.
    """
    ideals, floors, wide = done.reference.by_key(), rounded.by_key(), done.natural.by_key()
    for call in port.calls_by_end():
        path = runner.pairing.names.get(call.path, "")
        ideal, floor = ideals.get((path, call.index)), floors.get((path, call.index))
        if call.path in runner.pairing.names and ideal is not None and floor is not None:
            pairs = pair_leaves(ideal.outputs, call.outputs)
            pairs = [
                pair
                for pair in pairs
                if pair.expected in floor.outputs and _agree(pair, ideal, wide.get(call.key))
            ]
            for times, found in _compare_outputs(pairs, ideal.outputs, floor.outputs, call.outputs):
                if times > ROUNDS_MORE:
                    yield path, call.path, found


def _agree(pair: LeafPair, ideal: Call, wide: Call | None) -> bool:
    """Tell whether an output agrees in float64, or is not known there."""
    known = None if wide is None else wide.outputs.get(pair.actual)
    expected = pair.to_port(ideal.outputs[pair.expected].array)
    return known is None or gap(expected, known.array, WHOLE_ROUNDING).ok


def _compare_outputs(
    pairs: Sequence[LeafPair],
    exact: Mapping[str, Leaf],
    rounded: Mapping[str, Leaf],
    port: Mapping[str, Leaf],
) -> Iterator[tuple[float, Gap]]:
    """Yield how far the port's float32 is from float64, in units of PyTorch's rounding; and the gap."""
    for pair in pairs:
        ideal = pair.to_port(exact[pair.expected].array)
        if ideal.dtype.kind != "f" or not ideal.size:
            continue
        floor = gap(ideal, pair.to_port(rounded[pair.expected].array)).difference
        found = gap(ideal, port[pair.actual].array)
        unit = max(floor, _EPSILON * measure_ordinary(ideal))
        if found.difference == 0 or floor == np.inf:  # PyTorch's own float32 is not finite either
            yield 0.0, gap(ideal, ideal)
        else:
            yield found.difference / unit if unit else np.inf, found
