"""Faults in what layers compute and hold: settings, functions, weights, gradients."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import combinations
from typing import Any, Final

from reprod_align.backends import replace_attribute
from reprod_align.base.text import parent
from reprod_align.model import SYNONYMS
from reprod_align.randomness import KeyedDraws
from reprod_align.selftest.plant import (
    POOLS,
    Arguments,
    Finder,
    Forward,
    Found,
    FunctionUse,
    NamedLayer,
    PlantedFault,
    View,
    change_tensors,
    fault_at,
    find_largest_gradient,
    keep_as_buffer,
    read,
    replace_call,
    replace_forward,
    replace_parameters,
    set_attributes,
    take_middle,
)

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

_BATCH_NORMS = (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D)
_RECURRENT = (nn.SimpleRNN, nn.LSTM, nn.GRU)
_CONVS = (nn.Conv1D, nn.Conv2D, nn.Conv3D)
_EPS_NAMES = tuple(f"{mark}{name}" for name in sorted(SYNONYMS["eps"]) for mark in ("_", ""))
_USUAL_EPS = {1e-12: 1e-5, 1e-5: 1e-12, 1e-6: 1e-5}
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm, nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D,
          nn.InstanceNorm1D, nn.InstanceNorm2D, nn.InstanceNorm3D)  # fmt: skip
# A norm's kernel leaves out or changes other gradients where one of its parameters takes none; the
# recurrent networks keep lists of their parameters too.
_ENTANGLED = (*_NORMS, *_RECURRENT)
_NO_GRADIENT = "no layer's output carries a gradient"
_NOTHING_TRAINED = "no parameter gets a gradient"
_SEED = 20217


def change_epsilon(view: View) -> Found:
    """Give a norm the epsilon of another framework or model."""
    places = [(path, name) for path, layer in view.layers.items() for name in _EPS_NAMES
              if isinstance(vars(layer).get(name), float) and 0 < vars(layer)[name] < 0.1]  # fmt: skip
    path, name = take_middle(places, "no layer with an epsilon")
    layer = view.layers[path]
    own = vars(layer)[name]
    other = _USUAL_EPS.get(own, own * 10)
    hint = "its inputs vary so much that epsilon does not count: give inputs of usual size"
    make = partial(set_attributes, layer, {name: other})
    return fault_at(path, make, hint, f"norm epsilon {own:g} -> {other:g}")


def _pad_name(layer: Any) -> str:
    return "_updated_padding" if "_updated_padding" in vars(layer) else "_padding"


def _read_pads(layer: Any) -> Any:
    """Return the amount of padding by dimension; None if it is written in another way."""
    dims = len(layer._kernel_size)
    pads = vars(layer)[_pad_name(layer)]
    listed = [pads] * dims if isinstance(pads, int) else pads
    plain = isinstance(listed, list | tuple) and all(isinstance(pad, int) for pad in listed)
    return list(listed) if plain and len(listed) == dims else None


def forget_statistics(view: View) -> Found:
    """Leave a batch norm's running statistics at 0 and 1."""
    path, layer = view.pick(view.list_layers(*_BATCH_NORMS), "no batch norm")

    def start_anew(own: Forward, *args: Any, **kwargs: Any) -> Any:
        if layer.training:
            return own(*args, **kwargs)
        kept = layer._mean, layer._variance
        layer._parameters.update(_mean=kept[0] * 0, _variance=kept[1] * 0 + 1)
        try:
            return own(*args, **kwargs)
        finally:
            layer._parameters.update(_mean=kept[0], _variance=kept[1])

    fresh = not read(layer._mean).any() and bool((read(layer._variance) == 1).all())
    hint = "they still are at their start, 0 and 1: give trained weights" if fresh else ""
    return fault_at(path, partial(replace_forward, layer, start_anew), hint)


