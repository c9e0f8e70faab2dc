"""Training, PyTorch side: from the checkpoint on, with dropout, in shared order and with shared draws.

reads   checkpoint.pth
writes  train_torch.npy             mse and mae on the val part after the last epoch, float32
        strict/train_torch.npy      the same in float64 after every epoch, and the loss of every step
pair    pd_train.py                 the same lines with Paddle's calls
"""

import informer_pt
from informer_run import Run, start
from informer_settings import DTYPES, STRICT_DTYPE
from reprod_align import Recorder

import torch.nn.functional as F
from torch import nn
from tqdm import tqdm


def main(run: Run) -> None:
    """Train once in each precision."""
    for dtype in DTYPES:
        record = Recorder(run.output("train_torch", dtype))
        model = informer_pt.load_model(run, dtype)
        optimizer = informer_pt.build_optimizer(model)
        schedule = informer_pt.build_schedule(optimizer)
        for epoch in range(run.options.epochs):
            losses = train_epoch(model, optimizer, run, epoch)
            found = informer_pt.evaluate(model, run, "val")
            schedule.step()
            if dtype == STRICT_DTYPE:
                record.add_all({f"loss_{epoch}_{step}": loss for step, loss in enumerate(losses)})
                record.add_all({f"{name}_{epoch}": value for name, value in found.items()})
            print(f"torch {dtype}, epoch {epoch + 1}: mse {found['mse'].item():.4f}")
        record.add_all(found)
        record.save()


def train_epoch(model: nn.Module, optimizer: object, run: Run, epoch: int) -> list[float]:
    """Take a step on every batch; return the losses."""
    model.train()
    losses = []
    for step, batch in enumerate(tqdm(informer_pt.data_loader(run, "train", epoch), disable=None)):
        with informer_pt.share_draws(epoch, step):
            loss = F.mse_loss(*informer_pt.forecast(model, batch))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    start(main, __doc__, writes="train_torch")
