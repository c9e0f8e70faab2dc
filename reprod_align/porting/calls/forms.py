"""Forms of arguments and results, for calls that Paddle takes in another type alone."""

import ast
from collections.abc import Iterator
from typing import Any, Final

from reprod_align.explain.code import dotted
from reprod_align.porting.calls.record import Fact
from reprod_align.porting.calls.slots import SELF, STAR, Forms
from reprod_align.porting.calls.values import RecordedCall

import numpy as np

_DEFAULT: Final = "{0}.astype(paddle.get_default_dtype())"
_BOOLEAN: Final = '{0}.astype("bool")'
_INTEGERS: Final = ("int64", "int32", "bool")
_LARGEST: Final = 64  # forms of one call


def list_forms(node: ast.Call, receiver: ast.expr | None, fact: Fact) -> Iterator[Forms]:
    """Yield in which other forms a call's arguments may be written, by what was recorded of them.

    First every argument that is no plain value of Python's, then one argument at a time.
    """
    lead = SELF if receiver is not None else 0
    led = _can_repeat(node, receiver)
    places: dict[int | str, list[str]] = {}
    for call in fact.calls:
        for key, value in _list_given(node, call):
            known = places.setdefault(key, [])
            known += [one for one in _list_of(value, key, led and key != lead) if one not in known]
    plain = {key: forms[0] for key, forms in places.items() if forms and forms[0] in _PLAIN}
    found: list[Forms] = [plain] if len(plain) > 1 else []
    narrow = {key: _DEFAULT for call in fact.calls for key in _list_narrow(node, call)}
    found += [narrow] if narrow else []
    found += [{key: form} for key, forms in places.items() for form in forms]
    yield from found[:_LARGEST]


def list_result_forms(node: ast.Call, fact: Fact) -> Iterator[tuple[Forms, str]]:
    """Yield in which forms a result may be written that is of another type than PyTorch's.

    Each with forms of the arguments: a kernel that knows no booleans takes and gives integers.
    """
    results = _list_of_results(fact)
    yield from (({}, one) for one in results)
    if results == [_BOOLEAN]:
        integers = {key: form for call in fact.calls for key, form in _list_booleans(node, call)}
        if integers:
            yield integers, _BOOLEAN


def _list_of_results(fact: Fact) -> list[str]:
    import torch

    results = [call.result for call in fact.calls]
    if any(call.after is not None for call in fact.calls):  # what is changed is what counts
        return []
    if all(isinstance(one, torch.Tensor) and not one.is_floating_point() for one in results):
        dtypes = {str(one.dtype).removeprefix("torch.") for one in results}
        return [f'{{0}}.astype("{one}")' for one in dtypes] if len(dtypes) == 1 else []
    if all(isinstance(one, torch.Tensor) for one in results):
        return [_DEFAULT, *(["{0}.squeeze()"] if all(one.ndim == 0 for one in results) else [])]
    kinds = {type(one) for one in results}
    kind = kinds.pop() if len(kinds) == 1 else None
    return [f"{kind.__name__}({{0}})"] if kind in (int, float, bool, tuple, list) else []


def _list_booleans(node: ast.Call, call: RecordedCall) -> Iterator[tuple[int | str, str]]:
    """Yield the arguments that are booleans, or ask for such, as integers."""
    import torch

    for key, value in _list_given(node, call):
        if value is torch.bool:
            yield key, '"int64"'
        elif isinstance(value, torch.Tensor) and value.dtype == torch.bool:
            yield key, '{0}.astype("int64")'


_PLAIN: Final = (
    "int({0})",
    "float({0})",
    "[int(one) for one in {0}]",
    "map(int, {0})",
    "{0}.detach()",
)


def _list_given(node: ast.Call, call: RecordedCall) -> Iterator[tuple[int | str, Any]]:
    """Yield the recorded value of each argument that is written out, and of the receiver."""
    if call.receiver is not None and call.after is None:
        yield SELF, call.receiver
    stars = [at for at, one in enumerate(node.args) if isinstance(one, ast.Starred)]
    if not stars:
        yield from enumerate(call.arguments)
    elif len(stars) == 1:
        after = len(node.args) - 1 - stars[0]
        yield STAR, call.arguments[stars[0] : len(call.arguments) - after]
    words = [one.arg for one in node.keywords]
    yield from ((name, one) for name, one in call.keywords.items() if name in words)


def _list_narrow(node: ast.Call, call: RecordedCall) -> list[int | str]:
    """Return which arguments are of a narrower float than others, which PyTorch widens by itself."""
    import torch

    given = dict(_list_given(node, call))
    floats = {
        key: one.dtype
        for key, one in given.items()
        if isinstance(one, torch.Tensor) and one.is_floating_point()
    }
    widest = max((torch.finfo(one).bits for one in floats.values()), default=0)
    return [key for key, one in floats.items() if torch.finfo(one).bits < widest]


def _can_repeat(node: ast.Call, receiver: ast.expr | None) -> bool:
    """Tell whether the receiver, or a function's first argument, is a plain name."""
    first = receiver or next(iter(node.args), None)
    return first is not None and bool(dotted(first))


def _list_of(value: Any, key: int | str, led: bool) -> Iterator[str]:
    """Yield the forms of one value; led: whether a tensor may take the dtype of the receiver."""
    import torch

    if key == STAR:
        if any(isinstance(one, np.integer | torch.Tensor) for one in value):
            yield "map(int, {0})"
        return
    if isinstance(value, np.integer | np.floating):
        yield "int({0})" if isinstance(value, np.integer) else "float({0})"
    elif isinstance(value, list | tuple):
        if any(isinstance(one, np.integer) for one in value):
            yield "[int(one) for one in {0}]"
        yield "list({0})" if isinstance(value, tuple) else "tuple({0})"
        if value and all(isinstance(one, torch.Tensor) and one.ndim == 0 for one in value):
            yield "[one.item() for one in {0}]"
    elif isinstance(value, np.ndarray):
        yield "paddle.to_tensor({0})"
    elif isinstance(value, torch.Tensor):
        yield from _list_of_tensor(value, led)
    elif isinstance(value, float) and value.is_integer():
        yield "int({0})"
    elif isinstance(value, bool):
        yield "int({0})"


def _list_of_tensor(value: Any, led: bool) -> Iterator[str]:
    import torch

    if isinstance(value, torch.nn.Parameter):
        yield "{0}.detach()"
    if value.ndim == 0:
        yield "{0}.item()"
    if led:
        yield "{0}.astype({1}.dtype)"
    own = str(value.dtype).removeprefix("torch.")
    if not value.is_floating_point() and not value.is_complex():
        if value.ndim == 1:
            yield "{0}.tolist()"
        yield from (f'{{0}}.astype("{one}")' for one in _INTEGERS if one != own)
    yield _DEFAULT
