"""AdamW with a linearly falling learning rate, in Paddle. pt_optimizer.py is its twin."""

from pipeline import pd_only, settings  # noqa: F401

from paddle import nn
from paddle.optimizer import AdamW
from paddle.optimizer.lr import LRScheduler
from paddlenlp.transformers import LinearDecayWithWarmup


def build_optimizer(
    model: nn.Layer, learning_rate: float, steps: int, warmup: int = 0
) -> tuple[AdamW, LRScheduler]:
    """Return AdamW over all parameters, NO_DECAY ones without decay, and its schedule over `steps`."""
    named = dict(model.named_parameters())
    decay = [name for name in named if not any(part in name for part in settings.NO_DECAY)]
    decaying = {
        named[name].name for name in decay
    }  # Paddle asks by its own name, e.g. linear_3.w_0
    schedule = LinearDecayWithWarmup(learning_rate, steps, warmup)
    optimizer = AdamW(
        learning_rate=schedule,
        parameters=list(named.values()),
        beta1=settings.BETAS[0],
        beta2=settings.BETAS[1],
        epsilon=settings.EPSILON,
        weight_decay=settings.WEIGHT_DECAY,
        apply_decay_param_fun=decaying.__contains__,
    )
    return optimizer, schedule
