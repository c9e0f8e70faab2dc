"""When rounding begins to grow: a run in float32 beside the same run in float64."""

from dataclasses import dataclass
from typing import Any, Final

from reprod_align.curves.band import DOUBLE, MANTISSAS, precision_of
from reprod_align.curves.log import Array, Curve, at_common_steps
from reprod_align.curves.track import Track

import numpy as np

UNITS: Final = 10.0
"""units in the last place: above them, rounding is more than what a single number loses"""


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
    bits = precision_of(reference.values)
    steps, ours, exact = at_common_steps(reference, precise)
    finite = np.isfinite(ours) & np.isfinite(exact)
    length = int(np.argmin(finite)) if not finite.all() else len(steps)
    if not length or bits == DOUBLE:
        return None
    steps, ours, exact = steps[:length], ours[:length], exact[:length]
    gaps = np.abs(ours - exact)
    limit = UNITS * 2.0 ** (1 - bits) * np.maximum.accumulate(np.abs(ours))
    largest = np.maximum.accumulate(gaps)
    grown = np.flatnonzero(largest > limit)
    if not len(grown):
        return Rounding(steps, gaps, MANTISSAS[bits], float(limit[-1]), None, None)
    place = int(grown[0])
    ratio = _ratio(Curve("rounding", steps[place:], largest[place:]), track)
    return Rounding(steps, gaps, MANTISSAS[bits], float(limit[place]), int(steps[place]), ratio)


def _ratio(rounding: Curve, track: Track) -> float | None:
    """Return the largest quotient of the logs' difference and the rounding so far."""
    _, largest, apart = at_common_steps(rounding, Curve("gap", track.steps, track.difference))
    known = np.isfinite(apart)
    return float((apart[known] / largest[known]).max()) if known.any() else None
