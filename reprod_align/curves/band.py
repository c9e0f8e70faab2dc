"""Two curves on their common steps: their difference, the noise band, and where one leaves the other.

With a perturbed twin of the reference run, the band is measured: `multiple` times the largest difference
between the two up to that step. Without a twin, and for a curve that is the same in the twin (a learning
rate), it is a fixed share of the largest value up to that step. It is never narrower than the log's own
precision: a few units in the last place of its values, or the decimals that it leaves out. With the
same run in float64, the step at which rounding begins to grow is measured too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from reprod_align.base.blocks import Array
from reprod_align.curves.log import Curve, CurveError, take_common_steps

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
AGREES, SPIKE, UNSTEADY = "agrees", "spike", "comes and goes"
DIVERGES, LATE = "parts", "parts at the end"
NOTHING: Final = "not compared"  # no step could be judged
_SPIKE_STEPS: Final = 3  # a spike has at most so many steps
_SPIKE_SHARE: Final = 0.05  # of the steps after it may lie outside too
_SUSTAINED: Final = 0.9  # of all later steps lie outside: the curves stay apart
ENOUGH: Final = 5
"""Steps it takes to tell a spike from a divergence, or a shifted count from chance."""
UNITS: Final = 10.0
"""units in the last place: above them, rounding is more than what a single number loses"""


@dataclass(frozen=True)
class Limits:
    """What the band is made of, besides the twins. Raises CurveError for a negative number."""

    multiple: float = MULTIPLE
    tolerance: float = TOLERANCE
    bits: int = DOUBLE
    """of the precision that the run was computed in, as far as its loss shows it"""

    def __post_init__(self) -> None:
        """Raise CurveError for a number that makes no band."""
        for name in ("multiple", "tolerance"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise CurveError(f"{name} must be a number of 0 or more, got {value}")


def find_precision(values: Array) -> int:
    """Return the bits of the coarsest float type that holds each of `values` exactly.

    53 (float64) where too few values or whole numbers leave it open.
    """
    finite = np.unique(values[np.isfinite(values)])
    if len(finite) < _FEW or not np.any(finite % 1):
        return DOUBLE
    mantissa = np.frexp(finite)[0]
    return next(bits for bits in MANTISSAS if not np.any(np.ldexp(mantissa, bits) % 1))


def find_decimals(values: Array) -> Array:
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


def _find_floor(ours: Array, theirs: Array, scale: Array, bits: int) -> tuple[Array, list[str]]:
    """Return the difference that the log's precision hides at each step, (N,), and remarks on it."""
    bits = min(bits, find_precision(ours), find_precision(theirs))
    ulps = _ULPS * 2.0 ** (1 - bits) * scale
    remarks = []
    half_units = (find_decimals(ours) + find_decimals(theirs)) / 2
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


def _measure_noise(steps: Array, whole: Curve, twins: Sequence[Curve]) -> tuple[Array, int]:
    """Return the largest difference of the twins so far, (N,), and for how many steps it is known.

    whole: the reference, also at steps of its own. The first few steps share their largest difference.
    """
    noise, judged = np.zeros(len(steps)), len(steps)
    for twin in twins:
        known, _, gaps = _measure_gaps(whole, twin)
        largest = np.maximum.accumulate(gaps)
        largest[:_FIRST] = largest[:_FIRST].max(initial=0.0)
        place = np.searchsorted(known, steps, side="right")
        envelope = np.append(0.0, largest)[np.maximum(place, min(1, len(known)))]
        noise = np.maximum(noise, envelope)
        judged = min(judged, int(np.searchsorted(steps, known[-1:], "right").sum()))
    return noise, judged


def _measure_gaps(reference: Curve, other: Curve) -> tuple[Array, Array, Array]:
    """Return the steps of both up to the first NaN or infinity, the reference there, and the differences."""
    steps, ours, theirs = take_common_steps(reference, other)
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.abs(ours - theirs)
    broken = np.flatnonzero(~np.isfinite(gaps))
    end = int(broken[0]) if len(broken) else len(gaps)
    return steps[:end], ours[:end], gaps[:end]


@dataclass(frozen=True)
class Track:
    """Two curves at the steps that both have and that can be judged."""

    steps: Array
    """(N,) int64"""
    expected: Array
    """(N,) float64: the reference"""
    actual: Array
    """(N,) float64"""
    limit: Array
    """(N,) float64: the band"""
    measured: bool
    """True if a twin moved the curve: the band is measured noise, not a fixed share"""
    remarks: tuple[str, ...] = ()

    @cached_property
    def difference(self) -> Array:
        """|actual - expected|, (N,); NaN where either is NaN or infinite."""
        finite = np.isfinite(self.expected) & np.isfinite(self.actual)
        with np.errstate(invalid="ignore", over="ignore"):
            gap: Array = np.where(finite, np.abs(self.actual - self.expected), np.nan)
        return gap

    @cached_property
    def outside(self) -> Array:
        """Where the difference is not within the band, (N,) bool; a NaN never is."""
        out: Array = ~(self.difference <= self.limit)
        return out

    @cached_property
    def first(self) -> int | None:
        """The place of the first step outside the band; None if there is none."""
        return int(np.argmax(self.outside)) if np.any(self.outside) else None

    @cached_property
    def back(self) -> int:
        """The place of the first step within the band after `first`; N if there is none."""
        within = np.flatnonzero(~self.outside[self.first or 0 :])
        return (self.first or 0) + int(within[0]) if len(within) else len(self.steps)

    @cached_property
    def sustained(self) -> int | None:
        """The place from which at least 9 of 10 steps lie outside, if enough steps follow."""
        remaining = np.arange(len(self.steps), 0, -1)
        share = np.cumsum(self.outside[::-1])[::-1] / remaining
        places = np.flatnonzero(self.outside & (share >= _SUSTAINED) & (remaining > ENOUGH))
        return int(places[0]) if len(places) else None

    @cached_property
    def behaviour(self) -> str:
        """One of AGREES, SPIKE, DIVERGES, UNSTEADY, LATE, NOTHING."""
        if not len(self.steps):
            return NOTHING
        if self.first is None:
            return AGREES
        if len(self.steps) - self.first <= ENOUGH:
            return LATE
        if self.sustained is not None:
            return DIVERGES
        rest = self.outside[self.back :]
        alone = len(rest) > 0 and np.mean(rest) <= _SPIKE_SHARE
        return SPIKE if alone and self.back - self.first <= _SPIKE_STEPS else UNSTEADY


