"""The training stage of `align`: what is faithful passes, the nearest bug is named with its cause."""

from collections.abc import Callable
from functools import partial
from typing import Any

from reprod_align import align
from reprod_align.alignment.training.effects import NORM_GUARD, clip_gradients, work_out_moves
from reprod_align.backends.paddle import settings as paddle_settings
from reprod_align.backends.torch import settings as torch_settings
from reprod_align.report import Report

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as paddle_nn
from torch import nn as torch_nn
from torch.optim import lr_scheduler as torch_lr

Maker = Callable[[Any], Any]
IDS = np.random.default_rng(0).integers(0, 8, (4, 5))  # rows 8 and above of the table stay unused


class TorchModel(torch_nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.key = torch_nn.Embedding(11, 6), torch_nn.Linear(6, 6)
        self.out, self.dead = torch_nn.Linear(6, 3), torch_nn.Linear(6, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        shares = torch.softmax(x @ self.key(x).transpose(1, 2), -1)  # the key's bias cancels out
        mean = (shares @ x).mean(1)
        return self.out(mean) + 0 * self.dead(mean)


class PaddleModel(paddle_nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.key = paddle_nn.Embedding(11, 6), paddle_nn.Linear(6, 6)
        self.out, self.dead = paddle_nn.Linear(6, 3), paddle_nn.Linear(6, 3)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        x = self.table(ids)
        shares = paddle_nn.functional.softmax(x @ self.key(x).transpose([0, 2, 1]), -1)
        mean = (shares @ x).mean(1)
        return self.out(mean) + 0 * self.dead(mean)


def loss(output: Any) -> Any:
    return ((output - 1.0) ** 2).mean()


def judged(torch_maker: Maker, paddle_maker: Maker, **more: Any) -> Report:
    torch.manual_seed(1)
    models = TorchModel(), PaddleModel()
    return align(*models, (IDS,), loss, loss, torch_maker, paddle_maker, **more)


def hooked(clip: Any, parameters: list[Any], *given: Any) -> None:
    clip(parameters)


def of_torch(name: str, clip: Any = None, **settings: Any) -> Maker:
    def made(model: Any) -> torch.optim.Optimizer:
        optimizer = getattr(torch.optim, name)(model.parameters(), **settings)
        if clip is not None:
            parameters = list(model.parameters())
            optimizer.register_step_pre_hook(partial(hooked, clip, parameters))
        return optimizer

    return made


def of_paddle(name: str, **settings: Any) -> Maker:
    maker = getattr(paddle.optimizer, name)
    return lambda model: maker(parameters=model.parameters(), **settings)


GLOBAL = partial(torch_nn.utils.clip_grad_norm_, max_norm=0.05)
LARGE = partial(torch_nn.utils.clip_grad_norm_, max_norm=100.0)
VALUE = partial(torch_nn.utils.clip_grad_value_, clip_value=0.01)


# ------------------------------------------------------------------ faithful


@pytest.mark.parametrize(
    ("torch_maker", "paddle_maker"),
    [
        (of_torch("AdamW", lr=1e-3, weight_decay=0.01),
         of_paddle("AdamW", learning_rate=1e-3, weight_decay=0.01)),
        (of_torch("SGD", lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
         of_paddle("Momentum", learning_rate=0.1, weight_decay=0.01, use_nesterov=True)),
        (of_torch("AdamW", VALUE, lr=1e-3, weight_decay=0.01),
         of_paddle("AdamW", learning_rate=1e-3, weight_decay=0.01,
                   grad_clip=paddle_nn.ClipGradByValue(0.01))),
        (of_torch("AdamW", LARGE, lr=1e-3, weight_decay=0.01),
         of_paddle("AdamW", learning_rate=1e-3, weight_decay=0.01,
                   grad_clip=paddle_nn.ClipGradByGlobalNorm(100.0))),
        (of_torch("SGD", GLOBAL, lr=0.1),
         of_paddle("SGD", learning_rate=0.1, grad_clip=paddle_nn.ClipGradByGlobalNorm(0.05))),
        (of_torch("Rprop", lr=0.01),
         of_paddle("Rprop", learning_rate=0.01, learning_rate_range=(1e-6, 50))),
        (of_torch("Adadelta", lr=1.0, rho=0.95),
         of_paddle("Adadelta", learning_rate=1.0, rho=0.95)),
    ],
    ids=["AdamW", "Momentum", "clip by value", "idle clip", "clip by norm", "Rprop", "Adadelta"],
)  # fmt: skip
def test_a_faithful_optimizer(torch_maker: Maker, paddle_maker: Maker) -> None:
    report = judged(torch_maker, paddle_maker)
    assert report.passed, report
    assert not any("the optimizer: settings differ" in remark for remark in report.remarks)


class Clipping(torch.optim.SGD):
    def step(self, closure: Any = None) -> Any:
        GLOBAL(self.param_groups[0]["params"])
        return super().step(closure)


def test_a_step_of_its_own_that_clips() -> None:
    clip = paddle_nn.ClipGradByGlobalNorm(0.05)
    report = judged(lambda model: Clipping(model.parameters(), 0.1),
                    of_paddle("SGD", learning_rate=0.1, grad_clip=clip))  # fmt: skip
    assert report.passed, report
    missing = judged(lambda model: Clipping(model.parameters(), 0.1),
                     of_paddle("SGD", learning_rate=0.1))  # fmt: skip
    assert "step() of its own, which may clip" in missing.findings[0].message


def warmed(optimizer: Any) -> Any:
    return torch_lr.LambdaLR(optimizer, lambda step: min(step / 10, 1.0))


def test_a_schedule_that_begins_at_zero_is_no_other_learning_rate() -> None:
    def made(model: Any) -> Any:
        schedule = paddle.optimizer.lr.LinearWarmup(0.1, 10, 0.0, 0.1)
        return paddle.optimizer.SGD(schedule, parameters=model.parameters())

    report = judged(of_torch("SGD", lr=0.1), made, torch_scheduler=warmed)
    assert report.passed and not any("lr:" in remark for remark in report.remarks), report


# ------------------------------------------------------------------ the nearest bugs


ADAMW = of_torch("AdamW", lr=1e-3, weight_decay=0.01)
NESTEROV = of_torch("SGD", lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)


def adamw(**settings: Any) -> Maker:
    return of_paddle("AdamW", **{"learning_rate": 1e-3, "weight_decay": 0.01, **settings})


def nesterov(**settings: Any) -> Maker:
    fixed = {"learning_rate": 0.1, "weight_decay": 0.01, "use_nesterov": True}
    return of_paddle("Momentum", **{**fixed, **settings})


def spared(model: Any) -> Any:
    wide = {parameter.name for parameter in model.parameters() if parameter.ndim > 1}
    return adamw(apply_decay_param_fun=wide.__contains__)(model)


@pytest.mark.parametrize(
    ("torch_maker", "paddle_maker", "said"),
    [
        (ADAMW, adamw(epsilon=1e-6), "eps: 1e-08 in PyTorch, 1e-06 in Paddle"),
        (ADAMW, adamw(weight_decay=0.0101), "weight_decay: 0.01 in PyTorch, 0.0101 in Paddle"),
        (ADAMW, adamw(beta2=0.9991), "betas: (0.9, 0.999) in PyTorch, (0.9, 0.9991)"),
        (ADAMW, spared, "weight_decay: PyTorch decays 3 parameters"),
        (ADAMW, of_paddle("Adam", learning_rate=1e-3, weight_decay=0.01), "decoupled:"),
        (NESTEROV, nesterov(momentum=0.9001), "momentum: 0.9 in PyTorch, 0.9001 in Paddle"),
        (NESTEROV, nesterov(weight_decay=0.0101), "weight_decay: 0.01 in PyTorch, 0.0101"),
        (NESTEROV, nesterov(use_nesterov=False), "nesterov: True in PyTorch, False in Paddle"),
        (of_torch("SGD", GLOBAL, lr=0.1),
         of_paddle("SGD", learning_rate=0.1, grad_clip=paddle_nn.ClipGradByGlobalNorm(0.05005)),
         "clip: PyTorch's optimizer has a step pre-hook"),
        (of_torch("SGD", lr=0.1),
         of_paddle("SGD", learning_rate=0.1, grad_clip=paddle_nn.ClipGradByGlobalNorm(0.05)),
         "clip: Paddle's optimizer clips gradients by global norm 0.05; PyTorch's side does not"),
        (of_torch("RMSprop", lr=1e-3, alpha=0.95, eps=1e-6),
         of_paddle("RMSProp", learning_rate=1e-3, rho=0.951), "alpha: 0.95 in PyTorch, 0.951"),
    ],
)  # fmt: skip
def test_the_nearest_bug(torch_maker: Maker, paddle_maker: Maker, said: str) -> None:
    report = judged(torch_maker, paddle_maker)
    assert not report.passed and said in report.findings[0].message, report


@pytest.mark.parametrize("clip", [paddle_nn.ClipGradByGlobalNorm, paddle_nn.ClipGradByValue])
def test_what_has_no_effect_is_a_remark_beside_the_cause(clip: Any) -> None:
    report = judged(ADAMW, adamw(epsilon=1e-6, grad_clip=clip(100.0)))
    assert [finding.message[:4] for finding in report.findings] == ["eps:"]
    assert any("without an effect seen here: clip:" in remark for remark in report.remarks)


def test_what_has_no_effect_is_a_remark_alone() -> None:
    idle = paddle_nn.ClipGradByGlobalNorm(100.0)
    report = judged(of_torch("SGD", lr=0.1), of_paddle("SGD", learning_rate=0.1, grad_clip=idle))
    assert report.passed
    assert any("without an effect seen here: clip:" in remark for remark in report.remarks)


class Skewed(paddle.optimizer.SGD):
    def step(self) -> None:
        for parameter in self._parameter_list:
            if parameter.ndim == 1 and parameter.grad is not None:
                parameter.grad = parameter.grad * 1.00001
        super().step()


def test_a_bug_that_no_setting_tells_is_not_put_on_an_idle_clip() -> None:
    idle = paddle_nn.ClipGradByGlobalNorm(100.0)
    report = judged(of_torch("SGD", lr=0.1),
                    lambda model: Skewed(0.1, parameters=model.parameters(), grad_clip=idle))  # fmt: skip
    assert "given the same gradients, step 0 changes it differently" in report.findings[0].message


# ------------------------------------------------------------------ beside float32 in a kernel


def steep(factor: float, output: Any) -> Any:
    """Return cross entropy; Paddle's softmax on a CPU takes no logit for more than 64 below the top."""
    library = torch_nn if isinstance(output, torch.Tensor) else paddle_nn
    labels = torch.arange(4) % 3 if library is torch_nn else paddle.arange(4) % 3
    return library.functional.cross_entropy(output * factor, labels)


def test_float32_in_a_kernel_excuses_no_loss_that_jumps() -> None:
    torch.manual_seed(1)
    entropy = partial(steep, 10.0)
    makers = (of_torch("SGD", lr=5.0, momentum=0.9),
              of_paddle("Momentum", learning_rate=5.0, momentum=0.9))  # fmt: skip
    report = align(TorchModel(), PaddleModel(), (IDS,), entropy, entropy, *makers, steps=4)
    assert not report.passed
    assert "with PyTorch's own weights of step" in report.findings[0].message, report


# ------------------------------------------------------------------ the rules in numpy


RULES = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01},
    "Adam": {"lr": 0.1, "amsgrad": True, "weight_decay": 0.01},
    "AdamW": {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.1},
    "RMSprop": {"lr": 0.1, "momentum": 0.9, "centered": True},
    "Adadelta": {"lr": 0.1, "weight_decay": 0.01},
    "Adamax": {"lr": 0.1, "maximize": True},
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_that_of_pytorch(name: str) -> None:
    source = np.random.default_rng(0)
    start, gradients = source.normal(size=7), list(source.normal(size=(5, 7)))
    model = torch_nn.ParameterDict({"x": torch_nn.Parameter(torch.tensor(start))})
    optimizer = getattr(torch.optim, name)(model.parameters(), **RULES[name])
    settings = torch_settings.optimizer_settings(optimizer, model)
    values = [start]
    for gradient in gradients:
        model["x"].grad = torch.tensor(gradient)
        optimizer.step()
        values.append(model["x"].detach().numpy().copy())
    made = work_out_moves(settings.kind, settings.parameters["x"], start, gradients, [0.1] * 5)
    assert made is not None
    np.testing.assert_allclose(np.diff(values, axis=0), made, rtol=1e-11)


@pytest.mark.parametrize("name", ["RMSProp", "Adamax"])
def test_a_rule_with_epsilon_where_paddle_adds_it(name: str) -> None:
    source = np.random.default_rng(0)
    start, gradients = source.normal(size=7), list(1e-3 * source.normal(size=(5, 7)))
    layer = paddle_nn.Linear(1, 7, bias_attr=False).to(dtype="float64")
    layer.weight.set_value(start.reshape(1, 7))
    optimizer = getattr(paddle.optimizer, name)(0.1, parameters=layer.parameters(), epsilon=1e-5)
    settings = paddle_settings.optimizer_settings(optimizer, layer)
    values = [start]
    for gradient in gradients:
        layer.weight.grad = paddle.to_tensor(gradient.reshape(1, 7))
        optimizer.step()
        values.append(layer.weight.numpy().reshape(7).copy())
    made = work_out_moves(settings.kind, settings.parameters["weight"], start, gradients, [0.1] * 5)
    assert made is not None
    np.testing.assert_allclose(np.diff(values, axis=0), made, rtol=1e-6)  # its float32 constants


@pytest.mark.parametrize("kind", ["value", "global norm", "the norm of each parameter"])
def test_clipping_is_that_of_pytorch(kind: str) -> None:
    source = np.random.default_rng(0)
    given = {name: source.normal(size=3) for name in "ab"}
    tensors = {name: torch.nn.Parameter(torch.zeros(3, dtype=torch.float64)) for name in given}
    for name, tensor in tensors.items():
        tensor.grad = torch.tensor(given[name])
    if kind == "value":
        torch_nn.utils.clip_grad_value_(tensors.values(), 0.1)
    else:
        groups = [tensors.values()] if kind == "global norm" else [[t] for t in tensors.values()]
        for group in groups:
            torch_nn.utils.clip_grad_norm_(group, 0.1)
    made = clip_gradients(
        {"kind": kind, "min": -0.1, "max": 0.1, "max_norm": 0.1}, given, NORM_GUARD
    )
    assert made is not None and clip_gradients({"kind": "unheard of"}, given, 0.0) is None
    for name, tensor in tensors.items():
        np.testing.assert_allclose(tensor.grad.numpy(), made[name], rtol=1e-12)
