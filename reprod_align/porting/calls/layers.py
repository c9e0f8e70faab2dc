"""Layers that PyTorch's file makes: what they gave in the run, and whether Paddle's give the same."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from reprod_align.porting.calls.gradients import (
    differentiate,
    differentiate_paddle,
    is_same,
    walk,
)
from reprod_align.porting.calls.values import Built, NoCounterpart, agrees, to_paddle

import numpy as np

_LARGEST: Final = 1 << 18  # numbers of a layer's state, and of what it is given
_RENAMED: Final = {"running_mean": "_mean", "running_var": "_variance", "num_batches_tracked": ""}


@dataclass(frozen=True)
class Run:
    """One call of a layer: its state before, what it was given, what it gave, its state afterwards."""

    training: bool
    before: dict[str, np.ndarray[Any, Any]]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any
    after: dict[str, np.ndarray[Any, Any]]
    gradients: dict[str, Any]
    """of the parameters, and of what it was given by its position"""
    frozen: tuple[str, ...]
    """the parameters that take none"""


@contextmanager
def noted_runs(layers: dict[int, tuple[Any, Built]]) -> Iterator[None]:
    """Note the first call in eval mode of PyTorch's own layers while the block runs.

    Also the first one in train mode of those with statistics, which Paddle's momentum decides.
    layers: id of a layer -> itself, and the record that takes the calls.
    """
    from torch.nn.modules import module as hooks

    begun: dict[int, tuple[dict[str, np.ndarray[Any, Any]], Any]] = {}

    def begin(layer: Any, arguments: Any) -> None:
        begun.pop(id(layer), None)
        _, built = layers.get(id(layer), (None, None))
        if built is None or any(one.training is layer.training for one in built.runs):
            return
        if layer.training and not built.buffers:
            return  # dropout: its masks are another matter
        size = sum(built.sizes) + sum(one.numel() for one in arguments if hasattr(one, "numel"))
        if size <= _LARGEST:
            begun[id(layer)] = _read_state(layer), _detach(arguments)  # it may change them

    def end(layer: Any, arguments: Any, keywords: Any, result: Any) -> None:
        if id(layer) in begun:
            before, given = begun.pop(id(layer))
            run = Run(
                layer.training,
                before,
                given,
                _detach(keywords),
                _detach(result),
                _read_state(layer),
                _differentiate(layer, arguments, result),
                tuple(n for n, one in layer.named_parameters() if not one.requires_grad),
            )
            layers[id(layer)][1].runs.append(run)

    first = hooks.register_module_forward_pre_hook(begin)
    last = hooks.register_module_forward_hook(end, with_kwargs=True)
    try:
        yield
    finally:
        first.remove()
        last.remove()


def find_inplace(
    sites: Mapping[int, Sequence[Any]], run: Callable[[], Mapping[str, Any]]
) -> set[int]:
    """Return where layers are made whose change of their input in place is read afterwards.

    sites: where layers with `inplace=True` are made -> those layers; run: gives the model's outputs. A
    layer that is switched to leave its input alone then gives other outputs.
    """

    def differs(numbers: Iterable[int]) -> bool:
        layers = [layer for number in numbers for layer in sites[number]]
        for layer in layers:
            layer.inplace = False
        found = run()
        for layer in layers:
            layer.inplace = True
        return any(not np.array_equal(found[name], plain[name]) for name in plain)

    if not sites:
        return set()
    plain = run()
    return {number for number in sites if differs([number])} if differs(sites) else set()


def _read_state(layer: Any) -> dict[str, np.ndarray[Any, Any]]:
    return {name: one.detach().numpy().copy() for name, one in layer.state_dict().items()}


def _differentiate(layer: Any, arguments: Any, result: Any) -> dict[str, Any]:
    """Return the gradients of a call's parameters and arguments; none where it changed its input in place."""
    import torch

    if getattr(layer, "inplace", False):
        return {}
    given = _number(walk(arguments, torch.Tensor))
    leaves = {
        n: one for n, one in (given | dict(layer.named_parameters())).items() if one.requires_grad
    }
    try:
        found = differentiate(result, list(leaves.values()))
    except RuntimeError:  # a function of the user's own, or a kernel without a backward pass
        return {}
    return {name: found[id(one)] for name, one in leaves.items() if id(one) in found}