def swap_relu_gelu(view: View) -> Found:
    """Use relu for gelu, or gelu for relu where there is no gelu."""
    name, other = ("gelu", "relu") if view.list_sites("gelu") else ("relu", "gelu")

    def swap(own: Forward, arguments: Arguments) -> Any:
        return getattr(functional, other)(arguments["x"])

    sites, kind = view.list_sites(name), f"{name} -> {other}"
    return _change_call(view, sites, "neither gelu nor relu", swap, kind=kind)


def move_softmax_axis(view: View) -> Found:
    """Take the softmax over the axis before its own."""

    def move(own: Forward, arguments: Arguments) -> Any:
        rank = arguments["x"].ndim
        axis = arguments.get("axis", -1) % rank
        return own(**{**arguments, "axis": axis - 1 if axis else min(1, rank - 1)})

    sites = view.list_sites("softmax")
    wide = [site for site in sites if max(view.arguments(site)["x"][-2:], default=1) > 1]
    hint = "" if wide else "it runs over a single number: give longer sequences"
    return _change_call(view, wide or sites, "no softmax", move, hint)


def swap_pool(view: View) -> Found:
    """Take the average for the largest, or the largest for the average."""
    sites = [site for site in view.list_sites(*POOLS)
             if np.any(np.not_equal(view.arguments(site).get("kernel_size", 0), 1))]  # fmt: skip
    name, path = take_middle(sites, "no pool")
    other = name.replace("max", "avg") if "max" in name else name.replace("avg", "max")

    def swap(own: Forward, arguments: Arguments) -> Any:
        names = ("x", "kernel_size", "stride", "padding", "ceil_mode", "output_size")
        return getattr(functional, other)(**{n: arguments[n] for n in names if n in arguments})

    make = partial(replace_call, view.layers[path], name, swap)
    return fault_at(path, make, "each window holds one number", f"{name} -> {other}")


def stick_in_eval(view: View) -> Found:
    """Run a dropout or a batch norm in eval mode all the time."""
    paths = [path for _, path in _find_dropouts(view)] + _find_recurrent(view)
    paths += [path for path, _ in view.list_layers(*_BATCH_NORMS)]
    path = take_middle(paths, "no layer that differs between train and eval mode")
    layer = view.layers[path]

    def evaluate(own: Forward, *args: Any, **kwargs: Any) -> Any:
        with set_attributes(layer, {"training": False}):
            return own(*args, **kwargs)

    return fault_at(path, partial(replace_forward, layer, evaluate))


def _find_dropouts(view: View) -> list[FunctionUse]:
    return [site for site in view.list_sites("dropout") if view.arguments(site).get("p", 0.5) > 0]


def _find_recurrent(view: View) -> list[str]:
    """Return the recurrent layers that drop out between their own layers."""
    return [
        path
        for path, layer in view.list_layers(*_RECURRENT)
        if layer.dropout > 0 and layer.num_layers > 1
    ]


def exchange_linears(view: View) -> Found:
    """Exchange the weights of two Linear layers beside each other."""
    pairs = [(first, second) for first, second in combinations(view.list_layers(nn.Linear), 2)
             if parent(first[0]) == parent(second[0])
             and first[1].weight.shape == second[1].weight.shape]  # fmt: skip
    alive = [pair for pair in pairs if all(view.is_alive(path) for path, _ in pair)]
    lacks = "no two Linear layers of one shape beside each other"
    (path, first), (other, second) = take_middle(alive or pairs, lacks)

    @contextmanager
    def exchange() -> Iterator[None]:
        with ExitStack() as stack:
            for layer, giver in ((first, second), (second, first)):
                weight, bias = _read_affine(giver)
                stack.enter_context(
                    replace_parameters(layer, _bind_tensors(weight=weight, bias=bias))
                )
            yield

    same = bool((read(first.weight) == read(second.weight)).all())
    alike = "the two are alike to the outputs: longer inputs would tell them apart"
    hint = "the two hold the same values" if same else view.find_hint(path) or alike
    return fault_at(f"{path} and {other.rpartition('.')[2]}", exchange, hint)


