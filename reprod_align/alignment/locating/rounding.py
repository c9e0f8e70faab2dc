"""Tells float32 rounding inside Paddle's layers from faults."""

from collections.abc import Sequence

from reprod_align.alignment.comparing import (
    LAYER_ROUNDING,
    WHOLE_ROUNDING,
    Pass,
    limit_own_code,
)
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.fault import Fault
from reprod_align.alignment.runner import Runner
from reprod_align.base.difference import Gap

_PRODUCTS = {"Linear", "Embedding", "Bilinear"} | {
    f"Conv{transpose}{axes}d" for transpose in ("", "Transpose") for axes in (1, 2, 3)
}
"""sums of products: there is no constant in them that a float32 could hold"""


def may_round(runner: Runner, ours: str, theirs: str) -> bool:
    """Tell whether a small difference in a pair of modules can be float32's, of a constant or of all."""
    paddle = runner.pairing.paddle
    exact = theirs in paddle.stock and paddle.modules[theirs].kind in _PRODUCTS
    if exact and runner.dtype == "float64":
        return False
    return not runner.pairing.settings_differ(ours, theirs)


def is_rounding(runner: Runner, fault: Fault, measured: bool = True) -> bool:
    """Tell whether a fault is float32 rounding inside a layer.

    measured: at each place by what float32 does there, and of a constant as the layer answers to it;
    both take a run of the reference.
    """
    if fault.kind == "cut" or not may_round(runner, *fault.place):
        return False
    own = not fault.stock or fault.own_code
    limit = limit_own_code(runner.dtype) if own else LAYER_ROUNDING
    if not measured or fault.expected is None or fault.actual is None:
        return fault.gap.relative <= limit
    return fault.judge.is_rounding(fault.gap, fault.expected, fault.actual, limit)


def is_rounding_throughout(done: Pass) -> bool:
    """Tell whether all that differs in a pass is as small as rounding that has grown on its way."""
    outputs, gradients = [gap for _, gap in done.outputs], [gap for *_, gap in done.gradients]
    return _all_small(outputs) and _all_small(gradients)


def note_rounding_as_a_whole(
    runner: Runner, findings: Findings, place: str, worst: Gap, small: bool
) -> bool:
    """Tell whether what no module alone makes is float32 rounding that adds up; note it if so.

    small: whether it is no larger than that.
    """
    rounds = small and may_round(runner, "", "")
    if rounds:
        findings.note_float32(place, worst.relative)
    return rounds


def _all_small(gaps: Sequence[Gap]) -> bool:
    """Tell whether what differs is small next to its own largest value, or to that of all if it is 0."""
    largest = max((found.scale for found in gaps), default=0.0)
    return all(
        found.ok or found.difference <= WHOLE_ROUNDING * (found.scale or largest) for found in gaps
    )
