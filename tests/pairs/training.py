"""Losses, optimizers, schedules and what they train, on one small model."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from tests.pairs.case import Case, case
from tests.pairs.plant import forward, freeze, port, put

import numpy as np
import paddle
import torch
from paddle.nn import functional as P
from paddle.optimizer import lr as plr
from torch.nn import functional as T
from torch.optim import lr_scheduler as tlr

_rng = np.random.default_rng(61)
X = {"x": _rng.standard_normal((6, 7)).astype("float32")}
LABELS = np.array([0, 3, 2, 1, 1, 2])
PADDED = np.array([0, 3, -100, 1, 1, -100])
SOFT = _rng.random((6, 4))
SHARES = SOFT / SOFT.sum(1, keepdims=True)
HARD = (SOFT > 0.5).astype("float64")
CLASSES = np.array([0.5, 1.0, 2.0, 0.25])


class TorchNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(7, 9)
        self.norm = torch.nn.LayerNorm(9)
        self.fc2 = torch.nn.Linear(9, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, 7) -> (B, 4)
        return self.fc2(torch.tanh(self.norm(self.fc1(x))))


class PaddleNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1 = paddle.nn.Linear(7, 9)
        self.norm = paddle.nn.LayerNorm(9)
        self.fc2 = paddle.nn.Linear(9, 4)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, 7) -> (B, 4)
        return self.fc2(paddle.tanh(self.norm(self.fc1(x))))


class TorchTwoHeads(TorchNet):
    """Gives the logits and the hidden state."""

    def forward(self, x: torch.Tensor) -> dict:
        hidden = torch.tanh(self.norm(self.fc1(x)))
        return {"logits": self.fc2(hidden), "hidden": hidden}


class PaddleTwoHeads(PaddleNet):
    def forward(self, x: paddle.Tensor) -> dict:
        hidden = paddle.tanh(self.norm(self.fc1(x)))
        return {"logits": self.fc2(hidden), "hidden": hidden}


def like(array: np.ndarray, output: Any) -> Any:
    """Return the array as a tensor of the output's framework, and of its dtype if it has floats."""
    is_torch = isinstance(output, torch.Tensor)
    tensor = torch.tensor(array) if is_torch else paddle.to_tensor(array)
    if array.dtype.kind != "f":
        return tensor
    return tensor.to(output.dtype) if is_torch else tensor.astype(output.dtype)


def ce(framework, labels=LABELS, weight=None, **settings) -> Callable:
    """Return the cross entropy of `framework` (T or P) with these labels."""

    def loss(output):
        weights = {} if weight is None else {"weight": like(weight, output)}
        return framework.cross_entropy(output, like(labels, output), **weights, **settings)

    return loss


def against(function: Callable, target: np.ndarray, **settings) -> Callable:
    """Return the loss `function(output, target)`."""
    return lambda output: function(output, like(target, output), **settings)


# What the first finding of a case says, lower case: the cause, not only the place.
CAUSES = {
    "loss: sum for mean": "summed (reduction='sum') in paddle",
    "loss: label smoothing missing": "label smoothing is 0 in paddle and 0.1 in pytorch",
    "loss: another label smoothing": "label smoothing is 0.2 in paddle and 0.1 in pytorch",
    "loss: ignored labels, mean over all": "averaged over all, ignored ones too in paddle",
    "loss: another ignored index": "ignore_index=1 in paddle alone",
    "loss: ignored index missing": "ignore_index=2 in pytorch alone",
    "loss: softmax twice": "paddle applies softmax before a loss that applies it again",
    "loss: class weights missing": "only pytorch weights the classes",
    "loss: weighted mean over the count": "divided by 0.888889 times",
    "loss: labels shifted by one": "they are shifted by one",
    "loss: temperature missing": "divided by 1 in paddle and by 0.5 in pytorch",
    "loss: constant added": "plus the constant 0.125",
    "loss: softmax over the batch": "the softmax is over axis 0 in paddle",
    "loss: log of softmax missing": "log_softmax is missing",
    "loss: absolute for square": "absolute distances (l1)",
    "loss: root of the mean square": "the square root",
    "loss: smooth absolute loss by delta": "smooth_l1_loss multiplies by delta",
    "loss: weight for weight of positives": "weight= where pytorch has pos_weight=",
    "loss: sigmoid twice": "paddle applies sigmoid before",
    "loss: focal exponent": "the focal gamma is 1 in paddle and 2 in pytorch",
    "loss: greatest only": "paddle takes the greatest loss",
    "schedule: step size": "step length: 2 in pytorch, 3 in paddle",
    "schedule: factor of the steps": "gamma: 0.5 in pytorch, 0.1 in paddle",
    "schedule: stepped twice": "runs 2 times as fast",
    "schedule: one step late": "one step late",
    "schedule: one step early": "one step early",
    "schedule: milestones": "milestones: (2, 4) in pytorch, (2, 5) in paddle",
    "schedule: cosine over fewer steps": "length: 8 in pytorch, 6 in paddle",
    "schedule: cosine to zero": "lowest rate: 0.001 in pytorch, 0 in paddle",
    "schedule: power of the decay": "power: 2 in pytorch, 1 in paddle",
    "schedule: length of the warm-up": "length of the warm-up: 3 in pytorch, 4 in paddle",
    "schedule: total length": "last step of the decay: 12 in pytorch, 13 in paddle",
    "schedule: constant": "never changes",
    "schedule: restarts": "each cycle 2 times as long",
    "schedule: restarts left out": "restarts in pytorch, rises again in paddle",
}


