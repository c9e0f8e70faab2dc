"""Faults in weights and gradients: converted wrongly, frozen, cut off."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import combinations
from typing import Any

from reprod_align.backends.replacing import replace_attribute
from reprod_align.base.naming import parent
from reprod_align.randomness import KeyedDraws
from reprod_align.selftest.fault import Fault, Found, fault_at, plantable
from reprod_align.selftest.plant import (
    Forward,
    change_tensors,
    keep_as_buffer,
    replace_forward,
    replace_parameters,
)
from reprod_align.selftest.view import Place, View, max_gradient, middle, read

import paddle
from paddle import nn

_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm, nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D,
          nn.InstanceNorm1D, nn.InstanceNorm2D, nn.InstanceNorm3D)  # fmt: skip
_CONVS = (nn.Conv1D, nn.Conv2D, nn.Conv3D)
# A norm's kernel leaves out or changes other gradients where one of its parameters takes none; the
# recurrent networks keep lists of their parameters too.
_ENTANGLED = (*_NORMS, nn.SimpleRNN, nn.LSTM, nn.GRU)
_NO_GRADIENT = "no layer's output carries a gradient"
_NOTHING_TRAINED = "no parameter gets a gradient"
_SEED = 20217


@plantable("two Linears' weights exchanged")
def exchange_linears(view: View) -> Found:
    """Exchange the weights of two Linear layers beside each other."""
    pairs = [(first, second) for first, second in combinations(view.of(nn.Linear), 2)
             if parent(first[0]) == parent(second[0])
             and first[1].weight.shape == second[1].weight.shape]  # fmt: skip
    if not pairs:
        return "no two Linear layers of one shape beside each other"
    alive = [pair for pair in pairs if all(view.is_alive(path) for path, _ in pair)]
    (path, first), (other, second) = middle(alive or pairs)

    @contextmanager
    def exchange() -> Iterator[None]:
        with ExitStack() as stack:
            for layer, giver in ((first, second), (second, first)):
                weight, bias = _affine(giver)
                stack.enter_context(replace_parameters(layer, _made(weight=weight, bias=bias)))
            yield

    same = bool((read(first.weight) == read(second.weight)).all())
    alike = "the two are alike to the outputs: longer inputs would tell them apart"
    hint = "the two hold the same values" if same else view.hint(path) or alike
    return fault_at(f"{path} and {other.rpartition('.')[2]}", exchange, hint)


@plantable("square Linear untransposed")
def keep_untransposed(view: View) -> Found:
    """Leave a square weight as PyTorch has it."""
    square = [place for place in view.of(nn.Linear) if len(set(place[1].weight.shape)) == 1]
    return _change_weight(view, square, lambda weight: weight.T) or "no square Linear"


@plantable("Linear's weight off by 1e-6")
def nudge_weight(view: View) -> Found:
    """Add a millionth of the largest weight to all."""

    def nudge(weight: paddle.Tensor) -> paddle.Tensor:
        return weight + 1e-6 * weight.detach().abs().max()

    return _change_weight(view, view.of(nn.Linear), nudge) or "no Linear"


@plantable("bias dropped")
def drop_bias(view: View) -> Found:
    """Compute without a layer's bias."""
    places = [place for place in view.of(nn.Linear, *_CONVS) if place[1].bias is not None]
    filled = [place for place in places if read(place[1].bias).any()]
    found = view.pick(filled or places, "bias")
    if found is None:
        return "no layer with a bias"
    path, layer = found
    bias = layer.bias  # left at zero by a conversion, but still trained
    make = partial(replace_parameters, layer, {"bias": lambda: bias - bias.detach()})
    zero = "every bias of the model is 0 already: give trained weights, or biases that are not 0"
    return fault_at(path, make, view.hint(path, "bias") if filled else zero)


@plantable("gamma and beta exchanged")
def exchange_gamma_beta(view: View) -> Found:
    """Exchange a norm's weight and bias."""
    found = view.pick([place for place in view.of(*_NORMS) if None not in _affine(place[1])])
    if found is None:
        return "no norm with both weight and bias"
    path, layer = found
    weight, bias = _affine(layer)
    make = partial(replace_parameters, layer, _made(weight=bias, bias=weight))
    return fault_at(path, make, view.hint(path))


