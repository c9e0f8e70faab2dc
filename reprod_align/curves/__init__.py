"""Where two training runs diverge: their logs, curve by curve, against the noise of such a run.

The verdict covers the steps that both logs have. What a divergence points to is read from the
numbers, and the output says so: logs alone prove no cause.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from reprod_align.curves.band import (
    AGREES,
    DOUBLE,
    ENOUGH,
    MANTISSAS,
    MULTIPLE,
    TOLERANCE,
    Limits,
    Track,
    agree_when_shifted,
    find_precision,
    follow,
    measure_rounding,
)
from reprod_align.curves.hints import find_hints
from reprod_align.curves.log import (
    GRAD_NORM,
    LARGEST_STEP,
    LOSS,
    LR,
    Curve,
    CurveError,
    CurveLog,
    normalize_name,
    pair_names,
    take_common_steps,
)
from reprod_align.curves.readers import read_curves
from reprod_align.curves.report import CurveReport, CurveResult
from reprod_align.errors import one_line

import numpy as np

Log = CurveLog | str | os.PathLike[str] | Mapping[str, Sequence[float]]
"""A log, its file, or {name: one value a step, from step 1 on}."""

_SHIFTS: Final = (1, -1)
_OTHER_RUN: Final = 1000.0  # units in the last place: a first step never loses so many
_NARROW: Final = 30.0  # times the band: as far off can still be noise that a single twin lacks


def compare_curves(
    reference: Log,
    other: Log,
    twin: Log | Sequence[Log] | None = None,
    *,
    name_map: Mapping[str, str] | None = None,
    only: Sequence[str] | None = None,
    offset: int = 0,
    multiple: float = MULTIPLE,
    tolerance: float = TOLERANCE,
    float64: Log | None = None,
) -> CurveReport:
    """Return where `other` leaves the noise band around `reference`.

    `twin`: one or more runs of the reference with perturbed weights, whose differences from it,
    times `multiple`, are the band; without one it is `tolerance` of the largest value so far.
    `name_map`: curve of the reference -> curve of the other; `only`: the curves to compare;
    `offset` is added to the other's steps; `float64`: the reference's run in float64, one more twin,
    which also shows when rounding begins to grow. Raises CurveError if a log cannot be read or the
    logs share no curve.
    """
    limits = Limits(multiple, tolerance)
    if not abs(offset) <= LARGEST_STEP:
        raise CurveError(f"offset must be a number of steps, got {offset}")
    ours, theirs = _read_log(reference, "reference"), _read_log(other, "other")
    exact = None if float64 is None else _read_log(float64, "float64")
    twins = [_read_log(one, "twin") for one in _list_twins(twin)] + ([exact] if exact else [])
    limits = replace(limits, bits=min(_find_loss_bits(ours), _find_loss_bits(theirs)))
    names = pair_names(list(ours.curves), list(theirs.curves), name_map, only)
    results = [
        _compare_pair(ours, ours.curves[a], theirs.curves[b].shift(offset), twins, limits)
        for a, b in names.pairs.items()
    ]
    if exact is not None:
        results = [_add_rounding(result, ours, exact) for result in results]
    remarks = (
        *(
            f"{one_line(log.source)}: {text}"
            for log in (ours, theirs, *twins)
            for text in log.remarks
        ),
        *names.remarks,
        *_remark_on_precision(ours, theirs, bool(twins)),
        *_remark_on_vacuity(results, twins),
        *_remark_on_float64(ours, exact),
    )
    rule, hints = _describe_band(results, twins, limits), _find_overall_hints(results, offset)
    return CurveReport(ours, theirs, tuple(results), rule, tuple(hints), remarks)


def _read_log(log: Log, source: str) -> CurveLog:
    if isinstance(log, CurveLog):
        return log
    return CurveLog.from_values(log, source) if isinstance(log, Mapping) else read_curves(log)


def _list_twins(twin: Log | Sequence[Log] | None) -> Sequence[Log]:
    if twin is None:
        return []
    return [twin] if isinstance(twin, (CurveLog, str, os.PathLike, Mapping)) else twin


def _find_loss_bits(log: CurveLog) -> int:
    """Return the bits of the loss's precision: the whole run was computed in it."""
    losses = [curve for curve in log.curves.values() if normalize_name(curve.name) == LOSS]
    return min((find_precision(curve.values) for curve in losses), default=DOUBLE)


