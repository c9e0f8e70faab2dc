"""The noise band: how far apart two curves may lie at each step.

With a perturbed twin of the reference run, measured: `multiple` times the largest difference
between the two up to that step. Without one, and for a curve that the twin leaves as it is (a
learning rate), a fixed share of the largest value up to that step. Never less than what the log
itself can tell: a few units in the last place of the precision its values have, or what its
decimals leave out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from reprod_align.curves.log import Array, Curve, CurveError, at_common_steps

import numpy as np

MULTIPLE: Final = 10.0
TOLERANCE: Final = 1e-9

_ULPS: Final = 4
_FIRST: Final = 5  # steps of a twin that share their largest difference: one alone may be 0 by luck
_FEW: Final = 8  # so many different values tell how precisely a log was written
_SAMPLE: Final = 2000
DOUBLE: Final = 53
"""Bits of a float64."""
MANTISSAS: Final = {8: "bfloat16", 11: "float16", 24: "float32", DOUBLE: "float64"}
_DECIMALS, _SIGNIFICANT = 10, 8  # a log with more was not rounded for reading
_MOST_ROUNDING: Final = 1e-3  # of the largest value: rounding that hides more does not count


@dataclass(frozen=True)
class Limits:
    """What the band is made of, besides the twins. Raises CurveError for a negative number."""

    multiple: float = MULTIPLE
    tolerance: float = TOLERANCE
    bits: int = DOUBLE
    """of the precision that the run was computed in, as far as its loss shows it"""

    def __post_init__(self) -> None:
        """Refuse what makes no band."""
        for name in ("multiple", "tolerance"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise CurveError(f"{name} must be a number of 0 or more, got {value}")


@dataclass(frozen=True)
class Band:
    """The largest difference allowed at each step."""

    limit: Array
    """(N,) float64"""
    judged: int
    """how many steps it is known for, from the first on"""
    measured: bool
    """True if a twin moved the curve: the band is measured noise, not a fixed share"""
    remarks: tuple[str, ...] = ()


def noise_band(
    steps: Array,
    ours: Array,
    theirs: Array,
    reference: Curve,
    twins: Sequence[Curve],
    limits: Limits,
) -> Band:
    """Return the band at `steps` (N,), where the two curves have the values `ours` and `theirs`.

    reference: the whole first curve, also at steps of its own; twins: its perturbed runs.
    """
    scale = np.maximum.accumulate(np.where(np.isfinite(ours), np.abs(ours), 0.0))
    floor, remarks = _floor(ours, theirs, scale, limits.bits)
    noise, judged = _noise(steps, reference, twins)
    measured = bool(np.any(noise))
    limit = limits.multiple * noise if measured else limits.tolerance * scale
    if judged < len(steps):
        last = f"step {steps[judged - 1]}" if judged else "no step"
        remarks.append(f"the twin gives a band up to {last} only; nothing after it is judged")
    return Band(np.maximum(limit, floor), judged, measured, tuple(remarks))


def precision_of(values: Array) -> int:
    """Return the bits of the coarsest float type that holds each of `values` exactly.

    53 (float64) where too few values or whole numbers leave it open.
    """
    finite = np.unique(values[np.isfinite(values)])
    if len(finite) < _FEW or not np.any(finite % 1):
        return DOUBLE
    mantissa = np.frexp(finite)[0]
    return next(bits for bits in MANTISSAS if not np.any(np.ldexp(mantissa, bits) % 1))


def decimals_of(values: Array) -> Array:
    """Return the unit of the last digit each of `values` (N,) was written with; 0 if in full."""
    finite = np.unique(values[np.isfinite(values) & (values != 0)])
    nothing = np.zeros(len(values))
    if len(finite) < _FEW:
        return nothing
    sample = finite[:: max(1, len(finite) // _SAMPLE)]
    digits = [Decimal(repr(float(value))).normalize().as_tuple() for value in sample]
    unit = nothing
    most = max(-int(written.exponent) for written in digits)
    if 0 < most <= _DECIMALS:
        unit = nothing + 10.0**-most
    significant = max(len(written.digits) for written in digits)
    if significant <= _SIGNIFICANT and most > 0:
        size = np.abs(np.where(np.isfinite(values) & (values != 0), values, 1.0))
        unit = np.maximum(unit, 10.0 ** (np.floor(np.log10(size)) - significant + 1))
    return unit


def _floor(ours: Array, theirs: Array, scale: Array, bits: int) -> tuple[Array, list[str]]:
    """Return the difference that the log's precision hides at each step, (N,), and remarks on it."""
    bits = min(bits, precision_of(ours), precision_of(theirs))
    ulps = _ULPS * 2.0 ** (1 - bits) * scale
    remarks = []
    half_units = (decimals_of(ours) + decimals_of(theirs)) / 2
    rounding = np.minimum(half_units * (1 + 1e-6), _MOST_ROUNDING * scale)
    if not _is_rounding(ours, theirs, half_units):
        rounding = np.zeros_like(scale)
    elif np.any(rounding > ulps):
        remarks.append(f"the log's digits hide differences below {float(np.median(rounding)):.0e}")
    return np.maximum(ulps, rounding), remarks


def _is_rounding(ours: Array, theirs: Array, half_units: Array) -> bool:
    """Return True if decimals were cut off: of two equal curves few values then fall apart by one.

    Values that are short by nature (a learning rate of 0.001 a step) differ at most steps.
    """
    if not np.any(half_units):
        return False
    with np.errstate(invalid="ignore"):
        apart = np.abs(ours - theirs)
    unit_apart = (apart > half_units / 2) & (apart < 1.5 * half_units)
    return bool(np.mean(unit_apart) < 0.5)


def _noise(steps: Array, whole: Curve, twins: Sequence[Curve]) -> tuple[Array, int]:
    """Return the largest difference of the twins so far, (N,), and for how many steps it is known."""
    noise, judged = np.zeros(len(steps)), len(steps)
    for twin in twins:
        known, gaps = _gaps(whole, twin)
        place = np.searchsorted(known, steps, side="right")
        envelope = np.append(0.0, _envelope(gaps))[np.maximum(place, min(1, len(known)))]
        noise = np.maximum(noise, envelope)
        judged = min(judged, int(np.searchsorted(steps, known[-1:], "right").sum()))
    return noise, judged


def _gaps(reference: Curve, twin: Curve) -> tuple[Array, Array]:
    """Return the steps both have, up to the first NaN or infinity, and the differences there."""
    steps, ours, theirs = at_common_steps(reference, twin)
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.abs(ours - theirs)
    broken = np.flatnonzero(~np.isfinite(gaps))
    end = int(broken[0]) if len(broken) else len(gaps)
    return steps[:end], gaps[:end]


def _envelope(gaps: Array) -> Array:
    """Return the largest gap so far; the first few share theirs."""
    if not len(gaps):
        return gaps
    envelope: Array = np.maximum.accumulate(gaps)
    envelope[:_FIRST] = envelope[:_FIRST][-1]
    return envelope
