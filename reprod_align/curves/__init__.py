"""Where two training runs part: their logs, curve by curve, against the noise of such a run.

The verdict holds for the steps both logs have. What a parting points to is a reading of the
numbers and says so; the logs alone prove no cause.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from reprod_align.curves.band import DOUBLE, MANTISSAS, MULTIPLE, TOLERANCE, Limits, precision_of
from reprod_align.curves.hints import hints
from reprod_align.curves.log import LARGEST_STEP, Curve, CurveError, CurveLog
from reprod_align.curves.names import GRAD_NORM, LOSS, LR, canonical, pair_names
from reprod_align.curves.readers.files import read_curves
from reprod_align.curves.report import CurveReport, CurveResult
from reprod_align.curves.rounding import rounding_of
from reprod_align.curves.track import AGREES, ENOUGH, Track, agree_when_shifted, follow
from reprod_align.errors import one_line

import numpy as np

Log = CurveLog | str | os.PathLike[str] | Mapping[str, Sequence[float]]
"""A log, its file, or {name: one value a step, from step 1 on}."""

_SHIFTS: Final = (1, -1)
_OTHER_RUN: Final = 1000.0  # units in the last place: no first step loses so many
_NARROW: Final = 30.0  # times the band: so far off can still be noise that the one twin lacks


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
    which tells too when rounding begins to grow. Raises CurveError if a log cannot be read or no
    curve is in both.
    """
    limits = Limits(_not_negative(multiple, "multiple"), _not_negative(tolerance, "tolerance"))
    if not abs(offset) <= LARGEST_STEP:
        raise CurveError(f"offset must be a number of steps, got {offset}")
    ours, theirs = _log(reference, "reference"), _log(other, "other")
    exact = None if float64 is None else _log(float64, "float64")
    twins = [_log(one, "twin") for one in _as_list(twin)] + ([] if exact is None else [exact])
    limits = replace(limits, bits=min(_precision(ours), _precision(theirs)))
    names = pair_names(list(ours.curves), list(theirs.curves), name_map, only)
    results = tuple(
        _result(ours, theirs.curves[b].shifted(offset), ours.curves[a], twins, limits)
        for a, b in names.pairs.items()
    )
    if exact is not None:
        results = tuple(_with_rounding(result, ours, exact) for result in results)
    return CurveReport(
        ours,
        theirs,
        results,
        _rule(results, twins, limits),
        tuple(_overall(results, offset)),
        (
            *_log_remarks([ours, theirs, *twins]),
            *names.remarks,
            *_precision_remarks(ours, theirs, bool(twins)),
            *_vacuous(results, twins),
            *_unlike_float64(ours, exact),
        ),
    )


def _log(log: Log, source: str) -> CurveLog:
    if isinstance(log, CurveLog):
        return log
    return CurveLog.of(log, source) if isinstance(log, Mapping) else read_curves(log)


def _as_list(twin: Log | Sequence[Log] | None) -> list[Log]:
    if twin is None:
        return []
    if isinstance(twin, (CurveLog, str, os.PathLike, Mapping)):
        return [twin]
    return list(twin)


def _not_negative(value: float, name: str) -> float:
    if not (value >= 0 and math.isfinite(value)):
        raise CurveError(f"{name} must be a number of 0 or more, got {value}")
    return value


def _precision(log: CurveLog) -> int:
    """Return the bits of the precision that the loss has: the whole run was computed in it."""
    losses = [curve for curve in log.curves.values() if canonical(curve.name) == LOSS]
    return min((precision_of(curve.values) for curve in losses), default=DOUBLE)


