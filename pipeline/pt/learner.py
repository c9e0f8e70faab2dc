"""What an optimizer step changes, saved and restored, in torch. pd_checkpoint.py is its twin."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from pipeline.pt.optimizer import build_optimizer
from pipeline.training.options import TrainingOptions
from pipeline.training.ranks import Ranks
from pipeline.training.state import Array, Arrays, Facts, model_weights, part
from reprod_align.backends.torch import load_weights
from reprod_align.errors import ReprodError

import torch
from torch import nn
from torch.amp import GradScaler
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

KINDS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of a parameter


@dataclass
class Learner:
    """A model with its optimizer, its schedule and, for --amp fp16, the scale of its loss."""

    model: nn.Module
    optimizer: AdamW
    schedule: LambdaLR
    scaler: GradScaler
    world: int = 1

    def __post_init__(self) -> None:
        """Train in this process alone, until `join`."""
        self.forward = self.model

    def join(self, ranks: Ranks) -> None:
        """From here on, a backward pass leaves the mean of all processes' gradients."""
        self.world, self.forward = ranks.world, ranks.wrapped(self.model)

    def gradients_stay_here(self, unless: bool) -> AbstractContextManager[object]:
        """Add gradients up in this process; they are exchanged by the backward pass that ends a step."""
        return nullcontext() if unless or self.world == 1 else self.forward.no_sync()

    def state(self) -> tuple[Arrays, Facts]:
        """Return the arrays of model and optimizer, and the rest as JSON."""
        arrays = {name: _array(tensor) for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for kind, tensor in self.optimizer.state[parameter].items():
                arrays[f"optimizer/{name}/{kind}"] = _array(tensor)
        schedule = {"last_epoch": self.schedule.last_epoch, "last_lr": self.learning_rate}
        return arrays, {"schedule": schedule, "scaler": self.scaler.state_dict()}

    def restore(self, arrays: Arrays, facts: Facts) -> None:
        """Take back what `state` returned; WeightsError unless it fits the model."""
        load_weights(self.model, model_weights(arrays))
        kept = part(arrays, "optimizer")
        for name, parameter in self.model.named_parameters():
            self.optimizer.state[parameter] = {
                kind: _tensor(kept[f"{name}/{kind}"], parameter, kind)
                for kind in KINDS
                if f"{name}/{kind}" in kept  # it lacks a parameter that never had a gradient
            }
        self.schedule.last_epoch = facts["schedule"]["last_epoch"]
        for group in self.optimizer.param_groups:
            group["lr"] = facts["schedule"]["last_lr"]
        self.schedule._last_lr = [group["lr"] for group in self.optimizer.param_groups]
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(facts["scaler"])

    @property
    def learning_rate(self) -> float:
        """What the next step learns at."""
        return float(self.schedule.get_last_lr()[0])


def build_learner(model: nn.Module, options: TrainingOptions, steps: int) -> Learner:
    """Return the model, moved to --device, with the optimizer and schedule that `options` choose."""
    model = model.to(place(options.device))
    optimizer, schedule = build_optimizer(
        model,
        options.lr,
        steps,
        options.warmup_steps(steps),
        options.scheduler,
        options.weight_decay,
    )
    scaler = GradScaler(place(options.device), enabled=options.amp == "fp16")
    return Learner(model, optimizer, schedule, scaler)


def place(device: str) -> str:
    """Return PyTorch's name of "cpu" or "gpu"; ReprodError if there is no GPU."""
    if device == "gpu" and not torch.cuda.is_available():
        raise ReprodError("--device gpu: PyTorch finds no GPU here")
    return {"cpu": "cpu", "gpu": "cuda"}[device]


def _array(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().numpy()


def _tensor(array: Array, parameter: torch.Tensor, kind: str) -> torch.Tensor:
    device = "cpu" if kind == "step" else parameter.device  # where AdamW keeps its count of steps
    return torch.tensor(array, device=device)