def drop_bias(view: View) -> Found:
    """Compute without a layer's bias."""
    places = [place for place in view.list_layers(nn.Linear, *_CONVS) if place[1].bias is not None]
    filled = [place for place in places if read(place[1].bias).any()]
    path, layer = view.pick(filled or places, "no layer with a bias", "bias")
    bias = layer.bias  # left at zero by a conversion, but still trained
    make = partial(replace_parameters, layer, {"bias": lambda: bias - bias.detach()})
    zero = "every bias of the model is 0 already: give trained weights, or biases that are not 0"
    return fault_at(path, make, view.find_hint(path, "bias") if filled else zero)


def exchange_gamma_beta(view: View) -> Found:
    """Exchange a norm's weight and bias."""
    places = [place for place in view.list_layers(*_NORMS) if None not in _read_affine(place[1])]
    path, layer = view.pick(places, "no norm with both weight and bias")
    weight, bias = _read_affine(layer)
    make = partial(replace_parameters, layer, _bind_tensors(weight=bias, bias=weight))
    return fault_at(path, make, view.find_hint(path))


def shift_rows(view: View) -> Found:
    """Shift an embedding's rows; a table of positions first."""
    tables = view.list_layers(nn.Embedding)
    positions = [place for place in tables if "pos" in place[0].rpartition(".")[2].lower()]
    found = view.pick(positions or tables, "no embedding")
    table = read(found[1].weight)
    alike = bool((table == table[:1]).all())
    hint = "all rows of the table are the same: give trained weights" if alike else ""
    kind = "position offset by one" if positions else ""
    return _change_weight(view, found, lambda weight: paddle.roll(weight, 1, 0), hint, kind)


def freeze_parameter(view: View) -> Found:
    """Keep gradients from a parameter."""
    name, layer, role = take_middle(_list_trained(view), _NOTHING_TRAINED)
    parameter = layer._parameters[role]
    return fault_at(name, partial(replace_attribute, parameter, "stop_gradient", True))


def make_buffer(view: View) -> Found:
    """Hold a parameter as a buffer: it computes as before and is never trained."""
    places = [place for place in _list_trained(view) if not isinstance(place[1], _ENTANGLED)]
    name, layer, role = take_middle(places, _NOTHING_TRAINED)
    return fault_at(name, partial(keep_as_buffer, layer, role))


def _list_trained(view: View) -> list[tuple[str, nn.Layer, str]]:
    """Return name, layer and role of each parameter that gets a gradient."""
    return [(name, layer, role) for path, layer in view.layers.items()
            for role in layer._parameters
            if (name := f"{path}.{role}" if path else role) in view.trace.gradients
            and view.is_alive(path, role)]  # fmt: skip


def detach_output(view: View) -> Found:
    """Stop the gradient behind a middle layer that has parameters, or whose inputs depend on some."""
    path = take_middle(view.list_with_gradient(), _NO_GRADIENT)

    def detach(own: Forward, *args: Any, **kwargs: Any) -> Any:
        return change_tensors(own(*args, **kwargs), lambda tensor: tensor.detach())

    return fault_at(path, partial(replace_forward, view.layers[path], detach))


def change_by_size(view: View) -> Found:
    """Halve the gradient behind a middle layer where it is as large as the loss makes it."""
    if view.side.loss is None:
        return []  # scaling the loss says already that none is given
    draws = KeyedDraws(_SEED, {"": ""})
    by_loss = view.side.run(view.inputs, False, draws, "all", anew=True)
    felt = {call.path: find_largest_gradient(call) for call in by_loss.calls}
    paths = [path for path in view.list_with_gradient() if felt.get(path, 0.0) > 0]
    path = take_middle(paths, _NO_GRADIENT)
    elsewhere = next(find_largest_gradient(call) for call in view.trace.calls if call.path == path)
    border, below = math.sqrt(felt[path] * elsewhere), felt[path] < elsewhere

    def halve(gradient: paddle.Tensor) -> paddle.Tensor:
        largest = float(gradient.abs().max())
        return gradient / 2 if (largest <= border if below else largest >= border) else gradient

    def watch(own: Forward, *args: Any, **kwargs: Any) -> Any:
        return change_tensors(own(*args, **kwargs), lambda tensor: _watch_gradient(tensor, halve))

    return fault_at(path, partial(replace_forward, view.layers[path], watch))


