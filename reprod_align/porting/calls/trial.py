"""Tries what could be written: on Paddle, with the recorded arguments."""

import ast
import warnings
from typing import Any, Final

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
) -> bool | None:
    """Tell whether a candidate gives what was recorded; None if nothing could be tried.

    trial: the candidate with a variable in place of each argument. space: definitions that it may name.
    nearly: as `values.agrees` takes it: Paddle's kernels hold some constants in float32.
    """
    random = public.rpartition(".")[2] in _RANDOM
    tried = None
    for call in fact.calls:
        slots = _bind(node, call)
        try:
            values = space | {name: to_paddle(value) for name, value in slots.items()}
            if call.receiver is not None:
                values["self"] = to_paddle(call.receiver)
        except NoCounterpart:
            continue
        tried = True
        drawn = random or call.random or bool(call.keywords.get("dropout_p"))  # keyed draws
        if note_attempt(f"{public} {trial} {_list_shapes(values)}", "") is not None:
            return False  # it ended the process before
        if not _run(trial, values, call, drawn, nearly):
            return False
    return tried


def _list_shapes(values: dict[str, Any]) -> str:
    return str([(name, getattr(value, "shape", value)) for name, value in values.items()])


def operates(fact: Fact, sign: str, left: str = "{0}", right: str = "{1}") -> bool:
    """Tell whether an operator gives what PyTorch's does; left, right: forms of its operands."""
    import torch

    for call in fact.calls:
        first, second = call.arguments
        with torch.no_grad():
            expected = eval(f"a {sign} b", {"a": first, "b": second})
        try:
            values = {"a": to_paddle(first), "b": to_paddle(second)}
        except NoCounterpart:
            return True
        made = Call((), {}, expected, default_dtype=call.default_dtype)
        if not _run(
            f"{left.format('a', 'b')} {sign} {right.format('a', 'b')}", values, made, False
        ):
            return False
    return True


def _run(text: str, values: dict[str, Any], call: Call, random: bool, nearly: bool = False) -> bool:
    import paddle

    kept = paddle.get_default_dtype()
    space = {"paddle": paddle, **values}
    try:
        if call.default_dtype is not None:
            paddle.set_default_dtype(str(call.default_dtype).removeprefix("torch."))
        with paddle.no_grad():
            made = eval(text, space)
        if call.after is not None:
            made = space["self"] if "self" in values else space["a0"]
            return agrees(made, call.after, random, nearly)
        if not agrees(made, call.result, random, nearly):
            return False
        if not isinstance(call.result, Built):
            return True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Paddle's batch norm warns in train mode
            return gives_the_same(made, call.result)
    except Exception:
        return False
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
