"""The faults of a port's training that a self-test plants: loss, optimizer, schedule."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs
from reprod_align.selftest import plant as planting
from reprod_align.selftest.fault import Fault, Plant
from reprod_align.selftest.plant import Seen

import numpy as np
import paddle

Change = Callable[[Any, Any], None]

_NO_LOSS = "no loss is given: give torch_loss and paddle_loss"
_NO_OPTIMIZER = "no optimizer is given: give torch_optimizer and paddle_optimizer"
_LOSS_KINDS = ("loss times the batch size", "ignored labels counted")
_OPTIMIZER_KINDS = ("another weight decay", "a parameter missing from the optimizer")


def training_faults(side: LocalSide, inputs: Inputs, seen: Seen, steps: int) -> list[Fault]:
    """Return every kind of fault in what trains the model. Call inside `working`."""
    losses = [_scaled_loss(inputs), _ignored_labels(seen)] if side.loss else _hidden_losses()
    if side.optimizer is None:
        return losses + [_hidden(kind, _NO_OPTIMIZER) for kind in _OPTIMIZER_KINDS]
    optimizer = side.optimizer(side.model)
    found = [_other_decay(optimizer), _decay_elsewhere(optimizer), _other_epsilon(optimizer),
             _other_betas(optimizer), _missing(optimizer, side, seen), _unclipped(optimizer)]  # fmt: skip
    return losses + found + [_schedule(side, steps)]


def _hidden_losses() -> list[Fault]:
    return [_hidden(kind, _NO_LOSS) for kind in _LOSS_KINDS[:1]]


def _hidden(kind: str, hint: str) -> Fault:
    """Return a fault that no comparison can show: what it is in was not given."""
    return Fault(
        kind, "", lambda side: planting.with_loss(side, lambda own, output: own(output)), hint
    )


# -------------------------------------------------------------------- loss


def _scaled_loss(inputs: Inputs) -> Fault:
    arrays = inputs.values() if isinstance(inputs, Mapping) else inputs
    size = next((array.shape[0] for array in arrays if np.asarray(array).ndim), 1)
    hint = "the batch holds one example: its sum is its mean; give several" if size == 1 else ""

    def scaled(own: Any, output: Any) -> Any:
        return own(output) * size

    return Fault(_LOSS_KINDS[0], "", lambda side: planting.with_loss(side, scaled), hint)


def _ignored_labels(seen: Seen) -> Fault:
    calls = seen.sites["cross_entropy"].get("", [])
    hard = [call for call in calls if isinstance(call["label"], np.ndarray)]
    if not hard:
        return Fault(_LOSS_KINDS[1], "", None, "the loss calls no cross_entropy on class labels")
    ignored = hard[0].get("ignore_index", -100)
    held = any((call["label"] == ignored).any() for call in hard)
    hint = "" if held else f"no label is {ignored}: give some labels that are ignored"

    def counted(own: Any, output: Any) -> Any:
        with planting.function_as("cross_entropy", _counting):
            return own(output)

    return Fault(_LOSS_KINDS[1], "", lambda side: planting.with_loss(side, counted), hint)


def _counting(own: Any, arguments: dict[str, Any]) -> Any:
    """Take labels that should be ignored for a class, 0 or 1."""
    label, ignored = arguments["label"], arguments.get("ignore_index", -100)
    counted = paddle.where(label == ignored, paddle.full_like(label, ignored == 0), label)
    return own(**{**arguments, "label": counted})


# -------------------------------------------------------------------- optimizer


def _in_optimizer(kind: str, change: Change | None, text: str = "", module: str = "") -> Fault:
    plant: Plant | None = None
    if change is not None:

        def plant(side: LocalSide) -> AbstractContextManager[LocalSide]:
            return planting.with_optimizer(side, change)

    return Fault(kind, module, plant, text, in_steps=True)


def _groups(optimizer: Any) -> list[dict[str, Any]]:
    groups = optimizer._param_groups
    return groups if groups and isinstance(groups[0], dict) else []


def _give(optimizer: Any, names: Sequence[str], new: Callable[[Any], Any]) -> None:
    """Let new(value) take the place of these settings wherever the optimizer keeps them."""
    if _groups(optimizer):  # its groups may be the user's own dicts
        optimizer._param_groups = [dict(group) for group in optimizer._param_groups]
    defaults = getattr(optimizer, "_default_dict", None) or {}
    optimizer._default_dict = dict(defaults)
    for name in names:
        for holder in (optimizer._default_dict, *_groups(optimizer)):
            if holder.get(name) is not None:
                holder[name] = new(holder[name])
        for own in (f"_{name}", name):
            if vars(optimizer).get(own) is not None:
                setattr(optimizer, own, new(getattr(optimizer, own)))


_DECAYS = ("weight_decay", "regularization_coeff", "regularization")


def _coefficient(value: Any) -> float:
    return float(getattr(value, "_coeff", value))


def _decays(optimizer: Any) -> list[float]:
    held = [vars(optimizer).get("_weight_decay"), vars(optimizer).get("_regularization_coeff"),
            optimizer.regularization, *(group.get(name) for group in _groups(optimizer)
                                        for name in _DECAYS)]  # fmt: skip
    return [_coefficient(value) for value in held if value is not None]


def _other_decay(optimizer: Any) -> Fault:
    kind = _OPTIMIZER_KINDS[0]
    if any(_decays(optimizer)):
        return _in_optimizer(kind, lambda made, model: _give(made, _DECAYS, _doubled))
    if _groups(optimizer):
        return _in_optimizer(kind, None, "the optimizer's groups do not decay")
    return _in_optimizer(kind, _add_decay)


def _doubled(value: Any) -> Any:
    double = 2 * _coefficient(value)
    return type(value)(double) if hasattr(value, "_coeff") else double


def _add_decay(optimizer: Any, model: Any) -> None:
    if isinstance(optimizer, paddle.optimizer.AdamW):
        _give(optimizer, ["weight_decay"], lambda value: 0.01)
    else:
        optimizer.regularization = paddle.regularizer.L2Decay(0.01)


def _decay_elsewhere(optimizer: Any) -> Fault:
    kind = "decay on biases and norms"
    decays = _decays(optimizer)
    if not any(decays):
        return _in_optimizer(kind, None, "the optimizer has no weight decay")
    if vars(optimizer).get("_apply_decay_param_fun") is not None:
        return _in_optimizer(kind, _decay_all)
    if len({_coefficient(group.get("weight_decay") or 0.0) for group in _groups(optimizer)}) > 1:
        largest = max(decays)
        return _in_optimizer(
            kind, lambda made, model: _give(made, _DECAYS[:1], lambda value: largest)
        )
    if isinstance(optimizer, paddle.optimizer.AdamW):
        return _in_optimizer("no decay on biases and norms", _spare_vectors)
    return _in_optimizer(kind, None, "the optimizer decays every parameter alike")


def _decay_all(optimizer: Any, model: Any) -> None:
    optimizer._apply_decay_param_fun = None


def _spare_vectors(optimizer: Any, model: Any) -> None:
    wide = {parameter.name for parameter in model.parameters() if parameter.ndim > 1}
    optimizer._apply_decay_param_fun = wide.__contains__


def _other_epsilon(optimizer: Any) -> Fault:
    kind, own = "optimizer's epsilon", vars(optimizer).get("_epsilon")
    if not isinstance(own, float):
        return _in_optimizer(kind, None, "the optimizer has no epsilon")
    other = 1e-6 if own <= 1e-8 else 1e-8
    change = partial(_given, names=("epsilon",), value=other)
    return _in_optimizer(f"optimizer's epsilon {own:g} -> {other:g}", change)


def _other_betas(optimizer: Any) -> Fault:
    kind, own = "beta2", vars(optimizer).get("_beta2")
    if not isinstance(own, float):
        return _in_optimizer(kind, None, "the optimizer has no betas")
    other = 0.98 if own > 0.98 else 0.999
    change = partial(_given, names=("beta2",), value=other)
    return _in_optimizer(f"beta2 {own:g} -> {other:g}", change)


def _given(optimizer: Any, model: Any, names: Sequence[str], value: float) -> None:
    _give(optimizer, names, lambda own: value)


def _missing(optimizer: Any, side: LocalSide, seen: Seen) -> Fault:
    """Take a parameter out of the optimizer."""
    held = {id(p) for p in _parameters(optimizer)}
    gradients = seen.trace.gradients
    named = [(name, parameter) for name, parameter in side.model.named_parameters()
             if id(parameter) in held and np.any(gradients.get(name, 0.0))]  # fmt: skip
    if not named:
        return _in_optimizer(_OPTIMIZER_KINDS[1], None, "the optimizer holds no parameter in use")
    name, left_out = named[len(named) // 2]

    def leave_out(made: Any, model: Any) -> None:
        for owner in ("_param_groups", "_parameter_list"):
            setattr(made, owner, [_without(group, left_out) for group in getattr(made, owner)
                                  if group is not left_out])  # fmt: skip

    return _in_optimizer(_OPTIMIZER_KINDS[1], leave_out, module=name)


def _parameters(optimizer: Any) -> list[Any]:
    groups = _groups(optimizer)
    return [p for group in groups for p in group["params"]] if groups else optimizer._parameter_list


def _without(group: Any, parameter: Any) -> Any:
    if not isinstance(group, dict):
        return group
    return {**group, "params": [one for one in group["params"] if one is not parameter]}


def _unclipped(optimizer: Any) -> Fault:
    kind = "gradients not clipped"
    clips = [optimizer._grad_clip, *(group.get("grad_clip") for group in _groups(optimizer))]
    if not any(clip is not None for clip in clips):
        return _in_optimizer(kind, None, "the optimizer does not clip")
    hint = "the gradients stay below the clip: give a loss with larger gradients"

    def unclip(made: Any, model: Any) -> None:
        made._grad_clip = None
        _give(made, ["grad_clip"], lambda clip: None)

    return _in_optimizer(kind, unclip, hint)


def _schedule(side: LocalSide, steps: int) -> Fault:
    kind = "schedule ahead by one step"
    optimizer = side.optimizer(side.model) if side.optimizer else None
    if side.scheduler is None and side.fw.own_scheduler(optimizer) is None:
        return Fault(kind, "", None, "the learning rate is no schedule", in_steps=True)
    rates = {tuple(rates) for rates in side.rates(steps + 1)}
    hint = f"the rate stays the same for {steps} steps: give more steps" if len(rates) == 1 else ""
    return Fault(kind, "", planting.ahead, hint, in_steps=True)
