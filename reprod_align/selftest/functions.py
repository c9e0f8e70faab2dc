"""Faults in functions and in layers without weights: activations, softmax, pools, dropout."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reprod_align.selftest.fault import Fault, Found, fault_at, plantable
from reprod_align.selftest.plant import (
    POOLS,
    Arguments,
    Forward,
    replace_call,
    replace_forward,
    set_attributes,
)
from reprod_align.selftest.view import Site, View, middle

import numpy as np
from paddle import nn
from paddle.nn import functional

_RECURRENT = (nn.SimpleRNN, nn.LSTM, nn.GRU)
_BATCH_NORMS = (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D)


@plantable("gelu: erf <-> tanh")
def swap_gelu_form(view: View) -> Found:
    """Use the other formula of gelu."""

    def swap(own: Forward, arguments: Arguments) -> Any:
        tanh = arguments.get("approximate") in (True, "tanh")
        return own(**{**arguments, "approximate": not tanh})

    return _change_call(view, view.sites("gelu"), swap) or "no gelu"


@plantable("relu <-> gelu")
def swap_relu_gelu(view: View) -> Found:
    """Use relu for gelu, or gelu for relu where there is no gelu."""
    name, other = ("gelu", "relu") if view.sites("gelu") else ("relu", "gelu")

    def swap(own: Forward, arguments: Arguments) -> Any:
        return getattr(functional, other)(arguments["x"])

    fault = _change_call(view, view.sites(name), swap, kind=f"{name} -> {other}")
    return fault or "neither gelu nor relu"


@plantable("softmax over another axis")
def move_softmax_axis(view: View) -> Found:
    """Take the softmax over the axis before its own."""

    def move(own: Forward, arguments: Arguments) -> Any:
        rank = arguments["x"].ndim
        axis = arguments.get("axis", -1) % rank
        return own(**{**arguments, "axis": axis - 1 if axis else min(1, rank - 1)})

    sites = view.sites("softmax")
    wide = [site for site in sites if max(view.arguments(site)["x"][-2:], default=1) > 1]
    hint = "" if wide else "it runs over a single number: give longer sequences"
    return _change_call(view, wide or sites, move, hint) or "no softmax"


@plantable("average pool: exclusive flag")
def flip_exclusive(view: View) -> Found:
    """Count the padding in where it is left out, and the other way round."""

    def flip(own: Forward, arguments: Arguments) -> Any:
        return own(**{**arguments, "exclusive": not arguments.get("exclusive", True)})

    sites = view.sites(*(f"avg_pool{dims}d" for dims in (1, 2, 3)))
    padded = [site for site in sites if np.any(view.arguments(site).get("padding", 0))]
    return _change_call(view, padded, flip) or "no average pool with padding"


@plantable("max <-> average pool")
def swap_pool(view: View) -> Found:
    """Take the average for the largest, or the largest for the average."""
    sites = [site for site in view.sites(*POOLS) if _kernel(view.arguments(site)) != {1}]
    if not sites:
        return "no pool"
    name, path = middle(sites)
    other = name.replace("max", "avg") if "max" in name else name.replace("avg", "max")

    def swap(own: Forward, arguments: Arguments) -> Any:
        names = ("x", "kernel_size", "stride", "padding", "ceil_mode", "output_size")
        return getattr(functional, other)(**{n: arguments[n] for n in names if n in arguments})

    make = partial(replace_call, view.layers[path], name, swap)
    return fault_at(path, make, "each window holds one number", f"{name} -> {other}")


def _kernel(arguments: Arguments) -> set[Any]:
    return set(np.atleast_1d(arguments.get("kernel_size", 0)).tolist())


@plantable("dropout rate halved")
def halve_dropout(view: View) -> Found:
    """Drop half as often."""

    def halve(own: Forward, arguments: Arguments) -> Any:
        return own(**{**arguments, "p": arguments.get("p", 0.5) / 2})

    return _change_call(view, _dropouts(view), halve) or _change_rate(view, 0.5)


@plantable("dropout left out")
def leave_dropout_out(view: View) -> Found:
    """Drop nothing."""

    def leave_out(own: Forward, arguments: Arguments) -> Any:
        return arguments["x"]

    return _change_call(view, _dropouts(view), leave_out) or _change_rate(view, 0.0)


@plantable("a layer stuck in eval mode")
def stick_in_eval(view: View) -> Found:
    """Run a dropout or a batch norm in eval mode all the time."""
    paths = [path for _, path in _dropouts(view)] + _recurrent(view)
    paths += [path for path, _ in view.of(*_BATCH_NORMS)]
    if not paths:
        return "no layer that differs between train and eval mode"
    path = middle(paths)
    layer = view.layers[path]

    def evaluate(own: Forward, *args: Any, **kwargs: Any) -> Any:
        with set_attributes(layer, {"training": False}):
            return own(*args, **kwargs)

    return fault_at(path, partial(replace_forward, layer, evaluate))


def _dropouts(view: View) -> list[Site]:
    return [site for site in view.sites("dropout") if view.arguments(site).get("p", 0.5) > 0]


def _recurrent(view: View) -> list[str]:
    """Return the recurrent layers that drop out between their own layers."""
    return [
        path for path, layer in view.of(*_RECURRENT) if layer.dropout > 0 and layer.num_layers > 1
    ]


def _change_rate(view: View, factor: float) -> Found:
    """Return a fault in the dropout inside a recurrent layer, or that there is no dropout at all."""
    paths = _recurrent(view)
    if not paths:
        return "no dropout with p > 0"
    path = middle(paths)
    layer = view.layers[path]
    return fault_at(path, partial(set_attributes, layer, {"dropout": layer.dropout * factor}))


def _change_call(
    view: View,
    sites: Sequence[Site],
    change: Callable[[Forward, Arguments], Any],
    hint: str = "",
    kind: str = "",
) -> Fault | None:
    """Return a fault that changes the middle one of these calls; None without a call."""
    if not sites:
        return None
    name, path = middle(sites)
    return fault_at(path, partial(replace_call, view.layers[path], name, change), hint, kind)
