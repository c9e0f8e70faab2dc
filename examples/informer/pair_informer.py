"""Both sides as a pair, for `reprod-align pair examples/informer/pair_informer.py`.

INFORMER="--attn full --stack" in the environment chooses another one, in the scripts' own words.
"""

import os
import shlex
from functools import partial
from pathlib import Path

from informer_run import Run, make_run
from informer_settings import LENGTHS, SEED
from reprod_align import align
from reprod_align.base.files import write_json

import numpy as np

RUN = make_run(shlex.split(os.environ.get("INFORMER", "")))
steps = 10


def torch_model(run: Run = RUN):
    """Return a new PyTorch model."""
    import informer_pt

    import torch

    torch.manual_seed(SEED)
    model = informer_pt.build_model(run)
    with torch.no_grad():  # a batch in train mode: running statistics of 0 and 1 would show little
        model(*(torch.from_numpy(array.astype("float32")) for array in inputs(run)))
    return model


def paddle_model(run: Run = RUN):
    """Return a new Paddle model."""
    import informer_pd

    return informer_pd.build_model(run)


def inputs(run: Run = RUN):
    """Return x_enc, x_mark_enc, x_dec, x_mark_dec of the first windows of the test part."""
    x, y, x_mark, y_mark = run.first_batch()
    unknown = np.arange(y.shape[1]) >= LENGTHS[1]
    return x, x_mark, np.where(unknown[:, None], 0.0, y), y_mark


def torch_loss(output, run: Run = RUN):
    """Return the mean squared error of the forecast (B, out_len, 7)."""
    import torch

    truth = torch.from_numpy(run.first_batch()[1][:, -LENGTHS[2] :])
    return torch.nn.functional.mse_loss(output, truth.to(output.dtype))


def paddle_loss(output, run: Run = RUN):
    """Return the mean squared error of the forecast (B, out_len, 7)."""
    import paddle

    truth = paddle.to_tensor(run.first_batch()[1][:, -LENGTHS[2] :])
    return paddle.nn.functional.mse_loss(output, truth.astype(output.dtype))


def torch_optimizer(model):
    """Return Adam."""
    import informer_pt

    return informer_pt.build_optimizer(model)


def paddle_optimizer(model):
    """Return Adam."""
    import informer_pd

    return informer_pd.build_optimizer(model)


def torch_scheduler(optimizer):
    """Return the schedule."""
    import informer_pt

    return informer_pt.build_schedule(optimizer)


def paddle_scheduler(optimizer):
    """Return the schedule, which the optimizer has."""
    import informer_pd

    return informer_pd.build_schedule(optimizer)


def explain(run: Run, kept: Path) -> list[str]:
    """Return what `align` finds in the pair that a script was run with, in lines.

    kept: the file that keeps the whole report, for a page.
    """
    found = align(
        torch_model(run),
        paddle_model(run),
        inputs(run),
        torch_loss=partial(torch_loss, run=run),
        paddle_loss=partial(paddle_loss, run=run),
        torch_optimizer=torch_optimizer,
        paddle_optimizer=paddle_optimizer,
        torch_scheduler=torch_scheduler,
        paddle_scheduler=paddle_scheduler,
    )
    remarks = [f"remark: {remark}" for remark in found.remarks]
    if found.passed:
        faithful = (
            "align finds the models, the loss and the optimizer faithful: look at the scripts"
        )
        return [faithful, *remarks]
    write_json(kept, found)
    return [*(f"align: {finding}" for finding in found.findings), *remarks]