def _result(
    log: CurveLog, other: Curve, curve: Curve, twins: Sequence[CurveLog], limits: Limits
) -> CurveResult:
    quantity = canonical(curve.name)
    if quantity == LR:  # computed on the host, in float64
        limits = replace(limits, bits=DOUBLE)
    noise = [twin.curves[name] for twin in twins if (name := _partner(twin, log, curve.name))]
    track = follow(curve, other, noise, limits)
    shift = 0
    if track.behaviour != AGREES:
        shift = next((k for k in _SHIFTS if agree_when_shifted(curve, other, k, noise, limits)), 0)
    remarks = (*track.remarks, *_alignment(curve, other, track, limits, bool(twins and not noise)))
    found = hints(track, quantity, log.epochs)
    if shift and quantity == LR:
        found.append(_lr_shift(shift))
    found += _lucky_twin(track, len(noise))
    return CurveResult(
        curve.name,
        other.name,
        quantity,
        (len(curve.steps), len(other.steps)),
        track,
        tuple(found),
        remarks,
        shift,
    )


def _with_rounding(result: CurveResult, log: CurveLog, exact: CurveLog) -> CurveResult:
    """Return the result with how rounding grows in its curve."""
    name = _partner(exact, log, result.name)
    if name is None or result.quantity == LR:  # which is computed on the host, in float64
        return result
    if result.quantity == LOSS:
        _require_same_run(log, exact, log.curves[result.name], exact.curves[name])
    rounding = rounding_of(log.curves[result.name], exact.curves[name], result.track)
    return replace(result, rounding=rounding)


def _require_same_run(log: CurveLog, exact: CurveLog, ours: Curve, theirs: Curve) -> None:
    """Raise CurveError if rounding cannot make the difference of the first step."""
    steps, mine, other = np.intersect1d(
        ours.steps, theirs.steps, assume_unique=True, return_indices=True
    )
    if not len(steps):
        return
    value, precise = float(ours.values[mine[0]]), float(theirs.values[other[0]])
    if abs(value - precise) > _OTHER_RUN * 2.0 ** (1 - _precision(log)) * abs(precise):
        raise CurveError(
            f"{exact.source} is not {log.source} in float64: at step {steps[0]} the loss is "
            f"{precise:.9g} and {value:.9g}, further apart than rounding makes it"
        )


def _unlike_float64(ours: CurveLog, exact: CurveLog | None) -> list[str]:
    """Return why --float64 shows no onset of rounding."""
    if exact is None:
        return []
    if _precision(exact) < DOUBLE:
        kind = MANTISSAS[_precision(exact)]
        return [
            f"{one_line(exact.source)}: the loss has {kind} precision: is this the float64 run?"
        ]
    if _precision(ours) == DOUBLE:
        return [
            "the reference's own log is in float64: there is no rounding to be measured by --float64"
        ]
    return []


def _partner(twin: CurveLog, reference: CurveLog, name: str) -> str | None:
    if name in twin.curves:
        return name
    try:
        return pair_names(list(reference.curves), list(twin.curves)).pairs.get(name)
    except CurveError:
        return None


def _lucky_twin(track: Track, twins: int) -> list[str]:
    """Doubt a narrow miss of one twin's band: another twin's noise may well be larger."""
    if twins != 1 or not track.measured or track.first is None:
        return []
    beyond = track.difference[track.outside] / track.limit[track.outside]
    if not beyond.max() < _NARROW:
        return []
    return [f"at most {beyond.max():.2g} times the band: one twin's noise can be small by luck; "
            "give two more (--twin may be repeated) before blaming anything"]  # fmt: skip


def _lr_shift(shift: int) -> str:
    word = "later" if shift > 0 else "earlier"
    return (
        f"at each step the second has the learning rate that the first has one step {word}: points "
        "to a scheduler stepped once too often, too seldom, or at another place"
    )