def _cased(name, *culprits, stages=(), torch_class=TorchNet, paddle_class=PaddleNet, **options):
    build = partial(port, torch_class, paddle_class, X, **options)
    words = (CAUSES[name],) if name in CAUSES else ()
    return case(name, build, *culprits, stages=stages, words=words)


GRADIENT_ALONE = ("loss", "backward")


def lost(name, torch_loss, paddle_loss, stages=("loss",), **options) -> Case:
    """Return the case of a loss that differs."""
    return _cased(
        f"loss: {name}", "", stages=stages, torch_loss=torch_loss, paddle_loss=paddle_loss,
        **options,
    )  # fmt: skip


def _two(loss):
    """Return a loss of two outputs from a function of both."""
    return lambda output: loss(output["logits"], output["hidden"])


_two_heads = partial(lost, torch_class=TorchTwoHeads, paddle_class=PaddleTwoHeads)
_mse = against(T.mse_loss, SOFT)
_nll = against(lambda output, target: T.nll_loss(T.log_softmax(output, -1), target), LABELS)
_kl = against(lambda o, t: T.kl_div(T.log_softmax(o, -1), t, reduction="batchmean"), SHARES)
_bce = against(T.binary_cross_entropy_with_logits, HARD)


def _focal(framework, gamma=2.0, detached=False):
    def loss(output):
        rows = framework.cross_entropy(output, like(LABELS, output), reduction="none")
        weight = (1 - (-rows).exp()) ** gamma
        return ((weight.detach() if detached else weight) * rows).mean()

    return loss


