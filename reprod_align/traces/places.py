"""Where a tensor holds what no sum can hold: NaN, infinities, constants that hide, and exact integers.

Each set of places becomes one number, the sum of hashes below 2**53, so that a float64 keeps it exactly;
two sets that differ have the same number about once in 10**15.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Bits = NDArray[np.uint64]

KINDS = ("NaN", "inf", "-inf", "large positive", "large negative")
"""of what a sketch keeps the places; large: constants that stand apart"""
_MODULUS = np.uint64(2**53)


def hash_numbers(numbers: Bits) -> Bits:
    """Return the numbers hashed (splitmix64)."""
    bits = numbers + np.uint64(1)
    bits *= np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def find_kinds(values: NDArray[np.floating], cut: float) -> Iterator[NDArray[np.bool_]]:
    """Yield for each of KINDS where it stands in `values`; large: from `cut` on."""
    finite = np.isfinite(values)
    yield np.isnan(values)
    yield values == np.inf
    yield values == -np.inf
    yield finite & (values >= cut)
    yield finite & (values <= -cut)


def hash_places(places: NDArray[np.integer], start: int) -> int:
    """Return the number of a set of places, the first element of which is number `start`."""
    return add_hashes(hash_numbers(places.astype(np.uint64) + np.uint64(start)))


def digest_integers(array: Array) -> float:
    """Return a number for the elements of an array of integers or booleans, and for their order."""
    values = np.ascontiguousarray(array).reshape(-1).astype(np.int64).view(np.uint64)
    places = np.arange(values.size, dtype=np.uint64)
    return float(add_hashes(hash_numbers(values ^ hash_numbers(places))))


def add_hashes(hashes: Bits, before: int = 0) -> int:
    """Return the sum of hashes, below 2**53."""
    low = hashes % _MODULUS
    halves = (
        int((low >> np.uint64(26)).sum(dtype=np.uint64)),
        int((low & np.uint64(2**26 - 1)).sum()),
    )
    return (before + (halves[0] << 26) + halves[1]) % int(_MODULUS)
