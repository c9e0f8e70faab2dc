"""One epoch of training and of evaluation, in Paddle. pt_train_loop.py is its twin."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pipeline.batch_rows import rows_of
from pipeline.pd_checkpoint import Learner, place
from pipeline.pd_model import criterion
from pipeline.pd_optimizer import clip_gradients
from pipeline.training_options import TrainingOptions
from pipeline.training_session import Session
from reprod_align.backends.paddle_random import shared_random
from reprod_align.randomness import SharedRandom

import paddle
from paddle import nn
from tqdm import tqdm

Batch = dict[str, Any]


def train_epoch(learner: Learner, batches: Iterable[Batch], session: Session) -> None:
    """Train on every batch with shared random draws; tell the session the loss of every step."""
    learner.model.train()
    for batch in tqdm(batches, desc=f"paddle epoch {session.epoch}", disable=None):
        numbers = {"lr": learner.learning_rate}
        draws = (session.options.seed, session.epoch, session.step_of_epoch)
        loss = backward(learner, batch, session.options, draws)
        if session.options.clip is not None:
            learner.scaler.unscale_(learner.optimizer)
            numbers["grad_norm"] = clip_gradients(learner.model, session.options.clip)
        learner.scaler.step(learner.optimizer)
        learner.scaler.update()
        learner.schedule.step()
        learner.optimizer.clear_grad()
        session.end_step(loss, **numbers)


def backward(
    learner: Learner, batch: Batch, options: TrainingOptions, draws: tuple[int, int, int]
) -> float:
    """Add up the gradients of a batch's parts, each by its share of the examples; return the loss.

    `draws` is seed, epoch and step: every part draws its rows of what the whole batch would draw.
    """
    batch = {name: tensor.to(place(options.device)) for name, tensor in batch.items()}
    labels = batch.pop("labels")  # (B,)
    examples, total = len(labels), 0.0
    for rows in options.parts(examples):
        inputs = {name: tensor[rows] for name, tensor in batch.items()}
        with shared_random(rows_of(SharedRandom(*draws), rows, examples)), autocast(options):
            loss = criterion(learner.model(**inputs), labels[rows])
        share = (rows.stop - rows.start) / examples
        learner.scaler.scale(loss * share).backward()
        total += loss.item() * share
    return total


def autocast(options: TrainingOptions) -> AbstractContextManager[object]:
    """Compute in --amp's precision where Paddle's lists allow it."""
    if options.amp == "off":
        return nullcontext()
    dtype = {"bf16": "bfloat16", "fp16": "float16"}[options.amp]
    return paddle.amp.auto_cast(dtype=dtype)


def evaluate(
    model: nn.Layer, batches: Iterable[Batch], device: str = "cpu"
) -> tuple[float, list[list[float]]]:
    """Return the share of sentences whose label the model predicts, and their logits."""
    correct, scores = 0, []
    model.eval()
    for batch in batches:
        batch = {name: tensor.to(place(device)) for name, tensor in batch.items()}
        labels = batch.pop("labels")  # (B,)
        with paddle.no_grad():
            logits = model(**batch)  # (B, num_labels)
        correct += int((logits.argmax(-1) == labels).sum())
        scores += logits.tolist()
    return correct / len(scores), scores
