"""One epoch of training and of evaluation, in Paddle. pt_train_loop.py is its twin."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pipeline import settings
from pipeline.pd.learner import Learner, place
from pipeline.pd.loader import ShardLoader
from pipeline.pd.model import criterion
from pipeline.pd.optimizer import clip_gradients
from pipeline.pd.sentences import Sentences
from pipeline.run import Run
from pipeline.training.measures import Measured
from pipeline.training.native import NATIVE, native_seed
from pipeline.training.options import TrainingOptions
from pipeline.training.ranks import ALONE, Ranks
from pipeline.training.session import Session
from pipeline.training.shards import Shard, in_order
from reprod_align.backends.paddle.random import shared_random
from reprod_align.randomness import Draws, SharedRandom

import paddle
from paddle import nn
from tqdm import tqdm

Batch = dict[str, Any]


def train_epoch(learner: Learner, batches: Sequence[tuple[Shard, Batch]], session: Session) -> None:
    """Train on every batch with shared random draws; tell the session the loss of every step."""
    learner.model.train()
    quiet = True if session.ranks.rank else None  # None: unless the screen is a terminal
    for shard, batch in tqdm(batches, desc=f"paddle epoch {session.epoch}", disable=quiet):
        numbers = {"lr": learner.learning_rate}
        draws = (session.options.seed, session.epoch, session.step_of_epoch)
        loss = backward(learner, batch, session.options, draws, shard)
        (loss,) = session.ranks.total([loss])
        if session.options.clip is not None:
            learner.scaler.unscale_(learner.optimizer)
            numbers["grad_norm"] = clip_gradients(learner.model, session.options.clip)
        learner.scaler.step(learner.optimizer)
        learner.scaler.update()
        learner.schedule.step()
        learner.optimizer.clear_grad()
        session.end_step(loss, **numbers)


def backward(
    learner: Learner,
    batch: Batch,
    options: TrainingOptions,
    draws: tuple[int, int, int],
    shard: Shard | None = None,
) -> float:
    """Add up the gradients of a batch's parts, each by its share of the examples; return the loss.

    `draws` is seed, epoch and step: every part draws its rows of what the whole batch would draw.
    `batch` is the rows of `shard`, and the loss is their share in the whole batch's (default: it is whole).
    """
    batch = {name: tensor.to(place(options.device)) for name, tensor in batch.items()}
    labels = batch.pop("labels")  # (B,)
    shard = shard or Shard(slice(0, len(labels)), len(labels))
    if options.randomness == NATIVE:
        paddle.seed(native_seed(*draws, shard.rows.start))
    total = 0.0
    for rows in options.parts(len(labels)):
        inputs = {name: tensor[rows] for name, tensor in batch.items()}
        share = shard.share(rows)
        with learner.gradients_stay_here(unless=rows.stop == len(labels)):
            drawn = shard.draws(SharedRandom(*draws), rows)
            with random_draws(options, drawn), autocast(options):
                loss = criterion(learner.forward(**inputs), labels[rows])
            learner.scaler.scale(loss * (share * learner.world)).backward()
        total += loss.item() * share
    return total


def random_draws(options: TrainingOptions, draws: Draws) -> AbstractContextManager[object]:
    """Draw dropout masks from `draws`, or in native mode from Paddle's own generator."""
    return nullcontext() if options.randomness == NATIVE else shared_random(draws)


def autocast(options: TrainingOptions) -> AbstractContextManager[object]:
    """Compute in --amp's precision where Paddle's lists allow it."""
    if options.amp == "off":
        return nullcontext()
    dtype = {"bf16": "bfloat16", "fp16": "float16"}[options.amp]
    return paddle.amp.auto_cast(dtype=dtype)


def evaluate(
    model: nn.Layer,
    batches: Iterable[tuple[Shard, Batch]],
    device: str = "cpu",
    ranks: Ranks = ALONE,
) -> tuple[list[list[float]], list[float]]:
    """Return the logits of all sentences and their labels, in the order of the data."""
    found = []  # of every batch, this process's rows
    model.eval()
    for shard, batch in batches:
        batch = {name: tensor.to(place(device)) for name, tensor in batch.items()}
        labels = batch.pop("labels")  # (B,)
        with paddle.no_grad():
            logits = model(**batch)  # (B, num_labels)
        rows = zip(logits.tolist(), labels.tolist(), strict=True)
        found.append(list(rows) if shard.counts else [])
    scores, labels = zip(*in_order(ranks.gathered(found)), strict=True)
    return list(scores), list(labels)


def measure(run: Run, learner: Learner, data: Sentences, session: Session) -> Measured:
    """Return metrics and logits of every dev set."""
    measured, ranks = Measured(), session.ranks
    for name, examples in data.dev.items():
        size = settings.EVAL_BATCH_SIZE * ranks.world
        batches = session.watched(ShardLoader(examples, data.tokenizer, size, ranks=ranks))
        found = evaluate(learner.model, batches, session.options.device, ranks)
        measured.add(run.task, name, *found)
    return measured
