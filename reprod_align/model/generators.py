"""Python's `random` and numpy's global generator: a forward pass may draw from them as from the framework's.

Both sides start each run from one seed, so that `random.random()` gives both the same numbers; the
user's own states come back when the work is done.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final

import numpy as np

_READ: Final[Mapping[str, Callable[[], Any]]] = {
    "Python's random": random.getstate,
    "numpy's global generator": lambda: _read_numpys(),
}


@contextmanager
def preserve_generators() -> Iterator[None]:
    """Give both generators the states back that they had before the block."""
    numpys, pythons = np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        np.random.set_state(numpys)
        random.setstate(pythons)


def seed_generators(seed: int) -> Callable[[], dict[str, str]]:
    """Seed both; return what tells, later, which of them were drawn from, each with its digest.

    Equal digests: equally many numbers were drawn.
    """
    random.seed(seed)
    np.random.seed(seed % 2**32)
    before = {name: read() for name, read in _READ.items()}

    def digest_changed() -> dict[str, str]:
        states = {name: read() for name, read in _READ.items()}
        return {
            name: sha256(repr(state).encode()).hexdigest()
            for name, state in states.items()
            if state != before[name]
        }

    return digest_changed


def _read_numpys() -> tuple[object, ...]:
    name, keys, *rest = np.random.get_state()
    return name, np.asarray(keys).tobytes(), *rest
