"""AdamW and the schedules of its learning rate, in Paddle."""

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline import settings
from pipeline.pd.fast_layers import contiguous_tensors, faster

import paddle
from paddle import nn
from paddle.optimizer import AdamW
from paddle.optimizer.lr import LRScheduler
from paddlenlp.transformers import (
    ConstScheduleWithWarmup,
    CosineDecayWithWarmup,
    LinearDecayWithWarmup,
    PolyDecayWithWarmup,
)


def build_optimizer(
    model: nn.Layer,
    learning_rate: float,
    steps: int,
    warmup: int = 0,
    scheduler: str = "linear",
    weight_decay: float = settings.WEIGHT_DECAY,
) -> tuple[AdamW, LRScheduler]:
    """Return AdamW over all parameters, NO_DECAY ones without decay, and its schedule over `steps`."""
    schedule = build_schedule(learning_rate, steps, warmup, scheduler)
    optimizer = AdamW(
        learning_rate=schedule,
        parameters=model.parameters(),
        beta1=settings.BETAS[0],
        beta2=settings.BETAS[1],
        epsilon=settings.EPSILON,
        weight_decay=weight_decay,
        apply_decay_param_fun=find_decaying(model).__contains__,
    )
    return optimizer, schedule


def find_decaying(model: nn.Layer) -> set[str]:
    """Return Paddle's own names, such as linear_3.w_0, of the parameters that decay."""
    return {
        parameter.name
        for name, parameter in model.named_parameters()
        if not any(part in name for part in settings.NO_DECAY)
    }


@contextmanager
def faster_training(model: nn.Layer, optimizer: AdamW) -> Iterator[None]:
    """Let training on a CPU take less time in the block; every number stays the same."""
    undo = faster(model)  # equal layers: a step takes two thirds of its time
    try:
        with contiguous_tensors():  # strided views are slow on a CPU
            yield
    finally:
        undo()


def build_schedule(learning_rate: float, steps: int, warmup: int, scheduler: str) -> LRScheduler:
    """Return the schedule of that name, which rises for `warmup` steps first."""
    if scheduler == "constant":
        return ConstScheduleWithWarmup(learning_rate, warmup)
    if scheduler == "cosine":  # half a wave: see Step 4's pd_lr_scheduler.py
        return CosineDecayWithWarmup(
            learning_rate, steps, warmup, with_hard_restarts=True, num_cycles=1.0
        )
    if scheduler == "polynomial":
        return PolyDecayWithWarmup(learning_rate, steps, warmup)
    return LinearDecayWithWarmup(learning_rate, steps, warmup)


@paddle.no_grad()
def clip_gradients(model: nn.Layer, largest: float) -> float:
    """Scale the gradients by `largest / max(norm, largest)`; return their global norm before.

    Added up in float64, and no epsilon beside the norm: as Paddle's own ClipGradByGlobalNorm.
    """
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    squares = paddle.stack([gradient.astype("float64").square().sum() for gradient in gradients])
    norm = squares.sum().sqrt().item()
    if not norm <= largest:  # also for NaN
        for gradient in gradients:
            gradient.multiply_(paddle.to_tensor(largest / norm, dtype=gradient.dtype))
    return norm