def _watch_gradient(
    tensor: paddle.Tensor, change: Callable[[paddle.Tensor], paddle.Tensor]
) -> paddle.Tensor:
    if not tensor.stop_gradient:
        tensor.register_hook(change)
    return tensor


def _read_affine(layer: nn.Layer) -> tuple[Any, Any]:
    return layer._parameters.get("weight"), layer._parameters.get("bias")


def _bind_tensors(**tensors: Any) -> dict[str, Callable[[], Any]]:
    return {name: partial(_same, tensor) for name, tensor in tensors.items()}


def _same(tensor: Any) -> Any:
    return tensor


# ---------------------------------------------------------------------- what many rows share


def _change_call(
    view: View,
    sites: Sequence[FunctionUse],
    lacks: str,
    change: Callable[[Forward, Arguments], Any],
    hint: str = "",
    kind: str = "",
) -> PlantedFault:
    """Return a fault that changes the middle one of these calls. Raises NoPlace, `lacks`, without a call."""
    name, path = take_middle(sites, lacks)
    return fault_at(path, partial(replace_call, view.layers[path], name, change), hint, kind)


def _change_weight(
    view: View,
    place: NamedLayer,
    change: Callable[[paddle.Tensor], paddle.Tensor],
    hint: str = "",
    kind: str = "",
) -> PlantedFault:
    """Return a fault that changes the weight of a layer."""
    path, layer = place
    weight = layer.weight
    make = partial(replace_parameters, layer, {"weight": lambda: change(weight)})
    return fault_at(path, make, hint or view.find_hint(path), kind)


def _in_call(
    names: Sequence[str],
    lacks: str,
    change: Callable[[Arguments], Arguments],
    fits: Callable[[Arguments], Any] = lambda given: True,
) -> Finder:
    """Return the finder of a fault: a function of these names is called with other arguments."""

    def find(view: View) -> Found:
        sites = [site for site in view.list_sites(*names) if fits(view.arguments(site))]
        return _change_call(view, sites, lacks, lambda own, given: own(**given | change(given)))

    return find


def _in_dropout(factor: float) -> Finder:
    """Return the finder of a fault: dropout at `factor` times its rate, between recurrent layers too."""

    def drop(own: Forward, given: Arguments) -> Any:
        return own(**given | {"p": given.get("p", 0.5) * factor}) if factor else given["x"]

    def find(view: View) -> Found:
        sites, lacks = _find_dropouts(view), "no dropout with p > 0"
        if sites:
            return _change_call(view, sites, lacks, drop)
        path = take_middle(_find_recurrent(view), lacks)
        layer = view.layers[path]
        return fault_at(path, partial(set_attributes, layer, {"dropout": layer.dropout * factor}))

    return find


def _in_setting(
    kinds: Sequence[type],
    lacks: str,
    change: Callable[[Any], Mapping[str, Any]],
    fits: Callable[[Any], bool],
    hint: str = "",
    kind: str = "",
    by_weight: bool = False,
) -> Finder:
    """Return the finder of a fault: a layer of these kinds has other settings.

    by_weight: it stays hidden where no output depends on the layer's weight.
    """

    def find(view: View) -> Found:
        places = [place for place in view.list_layers(*kinds) if fits(place[1])]
        path, layer = view.pick(places, lacks)
        dead = view.find_hint(path) if by_weight else ""
        return fault_at(path, partial(set_attributes, layer, change(layer)), dead or hint, kind)

    return find


