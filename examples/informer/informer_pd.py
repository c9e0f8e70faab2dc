"""What the Paddle scripts share. informer_pt.py is its twin."""

from collections.abc import Iterator
from typing import Any

from informer_run import Batch, Run
from informer_settings import LEARNING_RATE, SEED
from models import pd_informer
from reprod_align.backends.paddle import load_weights, read_weights, set_precision
from reprod_align.backends.paddle.random import shared_random
from reprod_align.randomness import SharedRandom

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn
from paddle.io import DataLoader, Dataset


class Windows(Dataset):
    """A part of the series, as Paddle's DataLoader takes it."""

    def __init__(self, run: Run, split: str) -> None:
        """Take "train", "val" or "test"."""
        self.split = run.splits[split]

    def __len__(self) -> int:
        """Return how many windows there are."""
        return len(self.split)

    def __getitem__(self, index: int) -> Batch:
        """Return x, y and the marks of both."""
        return self.split[index]


def data_loader(run: Run, split: str, epoch: int = 0) -> Iterator[list[Tensor]]:
    """Yield batches of x, y and the marks of both, (B, length, columns) each."""
    loader = DataLoader(Windows(run, split), batch_sampler=run.order(split, epoch))
    for batch in loader:
        yield [tensor.astype(paddle.get_default_dtype()) for tensor in batch]


def build_model(run: Run) -> nn.Layer:
    """Return a new model."""
    return getattr(pd_informer, run.model_name)(**run.arguments)


def load_model(run: Run, dtype: str) -> nn.Layer:
    """Return the trained model in eval mode."""
    set_precision(dtype)
    model = build_model(run)
    load_weights(model, read_weights(run.require(run.paddle_weights, "torch2paddle.py")))
    model.eval()
    return model


def to_tensors(batch: Batch) -> list[Tensor]:
    """Return the arrays in the precision that was set."""
    return [paddle.to_tensor(array).astype(paddle.get_default_dtype()) for array in batch]


def forecast(model: nn.Layer, batch: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return forecast and truth, (B, out_len, 7) each."""
    x, y, x_mark, y_mark = batch
    out_len = model.arguments.out_len
    zeros = paddle.zeros_like(y[:, -out_len:])  # (B, out_len, 7)
    x_dec = paddle.concat([y[:, :-out_len], zeros], axis=1)  # (B, label_len + out_len, 7)
    return model(x, x_mark, x_dec, y_mark), y[:, -out_len:]


def compute_metrics(forecasts: list[Tensor], truths: list[Tensor]) -> dict[str, Tensor]:
    """Return MSE and MAE over all batches."""
    actual, expected = paddle.concat(forecasts), paddle.concat(truths)
    return {"mse": F.mse_loss(actual, expected), "mae": F.l1_loss(actual, expected)}


def evaluate(model: nn.Layer, run: Run, split: str) -> dict[str, Tensor]:
    """Return MSE and MAE on a part of the series."""
    model.eval()
    pairs = []
    for step, batch in enumerate(data_loader(run, split)):
        # The block begins here: PyTorch's DataLoader draws too, and must not take of the shared draws
        with paddle.no_grad(), share_draws(0, step):
            pairs.append(forecast(model, batch))
    return compute_metrics(*map(list, zip(*pairs, strict=True)))


def build_optimizer(model: nn.Layer) -> paddle.optimizer.Adam:
    """Return Adam; in Paddle, the schedule comes first and the optimizer takes it."""
    schedule = paddle.optimizer.lr.ExponentialDecay(LEARNING_RATE, gamma=0.5)
    return paddle.optimizer.Adam(schedule, parameters=model.parameters())


def build_schedule(optimizer: paddle.optimizer.Adam) -> Any:
    """Return the schedule that halves the rate each time it is stepped."""
    return optimizer._learning_rate


def share_draws(epoch: int, step: int) -> Any:
    """Let both frameworks take the same random numbers in the block."""
    return shared_random(SharedRandom(SEED, epoch, step))