@plantable("embedding rows shifted by one")
def shift_rows(view: View) -> Found:
    """Shift an embedding's rows; a table of positions first."""
    tables = view.of(nn.Embedding)
    positions = [place for place in tables if "pos" in place[0].rpartition(".")[2].lower()]
    found = view.pick(positions or tables)
    if found is None:
        return "no embedding"
    table = read(found[1].weight)
    alike = bool((table == table[:1]).all())
    hint = "all rows of the table are the same: give trained weights" if alike else ""
    kind = "position offset by one" if positions else ""
    fault = _change_weight(view, [found], lambda weight: paddle.roll(weight, 1, 0), hint, kind)
    return fault or "no embedding"


@plantable("a frozen parameter")
def freeze_parameter(view: View) -> Found:
    """Keep gradients from a parameter."""
    found = middle(_trained(view))
    if found is None:
        return _NOTHING_TRAINED
    name, layer, role = found
    parameter = layer._parameters[role]
    return fault_at(name, partial(replace_attribute, parameter, "stop_gradient", True))


@plantable("a parameter that is a buffer")
def make_buffer(view: View) -> Found:
    """Hold a parameter as a buffer: it computes as before and is never trained."""
    found = middle([place for place in _trained(view) if not isinstance(place[1], _ENTANGLED)])
    if found is None:
        return _NOTHING_TRAINED
    name, layer, role = found
    return fault_at(name, partial(keep_as_buffer, layer, role))


def _trained(view: View) -> list[tuple[str, nn.Layer, str]]:
    """Return name, layer and role of each parameter that gets a gradient."""
    return [(name, layer, role) for path, layer in view.layers.items()
            for role in layer._parameters
            if (name := f"{path}.{role}" if path else role) in view.trace.gradients
            and view.is_alive(path, role)]  # fmt: skip


@plantable("a detached output")
def detach_output(view: View) -> Found:
    """Stop the gradient behind a middle layer that has parameters, or whose inputs depend on some."""
    path = middle(view.places_with_gradient())
    if path is None:
        return _NO_GRADIENT

    def detach(own: Forward, *args: Any, **kwargs: Any) -> Any:
        return _detach_all(own(*args, **kwargs))

    return fault_at(path, partial(replace_forward, view.layers[path], detach))


def _detach_all(output: Any) -> Any:
    return change_tensors(output, lambda tensor: tensor.detach())


@plantable("a gradient changed by its size")
def change_by_size(view: View) -> Found:
    """Halve the gradient behind a middle layer where it is as large as the loss makes it."""
    if view.side.loss is None:
        return []  # scaling the loss says already that none is given
    draws = KeyedDraws(_SEED, {"": ""})
    by_loss = view.side.run(view.inputs, False, draws, "all", anew=True)
    felt = {call.path: max_gradient(call) for call in by_loss.calls}
    path = middle([path for path in view.places_with_gradient() if felt.get(path, 0.0) > 0])
    if path is None:
        return _NO_GRADIENT
    elsewhere = next(max_gradient(call) for call in view.trace.calls if call.path == path)
    border, below = math.sqrt(felt[path] * elsewhere), felt[path] < elsewhere

    def halve(gradient: paddle.Tensor) -> paddle.Tensor:
        largest = float(gradient.abs().max())
        return gradient / 2 if (largest <= border if below else largest >= border) else gradient

    def watch(own: Forward, *args: Any, **kwargs: Any) -> Any:
        return change_tensors(own(*args, **kwargs), lambda tensor: _hook(tensor, halve))

    return fault_at(path, partial(replace_forward, view.layers[path], watch))


def _hook(tensor: paddle.Tensor, change: Callable[[paddle.Tensor], paddle.Tensor]) -> paddle.Tensor:
    if not tensor.stop_gradient:
        tensor.register_hook(change)
    return tensor


def _affine(layer: nn.Layer) -> tuple[Any, Any]:
    return layer._parameters.get("weight"), layer._parameters.get("bias")


def _made(**tensors: Any) -> dict[str, Callable[[], Any]]:
    return {name: partial(_same, tensor) for name, tensor in tensors.items()}


def _same(tensor: Any) -> Any:
    return tensor


def _change_weight(
    view: View,
    places: Sequence[Place],
    change: Callable[[paddle.Tensor], paddle.Tensor],
    hint: str = "",
    kind: str = "",
) -> Fault | None:
    """Return a fault that changes the weight of one of these layers; None without a layer."""
    found = view.pick(places)
    if found is None:
        return None
    path, layer = found
    weight = layer.weight
    make = partial(replace_parameters, layer, {"weight": lambda: change(weight)})
    return fault_at(path, make, hint or view.hint(path), kind)