LOSSES = [
    lost("sum for mean", ce(T), ce(P, reduction="sum")),
    lost("label smoothing missing", ce(T, label_smoothing=0.1), ce(P)),
    lost("another label smoothing", ce(T, label_smoothing=0.1), ce(P, label_smoothing=0.2)),
    lost("ignored labels, mean over all", ce(T, PADDED), ce(P, PADDED)),
    lost("another ignored index", ce(T), ce(P, ignore_index=1)),
    lost("ignored index missing", ce(T, ignore_index=2), ce(P)),
    lost("softmax twice", ce(T), lambda o: ce(P)(P.softmax(o))),
    lost("cross entropy takes logits for probabilities", ce(T),
         lambda o: ce(P, use_softmax=False)(P.sigmoid(o))),
    lost("class weights missing", ce(T, weight=CLASSES), ce(P)),
    lost("class weights in another order", ce(T, weight=CLASSES), ce(P, weight=CLASSES[::-1])),
    lost("weighted mean over the count", ce(T, weight=CLASSES),
         lambda o: ce(P, weight=CLASSES, reduction="none")(o).mean()),
    lost("labels shifted by one", ce(T), ce(P, np.roll(LABELS, 1))),
    lost("temperature missing", lambda o: ce(T)(o / 0.5), ce(P)),
    lost("temperature inverted", lambda o: ce(T)(o / 0.5), lambda o: ce(P)(o * 0.5)),
    lost("constant added", ce(T), lambda o: ce(P)(o) + 0.125),
    lost("factor missing", lambda o: 0.5 * ce(T)(o), ce(P)),
    lost("softmax over the batch", _nll, against(
        lambda o, t: P.nll_loss(P.log_softmax(o, 0), t), LABELS)),
    lost("log of softmax missing", _nll, against(P.nll_loss, LABELS)),
    lost("softmax for its log", _nll, against(
        lambda o, t: P.nll_loss(P.softmax(o, -1), t), LABELS)),
    lost("mean for sum of squares", against(T.mse_loss, SOFT, reduction="sum"),
         against(P.mse_loss, SOFT)),
    lost("half of the squares", _mse, against(lambda o, t: 0.5 * P.mse_loss(o, t), SOFT)),
    lost("absolute for square", _mse, against(P.l1_loss, SOFT)),
    lost("root of the mean square", _mse, against(lambda o, t: P.mse_loss(o, t).sqrt(), SOFT)),
    lost("smooth absolute loss by delta", against(T.smooth_l1_loss, SOFT, beta=0.25),
         against(P.smooth_l1_loss, SOFT, delta=0.25)),
    lost("smooth absolute loss at its default", against(T.smooth_l1_loss, SOFT, beta=0.25),
         against(P.smooth_l1_loss, SOFT)),
    lost("divergence by element", _kl, against(
        lambda o, t: P.kl_div(P.log_softmax(o, -1), t), SHARES)),
    lost("divergence of probabilities", _kl, against(
        lambda o, t: P.kl_div(P.softmax(o, -1), t, reduction="batchmean"), SHARES)),
    lost("weight of positives missing", lambda o: T.binary_cross_entropy_with_logits(
        o, like(HARD, o), pos_weight=like(CLASSES, o)),
        against(P.binary_cross_entropy_with_logits, HARD)),
    lost("weight for weight of positives", lambda o: T.binary_cross_entropy_with_logits(
        o, like(HARD, o), pos_weight=like(CLASSES, o)),
        lambda o: P.binary_cross_entropy_with_logits(o, like(HARD, o), weight=like(CLASSES, o))),
    lost("sigmoid twice", _bce, against(
        lambda o, t: P.binary_cross_entropy_with_logits(P.sigmoid(o), t), HARD)),
    lost("hinge for cross entropy", _bce, against(
        lambda o, t: P.relu(1 - (2 * t - 1) * o).mean(), HARD)),
    lost("focal exponent", _focal(T), _focal(P, gamma=1.0)),
    lost("focal weight without gradient", _focal(T), _focal(P, detached=True), stages=GRADIENT_ALONE),
    lost("soft labels that do not sum to one", ce(T, SOFT), ce(P, SOFT, soft_label=True),
         stages=GRADIENT_ALONE),
    lost("half of the gradient lost", ce(T), lambda o: 0.5 * ce(P)(o) + 0.5 * ce(P)(o).detach(),
         stages=GRADIENT_ALONE),
    lost("batch of one left out", ce(T), lambda o: P.cross_entropy(o[:-1], like(LABELS[:-1], o))),
    lost("clipped logits", ce(T), lambda o: ce(P)(o.clip(-0.2, 0.2))),
    lost("greatest only", ce(T), lambda o: ce(P, reduction="none")(o).max()),
    _two_heads("second term missing", _two(lambda o, h: ce(T)(o) + 0.1 * h.square().mean()),
               _two(lambda o, h: ce(P)(o))),
    _two_heads("second term without gradient",
               _two(lambda o, h: ce(T)(o) + 0.1 * h.square().mean()),
               _two(lambda o, h: ce(P)(o) + 0.1 * h.detach().square().mean()), stages=GRADIENT_ALONE),
    _two_heads("second term's factor", _two(lambda o, h: ce(T)(o) + 0.1 * h.square().mean()),
               _two(lambda o, h: ce(P)(o) + 0.01 * h.square().mean())),
]  # fmt: skip

BIASES = ("fc1.bias", "fc2.bias", "norm.weight", "norm.bias")


def trained(name, torch_optimizer, paddle_optimizer, *culprits, **options) -> Case:
    """Return the case of an optimizer that differs; the loss is the cross entropy on both sides."""
    options = {
        "torch_loss": ce(T),
        "paddle_loss": ce(P),
        "stages": ("audit", "optimizer"),
    } | options
    return _cased(
        f"optimizer: {name}", *(culprits or ("",)), torch_optimizer=torch_optimizer,
        paddle_optimizer=paddle_optimizer, **options,
    )  # fmt: skip


def made_torch(kind: str, lr: float, **settings) -> Callable:
    """Return a builder of torch's optimizer `kind` over all parameters."""
    return lambda model: getattr(torch.optim, kind)(model.parameters(), lr, **settings)


