"""What an optimizer step changes: saved, restored, and how it draws random numbers."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from pipeline.pt.model import use_device
from pipeline.pt.optimizer import build_optimizer, fuse_updates
from pipeline.training.options import NATIVE, TrainingOptions
from pipeline.training.processes import ALONE, Processes
from pipeline.training.shards import Part
from pipeline.training.state import Array, Arrays, Facts, model_weights, select
from reprod_align.backends.torch import load_weights
from reprod_align.backends.torch.random import shared_random

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
    options: TrainingOptions
    wrapped: nn.Module  # the model; of several processes, with the exchange of gradients around it

    @contextmanager
    def forward_pass(self, part: Part) -> Iterator[nn.Module]:
        """Yield the model to call on `part`: it draws the part's random numbers, in --amp's precision.

        Several processes exchange their gradients in the backward pass of the last part alone.
        """
        alone = part.is_last or self.wrapped is self.model
        keep = nullcontext() if alone else self.wrapped.no_sync()
        with keep, self._draw(part), self._cast():
            yield self.wrapped

    def state(self) -> tuple[Arrays, Facts]:
        """Return the arrays of model and optimizer, and the rest as JSON."""
        arrays = {name: _to_array(tensor) for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for kind, tensor in self.optimizer.state[parameter].items():
                arrays[f"optimizer/{name}/{kind}"] = _to_array(tensor)
        rate = float(self.schedule.get_last_lr()[0])
        schedule = {"last_epoch": self.schedule.last_epoch, "last_lr": rate}
        return arrays, {"schedule": schedule, "scaler": self.scaler.state_dict()}

    def restore(self, arrays: Arrays, facts: Facts) -> None:
        """Take back what `state` returned; WeightsError unless it fits the model."""
        load_weights(self.model, model_weights(arrays))
        kept = select(arrays, "optimizer")
        for name, parameter in self.model.named_parameters():
            self.optimizer.state[parameter] = {
                kind: _to_tensor(kept[f"{name}/{kind}"], parameter, kind)
                for kind in KINDS
                if f"{name}/{kind}" in kept  # it lacks a parameter that never had a gradient
            }
        self.schedule.last_epoch = facts["schedule"]["last_epoch"]
        for group in self.optimizer.param_groups:
            group["lr"] = facts["schedule"]["last_lr"]
        self.schedule._last_lr = [group["lr"] for group in self.optimizer.param_groups]
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(facts["scaler"])

    def _draw(self, part: Part) -> AbstractContextManager[object]:
        """Draw from the shared stream, or in native mode from PyTorch's own generator."""
        if self.options.randomness != NATIVE:
            return shared_random(part.draws)
        if part.seed is not None:
            torch.manual_seed(part.seed)
        return nullcontext()

    def _cast(self) -> AbstractContextManager[object]:
        """Compute in --amp's precision where PyTorch's lists allow it."""
        if self.options.amp == "off":
            return nullcontext()
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[self.options.amp]
        return torch.autocast(use_device(self.options.device), dtype=dtype)


def build_learner(
    model: nn.Module, options: TrainingOptions, steps: int, processes: Processes = ALONE
) -> Learner:
    """Return the model on --device, with the optimizer and schedule that `options` choose for `steps`."""
    device = use_device(options.device)
    model = model.to(device)
    optimizer, schedule = build_optimizer(model, **options.optimizer_options(steps))
    if device == "cpu" and options.randomness != NATIVE:
        fuse_updates(optimizer)
    scaler = GradScaler(device, enabled=options.amp == "fp16")
    return Learner(model, optimizer, schedule, scaler, options, processes.wrap(model))


def _to_array(tensor: torch.Tensor) -> Array:
    return tensor.detach().cpu().numpy()


def _to_tensor(array: Array, parameter: torch.Tensor, kind: str) -> torch.Tensor:
    device = "cpu" if kind == "step" else parameter.device  # where AdamW keeps its count of steps
    return torch.tensor(array, device=device)