def _number(tensors: Iterable[Any]) -> dict[str, Any]:
    """Return the tensors by number; one that is given twice, as query and key are, has one."""
    return {str(at): one for at, one in enumerate({id(one): one for one in tensors}.values())}


def _detach(value: Any, made: dict[int, Any] | None = None) -> Any:
    """Return copies of tensors, one of each. made: those that there are, by the id of the tensor."""
    made = {} if made is None else made
    if hasattr(value, "detach"):
        if id(value) not in made:
            made[id(value)] = value.detach().clone().requires_grad_(value.requires_grad)
        return made[id(value)]
    if isinstance(value, list | tuple):
        return tuple(_detach(one, made) for one in value)
    if isinstance(value, dict):
        return {name: _detach(one, made) for name, one in value.items()}
    return value


def gives_the_same(made: Any, built: Built, graded: bool = True, nearly: bool = True) -> bool:
    """Tell whether a layer of Paddle's gives what PyTorch's gave; True where that cannot be tried.

    graded: the gradients too. nearly: as far as float32 holds it.
    """
    import paddle

    for run in built.runs:
        try:
            arguments, keywords = to_paddle(run.arguments), to_paddle(run.keywords)
        except NoCounterpart:
            continue
        if any(one.dtype != paddle.float64 for one in made.parameters()):
            made.to(dtype="float64")  # which a recurrent layer refuses
        paddle.set_default_dtype("float64")  # of states that it makes; the trial puts it back
        if not _load(made, run.before):
            return True
        made.train() if run.training else made.eval()
        for held, _ in _pair(made, {name: run.before[name] for name in run.frozen}):
            held.stop_gradient = True
        with paddle.enable_grad() if graded else paddle.no_grad():
            result = made(*arguments, **keywords)
        if not agrees(result, run.result, nearly=nearly) or not _holds(made, run):
            return False
        try:
            if graded and not _hands_back(made, arguments, result, run.gradients, nearly):
                return False
        except RuntimeError:  # in eval mode a recurrent layer keeps nothing for its backward pass
            if run.training:
                raise
    return True


def _hands_back(
    made: Any, arguments: Any, result: Any, gradients: dict[str, Any], nearly: bool
) -> bool:
    """Tell whether the gradients of a layer's call are PyTorch's, where those are known."""
    import paddle

    if not gradients:
        return True
    given = _number(walk(arguments, paddle.Tensor))
    inner = {name: one for name, one in gradients.items() if name not in given}
    pairs = [(given[name], one) for name, one in gradients.items() if name in given]
    pairs += _pair(made, inner)
    found = differentiate_paddle(result, [ours for ours, _ in pairs])
    return all(
        is_same(one, None if expected is None else _lay(ours, expected), nearly)
        for one, (ours, expected) in zip(found, pairs, strict=True)
    )


def _load(made: Any, state: dict[str, np.ndarray[Any, Any]]) -> bool:
    """Give a layer of Paddle's the state of PyTorch's; tell whether that was possible."""
    for held, value in _pair(made, state):
        if held is None or held.size != value.size:
            return False
        held.set_value(_lay(held, value).astype(str(held.dtype).rpartition(".")[2]))
    return True


def _holds(made: Any, run: Run) -> bool:
    """Tell whether the running means are PyTorch's; Paddle keeps the biased variance, another number.

    Paddle's momentum is a float32: the part that is kept of the old mean is as exact as that.
    """
    state = {name: one for name, one in run.after.items() if not name.endswith("running_var")}
    scale = max((float(np.abs(one).max(initial=0)) for one in run.before.values()), default=0.0)
    return all(
        held is not None
        and np.allclose(held.numpy(), _lay(held, value), rtol=1e-6, atol=1e-6 * scale)
        for held, value in _pair(made, state)
    )


def _pair(made: Any, state: dict[str, np.ndarray[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Yield Paddle's tensor of each name of PyTorch's, None where there is none, and the value."""
    import paddle

    ours = dict(made.state_dict())
    for name, value in state.items():
        last = name.rpartition(".")[2]
        renamed = _RENAMED.get(last, last)
        if renamed:
            held = ours.get(name.removesuffix(last) + renamed)
            plain = isinstance(made, paddle.nn.Linear) and last == "weight"
            yield held, value.T if plain else value


def _lay(held: Any, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    same = list(held.shape) == list(value.shape)
    turned = list(held.shape) == list(value.T.shape)
    return value if same else value.T if turned else value.reshape(held.shape)
