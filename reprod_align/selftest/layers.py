"""Faults in what layers are set to: epsilons, convolutions, batch norms."""

from functools import partial
from typing import Any

from reprod_align.model.settings import SYNONYMS
from reprod_align.selftest.fault import Found, fault_at, plantable
from reprod_align.selftest.plant import Forward, replace_forward, set_attributes
from reprod_align.selftest.view import View, middle, read

from paddle import nn

_BATCH_NORMS = (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D)
_CONVS = (nn.Conv1D, nn.Conv2D, nn.Conv3D)
_EPS_NAMES = tuple(f"{mark}{name}" for name in sorted(SYNONYMS["eps"]) for mark in ("_", ""))
_USUAL_EPS = {1e-12: 1e-5, 1e-5: 1e-12, 1e-6: 1e-5}


@plantable("norm epsilon")
def change_epsilon(view: View) -> Found:
    """Give a norm the epsilon of another framework or model."""
    places = [(path, name) for path, layer in view.layers.items() for name in _EPS_NAMES
              if isinstance(vars(layer).get(name), float) and 0 < vars(layer)[name] < 0.1]  # fmt: skip
    if not places:
        return "no layer with an epsilon"
    path, name = middle(places)
    layer = view.layers[path]
    own = vars(layer)[name]
    other = _USUAL_EPS.get(own, own * 10)
    hint = "its inputs vary so much that epsilon does not count: give inputs of usual size"
    make = partial(set_attributes, layer, {name: other})
    return fault_at(path, make, hint, f"norm epsilon {own:g} -> {other:g}")


@plantable("convolution dilated")
def dilate(view: View) -> Found:
    """Dilate by one more, and pad so that the output keeps its size."""
    found = view.pick([place for place in view.of(*_CONVS) if _may_dilate(place[1])])
    if found is None:
        return "no convolution of an odd size above 1 with padding"
    path, layer = found
    sizes = zip(_pads(layer), layer._kernel_size, strict=True)
    changes = {
        "_dilation": [dilation + 1 for dilation in layer._dilation],
        _pad_name(layer): [pad + (size - 1) // 2 for pad, size in sizes],
    }
    hint = view.hint(path) or "its inputs are as constant as its kernel is wide: vary them"
    return fault_at(path, partial(set_attributes, layer, changes), hint)


def _may_dilate(layer: Any) -> bool:
    odd = all(size % 2 for size in layer._kernel_size) and any(s > 1 for s in layer._kernel_size)
    return odd and layer._padding_mode == "zeros" and _pads(layer) is not None


@plantable("convolution padding")
def shift_padding(view: View) -> Found:
    """Pad one more before and one less after."""
    found = view.pick([place for place in view.of(*_CONVS) if min(_pads(place[1]) or [0]) > 0])
    if found is None:
        return "no convolution with padding"
    path, layer = found
    shifted = [amount for pad in _pads(layer) for amount in (pad + 1, pad - 1)]
    make = partial(set_attributes, layer, {_pad_name(layer): shifted})
    return fault_at(path, make, view.hint(path), "convolution padded on the wrong side")


@plantable("convolution stride")
def forget_stride(view: View) -> Found:
    """Leave the stride at 1."""
    found = view.pick([place for place in view.of(*_CONVS) if max(place[1]._stride) > 1])
    if found is None:
        return "no convolution with a stride above 1"
    path, layer = found
    make = partial(set_attributes, layer, {"_stride": [1] * len(layer._stride)})
    hint = "its output is one position wide: give larger inputs"
    return fault_at(path, make, hint, "convolution stride 1")


def _pad_name(layer: Any) -> str:
    return "_updated_padding" if "_updated_padding" in vars(layer) else "_padding"


def _pads(layer: Any) -> Any:
    """Return the amount of padding by dimension; None if it is written in another way."""
    dims = len(layer._kernel_size)
    pads = vars(layer)[_pad_name(layer)]
    listed = [pads] * dims if isinstance(pads, int) else pads
    plain = isinstance(listed, list | tuple) and all(isinstance(pad, int) for pad in listed)
    return list(listed) if plain and len(listed) == dims else None


@plantable("running statistics not converted")
def forget_statistics(view: View) -> Found:
    """Leave a batch norm's running statistics at 0 and 1."""
    found = view.pick(view.of(*_BATCH_NORMS))
    if found is None:
        return "no batch norm"
    path, layer = found

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


@plantable("batch norm's momentum not inverted")
def keep_momentum(view: View) -> Found:
    """Give Paddle PyTorch's momentum as it is."""
    found = view.pick([place for place in view.of(*_BATCH_NORMS) if place[1]._momentum != 0.5])
    if found is None:
        return "no batch norm"
    path, layer = found
    return fault_at(path, partial(set_attributes, layer, {"_momentum": 1 - layer._momentum}))
