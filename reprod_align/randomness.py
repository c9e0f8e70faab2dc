"""One random stream for both frameworks: dropout masks and the order of batches.

Each framework has a generator of its own, and no seed makes the two agree. Here both sides draw
from numpy's Philox, a counter-based generator: a draw depends only on (seed, purpose, epoch, step, call),
never on what was drawn before, so that a run can be resumed at any step.
(Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.)
"""

import numpy as np
from numpy.typing import NDArray

_DROPOUT, _ORDER = 1, 2  # the purposes; part of the key, so that two purposes never share numbers


class SharedRandom:
    """The random numbers of one training step, the same in both frameworks.

    Within a step the calls are numbered as they come: the two models must ask in the same order,
    which faithful ports do.
    """

    def __init__(self, seed: int, epoch: int, step: int) -> None:
        """Start the stream of the `step`-th step of `epoch` under `seed` (all at least 0)."""
        self._where, self._call = (seed, _DROPOUT, epoch, step), 0

    def dropout_mask(self, shape: tuple[int, ...], p: float) -> NDArray[np.float64]:
        """Return the next mask: 0 with probability `p`, else 1 / (1 - p); float64 of `shape`."""
        draws = _generator(*self._where, self._call).random(shape)
        self._call += 1
        return (draws >= p) / (1.0 - p) if p < 1.0 else np.zeros(shape)


def epoch_order(length: int, seed: int, epoch: int) -> list[int]:
    """Return the order in which `length` examples are visited in `epoch`, the same in both frameworks."""
    order: list[int] = _generator(seed, _ORDER, epoch).permutation(length).tolist()
    return order


def _generator(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))
