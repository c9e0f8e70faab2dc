"""Native mode of Step 5: each framework's own dropout and shuffling, for runs over several seeds.

Every step seeds the framework's generator anew, by a number made of the run's seed and the place: so a
run can go on at any step without the generator's state.
"""

import re
from pathlib import Path

from pipeline.run import Run, remove_records
from reprod_align.base.files import require_writable

import numpy as np

NATIVE = "native"  # of --randomness


def native_seed(*place: int) -> int:
    """Return the seed below 2**32 of a place: the run's seed, the epoch, and perhaps step and row."""
    return int(np.random.SeedSequence(place).generate_state(1)[0])


def native_record(run: Run, side: str) -> Path:
    """Return where the run of this seed is recorded; the official files are another run's."""
    return run.results / NATIVE / f"train_align_{side}_seed{run.options.seed}.npy"


def native_records(run: Run, side: str) -> dict[int, Path]:
    """Return where a side's runs are recorded, by seed, rising."""
    pattern = re.compile(rf"train_align_{side}_seed(\d+)\.npy")
    paths = (run.results / NATIVE).glob("*.npy")
    named = [(pattern.fullmatch(path.name), path) for path in paths]
    return dict(sorted((int(match[1]), path) for match, path in named if match))


def remove_training_records(run: Run, side: str) -> None:
    """Remove what an earlier run like this one recorded, so that no check judges it after a failure."""
    if run.options.randomness == NATIVE:
        require_writable(native_record(run, side).parent)
        native_record(run, side).unlink(missing_ok=True)
    else:
        remove_records(run, f"train_align_{side}")