def _compare_pair(
    log: CurveLog, curve: Curve, other: Curve, twins: Sequence[CurveLog], limits: Limits
) -> CurveResult:
    quantity = normalize_name(curve.name)
    if quantity == LR:  # computed on the host, in float64
        limits = replace(limits, bits=DOUBLE)
    noise = [twin.curves[name] for twin in twins if (name := _find_partner(twin, log, curve.name))]
    track = follow(curve, other, noise, limits)
    hints, shift = find_hints(track, quantity, log.epochs), 0
    if track.behaviour != AGREES:
        shift = next((k for k in _SHIFTS if agree_when_shifted(curve, other, k, noise, limits)), 0)
    if shift and quantity == LR:
        hints.append(
            "at each step the second has the learning rate that the first has one step "
            f"{'later' if shift > 0 else 'earlier'}: points to a scheduler stepped once too often, "
            "too seldom, or at another place"
        )
    hints += _doubt_twin(track, len(noise))
    remarks = list(track.remarks)
    if twins and not noise:
        remarks.append("the twin has no such curve; held to the fixed tolerance")
    remarks += _remark_on_steps(curve, other, track, limits)
    logged = len(curve.steps), len(other.steps)
    return CurveResult(
        curve.name, other.name, quantity, logged, track, tuple(hints), tuple(remarks), shift
    )


def _find_partner(twin: CurveLog, reference: CurveLog, name: str) -> str | None:
    """Return the name that the reference's curve has in the twin's log; None if it has none."""
    if name in twin.curves:
        return name
    try:
        return pair_names(list(reference.curves), list(twin.curves)).pairs.get(name)
    except CurveError:
        return None


def _doubt_twin(track: Track, twins: int) -> list[str]:
    """Doubt a narrow miss of one twin's band: another twin's noise may well be larger."""
    if twins != 1 or not track.measured or track.first is None:
        return []
    beyond = track.difference[track.outside] / track.limit[track.outside]
    if not beyond.max() < _NARROW:
        return []
    return [f"at most {beyond.max():.2g} times the band: one twin's noise can be small by luck; "
            "give two more (--twin may be repeated) before blaming anything"]  # fmt: skip


def _remark_on_steps(curve: Curve, other: Curve, track: Track, limits: Limits) -> list[str]:
    """Return how the steps of the two logs meet."""
    if not len(track.steps):
        return ["no step is in both logs and in the band"]
    found, counts = [], (len(curve.steps), len(other.steps))
    common = len(take_common_steps(curve, other)[0])
    if common < max(counts):
        found.append(f"{common} steps are in both logs, which have {counts[0]} and {counts[1]}")
    if track.first is not None and _is_mean_of(curve, other, limits):
        found.append("the sparser log holds means over its interval: averaged likewise the curves "
                     "agree")  # fmt: skip
    return found


def _is_mean_of(curve: Curve, other: Curve, limits: Limits) -> bool:
    """Return True if one log's values are the other's means since its last logged step."""
    sparse, dense = sorted((curve, other), key=lambda one: len(one.steps))
    ends = np.searchsorted(dense.steps, sparse.steps, side="right")
    if len(ends) < 2 or len(dense.steps) < 2 * len(ends) or np.any(np.diff(ends, prepend=0) < 1):
        return False
    sums = np.diff(np.append(0.0, np.cumsum(dense.values))[ends], prepend=0.0)
    means = Curve(dense.name, sparse.steps, sums / np.diff(ends, prepend=0))
    return follow(sparse, means, [], limits).behaviour == AGREES


def _add_rounding(result: CurveResult, log: CurveLog, exact: CurveLog) -> CurveResult:
    """Return the result with how rounding grows in its curve."""
    name = _find_partner(exact, log, result.name)
    if name is None or result.quantity == LR:  # which is computed on the host, in float64
        return result
    if result.quantity == LOSS:
        _require_same_run(log, exact, log.curves[result.name], exact.curves[name])
    rounding = measure_rounding(log.curves[result.name], exact.curves[name], result.track)
    return replace(result, rounding=rounding)


