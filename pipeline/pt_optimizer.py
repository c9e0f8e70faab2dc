"""AdamW with a linearly falling learning rate, in torch. pd_optimizer.py is its twin."""

from pipeline import settings

from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_linear_schedule_with_warmup


def build_optimizer(
    model: nn.Module, learning_rate: float, steps: int, warmup: int = 0
) -> tuple[AdamW, LambdaLR]:
    """Return AdamW over all parameters, NO_DECAY ones without decay, and its schedule over `steps`."""
    named = dict(model.named_parameters())
    decay = [name for name in named if not any(part in name for part in settings.NO_DECAY)]
    groups = [
        {"params": [named[name] for name in decay], "weight_decay": settings.WEIGHT_DECAY},
        {"params": [named[name] for name in named if name not in decay], "weight_decay": 0.0},
    ]
    optimizer = AdamW(groups, lr=learning_rate, betas=settings.BETAS, eps=settings.EPSILON)
    schedule = get_linear_schedule_with_warmup(optimizer, warmup, steps)
    return optimizer, schedule
