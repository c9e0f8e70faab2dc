"""The porting faults that a self-test plants in a Paddle model: one place for each kind.

Each function looks for a place in the model seen at work and returns a fault there, or says why there
is none. Where there are several places it takes the middle one of those that the outputs depend on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from reprod_align.base.naming import parent
from reprod_align.model.local import LocalSide
from reprod_align.model.settings import SYNONYMS
from reprod_align.model.side import Inputs
from reprod_align.selftest import plant as planting
from reprod_align.selftest.fault import Fault, Plant
from reprod_align.selftest.plant import Arguments, Forward, Seen
from reprod_align.selftest.training_faults import training_faults

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

Place = tuple[str, nn.Layer]
Make = Callable[[], AbstractContextManager[Any]]
Found = Fault | str
"""the fault, or why there is no place for it"""

_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm, nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D,
          nn.InstanceNorm1D, nn.InstanceNorm2D, nn.InstanceNorm3D)  # fmt: skip
_BATCH_NORMS = (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D)
_CONVS = (nn.Conv1D, nn.Conv2D, nn.Conv3D)
_POOL_DIMS = ("1d", "2d", "3d")
_EPS_NAMES = tuple(f"{mark}{name}" for name in sorted(SYNONYMS["eps"]) for mark in ("_", ""))
_USUAL_EPS = {1e-12: 1e-5, 1e-5: 1e-12, 1e-6: 1e-5}
_NOISE = 1e-9  # a gradient below this part of the largest counts as none
_EMBEDDINGS = 4  # each table has indices of its own: words, positions, types, ...

_DEAD = "no output depends on it here (its gradient is 0): give longer or more varied inputs"
_MASKED = "what index {} looks up reaches no output: give it where no mask hides it"


@dataclass(frozen=True)
class View:
    """The model seen at work, on the converted weights."""

    side: LocalSide
    inputs: Inputs
    seen: Seen
    layers: Mapping[str, nn.Layer]
    """the layers that were called, by name, in the order of their first calls"""

    def of(self, *kinds: type) -> list[Place]:
        """Return the called layers of these classes."""
        return [place for place in self.layers.items() if isinstance(place[1], kinds)]

    def sites(self, *names: str) -> list[tuple[str, str]]:
        """Return the calls of these functions by layers: (function, layer's name)."""
        return [(name, path) for name in names for path in self.seen.sites[name]
                if path in self.layers]  # fmt: skip

    def arguments(self, name: str, path: str) -> Arguments:
        """Return what the layer passed to the function at first."""
        return self.seen.sites[name][path][0]

    def is_alive(self, path: str, role: str) -> bool:
        """Tell whether the outputs depend on the layer's parameter `role`."""
        gradients = self.seen.trace.gradients
        largest = max((_size(gradient) for gradient in gradients.values()), default=0.0)
        own = gradients.get(f"{path}.{role}" if path else role)
        return own is not None and _size(own) > _NOISE * largest

    def middle(self, places: Sequence[Place], role: str = "weight") -> Place | None:
        """Return the middle one of those whose parameter `role` counts; if none does, of all."""
        alive = [place for place in places if self.is_alive(place[0], role)]
        chosen: Place | None = _middle(alive or places)
        return chosen

    def hint(self, path: str, role: str = "weight") -> str:
        """Return why a change of this parameter may stay hidden."""
        return "" if self.is_alive(path, role) else _DEAD

    def indices(self, path: str) -> np.ndarray:
        """Return all indices that the embedding was given, flat."""
        found = [
            leaf.array.reshape(-1)
            for call in self.seen.trace.calls
            if call.path == path
            for leaf in call.inputs.values()
            if leaf.array.dtype.kind in "iu"
        ]
        return np.concatenate(found) if found else np.zeros(0, "int64")


def faults(side: LocalSide, inputs: Inputs, steps: int) -> list[Fault]:
    """Return every kind of fault, planted nowhere yet. Call inside `working`, the weights loaded."""
    seen = planting.observe(side, inputs)
    layers = dict(side.fw.modules(side.model))
    called = {call.path: layers[call.path] for call in seen.trace.calls}
    view = View(side, inputs, seen, called)
    listed = [_named(kind, find(view)) for kind, find in _KINDS]
    listed += [_named("embedding index ignored", found) for found in _indices_ignored(view)]
    listed += [_named("input ignored", found) for found in _inputs_ignored(view)]
    return listed + training_faults(side, inputs, seen, steps)


def _named(kind: str, found: Found) -> Fault:
    if isinstance(found, str):
        return Fault(kind, "", None, found)
    return replace(found, kind=found.kind or kind)


def _in_model(make: Make) -> Plant:
    @contextmanager
    def plant(side: LocalSide) -> Iterator[LocalSide]:
        with make():
            yield side

    return plant


def _fault(path: str, make: Make, hint: str = "", kind: str = "") -> Fault:
    return Fault(kind, path, _in_model(make), hint)


def _middle(places: Sequence[Any]) -> Any:
    return places[len(places) // 2] if places else None


def _size(array: Any) -> float:
    return float(np.abs(array).max(initial=0.0))


def _values(tensor: paddle.Tensor) -> np.ndarray:
    return np.asarray(tensor.detach().astype("float64").numpy())


# -------------------------------------------------------------------- settings


def _epsilon(view: View) -> Found:
    places = [(path, name) for path, layer in view.layers.items() for name in _EPS_NAMES
              if isinstance(vars(layer).get(name), float) and 0 < vars(layer)[name] < 0.1]  # fmt: skip
    if not places:
        return "no layer with an epsilon"
    path, name = _middle(places)
    layer = view.layers[path]
    own = vars(layer)[name]
    other = _USUAL_EPS.get(own, own * 10)
    make = partial(planting.attributes_as, layer, {name: other})
    hint = "its inputs vary so much that epsilon does not count: give inputs of usual size"
    return _fault(path, make, hint, f"norm epsilon {own:g} -> {other:g}")


def _gelu_form(view: View) -> Found:
    def other_form(own: Forward, arguments: Arguments) -> Any:
        tanh = arguments.get("approximate") in (True, "tanh")
        return own(**{**arguments, "approximate": not tanh})

    return _site_fault(view, view.sites("gelu"), other_form, "no gelu")


def _relu_gelu(view: View) -> Found:
    gelus = view.sites("gelu")
    name, other = ("gelu", "relu") if gelus else ("relu", "gelu")

    def exchanged(own: Forward, arguments: Arguments) -> Any:
        return getattr(functional, other)(arguments["x"])

    found = _site_fault(view, view.sites(name), exchanged, "neither gelu nor relu")
    return found if isinstance(found, str) else replace(found, kind=f"{name} -> {other}")


def _softmax_axis(view: View) -> Found:
    def other_axis(own: Forward, arguments: Arguments) -> Any:
        rank = arguments["x"].ndim
        axis = arguments.get("axis", -1) % rank
        return own(**{**arguments, "axis": axis - 1 if axis else min(1, rank - 1)})

    shapes = {site: _shape(view, site) for site in view.sites("softmax")}
    wide = [site for site, shape in shapes.items() if max(shape[-2:], default=1) > 1]
    found = _site_fault(view, wide or list(shapes), other_axis, "no softmax")
    if isinstance(found, str) or wide:
        return found
    return replace(found, hint="it runs over a single number: give longer sequences")


def _shape(view: View, site: tuple[str, str]) -> tuple[int, ...]:
    return tuple(view.arguments(*site)["x"])


def _exclusive(view: View) -> Found:
    def flipped(own: Forward, arguments: Arguments) -> Any:
        return own(**{**arguments, "exclusive": not arguments.get("exclusive", True)})

    padded = [(name, path) for name, path in view.sites(*(f"avg_pool{d}" for d in _POOL_DIMS))
              if np.any(view.arguments(name, path).get("padding", 0))]  # fmt: skip
    return _site_fault(view, padded, flipped, "no average pool with padding")


def _pool_kind(view: View) -> Found:
    def exchanged(own: Forward, arguments: Arguments, other: str) -> Any:
        names = ("x", "kernel_size", "stride", "padding", "ceil_mode", "output_size")
        return getattr(functional, other)(**{n: arguments[n] for n in names if n in arguments})

    sites = [site for site in view.sites(*_pools()) if _kernel(view.arguments(*site)) != {1}]
    if not sites:
        return "no pool"
    name, path = _middle(sites)
    other = name.replace("max", "avg") if "max" in name else name.replace("avg", "max")
    change = partial(exchanged, other=other)
    make = partial(planting.calling_as, view.layers[path], name, change)
    return _fault(path, make, "each window holds one number", f"{name} -> {other}")


def _pools() -> list[str]:
    return [f"{kind}{d}" for kind in ("avg_pool", "max_pool", "adaptive_avg_pool",
            "adaptive_max_pool") for d in _POOL_DIMS]  # fmt: skip


def _kernel(arguments: Arguments) -> set[Any]:
    return set(np.atleast_1d(arguments.get("kernel_size", 0)).tolist())


def _dropout_rate(view: View) -> Found:
    def halved(own: Forward, arguments: Arguments) -> Any:
        return own(**{**arguments, "p": arguments.get("p", 0.5) / 2})

    return _site_fault(view, _dropouts(view), halved, "no dropout with p > 0")


def _dropout_left_out(view: View) -> Found:
    def left_out(own: Forward, arguments: Arguments) -> Any:
        return arguments["x"]

    return _site_fault(view, _dropouts(view), left_out, "no dropout with p > 0")


def _dropouts(view: View) -> list[tuple[str, str]]:
    return [site for site in view.sites("dropout") if view.arguments(*site).get("p", 0.5) > 0]


def _stuck_in_eval(view: View) -> Found:
    paths = [path for _, path in _dropouts(view)] + [path for path, _ in view.of(*_BATCH_NORMS)]
    if not paths:
        return "no layer that differs between train and eval mode"
    path = _middle(paths)
    layer = view.layers[path]

    def evaluating(own: Forward, *args: Any, **kwargs: Any) -> Any:
        with planting.attributes_as(layer, {"training": False}):
            return own(*args, **kwargs)

    return _fault(path, partial(planting.forward_as, layer, evaluating))


def _site_fault(
    view: View,
    sites: Sequence[tuple[str, str]],
    change: Callable[[Forward, Arguments], Any],
    none: str,
) -> Found:
    if not sites:
        return none
    name, path = _middle(sites)
    return _fault(path, partial(planting.calling_as, view.layers[path], name, change))


# -------------------------------------------------------------------- convolutions and statistics


def _dilation(view: View) -> Found:
    places = [place for place in view.of(*_CONVS) if _may_dilate(place[1])]
    found = view.middle(places)
    if found is None:
        return "no convolution of an odd size above 1 with padding"
    path, layer = found
    pads = [
        pad + (size - 1) // 2 for pad, size in zip(_pads(layer), layer._kernel_size, strict=True)
    ]
    dilations = [dilation + 1 for dilation in layer._dilation]
    changes = {"_dilation": dilations, _pad_name(layer): pads}
    hint = f"{view.hint(path)}" or "its inputs are as constant as its kernel is wide: vary them"
    return _fault(path, partial(planting.attributes_as, layer, changes), hint)


def _may_dilate(layer: Any) -> bool:
    odd = all(size % 2 for size in layer._kernel_size) and any(s > 1 for s in layer._kernel_size)
    return odd and layer._padding_mode == "zeros" and _pads(layer) is not None


def _padding(view: View) -> Found:
    places = [place for place in view.of(*_CONVS) if min(_pads(place[1]) or [0]) > 0]
    found = view.middle(places)
    if found is None:
        return "no convolution with padding"
    path, layer = found
    shifted = [amount for pad in _pads(layer) for amount in (pad + 1, pad - 1)]
    make = partial(planting.attributes_as, layer, {_pad_name(layer): shifted})
    return _fault(path, make, view.hint(path), "convolution padded on the wrong side")


def _stride(view: View) -> Found:
    found = view.middle([place for place in view.of(*_CONVS) if max(place[1]._stride) > 1])
    if found is None:
        return "no convolution with a stride above 1"
    path, layer = found
    make = partial(planting.attributes_as, layer, {"_stride": [1] * len(layer._stride)})
    hint = "its output is one position wide: give larger inputs"
    return _fault(path, make, hint, "convolution stride 1")


def _pad_name(layer: Any) -> str:
    return "_updated_padding" if "_updated_padding" in vars(layer) else "_padding"


def _pads(layer: Any) -> Any:
    """Return the amount of padding by dimension; None if it is no plain number a dimension."""
    dims = len(layer._kernel_size)
    pads = vars(layer)[_pad_name(layer)]
    listed = [pads] * dims if isinstance(pads, int) else pads
    plain = isinstance(listed, list | tuple) and all(isinstance(pad, int) for pad in listed)
    return list(listed) if plain and len(listed) == dims else None


def _momentum(view: View) -> Found:
    places = [place for place in view.of(*_BATCH_NORMS) if place[1]._momentum != 0.5]
    found = view.middle(places)
    if found is None:
        return "no batch norm"
    path, layer = found
    changed = {"_momentum": 1 - layer._momentum}
    return _fault(path, partial(planting.attributes_as, layer, changed))


def _statistics(view: View) -> Found:
    found = view.middle(view.of(*_BATCH_NORMS))
    if found is None:
        return "no batch norm"
    path, layer = found

    def initial(own: Forward, *args: Any, **kwargs: Any) -> Any:
        if layer.training:
            return own(*args, **kwargs)
        kept = layer._mean, layer._variance
        layer._parameters.update(_mean=kept[0] * 0, _variance=kept[1] * 0 + 1)
        try:
            return own(*args, **kwargs)
        finally:
            layer._parameters.update(_mean=kept[0], _variance=kept[1])

    mean, variance = _values(layer._mean), _values(layer._variance)
    fresh = not mean.any() and bool((variance == 1).all())
    hint = "they still are at their start, 0 and 1: give trained weights" if fresh else ""
    return _fault(path, partial(planting.forward_as, layer, initial), hint)


# -------------------------------------------------------------------- weights


def _exchanged(view: View) -> Found:
    pairs = [(first, second) for first, second in combinations(view.of(nn.Linear), 2)
             if parent(first[0]) == parent(second[0])
             and first[1].weight.shape == second[1].weight.shape]  # fmt: skip
    alive = [pair for pair in pairs if all(view.is_alive(path, "weight") for path, _ in pair)]
    if not pairs:
        return "no two Linear layers of one shape beside each other"
    (path, first), (other, second) = _middle(alive or pairs)

    @contextmanager
    def make() -> Iterator[None]:
        with ExitStack() as stack:
            for layer, giver in ((first, second), (second, first)):
                made = _affine_of(giver)
                stack.enter_context(planting.parameters_as(layer, made))
            yield

    same = bool((_values(first.weight) == _values(second.weight)).all())
    hint = "the two hold the same values" if same else _exchange_hint(view, path)
    return _fault(f"{path} and {other.rpartition('.')[2]}", make, hint)


def _affine_of(giver: nn.Layer) -> dict[str, Callable[[], Any]]:
    weight, bias = _affine(giver)
    return {"weight": lambda: weight, "bias": lambda: bias}


def _exchange_hint(view: View, path: str) -> str:
    return (
        view.hint(path) or "the two are alike to the outputs: longer inputs would tell them apart"
    )


def _untransposed(view: View) -> Found:
    square = [place for place in view.of(nn.Linear) if len(set(place[1].weight.shape)) == 1]
    return _weight_fault(view, square, lambda weight: weight.T, "no square Linear")


def _perturbed(view: View) -> Found:
    def nudged(weight: paddle.Tensor) -> paddle.Tensor:
        return weight + 1e-6 * weight.detach().abs().max()

    return _weight_fault(view, view.of(nn.Linear), nudged, "no Linear")


def _bias_dropped(view: View) -> Found:
    places = [place for place in view.of(nn.Linear, *_CONVS) if place[1].bias is not None]
    filled = [place for place in places if _values(place[1].bias).any()]
    found = view.middle(filled or places, "bias")
    if found is None:
        return "no layer with a bias"
    path, layer = found
    bias = layer.bias  # left at zero by a conversion: it learns all the same
    make = partial(planting.parameters_as, layer, {"bias": lambda: bias - bias.detach()})
    zero = "every bias of the model is 0 already: give trained weights, or biases that are not 0"
    return _fault(path, make, view.hint(path, "bias") if filled else zero)


def _gamma_beta(view: View) -> Found:
    whole = [place for place in view.of(*_NORMS) if None not in _affine(place[1])]
    found = view.middle(whole)
    if found is None:
        return "no norm with both weight and bias"
    path, layer = found
    weight, bias = _affine(layer)
    made = {"weight": lambda: bias, "bias": lambda: weight}
    return _fault(path, partial(planting.parameters_as, layer, made), view.hint(path))


def _affine(layer: nn.Layer) -> tuple[Any, Any]:
    return layer._parameters.get("weight"), layer._parameters.get("bias")


def _rows_shifted(view: View) -> Found:
    tables = view.of(nn.Embedding)
    positions = [place for place in tables if "pos" in place[0].rpartition(".")[2].lower()]

    def shifted(weight: paddle.Tensor) -> paddle.Tensor:
        return paddle.roll(weight, 1, 0)

    found = view.middle(positions or tables)
    if found is None:
        return "no embedding"
    table = _values(found[1].weight)
    alike = bool((table == table[:1]).all())
    hint = "all rows of the table are the same: give trained weights" if alike else ""
    fault = _weight_fault(view, [found], shifted, "", hint)
    return fault if isinstance(fault, str) else replace(fault, kind=_rows_kind(positions))


def _rows_kind(positions: Sequence[Place]) -> str:
    return "position offset by one" if positions else "embedding rows shifted by one"


def _weight_fault(
    view: View,
    places: Sequence[Place],
    change: Callable[[paddle.Tensor], paddle.Tensor],
    none: str,
    hint: str = "",
) -> Found:
    found = view.middle(places)
    if found is None:
        return none
    path, layer = found
    weight = layer.weight
    make = partial(planting.parameters_as, layer, {"weight": lambda: change(weight)})
    return _fault(path, make, hint or view.hint(path))


# -------------------------------------------------------------------- embeddings and inputs


def _pad_row(view: View) -> Found:
    """Look a pad row up as any other; or, where there is none, zero what index 0 looks up."""
    found = view.middle(view.of(nn.Embedding))
    if found is None:
        return "no embedding"
    padded = [place for place in view.of(nn.Embedding) if _pad_index(place[1]) is not None]
    path, layer = padded[0] if padded else _most_used(view, 0) or found
    index = _pad_index(layer)

    def plain(own: Forward, ids: paddle.Tensor, *args: Any, **kwargs: Any) -> Any:
        return functional.embedding(ids, layer.weight)

    def zeroed(own: Forward, ids: paddle.Tensor, *args: Any, **kwargs: Any) -> Any:
        rows = own(ids, *args, **kwargs)
        return rows * (ids != 0).unsqueeze(-1).astype(rows.dtype)

    hint = _pad_hint(view, path, index or 0)
    kind = "padding_idx not given" if padded else "padding_idx=0 given"
    make = partial(planting.forward_as, layer, plain if padded else zeroed)
    return _fault(path, make, hint or view.hint(path), kind)


def _pad_hint(view: View, path: str, index: int) -> str:
    if not (view.indices(path) == index).any():
        return f"no index is {index}: give a padded batch"
    felt = [
        _size(rows.gradient[ids.array == index])
        for call in view.seen.trace.calls
        for ids, rows in zip(call.inputs.values(), call.outputs.values(), strict=False)
        if call.path == path and rows.gradient is not None
    ]
    return "" if max(felt, default=0.0) > 0 else _MASKED.format(index)


def _pad_index(layer: Any) -> int | None:
    index = getattr(layer, "padding_idx", None)
    index = layer._padding_idx if index is None else index
    return None if index is None or index < 0 else int(index)


def _most_used(view: View, index: int) -> Place | None:
    """Return the first embedding that is given this index, word tables first."""
    tables = [p for p in view.of(nn.Embedding) if (view.indices(p[0]) == index).any()]
    return max(tables, key=lambda place: int(place[1].weight.shape[0]), default=None)


def _indices_ignored(view: View) -> list[Found]:
    tables = view.of(nn.Embedding)[:_EMBEDDINGS]
    return [_index_ignored(view, path, layer) for path, layer in tables] or ["no embedding"]


def _index_ignored(view: View, path: str, layer: nn.Layer) -> Fault:
    def same(own: Forward, ids: paddle.Tensor, *args: Any, **kwargs: Any) -> Any:
        first = ids.reshape([-1])[:1].reshape([1] * ids.ndim)
        return own(first.expand_as(ids), *args, **kwargs)

    ids = np.unique(view.indices(path))
    where = "longer sequences" if "pos" in path.lower() else "inputs in which they vary"
    hint = f"its indices all are {ids[0]}: give {where}" if len(ids) == 1 else view.hint(path)
    return _fault(path, partial(planting.forward_as, layer, same), hint)


def _inputs_ignored(view: View) -> list[Found]:
    named = view.inputs.items() if isinstance(view.inputs, Mapping) else enumerate(view.inputs)
    arrays = {name: np.asarray(array) for name, array in named}
    return [_input_ignored(view, name, array) for name, array in arrays.items() if array.size] or [
        "no input holds anything"
    ]


def _input_ignored(view: View, name: str | int, array: np.ndarray) -> Fault:
    constant = array.size > 0 and bool((array == array.flat[0]).all())
    mask = "mask" in str(name).lower()
    more = "a padded batch" if mask else "one in which it varies"
    hint = f"{name} holds {array.flat[0]} alone: give {more}" if constant else ""
    change = partial(_first_element, name)
    make = partial(planting.forward_as, view.side.model, change)
    return _fault(str(name), make, hint)


def _first_element(name: str | int, own: Forward, *args: Any, **kwargs: Any) -> Any:
    """Call with one input filled with its own first element."""

    def filled(tensor: paddle.Tensor) -> paddle.Tensor:
        first = tensor.reshape([-1])[:1].reshape([1] * tensor.ndim)
        return first.expand_as(tensor)

    if isinstance(name, str):
        return own(*args, **{**kwargs, name: filled(kwargs[name])})
    return own(*(filled(a) if n == name else a for n, a in enumerate(args)), **kwargs)


def _one_example(view: View) -> Found:
    named = view.inputs.values() if isinstance(view.inputs, Mapping) else view.inputs
    arrays = [np.asarray(array) for array in named if np.asarray(array).ndim]
    if not arrays:
        return "no input has a batch"

    def first_alone(own: Forward, *args: Any, **kwargs: Any) -> Any:
        given = {name: _first_row(tensor) for name, tensor in kwargs.items()}
        return own(*map(_first_row, args), **given)

    single = all(array.shape[0] == 1 for array in arrays)
    alike = all((array == array[:1]).all() for array in arrays)
    hint = "the batch holds one example: give several" if single else ""
    hint = hint or ("all examples of the batch are the same: vary them" if alike else "")
    return _fault("", partial(planting.forward_as, view.side.model, first_alone), hint)


def _first_row(tensor: Any) -> Any:
    return tensor[:1].expand_as(tensor) if tensor.ndim else tensor


# -------------------------------------------------------------------- gradients


def _frozen(view: View) -> Found:
    named = {name: (path, parameter) for path, layer in view.layers.items()
             for role, parameter in layer._parameters.items()
             if (name := f"{path}.{role}" if path else role) in view.seen.trace.gradients
             and view.is_alive(path, role)}  # fmt: skip
    if not named:
        return "no parameter gets a gradient"
    name = _middle(list(named))
    return _fault(name, partial(planting.frozen, named[name][1]))


def _detached(view: View) -> Found:
    """Stop the gradient behind a middle layer that has parameters, or whose inputs depend on some."""
    paths = [
        call.path
        for call in view.seen.trace.calls
        if call.path and any(_size(leaf.gradient) > 0 for leaf in call.outputs.values()
                             if leaf.differentiable and leaf.gradient is not None)
        and not list(view.layers[call.path].children())
    ]  # fmt: skip
    if not paths:
        return "no layer's output carries a gradient"
    path = _middle(paths)

    def detached(own: Forward, *args: Any, **kwargs: Any) -> Any:
        output = own(*args, **kwargs)
        return output.detach() if isinstance(output, paddle.Tensor) else _all_detached(output)

    return _fault(path, partial(planting.forward_as, view.layers[path], detached))


def _all_detached(output: Any) -> Any:
    if isinstance(output, list | tuple):
        return type(output)(_all_detached(part) for part in output)
    return output.detach() if isinstance(output, paddle.Tensor) else output


_KINDS: Sequence[tuple[str, Callable[[View], Found]]] = (
    ("norm epsilon", _epsilon),
    ("gelu: erf <-> tanh", _gelu_form),
    ("relu <-> gelu", _relu_gelu),
    ("softmax over another axis", _softmax_axis),
    ("two Linears' weights exchanged", _exchanged),
    ("square Linear untransposed", _untransposed),
    ("Linear's weight off by 1e-6", _perturbed),
    ("bias dropped", _bias_dropped),
    ("gamma and beta exchanged", _gamma_beta),
    ("embedding rows shifted by one", _rows_shifted),
    ("padding_idx", _pad_row),
    ("average pool: exclusive flag", _exclusive),
    ("max <-> average pool", _pool_kind),
    ("convolution dilated", _dilation),
    ("convolution padding", _padding),
    ("convolution stride", _stride),
    ("running statistics not converted", _statistics),
    ("batch norm's momentum not inverted", _momentum),
    ("dropout rate halved", _dropout_rate),
    ("dropout left out", _dropout_left_out),
    ("a layer stuck in eval mode", _stuck_in_eval),
    ("first example used for all", _one_example),
    ("a frozen parameter", _frozen),
    ("a detached output", _detached),
)
