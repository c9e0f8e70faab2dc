"""What an optimizer step changes, saved and restored, in Paddle. pt_checkpoint.py is its twin."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from pipeline.pd.optimizer import build_optimizer
from pipeline.training.options import TrainingOptions
from pipeline.training.ranks import Ranks
from pipeline.training.state import Array, Arrays, Facts, model_weights, part
from reprod_align.backends.paddle import load_weights
from reprod_align.errors import ReprodError

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
        kept = self.optimizer.state_dict()
        for name, parameter in self.model.named_parameters():
            for kind in KINDS:  # Paddle's own names change with every model of a process
                if f"{parameter.name}_{kind}" in kept:  # not of one that never had a gradient
                    arrays[f"optimizer/{name}/{kind}"] = _array(kept[f"{parameter.name}_{kind}"])
        schedule = {"last_epoch": self.schedule.last_epoch, "last_lr": self.learning_rate}
        return arrays, {"schedule": schedule, "scaler": _plain(self.scaler.state_dict())}

    def restore(self, arrays: Arrays, facts: Facts) -> None:
        """Take back what `state` returned; WeightsError unless it fits the model."""
        load_weights(self.model, model_weights(arrays))
        kept = part(arrays, "optimizer")
        state = {"LR_Scheduler": facts["schedule"]}
        for name, parameter in self.model.named_parameters():
            for kind in KINDS:
                if f"{name}/{kind}" in kept:
                    state[f"{parameter.name}_{kind}"] = paddle.to_tensor(kept[f"{name}/{kind}"])
        self.optimizer.set_state_dict(state)
        if self.scaler.is_enable():
            scale = paddle.to_tensor([facts["scaler"]["scale"]], dtype="float32").numpy()
            self.scaler.load_state_dict({**facts["scaler"], "scale": scale})

    @property
    def learning_rate(self) -> float:
        """What the next step learns at."""
        return float(self.optimizer.get_lr())


def build_learner(model: nn.Layer, options: TrainingOptions, steps: int) -> Learner:
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
    scaler = GradScaler(enable=options.amp == "fp16")
    return Learner(model, optimizer, schedule, scaler)


def place(device: str) -> str:
    """Make Paddle work on "cpu" or "gpu", and return its name; ReprodError if there is no GPU."""
    if device == "gpu" and not (
        paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count()
    ):
        raise ReprodError("--device gpu: Paddle finds no GPU here")
    paddle.set_device(device)
    return device


def _array(tensor: paddle.Tensor) -> Array:
    return tensor.detach().numpy()


def _plain(state: Facts) -> Facts:
    """Return a GradScaler's state without the array of one number that Paddle keeps its scale in."""
    return {
        name: getattr(value, "tolist", lambda v=value: [v])()[0] for name, value in state.items()
    }
