"""The settings of Paddle's optimizers. `backends.torch.optimizer_settings` is the twin."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from reprod_align.backends.paddle import private
from reprod_align.backends.vocabulary import OPTIMIZERS, Readers, always, read_group
from reprod_align.model.settings import OptimizerSettings, Values, require_optimizer

import paddle
from paddle import nn


def optimizer_settings(optimizer: paddle.optimizer.Optimizer, model: nn.Layer) -> OptimizerSettings:
    """Return how the optimizer now treats each parameter of the model that it holds.

    Raises ReprodError if it is not an optimizer, MissingNameError if its settings cannot be read.
    """
    wanted = ("step", "get_lr", "clear_grad")
    require_optimizer(optimizer, "paddle.optimizer.Optimizer", wanted)
    bases = type(optimizer).__mro__
    kind = next((_OPTIMIZERS[base] for base in bases if base in _OPTIMIZERS), "")
    groups = {
        id(held): group for group in private.read_groups(optimizer) for held in group["params"]
    }
    settings = {
        name: _parameter_settings(kind, optimizer, parameter, groups[id(parameter)])
        for name, parameter in model.state_dict().items()  # it has every name of a shared parameter
        if id(parameter) in groups
    }
    return OptimizerSettings(kind, type(optimizer).__name__, settings, _clip(optimizer))


def _parameter_settings(
    kind: str, optimizer: paddle.optimizer.Optimizer, parameter: Any, group: Values
) -> dict[str, Any]:
    settings = {"frozen": parameter.stop_gradient, "lr": _learning_rate(optimizer, parameter)}
    settings |= _decay(kind, optimizer, parameter, group)
    return settings | read_group(kind, group, _USUAL_GROUP, _OWN_GROUPS)


def _learning_rate(optimizer: paddle.optimizer.Optimizer, parameter: Any) -> float:
    # A group's learning_rate is kept on its parameters: it multiplies the optimizer's.
    own = float(parameter.optimize_attr.get("learning_rate", 1.0))
    ratio = private.read_rate_ratio(optimizer)
    return float(optimizer.get_lr()) * own * (float(ratio(parameter)) if ratio else 1.0)


def _decay(
    kind: str, optimizer: paddle.optimizer.Optimizer, parameter: Any, group: Values
) -> dict[str, Any]:
    if not kind or kind == "Rprop":
        return {}
    l1_decay, l2_decay = _regularization(optimizer, parameter, group)
    if kind != "AdamW":
        decoupled = {"decoupled": False} if l2_decay else {}
        return {"weight_decay": l2_decay, "l1_decay": l1_decay} | decoupled
    decays = private.read_decay_choice(optimizer)
    skipped = decays is not None and not decays(parameter.name)
    decay = 0.0 if skipped else float(group["weight_decay"])
    coupled = {"l1_decay": l1_decay, "l2_decay": l2_decay}
    return {"weight_decay": decay} | coupled | ({"decoupled": True} if decay else {})


def _regularization(
    optimizer: paddle.optimizer.Optimizer, parameter: Any, group: Values
) -> tuple[float, float]:
    """Return the coefficients of L1 and L2 decay."""
    regularizer = getattr(parameter, "regularizer", None) or optimizer.regularization
    if isinstance(regularizer, paddle.regularizer.L1Decay):
        return private.read_coefficient(regularizer), 0.0
    if regularizer is None:  # Momentum keeps the coefficient itself
        return 0.0, float(group.get("regularization_coeff", 0.0))
    return 0.0, private.read_coefficient(regularizer)


def _pair_of(name: str) -> Callable[[Values], tuple[float, ...]]:
    """Return a reader: Rprop keeps a list of one pair, and from the first step on a tensor of it."""
    return lambda group: tuple(paddle.to_tensor(group[name], "float64").flatten().tolist())


def _clip(optimizer: paddle.optimizer.Optimizer) -> Values | None:
    clips = [_one_clip(group["grad_clip"]) for group in private.read_groups(optimizer)]
    if any(clip != clips[0] for clip in clips):
        return {"kind": "each group in its own way"}
    if clips[0] is not None and clips[0]["kind"] == "global norm" and len(clips) > 1:
        return clips[0] | {"kind": "the norm of each parameter group"}
    return clips[0]


def _one_clip(clip: Any) -> dict[str, Any] | None:
    if clip is None:
        return None
    if isinstance(clip, nn.ClipGradByValue):
        return {"kind": "value", "min": clip.min, "max": clip.max}
    if isinstance(clip, nn.ClipGradByNorm):
        return {"kind": "the norm of each parameter", "max_norm": clip.clip_norm}
    if isinstance(clip, nn.ClipGradByGlobalNorm):
        return {"kind": "global norm", "max_norm": clip.clip_norm}
    return {"kind": type(clip).__name__}


_USUAL_GROUP: Final[Readers] = {
    "alpha": "rho",
    "betas": lambda group: (group["beta1"], group["beta2"]),
    "dampening": always(0.0),
    "eps": "epsilon",
    "etas": _pair_of("etas"),
    "lr_decay": always(0.0),
    "maximize": always(False),
    "momentum": lambda group: group.get("momentum", 0.0),
    "nesterov": lambda group: bool(group.get("use_nesterov")),
    "step_sizes": _pair_of("learning_rate_range"),
}
_OWN_GROUPS: Final[Mapping[str, Readers]] = {
    "RMSprop": {"eps_place": always("inside the root")},
    "Adamax": {"eps_place": always("norm")},
}
_OTHER_OPTIMIZERS: Final = {"SGD": ("SGD", "Momentum"), "RMSprop": ("RMSProp",)}
_OPTIMIZERS: Final[Mapping[type, str]] = {
    getattr(paddle.optimizer, name): kind
    for kind in OPTIMIZERS
    for name in _OTHER_OPTIMIZERS.get(kind, (kind,))
    if hasattr(paddle.optimizer, name)  # an older Paddle lacks some
}
