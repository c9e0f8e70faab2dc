"""How a record is written: two pairs of matrices, one equal and one not.

writes  log_reprod/demo/result_1.npy    demo_test_1: zeros;   demo_test_2: random numbers
        log_reprod/demo/result_2.npy    demo_test_1: zeros;   demo_test_2: other random numbers
"""

from pipeline import settings
from pipeline.run import Run, start
from reprod_align import Recorder

import numpy as np


def main(run: Run) -> None:
    """Record a zero matrix, the same in both files, and a random one, different in each."""
    generator = np.random.default_rng(settings.SEED)
    for number in (1, 2):
        path = run.home / "log_reprod" / "demo" / f"result_{number}.npy"
        record = Recorder(path)
        record.add("demo_test_1", np.zeros((64, 1000)))
        record.add("demo_test_2", generator.random((64, 1000)))
        record.save()
        print(f"wrote {path}")


if __name__ == "__main__":
    start(main, __doc__)
