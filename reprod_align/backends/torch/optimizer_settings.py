"""The settings of PyTorch's optimizers. `backends.paddle.optimizer_settings` is the twin."""

from collections.abc import Mapping
from inspect import unwrap
from typing import Any, Final

from reprod_align.backends.torch.private import step_hooks
from reprod_align.backends.vocabulary import OPTIMIZERS, Readers, always, read_group
from reprod_align.model.settings import OptimizerSettings, Values, require_optimizer

import torch
from torch import nn


def optimizer_settings(optimizer: torch.optim.Optimizer, model: nn.Module) -> OptimizerSettings:
    """Return how the optimizer now treats each parameter of the model that it holds.

    Raises ReprodError if it is not an optimizer.
    """
    require_optimizer(optimizer, "torch.optim.Optimizer", ("param_groups", "step"))
    bases = type(optimizer).__mro__
    kind = next((_OPTIMIZERS[base] for base in bases if base in _OPTIMIZERS), "")
    groups = {id(held): group for group in optimizer.param_groups for held in group["params"]}
    settings = {
        name: _parameter_settings(kind, parameter, groups[id(parameter)])
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if id(parameter) in groups
    }
    return OptimizerSettings(kind, type(optimizer).__name__, settings, _clip(optimizer))


def _parameter_settings(kind: str, parameter: Any, group: Values) -> dict[str, Any]:
    settings = {"frozen": not parameter.requires_grad, "lr": float(group["lr"])}
    return settings | _decay(kind, group) | read_group(kind, group, {}, _OWN_GROUPS)


def _decay(kind: str, group: Values) -> dict[str, Any]:
    if not kind or kind == "Rprop":
        return {}
    decay = float(group["weight_decay"])
    decoupled = kind == "AdamW" or bool(group.get("decoupled_weight_decay", False))
    coupled = {"l1_decay": 0.0} | ({"l2_decay": 0.0} if kind == "AdamW" else {})
    return {"weight_decay": decay} | coupled | ({"decoupled": decoupled} if decay else {})


def _clip(optimizer: torch.optim.Optimizer) -> Values | None:
    # A hook or a step() of the user's own may clip, or do anything else: its code is not read.
    if step_hooks(optimizer):
        return {"kind": "step pre-hook"}
    stock: Any = next((base for base in type(optimizer).__mro__ if base in _OPTIMIZERS), None)
    step = unwrap(optimizer.step)  # of a subclass, or set on the optimizer itself
    own = stock is not None and getattr(step, "__func__", step) is not unwrap(stock.step)
    return {"kind": "step() of its own"} if own else None


_OWN_GROUPS: Final[Mapping[str, Readers]] = {
    "RMSprop": {"eps_place": always("outside the root")},
    "Adamax": {"eps_place": always("gradient")},
}
_OPTIMIZERS: Final[Mapping[type, str]] = {getattr(torch.optim, kind): kind for kind in OPTIMIZERS}