def made_paddle(kind: str, lr: float, keep: Callable = lambda name: True, **settings) -> Callable:
    """Return a builder of Paddle's optimizer `kind` over the parameters that `keep` says."""

    def build(model):
        kept = [it for name, it in model.named_parameters() if keep(name)]
        return getattr(paddle.optimizer, kind)(learning_rate=lr, parameters=kept, **settings)

    return build


def _decayed(name: str) -> bool:
    return name in ("fc1.weight", "fc2.weight")


def torch_groups(decay=0.1, lr=1e-2, head=1.0) -> Callable:
    """Return a builder of AdamW that spares biases and norms from decay."""

    def build(model):
        named = dict(model.named_parameters())
        groups = [
            {
                "params": [parameter],
                "weight_decay": decay if _decayed(name) else 0.0,
                "lr": lr * (head if name.startswith("fc2") else 1.0),
            }
            for name, parameter in named.items()
        ]
        return torch.optim.AdamW(groups, lr=lr)

    return build


def paddle_groups(decay=0.1, lr=1e-2, decayed=_decayed) -> Callable:
    """Return a builder of the same in Paddle's words: a function of the parameter's own name."""

    def build(model):
        chosen = {it.name for name, it in model.named_parameters() if decayed(name)}
        return paddle.optimizer.AdamW(
            lr,
            parameters=model.parameters(),
            weight_decay=decay,
            apply_decay_param_fun=lambda name: name in chosen,
        )

    return build


def paddle_group_list(decay=0.1, lr=1e-2, decayed=_decayed, head=1.0) -> Callable:
    """Return a builder of the same with Paddle's groups, whose rates are factors."""

    def build(model):
        groups = [
            {
                "params": [it],
                "weight_decay": decay if decayed(name) else 0.0,
                "learning_rate": head if name.startswith("fc2") else 1.0,
            }
            for name, it in model.named_parameters()
        ]
        return paddle.optimizer.AdamW(lr, parameters=groups)

    return build


def clipped_torch(limit: float) -> Callable:
    """Return a builder of SGD that clips each element of the gradients before its step."""

    def build(model):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        optimizer.register_step_pre_hook(
            lambda *_: torch.nn.utils.clip_grad_value_(model.parameters(), limit)
        )
        return optimizer

    return build


_adam = made_torch("Adam", 1e-2)
_adamw = made_torch("AdamW", 1e-2, weight_decay=0.1)
_momentum = made_torch("SGD", 0.1, momentum=0.9)

