"""Python's `random` and numpy's global generator: a forward pass may draw from them as from the framework's.

Both sides start each run from one seed, so that `random.random()` gives both the same numbers; the
user's own states come back when the work is done.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

import numpy as np

PYTHON: Final = "Python's random"
NUMPY: Final = "numpy's global generator"


@contextmanager
def preserve_generators() -> Iterator[None]:
    """Give both generators the states back that they had before the block."""
    numpys, pythons = np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        np.random.set_state(numpys)
        random.setstate(pythons)


def seed_generators(seed: int) -> Callable[[], dict[str, float]]:
    """Seed both; return what tells, once and later, which of them were drawn from since.

    Each comes with its next number: where that is equal, equally much was drawn.
    """
    random.seed(seed)
    np.random.seed(seed)

    def read_drawn() -> dict[str, float]:
        following = {PYTHON: random.random(), NUMPY: np.random.random()}
        first = _find_first(seed)
        return {name: number for name, number in following.items() if number != first[name]}

    return read_drawn


@lru_cache(maxsize=64)
def _find_first(seed: int) -> dict[str, float]:
    """Return the first number that each generator gives under a seed."""
    return {PYTHON: random.Random(seed).random(), NUMPY: np.random.RandomState(seed).random()}