def _require_same_run(log: CurveLog, exact: CurveLog, ours: Curve, theirs: Curve) -> None:
    """Raise CurveError if the first step differs by more than rounding explains."""
    steps, values, precise = take_common_steps(ours, theirs)
    if not len(steps):
        return
    value, expected = float(values[0]), float(precise[0])
    if abs(value - expected) > _OTHER_RUN * 2.0 ** (1 - _find_loss_bits(log)) * abs(expected):
        raise CurveError(
            f"{exact.source} is not {log.source} in float64: at step {steps[0]} the loss is "
            f"{expected:.9g} and {value:.9g}, further apart than rounding makes it"
        )


def _find_overall_hints(results: Sequence[CurveResult], offset: int) -> list[str]:
    """Return what all curves together point to."""
    apart = [result for result in results if result.verdict != AGREES]
    if not apart:
        return []
    shifts = {result.shift for result in apart if result.shift or min(result.logged) >= ENOUGH}
    moving = any(result.shift and result.quantity != LR for result in apart)
    if len(shifts) == 1 and moving:
        return [f"another count of steps: with --offset {offset + shifts.pop()} the curves agree"]
    step = {one.quantity: one.first_step for one in apart if one.first_step is not None}
    at_loss, at_lr, at_norm = (step.get(name) for name in (LOSS, LR, GRAD_NORM))
    losses = [one for one in results if one.quantity == LOSS]
    if at_loss is not None and at_lr is not None and at_loss <= 1 and losses[-1].track.first == 0:
        return ["the loss differs before any update: the learning rate, which differs too, is not "
                "the only cause"]  # fmt: skip
    if at_lr is not None and (at_loss is None or at_lr <= at_loss):
        return [f"the learning rate diverges at step {at_lr}, no later than the loss: the schedule"]
    if at_norm is not None and at_norm <= 1 and losses and at_loss != at_norm:
        return ["the gradients' norm differs at the first step, whose loss agrees: the backward "
                "pass, or where the norm is taken"]  # fmt: skip
    if step and all(name.startswith("eval_") for name in step) and losses:
        return ["the training loss agrees: evaluation (eval mode, its data, the metric)"]
    return []


def _describe_band(
    results: Sequence[CurveResult], twins: Sequence[CurveLog], limits: Limits
) -> str:
    fixed = f"{limits.tolerance:g} of the largest |value| so far"
    if not twins:
        return f"no twin was given, so no noise was measured: fixed at {fixed}"
    source = " and ".join(one_line(twin.source) for twin in twins)
    measured = f"{limits.multiple:g} x the largest |reference - twin| so far ({source})"
    if all(result.track.measured for result in results):
        return measured
    return f"{measured}; {fixed} for what the twin does not change"


def _remark_on_precision(ours: CurveLog, theirs: CurveLog, has_twin: bool) -> list[str]:
    bits = _find_loss_bits(ours), _find_loss_bits(theirs)
    found = []
    if bits[0] != bits[1]:
        found.append(f"the loss has {MANTISSAS[bits[0]]} precision in the first log, "
                     f"{MANTISSAS[bits[1]]} in the second: the band allows for the coarser")  # fmt: skip
    if not has_twin and min(bits) < DOUBLE:
        found.append(f"the loss has {MANTISSAS[min(bits)]} precision: rounding grows as training "
                     "goes on, and only --twin measures how far")  # fmt: skip
    return found


def _remark_on_float64(ours: CurveLog, exact: CurveLog | None) -> list[str]:
    """Return why --float64 shows no onset of rounding."""
    if exact is None:
        return []
    if _find_loss_bits(exact) < DOUBLE:
        kind = MANTISSAS[_find_loss_bits(exact)]
        return [
            f"{one_line(exact.source)}: the loss has {kind} precision: is this the float64 run?"
        ]
    if _find_loss_bits(ours) == DOUBLE:
        return ["the reference's own log is in float64: --float64 has no rounding to measure"]
    return []


def _remark_on_vacuity(results: Sequence[CurveResult], twins: Sequence[CurveLog]) -> list[str]:
    """Return what makes an agreement say little."""
    found = []
    if twins and not any(result.track.measured for result in results):
        found.append("the twin is the reference to the last bit: was it perturbed?")
    compared = [result.track for result in results if len(result.track.steps) > 1]
    if compared and not any(np.any(track.difference) for track in compared):
        found.append("the curves are the same to the last bit: are these two logs of two runs?")
    return found