def follow(reference: Curve, other: Curve, twins: Sequence[Curve], limits: Limits) -> Track:
    """Return both curves on their common steps, as far as the band is known, with the band there.

    twins: perturbed runs of the reference.
    """
    steps, ours, theirs = take_common_steps(reference, other)
    scale = np.maximum.accumulate(np.where(np.isfinite(ours), np.abs(ours), 0.0))
    floor, remarks = _find_floor(ours, theirs, scale, limits.bits)
    noise, judged = _measure_noise(steps, reference, twins)
    measured = bool(np.any(noise))
    limit = np.maximum(limits.multiple * noise if measured else limits.tolerance * scale, floor)
    if judged < len(steps):
        last = f"step {steps[judged - 1]}" if judged else "no step"
        remarks.append(f"the twin gives a band up to {last} only; nothing after it is judged")
    kept = slice(0, judged)
    return Track(steps[kept], ours[kept], theirs[kept], limit[kept], measured, tuple(remarks))


def agree_when_shifted(
    reference: Curve, other: Curve, by: int, twins: Sequence[Curve], limits: Limits
) -> bool:
    """Return True if the curves agree once `by` is added to the other's steps.

    False where that says nothing: few common steps, or a curve that hardly changes.
    """
    track = follow(reference, other.shift(by), twins, limits)
    if len(track.steps) < ENOUGH or track.first is not None:
        return False
    moves = np.abs(np.diff(track.expected))
    return bool(np.mean(moves > track.limit[1:]) > 0.5)


@dataclass(frozen=True)
class Rounding:
    """How far the reference's run is from the same run in float64."""

    steps: Array
    """(N,) int64"""
    gaps: Array
    """(N,) float64: |float32 - float64|"""
    precision: str
    """what the run was computed in: "float32" """
    limit: float
    """UNITS units in the last place at the onset; at the last step where there is none"""
    onset: int | None
    """the step from which on the gap has been larger than that; None if it never was"""
    ratio: float | None
    """from the onset on: how many times the largest gap so far the two logs are apart at most"""

    @property
    def words(self) -> str:
        """The onset in a sentence."""
        far = f"{UNITS:g} units in the last place ({self.limit:.0e})"
        if self.onset is None:
            return (
                f"rounding does not grow: up to step {self.steps[-1]} the first log's {self.precision} "
                f"run stays within {far} of its float64 run"
            )
        said = (
            f"rounding grows from step {self.onset} on: there the first log's {self.precision} run leaves "
            f"its float64 run by more than {far}"
        )
        if self.ratio is None:
            return said
        return f"{said}; from then on the two logs are at most {self.ratio:.2g} times as far apart"

    def to_json(self) -> dict[str, Any]:
        """Return the onset as plain values."""
        return {
            "precision": self.precision,
            "units": UNITS,
            "limit": self.limit,
            "onset": self.onset,
            "ratio_from_onset": self.ratio,
            "largest": float(self.gaps.max()),
        }


def measure_rounding(reference: Curve, precise: Curve, track: Track) -> Rounding | None:
    """Return how rounding grows in `reference`; `precise`: the same run in float64.

    track: the reference and the other log. None where no step is in both, a number is not finite,
    or the reference is no coarser than float64.
    """
    bits = find_precision(reference.values)
    steps, ours, gaps = _measure_gaps(reference, precise)
    if not len(steps) or bits == DOUBLE:
        return None
    limit = UNITS * 2.0 ** (1 - bits) * np.maximum.accumulate(np.abs(ours))
    largest = np.maximum.accumulate(gaps)
    grown = np.flatnonzero(largest > limit)
    if not len(grown):
        return Rounding(steps, gaps, MANTISSAS[bits], float(limit[-1]), None, None)
    place = int(grown[0])
    grown_from = Curve("rounding", steps[place:], largest[place:])
    logged = Curve("gap", track.steps, track.difference)
    _, rounded, apart = take_common_steps(grown_from, logged)
    known = np.isfinite(apart)
    ratio = float((apart[known] / rounded[known]).max()) if known.any() else None
    return Rounding(steps, gaps, MANTISSAS[bits], float(limit[place]), int(steps[place]), ratio)
