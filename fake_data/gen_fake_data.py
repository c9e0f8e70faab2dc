"""Generate the fake batch that both sides run on: token ids and labels.

writes  fake_data/fake_data.npy     (4, 64) int64 token ids in [1, vocab_size): no padding
        fake_data/fake_label.npy    (4,) int64 labels
"""

from pipeline import settings
from pipeline.profiles import read_source_config
from pipeline.run import Run, start
from reprod_align.base.files import whole_file
from reprod_align.base.text import shorten_path

import numpy as np


def main(run: Run) -> None:
    """Draw the batch from a fixed seed and save both arrays."""
    vocab_size = read_source_config(run.profile, run.options.weights).vocab_size
    generator = np.random.default_rng(settings.SEED)
    fake_data = generator.integers(1, vocab_size, size=settings.FAKE_SHAPE, dtype=np.int64)
    fake_label = np.array(settings.FAKE_LABELS, dtype=np.int64)
    for name, array in (("fake_data", fake_data), ("fake_label", fake_label)):
        path = run.home / "fake_data" / f"{name}.npy"
        with whole_file(path) as handle:
            np.save(handle, array)
        print(f"wrote {shorten_path(path)}: {array.shape} {array.dtype}")


if __name__ == "__main__":
    start(main, __doc__)
