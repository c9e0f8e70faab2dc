"""Pairs that divide the same work between modules in other ways.

A stage is written as its steps: "fc norm gelu()" is a module with two layers that calls a function
last. Both twins read the same words; `bn.relu` is Paddle's batch norm with a ReLU built in.
"""

from typing import Any

import numpy as np
import paddle
import torch

BATCH = (np.random.default_rng(3).standard_normal((3, 4, 6, 6)),)
RATE = 0.4


class TorchStage(torch.nn.Module):
    """A module of the steps named."""

    def __init__(self, steps: str, eps: float = 1e-5) -> None:
        super().__init__()
        self.steps = dict.fromkeys(steps.split())  # of which no setting is read
        for step in self.steps:
            if not step.endswith("()"):
                self.add_module(step.partition(".")[0], self.make(step, eps))

    def make(self, step: str, eps: float) -> torch.nn.Module:
        layers = {
            "fc": lambda: torch.nn.Linear(6, 6),
            "norm": lambda: torch.nn.LayerNorm(6, eps=eps),
            "conv": lambda: torch.nn.Conv2d(4, 4, 3, padding=1),
            "bn": lambda: torch.nn.BatchNorm2d(4),
            "drop": lambda: torch.nn.Dropout(RATE),
            "gelu": lambda: torch.nn.GELU(),
            "relu": lambda: torch.nn.ReLU(),
            "relu6": lambda: torch.nn.ReLU6(),
            "hardswish": lambda: torch.nn.Hardswish(),
            "silu": lambda: torch.nn.SiLU(),
        }
        return layers[step.rstrip("0123456789") if step != "relu6" else step]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            x = self.apply_step(step, x)
        return x

    def apply_step(self, step: str, x: torch.Tensor) -> torch.Tensor:
        functional = torch.nn.functional
        functions = {"gelu()": functional.gelu, "relu()": functional.relu, "tanh()": torch.tanh}
        return functions[step](x) if step in functions else getattr(self, step)(x)


class PaddleStage(paddle.nn.Layer):
    """The same."""

    def __init__(self, steps: str, eps: float = 1e-5) -> None:
        super().__init__()
        self.steps = dict.fromkeys(steps.split())  # of which no setting is read
        for step in self.steps:
            if not step.endswith("()"):
                self.add_sublayer(step.partition(".")[0], self.make(step, eps))

    def make(self, step: str, eps: float) -> paddle.nn.Layer:
        name, _, act = step.partition(".")
        layers = {
            "fc": lambda: paddle.nn.Linear(6, 6),
            "norm": lambda: paddle.nn.LayerNorm(6, epsilon=eps),
            "conv": lambda: paddle.nn.Conv2D(4, 4, 3, padding=1),
            "bn": lambda: paddle.nn.BatchNorm(4, act=act or None),
            "drop": lambda: paddle.nn.Dropout(RATE),
            "gelu": lambda: paddle.nn.GELU(),
            "relu": lambda: paddle.nn.ReLU(),
        }
        return layers[name.rstrip("0123456789")]()

    def forward(self, x: Any) -> Any:
        for step in self.steps:
            x = self.apply_step(step, x)
        return x

    def apply_step(self, step: str, x: Any) -> Any:
        functional = paddle.nn.functional
        functions = {"gelu()": functional.gelu, "relu()": functional.relu, "tanh()": paddle.tanh,
                     "cast()": cast, "round()": round_quietly}  # fmt: skip
        return functions[step](x) if step in functions else getattr(self, step.partition(".")[0])(x)


def cast(x: Any) -> Any:
    """Lose float32's precision by a cast, which can be seen."""
    return x.astype("float32").astype(x.dtype)


def round_quietly(x: Any) -> Any:
    """Lose it without a cast."""
    wide = x.numpy()
    return x + paddle.to_tensor(wide.astype(np.float32).astype(wide.dtype) - wide)


START, END = "fc norm tanh()", "fc norm"


def make_torch(stages: list[str], times: int = 2) -> torch.nn.Module:
    """Return `start`, the stages so many times, and `end`, with weights that are no constants."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*map(TorchStage, [START, *stages * times, END]))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def make_paddle(
    stages: list[str],
    eps: tuple[float, float] = (1e-5, 1e-5),
    lost: tuple[str, str] = ("", ""),
    times: int = 2,
) -> paddle.nn.Layer:
    """Return the same; eps: of the norms in `start` and `end`; lost: the step added to either."""
    ends = [PaddleStage(f"{steps} {more}", own)
            for steps, more, own in zip((START, END), lost, eps, strict=True)]  # fmt: skip
    return paddle.nn.Sequential(ends[0], *map(PaddleStage, stages * times), ends[1])