OPTIMIZERS = [
    trained("epsilon 1e-6 for 1e-8", _adam, made_paddle("Adam", 1e-2, epsilon=1e-6)),
    trained("epsilon 1e-3", _adamw, made_paddle("AdamW", 1e-2, weight_decay=0.1, epsilon=1e-3)),
    trained("second beta 0.98", _adam, made_paddle("Adam", 1e-2, beta2=0.98)),
    trained("first beta 0.8", _adam, made_paddle("Adam", 1e-2, beta1=0.8)),
    trained("betas exchanged", _adam, made_paddle("Adam", 1e-2, beta1=0.999, beta2=0.9)),
    trained("decay coefficient", _adamw, made_paddle("AdamW", 1e-2, weight_decay=0.01)),
    trained("decay left out", _adamw, made_paddle("AdamW", 1e-2, weight_decay=0.0)),
    trained("coupled decay for decoupled", _adamw, made_paddle("Adam", 1e-2, weight_decay=0.1)),
    trained("decoupled decay for coupled", made_torch("Adam", 1e-2, weight_decay=0.1),
            made_paddle("AdamW", 1e-2, weight_decay=0.1)),
    trained("decay left out of Adam", made_torch("Adam", 1e-2, weight_decay=0.1),
            made_paddle("Adam", 1e-2)),
    trained("default decay of AdamW", made_torch("AdamW", 1e-2, weight_decay=0.0),
            made_paddle("AdamW", 1e-2)),
    trained("learning rate", _adam, made_paddle("Adam", 1.1e-2)),
    trained("learning rate at Paddle's default", _adam, made_paddle("Adam", 1e-3)),
    trained("AMSGrad", made_torch("Adam", 0.3, amsgrad=True), made_paddle("Adam", 0.3), steps=8),
    trained("momentum left out", _momentum, made_paddle("SGD", 0.1)),
    trained("momentum 0.8", _momentum, made_paddle("Momentum", 0.1, momentum=0.8)),
    trained("Nesterov left out", made_torch("SGD", 0.1, momentum=0.9, nesterov=True),
            made_paddle("Momentum", 0.1, momentum=0.9)),
    trained("Nesterov added", _momentum, made_paddle("Momentum", 0.1, use_nesterov=True)),
    trained("dampening left out", made_torch("SGD", 0.1, momentum=0.9, dampening=0.5),
            made_paddle("Momentum", 0.1, momentum=0.9)),
    trained("decay of SGD left out", made_torch("SGD", 0.1, weight_decay=1e-3),
            made_paddle("SGD", 0.1)),
    trained("decay of absolute values", made_torch("SGD", 0.1, weight_decay=1e-2),
            made_paddle("SGD", 0.1, weight_decay=paddle.regularizer.L1Decay(1e-2))),
    trained("RMSProp by the same epsilon", made_torch("RMSprop", 1e-2, eps=1e-3),
            made_paddle("RMSProp", 1e-2, rho=0.99, epsilon=1e-3)),
    trained("Adagrad at Paddle's epsilon", made_torch("Adagrad", 1e-2),
            made_paddle("Adagrad", 1e-2)),
    trained("Adagrad's first value", made_torch("Adagrad", 1e-2),
            made_paddle("Adagrad", 1e-2, epsilon=1e-10, initial_accumulator_value=0.1)),
    trained("ascent", made_torch("SGD", 0.1, maximize=True), made_paddle("SGD", 0.1)),
    trained("clipping added", _adam, made_paddle(
        "Adam", 1e-2, grad_clip=paddle.nn.ClipGradByValue(1e-3))),
    trained("clipping of the whole norm added", made_torch("SGD", 0.1), made_paddle(
        "SGD", 0.1, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.1))),
    trained("clipping left out", clipped_torch(0.02), made_paddle("SGD", 0.1)),
    trained("clipping by another limit", clipped_torch(0.02), made_paddle(
        "SGD", 0.1, grad_clip=paddle.nn.ClipGradByValue(0.03))),
    trained("decay of biases and norms", torch_groups(), made_paddle(
        "AdamW", 1e-2, weight_decay=0.1), *BIASES),
    trained("decay of norms", torch_groups(), paddle_groups(
        decayed=lambda name: "bias" not in name), "norm.weight"),
    trained("decay of biases alone left in", torch_groups(), paddle_groups(
        decayed=lambda name: not name.startswith("norm")), "fc1.bias", "fc2.bias"),
    trained("decay of one weight missing", torch_groups(), paddle_groups(
        decayed=lambda name: name == "fc1.weight"), "fc2.weight"),
    trained("decay by names that match nothing", torch_groups(), paddle_groups(
        decayed=lambda name: False), "fc1.weight", "fc2.weight"),
    trained("rate of the head missing", torch_groups(head=10.0), paddle_group_list(),
            "fc2.weight", "fc2.bias"),
    trained("rate of the head halved", torch_groups(head=10.0), paddle_group_list(head=5.0),
            "fc2.weight", "fc2.bias"),
    trained("rate of a bias by its attribute", _adam, made_paddle("Adam", 1e-2), "fc2.bias",
            change=put("fc2", lambda: paddle.nn.Linear(
                9, 4, bias_attr=paddle.ParamAttr(learning_rate=2.0)))),
    trained("decay of a weight by its attribute", _momentum, made_paddle("Momentum", 0.1),
            "fc1.weight", change=put("fc1", lambda: paddle.nn.Linear(
                7, 9, weight_attr=paddle.ParamAttr(regularizer=paddle.regularizer.L2Decay(0.1))))),
    trained("one bias missing", _adam, made_paddle("Adam", 1e-2, keep=lambda name: name != "fc2.bias"),
            "fc2.bias"),
    trained("one weight missing", _momentum, made_paddle(
        "Momentum", 0.1, keep=lambda name: name != "fc1.weight"), "fc1.weight"),
    trained("norm missing", _adam, made_paddle(
        "Adam", 1e-2, keep=lambda name: not name.startswith("norm")), "norm.weight", "norm.bias"),
    trained("frozen bias", _adam, made_paddle("Adam", 1e-2), "fc1.bias", "fc1",
            change=freeze("fc1.bias"), stages=("audit", "backward")),
    trained("hidden state without gradient", _adam, made_paddle("Adam", 1e-2), "",
            change=forward("", lambda self, x: self.fc2(paddle.tanh(
                self.norm(self.fc1(x))).detach())), stages=("backward",)),
]  # fmt: skip


