"""Tries what could be written: on Paddle, with the recorded arguments."""

import ast
import operator
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from reprod_align.porting.calls.gradients import find_function, gives_gradients, note_gradients
from reprod_align.porting.calls.layers import gives_the_same
from reprod_align.porting.calls.record import Call, Fact
from reprod_align.porting.calls.slots import DROPPED
from reprod_align.porting.calls.values import Built, NoCounterpart, agrees, to_paddle
from reprod_align.porting.guard import note_attempt

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
) -> bool | None:
    """Tell whether a candidate gives what was recorded; None if nothing could be tried.

    trial: the candidate with a variable in place of each argument. space: definitions that it may name.
    nearly: as `values.agrees` takes it: Paddle's kernels hold some constants in float32. graded: whether
    its gradients have to be PyTorch's too.
    """
    random = public.rpartition(".")[2] in _RANDOM
    tried = None
    for call in fact.calls:
        slots = _bind(node, call)
        if call.receiver is not None:
            slots["self"] = call.receiver
        drawn = random or call.random or bool(call.keywords.get("dropout_p"))  # keyed draws
        function = find_function(public) if graded and not drawn else None
        found = _try(
            f"{public} {trial}", trial, slots, space, call, function, drawn, nearly, graded
        )
        if found is False:
            return False
        tried = tried or found
    return tried


def _try(
    label: str,
    trial: str,
    slots: dict[str, Any],
    space: dict[str, Any],
    call: Call,
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
    if not _run(trial, space | values, call, drawn, nearly, graded):
        return False
    if function is None:
        return True
    note_gradients(call, function)
    return _hands_back(trial, slots, space, call, nearly)


def _list_shapes(values: dict[str, Any]) -> str:
    return str([(name, getattr(value, "shape", value)) for name, value in values.items()])


def operates(fact: Fact, sign: str, left: str = "{0}", right: str = "{1}") -> bool:
    """Tell whether an operator gives what PyTorch's does; left, right: forms of its operands."""
    import torch

    plain = eval(f"lambda a, b: a {sign} b")
    text = f"{left.format('a', 'b')} {sign} {right.format('a', 'b')}"
    for call in fact.calls:
        with torch.no_grad():
            call.result = plain(*call.arguments)
        found = _try(text, text, dict(zip("ab", call.arguments, strict=True)), {}, call, plain)
        if found is not True:
            return found is None
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
    call: Call,
    random: bool,
    nearly: bool = False,
    graded: bool = False,
) -> bool:
    import paddle

    space = {"paddle": paddle, **values}
    try:
        with _default_dtype(call), paddle.no_grad():
            made = _read_made(eval(text, space), space, call)
            if call.after is not None:
                return agrees(made, call.after, random, nearly)
            if not agrees(made, call.result, random, nearly):
                return False
        if not isinstance(call.result, Built):
            return True
        with _default_dtype(call), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Paddle's batch norm warns in train mode
            return gives_the_same(made, call.result, graded, nearly)
    except Exception:
        return False


def _hands_back(
    text: str, slots: dict[str, Any], space: dict[str, Any], call: Call, nearly: bool
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
        with _default_dtype(call), paddle.enable_grad():
            return gives_gradients(run, slots, values, call.gradients, nearly)
    except Exception:
        return False


def _read_made(made: Any, space: dict[str, Any], call: Call) -> Any:
    """Return the result, or of a call that changes its receiver or first argument what that is now."""
    return made if call.after is None else space["self"] if "self" in space else space["a0"]


@contextmanager
def _default_dtype(call: Call) -> Iterator[None]:
    import paddle

    kept = paddle.get_default_dtype()
    try:
        if isinstance(call.result, Built):
            paddle.set_default_dtype("float64")  # in which a layer runs afterwards
        elif call.default_dtype is not None:
            paddle.set_default_dtype(str(call.default_dtype).removeprefix("torch."))
        yield
    finally:
        paddle.set_default_dtype(kept)


def _bind(node: ast.Call, call: Call) -> dict[str, Any]:
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
