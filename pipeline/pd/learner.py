"""What an optimizer step changes: saved, restored, and how it draws random numbers."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from pipeline.pd.fast_layers import faster
from pipeline.pd.model import use_device
from pipeline.pd.optimizer import build_optimizer
from pipeline.training.options import NATIVE, TrainingOptions
from pipeline.training.processes import ALONE, Processes
from pipeline.training.shards import Part
from pipeline.training.state import Array, Arrays, Facts, model_weights, select
from reprod_align.backends.paddle import load_weights
from reprod_align.backends.paddle.random import shared_random

import paddle
from paddle import nn
from paddle.amp import GradScaler
from paddle.optimizer import AdamW
from paddle.optimizer.lr import LRScheduler

KINDS = ("moment1_0", "moment2_0", "beta1_pow_acc_0", "beta2_pow_acc_0")  # what AdamW keeps


@dataclass
class Learner:
    """A model with its optimizer, its schedule and, for --amp fp16, the scale of its loss."""

    model: nn.Layer
    optimizer: AdamW
    schedule: LRScheduler
    scaler: GradScaler
    options: TrainingOptions
    wrapped: nn.Layer  # the model; of several processes, with the exchange of gradients around it

    @contextmanager
    def forward_pass(self, part: Part) -> Iterator[nn.Layer]:
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
        kept = self.optimizer.state_dict()
        for name, parameter in self.model.named_parameters():
            for kind in KINDS:  # Paddle's own names change with every model of a process
                if f"{parameter.name}_{kind}" in kept:  # not of one that never had a gradient
                    arrays[f"optimizer/{name}/{kind}"] = _to_array(kept[f"{parameter.name}_{kind}"])
        rate = float(self.optimizer.get_lr())
        schedule = {"last_epoch": self.schedule.last_epoch, "last_lr": rate}
        return arrays, {"schedule": schedule, "scaler": _to_plain(self.scaler.state_dict())}

    def restore(self, arrays: Arrays, facts: Facts) -> None:
        """Take back what `state` returned; WeightsError unless it fits the model."""
        load_weights(self.model, model_weights(arrays))
        state = {"LR_Scheduler": facts["schedule"]}
        kept = select(arrays, "optimizer")
        for name, parameter in self.model.named_parameters():
            for kind in KINDS:
                if f"{name}/{kind}" in kept:  # it lacks a parameter that never had a gradient
                    state[f"{parameter.name}_{kind}"] = paddle.to_tensor(kept[f"{name}/{kind}"])
        self.optimizer.set_state_dict(state)
        if self.scaler.is_enable():
            scale = paddle.to_tensor([facts["scaler"]["scale"]], dtype="float32").numpy()
            self.scaler.load_state_dict({**facts["scaler"], "scale": scale})

    def _draw(self, part: Part) -> AbstractContextManager[object]:
        """Draw from the shared stream, or in native mode from Paddle's own generator."""
        if self.options.randomness != NATIVE:
            return shared_random(part.draws)
        if part.seed is not None:
            paddle.seed(part.seed)
        return nullcontext()

    def _cast(self) -> AbstractContextManager[object]:
        """Compute in --amp's precision where Paddle's lists allow it."""
        if self.options.amp == "off":
            return nullcontext()
        dtype = {"bf16": "bfloat16", "fp16": "float16"}[self.options.amp]
        return paddle.amp.auto_cast(dtype=dtype)


def build_learner(
    model: nn.Layer, options: TrainingOptions, steps: int, processes: Processes = ALONE
) -> Learner:
    """Return the model on --device, with the optimizer and schedule that `options` choose for `steps`."""
    device = use_device(options.device)
    model = model.to(device)
    if device == "cpu" and options.randomness != NATIVE:
        faster(model)  # equal layers, by which a step takes two thirds of its time
    optimizer, schedule = build_optimizer(model, **options.optimizer_options(steps))
    scaler = GradScaler(enable=options.amp == "fp16")
    return Learner(model, optimizer, schedule, scaler, options, processes.wrap(model))


def _to_array(tensor: paddle.Tensor) -> Array:
    return tensor.detach().numpy()


def _to_plain(state: Facts) -> Facts:
    """Return a GradScaler's state without the array of one number that Paddle keeps its scale in."""
    return {
        name: getattr(value, "tolist", lambda v=value: [v])()[0] for name, value in state.items()
    }
