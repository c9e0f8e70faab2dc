"""Faults in what trains the model: loss, optimizer, schedule."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from reprod_align.selftest.plant import (
    Arguments,
    Finder,
    Forward,
    Found,
    NoPlace,
    PlantedFault,
    View,
    advance_schedule,
    change_optimizer,
    replace_function,
    replace_loss,
    take_middle,
)

import numpy as np
import paddle

OptimizerChange = Callable[[Any, Any], None]
"""changes an optimizer; called with it and the model"""

_NO_LOSS = "no loss is given: give torch_loss and paddle_loss"
_NO_OPTIMIZER = "no optimizer is given: give torch_optimizer and paddle_optimizer"
_IGNORED = -100  # a label, in both frameworks' losses
_DECAYS = ("weight_decay", "regularization_coeff", "regularization")


def _hide(hint: str) -> PlantedFault:
    """Return a fault that no comparison can show: the loss or the optimizer it is in was not given."""
    return _in_loss(lambda own, output: own(output), hint)


# ---------------------------------------------------------------------- loss


def _in_loss(change: Callable[[Any, Any], Any], hint: str) -> PlantedFault:
    return PlantedFault("", lambda side: replace_loss(side, change), hint)


def scale_loss(view: View) -> Found:
    """Take the sum over the batch for its mean."""
    if view.side.loss is None:
        return _hide(_NO_LOSS)
    size = next((array.shape[0] for array in view.arrays().values() if array.ndim), 1)
    hint = "the batch holds one example: its sum is its mean; give several" if size == 1 else ""
    return _in_loss(lambda own, output: own(output) * size, hint)


def count_ignored_labels(view: View) -> Found:
    """Let the loss count the labels that it should ignore."""
    if view.side.loss is None:
        return []
    calls = view.calls["cross_entropy"].get("", [])
    hard = [call for call in calls if isinstance(call["label"], np.ndarray)]
    if not hard:
        raise NoPlace("the loss calls no cross_entropy on class labels")
    ignored = hard[0].get("ignore_index", _IGNORED)
    held = any((call["label"] == ignored).any() for call in hard)
    if not held and ignored == _IGNORED and _has_one_label_each(view, hard):
        raise NoPlace("each example has one label, and none is ignored")

    def count(own: Any, output: Any) -> Any:
        with replace_function("cross_entropy", _count_ignored):
            return own(output)

    return _in_loss(
        count, "" if held else f"no label is {ignored}: give some labels that are ignored"
    )


def _has_one_label_each(view: View, calls: Sequence[Arguments]) -> bool:
    """Tell whether each example has one label; labels of words or pixels may be padding, which is ignored."""
    sizes = {array.shape[0] for array in view.arrays().values() if array.ndim}
    return len(sizes) == 1 and all({call["label"].size} == sizes for call in calls)


def _count_ignored(own: Forward, arguments: Arguments) -> Any:
    """Take labels that should be ignored for a class, 0 or 1."""
    label, ignored = arguments["label"], arguments.get("ignore_index", _IGNORED)
    counted = paddle.where(label == ignored, paddle.full_like(label, ignored == 0), label)
    return own(**{**arguments, "label": counted})


# ---------------------------------------------------------------------- optimizer


def _with_optimizer(
    find: Callable[[View, Any], Found], without: Sequence[PlantedFault] = ()
) -> Finder:
    """Return the finder of a fault of the optimizer, found by find(view, optimizer); `without` one, these."""
    return lambda view: list(without) if view.optimizer is None else find(view, view.optimizer)


def _in_optimizer(
    change: OptimizerChange, hint: str = "", kind: str = "", module: str = ""
) -> PlantedFault:
    return PlantedFault(
        module, lambda side: change_optimizer(side, change), hint, kind, in_steps=True
    )


def change_decay(view: View, optimizer: Any) -> Found:
    """Double the weight decay, or add one."""
    if any(_list_decays(optimizer)):
        return _in_optimizer(_double_decay)
    if _list_groups(optimizer):
        raise NoPlace("the optimizer's groups do not decay")
    return _in_optimizer(_add_decay)


def _double_decay(optimizer: Any, model: Any) -> None:
    def double(value: Any) -> Any:
        doubled = 2 * _read_coefficient(value)
        return type(value)(doubled) if hasattr(value, "_coeff") else doubled

    _set(optimizer, _DECAYS, double)


def _add_decay(optimizer: Any, model: Any) -> None:
    if isinstance(optimizer, paddle.optimizer.AdamW):
        _set(optimizer, ["weight_decay"], lambda value: 0.01)
    else:
        optimizer.regularization = paddle.regularizer.L2Decay(0.01)


def decay_elsewhere(view: View, optimizer: Any) -> Found:
    """Let other parameters decay."""
    decays = _list_decays(optimizer)
    if not any(decays):
        raise NoPlace("the optimizer has no weight decay")
    if vars(optimizer).get("_apply_decay_param_fun") is not None:
        return _in_optimizer(_decay_all)
    groups = _list_groups(optimizer)
    if len({_read_coefficient(group.get("weight_decay") or 0.0) for group in groups}) > 1:
        return _in_optimizer(lambda made, model: _set(made, _DECAYS[:1], lambda own: max(decays)))
    if isinstance(optimizer, paddle.optimizer.AdamW):
        return _in_optimizer(_spare_vectors, kind="no decay on biases and norms")
    raise NoPlace("the optimizer decays every parameter alike")


def _decay_all(optimizer: Any, model: Any) -> None:
    optimizer._apply_decay_param_fun = None


def _spare_vectors(optimizer: Any, model: Any) -> None:
    wide = {parameter.name for parameter in model.parameters() if parameter.ndim > 1}
    optimizer._apply_decay_param_fun = wide.__contains__


def _in_number(
    kind: str, name: str, lacks: str, choose: Callable[[float], float]
) -> Callable[[View, Any], Found]:
    """Return what finds a fault of an optimizer: one of its numbers is the other usual one."""

    def find(view: View, optimizer: Any) -> Found:
        own = vars(optimizer).get(f"_{name}")
        if not isinstance(own, float):
            raise NoPlace(lacks)
        other = choose(own)
        words = f"{kind} {own:g} -> {other:g}"
        return _in_optimizer(
            lambda made, model: _set(made, [name], lambda value: other), kind=words
        )

    return find


change_optimizer_epsilon = _in_number(
    "optimizer's epsilon", "epsilon", "the optimizer has no epsilon",
    lambda own: 1e-6 if own <= 1e-8 else 1e-8,
)  # fmt: skip
change_beta2 = _in_number(
    "beta2", "beta2", "the optimizer has no betas", lambda own: 0.98 if own > 0.98 else 0.999
)


def leave_parameter_out(view: View, optimizer: Any) -> Found:
    """Take a parameter out of the optimizer."""
    groups = _list_groups(optimizer)
    every = (
        [p for group in groups for p in group["params"]] if groups else optimizer._parameter_list
    )
    held = {id(parameter) for parameter in every}
    named = [(name, parameter) for name, parameter in view.side.model.named_parameters()
             if id(parameter) in held and np.any(view.trace.gradients.get(name, 0.0))]  # fmt: skip
    name, left_out = take_middle(named, "the optimizer holds no parameter in use")

    def leave_out(made: Any, model: Any) -> None:
        for owner in ("_param_groups", "_parameter_list"):
            setattr(made, owner, [_drop_from_group(group, left_out) for group in getattr(made, owner)
                                  if group is not left_out])  # fmt: skip

    return _in_optimizer(leave_out, module=name)


def _drop_from_group(group: Any, parameter: Any) -> Any:
    if not isinstance(group, dict):
        return group
    return {**group, "params": [one for one in group["params"] if one is not parameter]}


def leave_clip_out(view: View, optimizer: Any) -> Found:
    """Clip no gradients."""
    clips = [optimizer._grad_clip, *(group.get("grad_clip") for group in _list_groups(optimizer))]
    if not any(clip is not None for clip in clips):
        raise NoPlace("the optimizer does not clip")

    def unclip(made: Any, model: Any) -> None:
        made._grad_clip = None
        _set(made, ["grad_clip"], lambda clip: None)

    return _in_optimizer(
        unclip, "the gradients stay below the clip: give a loss with larger gradients"
    )


def run_schedule_ahead(view: View, optimizer: Any) -> Found:
    """Start the schedule one step late."""
    side = view.side
    if side.scheduler is None and side.fw.own_scheduler(optimizer) is None:
        raise NoPlace("the learning rate does not follow a schedule")
    rates = {tuple(rates) for rates in side.rates(view.steps + 1)}
    same = f"the rate stays the same for {view.steps} steps: give more steps"
    return PlantedFault("", advance_schedule, same if len(rates) == 1 else "", in_steps=True)


# ---------------------------------------------------------------------- how Paddle keeps settings


def _list_groups(optimizer: Any) -> list[dict[str, Any]]:
    groups = optimizer._param_groups
    return groups if groups and isinstance(groups[0], dict) else []


def _set(optimizer: Any, names: Sequence[str], new: Callable[[Any], Any]) -> None:
    """Let new(value) take the place of these settings wherever the optimizer keeps them."""
    if _list_groups(optimizer):  # its groups may be the user's own dicts
        optimizer._param_groups = [dict(group) for group in optimizer._param_groups]
    optimizer._default_dict = dict(getattr(optimizer, "_default_dict", None) or {})
    for name in names:
        for holder in (optimizer._default_dict, *_list_groups(optimizer)):
            if holder.get(name) is not None:
                holder[name] = new(holder[name])
        for own in (f"_{name}", name):
            if vars(optimizer).get(own) is not None:
                setattr(optimizer, own, new(getattr(optimizer, own)))


def _read_coefficient(value: Any) -> float:
    return float(getattr(value, "_coeff", value))


def _list_decays(optimizer: Any) -> list[float]:
    held = [vars(optimizer).get("_weight_decay"), vars(optimizer).get("_regularization_coeff"),
            optimizer.regularization, *(group.get(name) for group in _list_groups(optimizer)
                                        for name in _DECAYS)]  # fmt: skip
    return [_read_coefficient(value) for value in held if value is not None]


FAULTS: Final[Mapping[str, Finder]] = {
    "loss times the batch size": scale_loss,
    "ignored labels counted": count_ignored_labels,
    "another weight decay": _with_optimizer(change_decay, [_hide(_NO_OPTIMIZER)]),
    "decay on biases and norms": _with_optimizer(decay_elsewhere),
    "optimizer's epsilon": _with_optimizer(change_optimizer_epsilon),
    "beta2": _with_optimizer(change_beta2),
    "a parameter missing from the optimizer": _with_optimizer(
        leave_parameter_out, [_hide(_NO_OPTIMIZER)]
    ),
    "gradients not clipped": _with_optimizer(leave_clip_out),
    "schedule ahead by one step": _with_optimizer(run_schedule_ahead),
}
"""kind of fault -> what finds its place in a model"""
