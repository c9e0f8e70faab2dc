"""Training, Paddle side: from the checkpoint on, with dropout, in shared order and with shared draws.

reads   model_state.pdparams
writes  train_paddle.npy            mse and mae on the val part after the last epoch, float32
        strict/train_paddle.npy     the same in float64 after every epoch, and the loss of every step
pair    pt_train.py                 the same lines with PyTorch's calls
"""

import informer_pd
from informer_run import Run, start
from informer_settings import DTYPES, STRICT_DTYPE
from reprod_align import Recorder

import paddle.nn.functional as F
from paddle import nn
from tqdm import tqdm


def main(run: Run) -> None:
    """Train once in each precision."""
    for dtype in DTYPES:
        record = Recorder(run.output("train_paddle", dtype))
        model = informer_pd.load_model(run, dtype)
        optimizer = informer_pd.build_optimizer(model)
        schedule = informer_pd.build_schedule(optimizer)
        for epoch in range(run.options.epochs):
            losses = train_epoch(model, optimizer, run, epoch)
            found = informer_pd.evaluate(model, run, "val")
            schedule.step()
            if dtype == STRICT_DTYPE:
                record.add_all({f"loss_{epoch}_{step}": loss for step, loss in enumerate(losses)})
                record.add_all({f"{name}_{epoch}": value for name, value in found.items()})
            print(f"paddle {dtype}, epoch {epoch + 1}: mse {found['mse'].item():.4f}")
        record.add_all(found)
        record.save()


def train_epoch(model: nn.Layer, optimizer: object, run: Run, epoch: int) -> list[float]:
    """Take a step on every batch; return the losses."""
    model.train()
    losses = []
    for step, batch in enumerate(tqdm(informer_pd.data_loader(run, "train", epoch), disable=None)):
        with informer_pd.share_draws(epoch, step):
            loss = F.mse_loss(*informer_pd.forecast(model, batch))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    start(main, __doc__, writes="train_paddle")