def scheduled(name, torch_scheduler, paddle_scheduler, steps=6, correct=False, **options) -> Case:
    """Return the case of a schedule; `paddle_scheduler` is made of the rate it starts from."""

    def attach(optimizer):
        scheduler = paddle_scheduler(optimizer.get_lr())
        optimizer.set_lr_scheduler(scheduler)
        return scheduler

    options = {
        "torch_optimizer": made_torch("SGD", 0.1),
        "paddle_optimizer": made_paddle("SGD", 0.1),
    } | options
    return _cased(
        name if correct else f"schedule: {name}", *(() if correct else ("",)),
        stages=() if correct else ("audit", "optimizer", "schedule"), steps=steps,
        torch_loss=ce(T), paddle_loss=ce(P), torch_scheduler=torch_scheduler,
        paddle_scheduler=attach, **options,
    )  # fmt: skip


def torch_lambda(factor: Callable[[int], float]) -> Callable:
    return lambda optimizer: tlr.LambdaLR(optimizer, factor)


def paddle_lambda(factor: Callable[[int], float]) -> Callable:
    return lambda rate: plr.LambdaDecay(rate, factor)


def warmup(steps: int, total: int = 12) -> Callable[[int], float]:
    """Return the factor of a linear warm-up and a linear decay."""
    return lambda n: max(0.0, min(n / steps, (total - n) / (total - steps)))


def late(factor: Callable[[int], float], by: int = -1) -> Callable[[int], float]:
    return lambda n: factor(max(n + by, 0))


def _stepping_twice(scheduler: Any) -> Any:
    once = scheduler.step
    scheduler.step = lambda: (once(), once())
    return scheduler


def _step(optimizer):
    return tlr.StepLR(optimizer, 2, 0.5)


def _cosine(optimizer):
    return tlr.CosineAnnealingLR(optimizer, 8, 1e-3)


def _exponential(optimizer):
    return tlr.ExponentialLR(optimizer, 0.9)


def _inverse_root(n: int) -> float:
    return 1 / np.sqrt(n + 1)