def _alignment(
    curve: Curve, other: Curve, track: Track, limits: Limits, no_twin: bool
) -> list[str]:
    """Return what the steps of the two logs have to do with each other."""
    found = ["the twin has no such curve; held to the fixed tolerance"] if no_twin else []
    if not len(track.steps):
        return [*found, "no step is in both logs and in the band"]
    counts = len(curve.steps), len(other.steps)
    common = len(np.intersect1d(curve.steps, other.steps, assume_unique=True))
    if common < max(counts):
        found.append(f"{common} steps are in both logs, which have {counts[0]} and {counts[1]}")
    if track.first is not None and _is_mean_of(curve, other, limits):
        found.append(
            "the sparser log holds means over its interval: averaged likewise the curves agree"
        )
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


def _overall(results: Sequence[CurveResult], offset: int) -> list[str]:
    """Return what the curves point to together."""
    apart = [result for result in results if result.verdict != AGREES]
    if not apart:
        return []
    shifts = {result.shift for result in apart if result.shift or min(result.logged) >= ENOUGH}
    moving = any(result.shift and result.quantity != LR for result in apart)
    if len(shifts) == 1 and moving:
        return [f"another count of steps: with --offset {offset + shifts.pop()} the curves agree"]
    return _first_of(apart, {result.quantity: result for result in results})


def _first_of(apart: Sequence[CurveResult], known: Mapping[str, CurveResult]) -> list[str]:
    step = {result.quantity: result.first_step for result in apart if result.first_step is not None}
    at_loss, at_lr, at_norm = (step.get(name) for name in (LOSS, LR, GRAD_NORM))
    if at_loss is not None and at_lr is not None and at_loss <= 1 and known[LOSS].track.first == 0:
        return ["the loss differs before any update: the learning rate, which differs too, is not "
                "the only cause"]  # fmt: skip
    if at_lr is not None and (at_loss is None or at_lr <= at_loss):
        return [f"the learning rate parts at step {at_lr}, no later than the loss: the schedule"]
    if at_norm is not None and at_norm <= 1 and LOSS in known and at_loss != at_norm:
        return ["the gradients' norm differs at the first step, whose loss agrees: the backward "
                "pass, or where the norm is taken"]  # fmt: skip
    if step and all(name.startswith("eval_") for name in step) and LOSS in known:
        return ["the training loss agrees: evaluation (eval mode, its data, the metric)"]
    return []


def _rule(results: Sequence[CurveResult], twins: Sequence[CurveLog], limits: Limits) -> str:
    fixed = f"{limits.tolerance:g} of the largest |value| so far"
    if not twins:
        return f"no twin was given, so no noise was measured: fixed at {fixed}"
    source = " and ".join(one_line(twin.source) for twin in twins)
    measured = f"{limits.multiple:g} x the largest |reference - twin| so far ({source})"
    if all(result.track.measured for result in results):
        return measured
    return f"{measured}; {fixed} for what the twin does not change"


def _log_remarks(logs: Sequence[CurveLog]) -> list[str]:
    return [f"{one_line(log.source)}: {remark}" for log in logs for remark in log.remarks]


def _precision_remarks(ours: CurveLog, theirs: CurveLog, has_twin: bool) -> list[str]:
    bits = _precision(ours), _precision(theirs)
    found = []
    if bits[0] != bits[1]:
        found.append(f"the loss has {MANTISSAS[bits[0]]} precision in the first log, "
                     f"{MANTISSAS[bits[1]]} in the second: the band allows for the coarser")  # fmt: skip
    if not has_twin and min(bits) < DOUBLE:
        found.append(f"the loss has {MANTISSAS[min(bits)]} precision: rounding grows as training "
                     "goes on, and only --twin measures how far")  # fmt: skip
    return found


def _vacuous(results: Sequence[CurveResult], twins: Sequence[CurveLog]) -> list[str]:
    """Return what makes an agreement say little."""
    found = []
    if twins and not any(result.track.measured for result in results):
        found.append("the twin is the reference to the last bit: was it perturbed?")
    compared = [result.track for result in results if len(result.track.steps) > 1]
    if compared and not any(np.any(track.difference) for track in compared):
        found.append("the curves are the same to the last bit: are these two logs of two runs?")
    return found
