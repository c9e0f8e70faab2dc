"""Tries what could be written: on Paddle, with the recorded arguments, calls and layers."""

import ast
import inspect
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from reprod_align.porting.attempt import note_attempt
from reprod_align.porting.calls.record import Fact
from reprod_align.porting.calls.slots import DROPPED
from reprod_align.porting.calls.steps import MadeOptimizer, follows
from reprod_align.porting.calls.values import (
    Built,
    NoCounterpart,
    RecordedCall,
    agrees,
    differentiate,
    differentiate_paddle,
    find_function,
    gives_gradients,
    is_same,
    note_gradients,
    read_settings,
    to_paddle,
    walk,
)

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
    changed: dict[str, float]
    """the settings that it was given after it was made"""


@contextmanager
def note_runs(layers: dict[int, tuple[Any, Built]]) -> Iterator[None]:
    """Note the first call in eval mode of PyTorch's own layers while the block runs.

    Also the first one in train mode of those with statistics, which Paddle's momentum decides.
    layers: id of a layer -> itself, and the record that takes the calls.
    """
    import torch
    from torch.nn.modules import module as hooks

    begun: dict[int, tuple[dict[str, np.ndarray[Any, Any]], Any]] = {}
    losses = torch.nn.modules.loss._Loss  # made in `forward`, one is in train mode in any case

    def begin(layer: Any, arguments: Any) -> None:
        begun.pop(id(layer), None)
        _, built = layers.get(id(layer), (None, None))
        if built is None or any(one.training is layer.training for one in built.runs):
            return
        if layer.training and not built.buffers and not isinstance(layer, losses):
            return  # dropout: its masks are another matter
        size = sum(built.sizes) + sum(one.numel() for one in arguments if hasattr(one, "numel"))
        if size <= _LARGEST:
            begun[id(layer)] = _read_state(layer), _detach(arguments)  # it may change them

    def end(layer: Any, arguments: Any, keywords: Any, result: Any) -> None:
        if id(layer) in begun:
            before, given = begun.pop(id(layer))
            built = layers[id(layer)][1]
            runs = built.runs
            runs.append(_note_run(layer, built, before, given, arguments, keywords, result))
            if getattr(layer, "padding_idx", None) is not None and not keywords:
                whole = torch.arange(
                    len(layer.weight)
                )  # the batch may leave the row of padding out
                found = type(layer).forward(layer, whole)
                runs.append(_note_run(layer, built, before, (whole,), (whole,), {}, found))

    first = hooks.register_module_forward_pre_hook(begin)
    last = hooks.register_module_forward_hook(end, with_kwargs=True)
    try:
        yield
    finally:
        first.remove()
        last.remove()


def _note_run(
    layer: Any, built: Built, before: Any, given: Any, original: Any, keywords: Any, result: Any
) -> Run:
    """Return one call of a layer, from its state and copies of its arguments before it."""
    return Run(
        layer.training,
        before,
        given,
        _detach(keywords),
        _detach(result),
        _read_state(layer),
        _differentiate(layer, _name_fields(given, original), _detach(keywords)),
        tuple(n for n, one in layer.named_parameters() if not one.requires_grad),
        {
            name: one
            for name, one in read_settings(layer).items()
            if built.settings.get(name, one) != one
        },
    )


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


def _differentiate(layer: Any, arguments: Any, keywords: Any) -> dict[str, Any]:
    """Return the gradients of a call's parameters and arguments, where they are known.

    They are not where it changed its input in place, and where the model takes none. The call is repeated on
    copies of its arguments, since these may depend on each other, or on a parameter that is tied.
    """
    import torch

    if getattr(layer, "inplace", False) or not torch.is_grad_enabled():
        return {}
    given = _number(walk(arguments, torch.Tensor))
    leaves = {
        n: one for n, one in (given | dict(layer.named_parameters())).items() if one.requires_grad
    }
    kept = {name: one.clone() for name, one in layer.named_buffers()}
    try:
        found = differentiate(layer.forward(*arguments, **_detach(keywords)), list(leaves.values()))
    except RuntimeError:  # a function of the user's own, or a kernel without a backward pass
        return {}
    finally:
        with torch.no_grad():
            for name, one in layer.named_buffers():
                one.copy_(kept[name])
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