SCHEDULES = [
    scheduled("step size", _step, lambda rate: plr.StepDecay(rate, 3, 0.5)),
    scheduled("factor of the steps", _step, lambda rate: plr.StepDecay(rate, 2, 0.1)),
    scheduled("stepped twice", _step, lambda rate: _stepping_twice(plr.StepDecay(rate, 2, 0.5))),
    scheduled("never stepped", _step, lambda rate: plr.StepDecay(rate, 100, 0.5)),
    scheduled("first value", _step, lambda rate: plr.StepDecay(0.5 * rate, 2, 0.5)),
    scheduled("first value a thousandth off", _step, lambda rate: plr.StepDecay(
        1.001 * rate, 2, 0.5)),
    scheduled("one step late", _step, lambda rate: plr.LambdaDecay(
        rate, late(lambda n: 0.5 ** (n // 2)))),
    scheduled("one step early", _step, lambda rate: plr.StepDecay(rate, 2, 0.5, last_epoch=0)),
    scheduled("milestones", lambda it: tlr.MultiStepLR(it, [2, 4], 0.1),
              lambda rate: plr.MultiStepDecay(rate, [2, 5], 0.1)),
    scheduled("factor of the milestones", lambda it: tlr.MultiStepLR(it, [2, 4], 0.1),
              lambda rate: plr.MultiStepDecay(rate, [2, 4], 0.2)),
    scheduled("factor of the decay", _exponential, lambda rate: plr.ExponentialDecay(rate, 0.91)),
    scheduled("natural for geometric decay", _exponential, lambda rate: plr.NaturalExpDecay(
        rate, 0.1)),
    scheduled("inverse time for geometric decay", _exponential, lambda rate:
              plr.InverseTimeDecay(rate, 0.1)),
    scheduled("cosine over fewer steps", _cosine, lambda rate: plr.CosineAnnealingDecay(
        rate, 6, 1e-3)),
    scheduled("cosine to zero", _cosine, lambda rate: plr.CosineAnnealingDecay(rate, 8)),
    scheduled("linear for cosine", _cosine, lambda rate: plr.PolynomialDecay(rate, 8, 1e-3, 1.0)),
    scheduled("power of the decay", lambda it: tlr.PolynomialLR(it, 8, 2.0),
              lambda rate: plr.PolynomialDecay(rate, 8, 0.0, 1.0)),
    scheduled("last value of the decay", lambda it: tlr.PolynomialLR(it, 8, 1.0),
              lambda rate: plr.PolynomialDecay(rate, 8)),
    scheduled("length of the warm-up", torch_lambda(warmup(3)), paddle_lambda(warmup(4))),
    scheduled("total length", torch_lambda(warmup(3)), paddle_lambda(warmup(3, 13))),
    scheduled("warm-up left out", torch_lambda(warmup(3)), paddle_lambda(
        lambda n: (12 - n) / 9 if n > 3 else 1.0)),
    scheduled("decay left out", torch_lambda(warmup(3)), lambda rate: plr.LinearWarmup(
        rate, 3, 0.0, rate)),
    scheduled("warm-up counts from one", torch_lambda(warmup(3)), paddle_lambda(
        late(warmup(3), by=1))),
    scheduled("warm-up from a tenth", torch_lambda(lambda n: min(n / 4, 1.0)),
              lambda rate: plr.LinearWarmup(rate, 4, 0.1 * rate, rate)),
    scheduled("inverse root without its warm-up", torch_lambda(
        lambda n: min(n / 3, 1.0) * _inverse_root(n)), paddle_lambda(_inverse_root)),
    scheduled("constant", _exponential, paddle_lambda(lambda n: 1.0)),
    scheduled("restarts", lambda it: tlr.CosineAnnealingWarmRestarts(it, 3),
              lambda rate: plr.CosineAnnealingWarmRestarts(rate, 3, 2), steps=8),
    scheduled("restarts left out", lambda it: tlr.CosineAnnealingWarmRestarts(it, 3),
              lambda rate: plr.CosineAnnealingDecay(rate, 3)),
    scheduled("with Adam, weights hardly tell", _exponential,
              lambda rate: plr.ExponentialDecay(rate, 0.9001),
              torch_optimizer=_adam, paddle_optimizer=made_paddle("Adam", 1e-2)),
]  # fmt: skip


def right(name, torch_optimizer=None, paddle_optimizer=None, **options) -> Case:
    """Return a correct pair."""
    options = {"torch_loss": ce(T), "paddle_loss": ce(P)} | options
    if torch_optimizer:
        options |= {"torch_optimizer": torch_optimizer, "paddle_optimizer": paddle_optimizer}
    return _cased(name, **options)


def _losses(name, torch_loss, paddle_loss, **options):
    return right(f"loss ok: {name}", torch_loss=torch_loss, paddle_loss=paddle_loss, **options)


def _frozen(kind):
    def build():
        model = kind()
        model.fc1.requires_grad_(False)
        return model

    return build


def _masked_mean(output: paddle.Tensor) -> paddle.Tensor:
    rows = ce(P, PADDED, reduction="none")(output)
    return rows.sum() / float((PADDED >= 0).sum())


def _live_parameters(model: torch.nn.Module) -> Iterable[torch.nn.Parameter]:
    return (it for it in model.parameters() if it.requires_grad)


def _decay_by_hand(model: paddle.nn.Layer) -> Any:
    """Return SGD with the L2 decay on each weight's own attribute."""
    for name, parameter in model.named_parameters():
        if _decayed(name):
            parameter.regularizer = paddle.regularizer.L2Decay(0.125)
    return paddle.optimizer.SGD(0.1, parameters=model.parameters())


def _torch_decay_groups(model: torch.nn.Module) -> torch.optim.SGD:
    named = dict(model.named_parameters())
    decayed = [it for name, it in named.items() if _decayed(name)]
    spared = [it for name, it in named.items() if not _decayed(name)]
    return torch.optim.SGD([{"params": spared}, {"params": decayed, "weight_decay": 0.125}], 0.1)


CORRECT = [
    _losses("cross entropy", ce(T), ce(P)),
    _losses("log-likelihood for cross entropy", ce(T), against(
        lambda o, t: P.nll_loss(P.log_softmax(o, -1), t), LABELS)),
    _losses("ignored labels, mean written out", ce(T, PADDED), _masked_mean),
    _losses("class weights", ce(T, weight=CLASSES), ce(P, weight=CLASSES)),
    _losses("label smoothing", ce(T, label_smoothing=0.1), ce(P, label_smoothing=0.1)),
    _losses("shares as soft labels", ce(T, SHARES), ce(P, SHARES, soft_label=True)),
    _losses("smooth absolute loss by Huber", against(T.smooth_l1_loss, SOFT, beta=0.25),
            against(lambda o, t: P.smooth_l1_loss(o, t, delta=0.25) / 0.25, SOFT)),
    _losses("divergence", _kl, against(lambda o, t: P.kl_div(
        P.log_softmax(o, -1), t, reduction="batchmean"), SHARES)),
    _losses("squares written out", _mse, against(lambda o, t: ((o - t) ** 2).mean(), SOFT)),
    _losses("two terms", _two(lambda o, h: ce(T)(o) + 0.1 * h.square().mean()),
            _two(lambda o, h: ce(P)(o) + 0.1 * h.square().mean()),
            torch_class=TorchTwoHeads, paddle_class=PaddleTwoHeads),
    _losses("only one of two outputs used", _two(lambda o, h: h.square().mean()),
            _two(lambda o, h: h.square().mean()),
            torch_class=TorchTwoHeads, paddle_class=PaddleTwoHeads),
    right("optimizer ok: SGD", made_torch("SGD", 0.1), made_paddle("SGD", 0.1)),
    right("optimizer ok: Momentum", _momentum, made_paddle("Momentum", 0.1, momentum=0.9)),
    right("optimizer ok: Nesterov with decay",
          made_torch("SGD", 0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
          made_paddle("Momentum", 0.1, momentum=0.9, use_nesterov=True, weight_decay=1e-3)),
    right("optimizer ok: Adam", _adam, made_paddle("Adam", 1e-2)),
    right("optimizer ok: Adam, coupled decay", made_torch("Adam", 1e-2, weight_decay=0.1),
          made_paddle("Adam", 1e-2, weight_decay=0.1)),
    right("optimizer ok: AdamW", _adamw, made_paddle("AdamW", 1e-2, weight_decay=0.1), steps=6),
    right("optimizer ok: Adagrad", made_torch("Adagrad", 1e-2), made_paddle(
        "Adagrad", 1e-2, epsilon=1e-10)),
    right("optimizer ok: groups for a function of names", torch_groups(), paddle_groups()),
    right("optimizer ok: groups with factors of the rate", torch_groups(head=10.0),
          paddle_group_list(head=10.0)),
    right("optimizer ok: decay on attributes", _torch_decay_groups, _decay_by_hand),
    right("optimizer ok: clipped elements", clipped_torch(0.02), made_paddle(
        "SGD", 0.1, grad_clip=paddle.nn.ClipGradByValue(0.02))),
    right("optimizer ok: frozen on both sides, left out in torch",
          lambda model: torch.optim.AdamW(_live_parameters(model), 1e-2, weight_decay=0.1),
          made_paddle("AdamW", 1e-2, weight_decay=0.1), torch_class=_frozen(TorchNet),
          change=freeze("fc1.weight", "fc1.bias")),
    scheduled("schedule ok: steps", _step, lambda rate: plr.StepDecay(rate, 2, 0.5), correct=True),
    scheduled("schedule ok: cosine past its end", _cosine, lambda rate: plr.CosineAnnealingDecay(
        rate, 8, 1e-3), steps=10, correct=True),
    scheduled("schedule ok: warm-up by a function", torch_lambda(lambda n: min(n / 4, 1.0)),
              lambda rate: plr.LinearWarmup(rate, 4, 0.0, rate), correct=True),
    scheduled("schedule ok: polynomial by a function", torch_lambda(lambda n: max(1 - n / 8, 0)),
              lambda rate: plr.PolynomialDecay(rate, 8, 0.0, 1.0), correct=True),
    scheduled("schedule ok: milestones, Adam", lambda it: tlr.MultiStepLR(it, [2, 4], 0.1),
              lambda rate: plr.MultiStepDecay(rate, [2, 4], 0.1), correct=True,
              torch_optimizer=_adam, paddle_optimizer=made_paddle("Adam", 1e-2)),
    scheduled("schedule ok: geometric, groups", _exponential,
              lambda rate: plr.ExponentialDecay(rate, 0.9), correct=True,
              torch_optimizer=torch_groups(), paddle_optimizer=paddle_groups()),
]  # fmt: skip

CASES = [*LOSSES, *OPTIMIZERS, *SCHEDULES, *CORRECT]
