"""Data, PyTorch side: what the DataLoader yields of every part of the series.

reads   ETTh1.csv of --data-dir, or the generated series
writes  strict/data_torch.npy       the batches, float64: series, time features; lengths
pair    pd_data.py                  the same lines with Paddle's calls
"""

import informer_pt
from informer_run import Run, start
from informer_settings import STRICT_DTYPE
from reprod_align import Recorder
from reprod_align.backends.torch import set_precision

PARTS = ("x", "y", "x_mark", "y_mark")


def main(run: Run) -> None:
    """Record all batches of both epochs of training, of val and of test."""
    set_precision(STRICT_DTYPE)
    record = Recorder(run.output("data_torch"))
    for split, epochs in (("train", run.options.epochs), ("val", 1), ("test", 1)):
        record.add(f"{split}_windows", len(informer_pt.Windows(run, split)))
        for epoch in range(epochs):
            for index, batch in enumerate(informer_pt.data_loader(run, split, epoch)):
                for part, tensor in zip(PARTS, batch, strict=True):
                    record.add(f"{split}_{epoch}_{index}_{part}", tensor)
    record.save()


if __name__ == "__main__":
    start(main, __doc__, writes="data_torch")