def _name_fields(value: Any, original: Any) -> Any:
    """Return copies as the original is: packed sequences are a named tuple."""
    if not isinstance(original, tuple):
        return value
    parts = [_name_fields(*both) for both in zip(value, original, strict=True)]
    return type(original)(*parts) if hasattr(original, "_fields") else tuple(parts)


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
        _change_settings(made, run.changed)
        if (name := _LOSSES.get(type(made).__name__)) and type(made).__module__.startswith(
            "paddle."
        ):
            ignored = getattr(made, "_ignore_index", getattr(made, "ignore_index", _UNSET))
            reduction = getattr(made, "_reduction", getattr(made, "reduction", "mean"))
            if _sums_ignored(name, [*arguments, *keywords.values()][1], ignored, reduction):
                return False
        paddle.set_default_dtype("float64")  # of states that it makes; the trial puts it back
        if not _load(made, run.before):
            return True
        made.train() if run.training else made.eval()
        for held, _ in _pair(made, {name: run.before[name] for name in run.frozen}):
            held.stop_gradient = True
        try:
            with paddle.enable_grad() if graded else paddle.no_grad():
                result = made(*arguments, **keywords)
        except NotImplementedError:  # a container of layers that are stood in for
            return True
        if not agrees(result, run.result, nearly=nearly) or not _holds(made, run):
            return False
        try:
            if graded and not _check_layer_gradients(
                made, arguments, result, run.gradients, nearly
            ):
                return False
        except RuntimeError:  # in eval mode a recurrent layer keeps nothing for its backward pass
            if run.training:
                raise
    return True


def _change_settings(made: Any, changed: Mapping[str, float]) -> None:
    """Give a norm of Paddle's the settings that PyTorch's was given after it was made."""
    if "eps" in changed and hasattr(made, "_epsilon"):
        made._epsilon = changed["eps"]
    if "momentum" in changed and hasattr(made, "_momentum"):
        made._momentum = 1 - changed["momentum"]


