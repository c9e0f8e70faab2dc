"""The two BERTs of the steps as a pair: `reprod-align pair pipeline/pair_bert.py` judges them in one go.

It uses the most recently exported weights, in weights/, classifier_weights/ and fake_data/ of this
repository, or of DIR with PIPELINE_HOME=DIR in the environment (the --home of the steps). Model, loss,
optimizer and schedule are those of Step 4, the batch is the padded one of Step 1. Paddle's model keeps the
converted weights, so that the conversion is judged too.
"""

import os
from pathlib import Path

from pipeline import settings
from pipeline.bert.exported import find_exported_run
from pipeline.bert.fake_batch import FakeBatch, load_fake_batch
from pipeline.run import REPOSITORY, Run
from pipeline.settings import STRICT_DTYPE

home = Path(os.environ.get("PIPELINE_HOME", REPOSITORY))
steps = 2  # the second shows AdamW's betas, which cancel out in the first
copy_weights = False


def _run() -> Run:
    return find_exported_run(home)


def _fake_batch() -> FakeBatch:
    return load_fake_batch(_run())


def inputs():
    """Return the fake batch with padding, two segments and positions from 1: (4, 64) each."""
    return _fake_batch().padded


def plain_inputs():
    """Return the fake batch alone, (4, 64): the models' defaults fill in the rest."""
    return {"input_ids": _fake_batch().input_ids}


def torch_model():
    """Return the reference, in float64."""
    from pipeline.pt.model import load_bert

    return load_bert(_run(), STRICT_DTYPE)


def paddle_model():
    """Return its port, in float64."""
    from pipeline.pd.model import load_bert

    return load_bert(_run(), STRICT_DTYPE)


def torch_loss(logits):
    """Return the loss of logits (4, 2)."""
    from pipeline.pt.model import criterion

    import torch

    return criterion(logits, torch.from_numpy(_fake_batch().labels))


def paddle_loss(logits):
    """Return the loss of logits (4, 2)."""
    from pipeline.pd.model import criterion

    import paddle

    return criterion(logits, paddle.to_tensor(_fake_batch().labels))


def torch_optimizer(model):
    """Return AdamW; its schedule is kept with it."""
    from pipeline.pt.optimizer import build_optimizer

    rate, iterations = settings.LEARNING_RATE, settings.BP_ITERATIONS
    optimizer, optimizer.schedule = build_optimizer(model, rate, iterations)
    return optimizer


def paddle_optimizer(model):
    """Return AdamW; its schedule is kept with it."""
    from pipeline.pd.optimizer import build_optimizer

    rate, iterations = settings.LEARNING_RATE, settings.BP_ITERATIONS
    optimizer, optimizer.schedule = build_optimizer(model, rate, iterations)
    return optimizer


def torch_scheduler(optimizer):
    """Return the schedule that was made with the optimizer."""
    return optimizer.schedule


def paddle_scheduler(optimizer):
    """Return the schedule that was made with the optimizer."""
    return optimizer.schedule
