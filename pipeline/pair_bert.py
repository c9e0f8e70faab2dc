"""The two BERTs of the steps as a pair: `reprod-align pair pipeline/pair_bert.py` judges them in one go.

It takes what lies in weights/, classifier_weights/ and fake_data/, of whichever profile was exported last;
with PIPELINE_HOME=DIR in the environment, from there (where the steps ran with --home DIR). Model, loss,
optimizer and schedule are those of Step 4, the batch is the padded one of Step 1. The converted weights are
judged too: Paddle's are not replaced by PyTorch's.
"""

import os
from pathlib import Path

from pipeline import settings
from pipeline.run import JUDGE, Run, exported_run
from pipeline.run.command_line import REPOSITORY

home = Path(os.environ.get("PIPELINE_HOME", REPOSITORY))
steps = 2  # the second shows AdamW's betas, which cancel out in the first
copy_weights = False


def _run() -> Run:
    return exported_run(home)


def inputs():
    """Return the fake batch with padding, two segments and positions from 1: (4, 64) each."""
    return _run().padded_batch()


def plain_inputs():
    """Return the fake batch alone, (4, 64): all else is left to the models' defaults."""
    return {"input_ids": _run().fake_data()}


def torch_model():
    """Return the reference, in float64."""
    from pipeline.pt.model import load_bert

    return load_bert(_run(), JUDGE)


def paddle_model():
    """Return its port, in float64."""
    from pipeline.pd.model import load_bert

    return load_bert(_run(), JUDGE)


def torch_loss(logits):
    """Return the loss of logits (4, 2)."""
    from pipeline.pt.model import criterion

    import torch

    return criterion(logits, torch.from_numpy(_run().fake_label()))


def paddle_loss(logits):
    """Return the loss of logits (4, 2)."""
    from pipeline.pd.model import criterion

    import paddle

    return criterion(logits, paddle.to_tensor(_run().fake_label()))


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
