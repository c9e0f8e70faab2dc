"""One epoch of training and of evaluation, in Paddle. pt_train_loop.py is its twin."""

from collections.abc import Iterable
from typing import Any

from pipeline import settings
from pipeline.pd_model import criterion
from reprod_align.backends.paddle_random import shared_random
from reprod_align.randomness import SharedRandom

import paddle
from paddle import nn
from paddle.optimizer import Optimizer
from paddle.optimizer.lr import LRScheduler
from tqdm import tqdm


def train_epoch(
    model: nn.Layer,
    batches: Iterable[dict[str, Any]],
    optimizer: Optimizer,
    schedule: LRScheduler,
    epoch: int,
) -> list[float]:
    """Train on every batch with shared random draws; return the loss of every step."""
    losses: list[float] = []
    model.train()
    for batch in tqdm(batches, desc=f"paddle epoch {epoch}", disable=None):
        labels = batch.pop("labels")  # (B,)
        with shared_random(SharedRandom(settings.SEED, epoch, len(losses))):
            loss = criterion(model(**batch), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return losses


def evaluate(model: nn.Layer, batches: Iterable[dict[str, Any]]) -> tuple[float, list[list[float]]]:
    """Return the share of sentences whose label the model predicts, and their logits."""
    correct, scores = 0, []
    model.eval()
    for batch in batches:
        labels = batch.pop("labels")  # (B,)
        with paddle.no_grad():
            logits = model(**batch)  # (B, num_labels)
        correct += int((logits.argmax(-1) == labels).sum())
        scores += logits.tolist()
    return correct / len(scores), scores
