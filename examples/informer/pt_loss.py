"""Loss, PyTorch side: of one batch, in train mode, with dropout.

reads   checkpoint.pth
writes  loss_torch.npy              the mean squared error, and with each reduction; float32, and its
                                    float64 twin in strict/
pair    pd_loss.py                  the same lines with Paddle's calls
"""

import informer_pt
from informer_run import Run, start
from informer_settings import DTYPES, STRICT_DTYPE
from reprod_align import Recorder

import torch
import torch.nn.functional as F


def main(run: Run) -> None:
    """Record the losses, once in each precision."""
    for dtype in DTYPES:
        record = Recorder(run.output("loss_torch", dtype))
        model = informer_pt.load_model(run, dtype)
        model.train()
        with torch.no_grad(), informer_pt.share_draws(0, 0):
            pair = informer_pt.forecast(model, informer_pt.to_tensors(run.first_batch()))
        record.add("loss", F.mse_loss(*pair))
        record.add("absolute", F.l1_loss(*pair))
        record.add("of_each_value", F.mse_loss(*pair, reduction="none"))
        if dtype == STRICT_DTYPE:  # a sum of thousands is never within the official 1e-6 in float32
            record.add("summed", F.mse_loss(*pair, reduction="sum"))
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes="loss_torch")