def _check_layer_gradients(
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


_RANDOM: Final = frozenset(
    """
    dropout dropout2d rand randn rand_like randn_like randint randperm normal_ uniform_ bernoulli
    bernoulli_ normal multinomial empty empty_like new_empty trunc_normal_ exponential_
    kaiming_normal_ kaiming_uniform_ xavier_normal_ xavier_uniform_ orthogonal_ alpha_dropout
    gumbel_softmax feature_alpha_dropout rrelu randint_like random_ sparse_ dropout1d dropout3d
    """.split()
)


def prove(
    node: ast.Call,
    trial: str,
    public: str,
    fact: Fact,
    space: dict[str, Any],
    nearly: bool = False,
    graded: bool = True,
    shaped: bool = False,
) -> bool | None:
    """Tell whether a candidate gives what was recorded; None if nothing could be tried.

    trial: the candidate with a variable in place of each argument. space: definitions that it may name.
    nearly: as `values.agrees` takes it: Paddle's kernels hold some constants in float32. graded: whether
    its gradients have to be PyTorch's too. shaped: its shapes and dtypes have to be, not its values.
    """
    random = shaped or public.rpartition(".")[2] in _RANDOM
    tried = None
    for call in fact.calls:
        slots = _bind(node, call)
        if call.receiver is not None:
            slots["self"] = call.receiver
        drawn = random or call.random or bool(call.keywords.get("dropout_p"))  # keyed draws
        plain = drawn or isinstance(call.result, MadeOptimizer)
        function = find_function(public) if graded and not plain else None
        label = f"{public} {trial.partition('(')[0]}"  # what ends a process ends it in any form
        found = _try(label, trial, slots, space, call, function, drawn, nearly, graded)
        if found is False:
            return False
        tried = tried or found
    return tried


def _try(
    label: str,
    trial: str,
    slots: dict[str, Any],
    space: dict[str, Any],
    call: RecordedCall,
    function: Any,
    drawn: bool = False,
    nearly: bool = False,
    graded: bool = True,
) -> bool | None:
    """Tell whether one call gives what was recorded; None if it cannot be tried.

    function: PyTorch's, whose gradients are asked for; None: no gradients.
    """
    try:
        values = {name: to_paddle(value) for name, value in slots.items()}
    except NoCounterpart:
        return None
    if note_attempt(f"{label} {_list_shapes(values)} {graded}", "") is not None:
        return False  # it ended the process before
    if trial.startswith(_SUMMED) and _sums_ignored_in(trial, call):
        return False
    if not _run(trial, space | values, call, drawn, nearly, graded):
        return False
    if function is None:
        return True
    with _set_default_dtype(call):
        note_gradients(call, function)
    return _check_gradients(trial, slots, space, call, nearly)


_UNSET: Final = -100  # what `ignore_index` is if it is not given
_LOSSES: Final = {"NLLLoss": "nll_loss", "CrossEntropyLoss": "cross_entropy"}
_SUMMED: Final = tuple(f"paddle.nn.functional.{name}(" for name in _LOSSES.values())


def _sums_ignored_in(trial: str, call: RecordedCall) -> bool:
    """Tell whether a call of one of `_LOSSES` is one whose ignored targets Paddle sums otherwise."""
    import torch

    name = trial.partition("(")[0].rpartition(".")[2]
    names = inspect.signature(getattr(torch.nn.functional, name))
    given = names.bind(*call.arguments, **call.keywords)
    given.apply_defaults()
    held = given.arguments
    return _sums_ignored(name, held["target"], held["ignore_index"], held["reduction"])


def _sums_ignored(name: str, target: Any, ignored: int, reduction: str) -> bool:
    """Tell whether Paddle takes the sum or mean of ignored targets otherwise than PyTorch.

    `nll_loss` writes a zero for each ignored label as if it gave a number for each, beyond its result.
    The mean of `cross_entropy` counts what a given negative index ignores: the first such target shows it.
    """
    if name == "cross_entropy":
        return reduction == "mean" and bool(_UNSET != ignored < 0)
    return reduction != "none" and bool((target == ignored).any())


def _list_shapes(values: dict[str, Any]) -> str:
    return str([(name, getattr(value, "shape", value)) for name, value in values.items()])


def operates(
    fact: Fact, sign: str, text: str = "", space: Mapping[str, Any] = MappingProxyType({})
) -> bool:
    """Tell whether an operator gives what PyTorch's does.

    text: what is written for `a sign b`, itself by default; space: definitions that it may name.
    """
    import torch

    plain = eval(f"lambda a, b: a {sign} b")
    text = text or f"a {sign} b"
    for call in fact.calls:
        try:
            with _set_default_dtype(call), torch.no_grad():
                call.result = plain(*call.arguments)
        except Exception:  # in PyTorch too: of what the source catches nothing is known
            continue
        operands = dict(zip("ab", call.arguments, strict=True))
        found = _try(text, text, operands, dict(space), call, plain)
        if found is not True:
            return found is None
        if _rounds(text, operands, space, call):
            return False
    return True


def _rounds(
    text: str, operands: dict[str, Any], space: Mapping[str, Any], call: RecordedCall
) -> bool:
    """Tell whether Paddle makes float32 of integers on the way, where PyTorch takes the default dtype."""
    import paddle

    noted: list[None] = []
    values = {name: to_paddle(value) for name, value in operands.items()}
    with _set_default_dtype(call, lambda *tensors: noted.append(None)), paddle.no_grad():
        eval(text, {"paddle": paddle, **space, **values})
    return bool(noted)


def reads(fact: Fact, text: str) -> bool:
    """Tell whether a text with `self` and `index` reads what `self[index]` did."""
    for call in fact.calls:
        slots = dict(zip(("self", "index"), call.arguments, strict=True))
        if _try(text, text, slots, {}, call, operator.getitem) is False:
            return False
    return True


def stores(fact: Fact, text: str, space: dict[str, Any]) -> bool:
    """Tell whether a text with `self`, `index` and `value` changes a tensor as `self[index] = value` did."""
    for call in fact.calls:
        slots = {"self": call.receiver, "index": call.arguments[0], "value": call.arguments[1]}
        if _try(text, text, slots, space, call, operator.setitem) is False:
            return False
    return True


def _run(
    text: str,
    values: dict[str, Any],
    call: RecordedCall,
    random: bool,
    nearly: bool = False,
    graded: bool = False,
) -> bool:
    import paddle

    space = {"paddle": paddle, **values}
    try:
        with _set_default_dtype(call), paddle.no_grad():
            made = _read_made(eval(text, space), space, call)
            if isinstance(call.result, MadeOptimizer):
                return follows(made, call.result, nearly)
            if call.after is not None:
                return agrees(made, call.after, random, nearly)
            if not agrees(made, call.result, random, nearly):
                return False
        if not isinstance(call.result, Built):
            return True
        with _set_default_dtype(call), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Paddle's batch norm warns in train mode
            return gives_the_same(made, call.result, graded, nearly)
    except Exception:
        return False


def _check_gradients(
    text: str, slots: dict[str, Any], space: dict[str, Any], call: RecordedCall, nearly: bool
) -> bool:
    """Tell whether a candidate's gradients are PyTorch's, where those are known."""
    import paddle

    if not call.gradients:
        return True

    def run(values: dict[str, Any]) -> Any:
        inner = {"paddle": paddle, **space, **values}
        return _read_made(eval(text, inner), inner, call)

    values = {name: to_paddle(value) for name, value in slots.items()}
    try:
        with _set_default_dtype(call), paddle.enable_grad():
            return gives_gradients(run, slots, values, call.gradients, nearly)
    except Exception:
        return False


def _read_made(made: Any, space: dict[str, Any], call: RecordedCall) -> Any:
    """Return the result, or of a call that changes its receiver or first argument what that is now."""
    return made if call.after is None else space["self"] if "self" in space else space["a0"]


@contextmanager
def _set_default_dtype(
    call: RecordedCall, note: Callable[..., None] = lambda *tensors: None
) -> Iterator[None]:
    """Work as PyTorch's side did: with its default dtype, and in the run with float64 for float32.

    note: is called where Paddle asks for float32, or makes it of integers.
    """
    from reprod_align.backends.paddle.calls import float32_requests
    from reprod_align.backends.torch.calls import float32_requests as repeat_requests

    import paddle
    import torch

    dtype = str(call.default_dtype).removeprefix("torch.")
    kept, kept_in_torch = paddle.get_default_dtype(), torch.get_default_dtype()
    try:
        with ExitStack() as stack:
            if dtype == "float64" and call.widened:
                stack.enter_context(float32_requests(note, True))
                stack.enter_context(repeat_requests(lambda *tensors: None, True))
            if isinstance(call.result, Built):
                paddle.set_default_dtype("float64")  # in which a layer runs afterwards
            elif call.default_dtype is not None:
                paddle.set_default_dtype(dtype)
            if call.default_dtype is not None:
                torch.set_default_dtype(call.default_dtype)
            yield
    finally:
        paddle.set_default_dtype(kept)
        torch.set_default_dtype(kept_in_torch)


def _bind(node: ast.Call, call: RecordedCall) -> dict[str, Any]:
    """Return the recorded value of each variable of a trial."""
    values: dict[str, Any] = {}
    given = list(call.arguments)
    stars = [at for at, one in enumerate(node.args) if isinstance(one, ast.Starred)]
    if stars:
        first = stars[0]
        values |= {f"a{at}": given[at] for at in range(first)}
        after = (
            len(node.args) - 1 - first
        )  # with two stars their split is not known: nothing is proven
        values["star"] = given[first : len(given) - after]
        values |= {f"a{first + at}": given[at - after - 1] for at in range(1, after + 1)}
    else:
        values |= {f"a{at}": value for at, value in enumerate(given)}
    words = {one.arg for one in node.keywords if one.arg}
    left_out = words & set(DROPPED)
    values |= {
        f"k_{name}": call.keywords[name] for name in words - left_out if name in call.keywords
    }
    values["rest"] = {name: value for name, value in call.keywords.items() if name not in words}
    return values