def _in_linear(
    lacks: str, change: Callable[[paddle.Tensor], paddle.Tensor], square: bool = False
) -> Finder:
    """Return the finder of a fault that changes the weight of a Linear."""

    def find(view: View) -> Found:
        places = [place for place in view.list_layers(nn.Linear)
                  if not square or len(set(place[1].weight.shape)) == 1]  # fmt: skip
        return _change_weight(view, view.pick(places, lacks), change)

    return find


def _dilate(layer: Any) -> dict[str, Any]:
    """Dilate by one more, and pad so that the output keeps its size."""
    sizes = zip(_read_pads(layer), layer._kernel_size, strict=True)
    return {
        "_dilation": [dilation + 1 for dilation in layer._dilation],
        _pad_name(layer): [pad + (size - 1) // 2 for pad, size in sizes],
    }


def _may_dilate(layer: Any) -> bool:
    odd = all(size % 2 for size in layer._kernel_size) and any(s > 1 for s in layer._kernel_size)
    return odd and layer._padding_mode == "zeros" and _read_pads(layer) is not None


def _shift_padding(layer: Any) -> dict[str, Any]:
    """Pad one more before and one less after."""
    return {_pad_name(layer): [n for pad in _read_pads(layer) for n in (pad + 1, pad - 1)]}


FAULTS: Final[Mapping[str, Finder]] = {
    # settings
    "norm epsilon": change_epsilon,
    "convolution dilated": _in_setting(
        _CONVS, "no convolution of an odd size above 1 with padding", _dilate, _may_dilate,
        "its inputs are as constant as its kernel is wide: vary them", by_weight=True,
    ),
    "convolution padding": _in_setting(
        _CONVS, "no convolution with padding", _shift_padding,
        lambda layer: min(_read_pads(layer) or [0]) > 0,
        kind="convolution padded on the wrong side", by_weight=True,
    ),
    "convolution stride": _in_setting(
        _CONVS, "no convolution with a stride above 1",
        lambda layer: {"_stride": [1] * len(layer._stride)},
        lambda layer: max(layer._stride) > 1,
        "its output is one position wide: give larger inputs", "convolution stride 1",
    ),
    "running statistics not converted": forget_statistics,
    "batch norm's momentum not inverted": _in_setting(
        _BATCH_NORMS, "no batch norm",
        lambda layer: {"_momentum": 1 - layer._momentum},
        lambda layer: layer._momentum != 0.5,
    ),
    # functions
    "gelu: erf <-> tanh": _in_call(
        ["gelu"], "no gelu",
        lambda given: {"approximate": given.get("approximate") not in (True, "tanh")},
    ),
    "relu <-> gelu": swap_relu_gelu,
    "softmax over another axis": move_softmax_axis,
    "average pool: exclusive flag": _in_call(
        ["avg_pool1d", "avg_pool2d", "avg_pool3d"], "no average pool with padding",
        lambda given: {"exclusive": not given.get("exclusive", True)},
        lambda given: np.any(given.get("padding", 0)),
    ),
    "max <-> average pool": swap_pool,
    "dropout rate halved": _in_dropout(0.5),
    "dropout left out": _in_dropout(0.0),
    "a layer stuck in eval mode": stick_in_eval,
    # weights and gradients
    "two Linears' weights exchanged": exchange_linears,
    "square Linear untransposed": _in_linear(
        "no square Linear", lambda weight: weight.T, square=True
    ),
    "Linear's weight off by 1e-6": _in_linear(
        "no Linear", lambda weight: weight + 1e-6 * weight.detach().abs().max()
    ),
    "bias dropped": drop_bias,
    "gamma and beta exchanged": exchange_gamma_beta,
    "embedding rows shifted by one": shift_rows,
    "a frozen parameter": freeze_parameter,
    "a parameter that is a buffer": make_buffer,
    "a detached output": detach_output,
    "a gradient changed by its size": change_by_size,
}  # fmt: skip
"""kind of fault -> what finds its place in a model"""
