"""The difference of two calls: in the user's own words, and its cause from their numbers."""

import re
from collections.abc import Iterator, Sequence

from reprod_align.alignment.lines.divergence import Difference
from reprod_align.alignment.lines.graph import are_alike, are_equal, name_of
from reprod_align.causes import explain_forward
from reprod_align.model.leaf import HIDDEN, hide_same_places
from reprod_align.model.source.operation import RETURN, Operation
from reprod_align.model.trace import Array
from reprod_align.report import Edit

import numpy as np

_LONGEST = 90  # characters of an expression


def describe_difference(found: Difference) -> str:
    """Return what the two lines do differently; "" where only the lines themselves can tell."""
    ours, theirs = _quote(found.ours), _quote(found.theirs)
    if found.how == "cut" and found.theirs is not None:
        stops, place = ("PyTorch", ours) if found.theirs.differentiable else ("Paddle", theirs)
        return f"the gradient stops at {place} in {stops}"
    if not found.is_sure:
        return ""
    if found.how == "lacking" and ours:
        return f"PyTorch calls {ours} here, and Paddle does not"
    if found.how == "extra" and theirs:
        return f"Paddle calls {theirs} here, and PyTorch does not"
    if ours and theirs and _bare(ours) != _bare(theirs):
        inside = found.ours is not None and found.ours.whole is not None
        step = f"{found.ours.name} inside {ours}" if inside and found.ours is not None else ours
        return f"{theirs} in Paddle, {step} in PyTorch"
    return ""


def _quote(operation: Operation | None) -> str:
    if operation is None or not operation.source.expression:
        return ""
    text = " ".join(operation.source.expression.split())
    if operation.name == RETURN:
        text = text.removeprefix("return ") or text
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + ' …'}`"


def _bare(text: str) -> str:
    return re.sub(r"\W|paddle|torch", "", text)


def describe_edit(edit: Edit) -> str:
    """Return what an edit says is different, where it adds a call or takes one out; "" elsewhere."""
    texts = "".join(edit.before.split()), "".join(edit.after.split())
    for sides, (part, whole) in (
        (("PyTorch", "Paddle"), texts),
        (("Paddle", "PyTorch"), texts[::-1]),
    ):
        name = whole.removesuffix(f"({part})")
        if name != whole and name.replace(".", "").isidentifier():
            return f"{sides[0]} calls `{name}` here, and {sides[1]} does not"
    return ""


_CLOSE = 1e-9  # relative


def explain_calls(found: Difference, relative: float = _CLOSE) -> str:
    """Return why the results of two calls differ, or the values that they take; "" if nothing fits.

    The calls are those at which the difference arises: what they take is equal, or one value of
    each is not, whose cause is then sought. relative: how far equal values may be apart.
    """
    ours, theirs = found.ours, found.theirs
    if found.how == "value" and found.made is not None and ours is not None:
        return _explain_index(ours, found.made, found)
    if ours is None or theirs is None or not found.is_sure:
        return ""
    if are_exchanged(ours, theirs):
        return "the two operands are exchanged: Paddle's first is PyTorch's second"
    apart = list(_pair_unequal(ours.inputs, theirs.inputs, relative))
    if len(apart) == 1:
        return _explain(*apart[0], [])
    if apart or len(ours.outputs) != 1 or len(theirs.outputs) != 1:
        return ""
    taken = [(f"what {ours.name} takes", array) for array in ours.inputs]
    return _explain(ours.outputs[0], theirs.outputs[0], taken)


def are_exchanged(ours: Operation, theirs: Operation) -> bool:
    """Tell whether each of two calls takes first what the other takes second, but for factors."""
    if name_of(ours) != name_of(theirs) or len(ours.inputs) != 2 or len(theirs.inputs) != 2:
        return False
    first, second = ([_normalise(one) for one in call.inputs] for call in (ours, theirs))
    straight = [are_alike(*pair, _CLOSE) for pair in zip(first, second, strict=True)]
    crossed = [are_alike(*pair, _CLOSE) for pair in zip(first, second[::-1], strict=True)]
    return all(crossed) and not any(straight)


def _normalise(array: Array) -> Array:
    largest = np.abs(array).max(initial=0.0) if array.dtype.kind == "f" else 0.0
    return array / largest if largest else array


def _explain_index(ours: Operation, made: Operation, found: Difference) -> str:
    """Explain two of the values that one call returns, taken for each other."""
    if found.used is None or found.position < 0:
        return ""
    wrong, met = found.used.inputs[found.position], (*ours.inputs, *ours.outputs)
    theirs = [at for at, one in enumerate(made.outputs) if are_equal(one, wrong, _CLOSE)]
    due = [at for at, one in enumerate(made.outputs)
           if any(are_equal(one, other, _CLOSE) for other in met)]  # fmt: skip
    if len(made.outputs) < 2 or not theirs or not due or set(theirs) & set(due):
        return ""
    name = made.called or made.name
    return f"Paddle takes index {theirs[0]} of what {name} returns, PyTorch index {due[0]}"


def _pair_unequal(
    ours: Sequence[Array], theirs: Sequence[Array], relative: float
) -> Iterator[tuple[Array, Array]]:
    """Yield the inputs of one shape that are left over when equal ones are paired."""
    left = [array for array in ours if array.dtype.kind == "f"]
    rest = []
    for array in (one for one in theirs if one.dtype.kind == "f"):
        equal = next(
            (at for at, other in enumerate(left) if are_equal(other, array, relative)), None
        )
        if equal is None:
            rest.append(array)
        else:
            left.pop(equal)
    for array in rest:
        same_shape = [other for other in left if other.shape == array.shape]
        yield (same_shape[0] if len(same_shape) == 1 else np.zeros(0)), array


def _explain(expected: Array, actual: Array, given: Sequence[tuple[str, Array]]) -> str:
    if (
        hide_same_places(expected, actual)
        or min(it.min(initial=0) for it in (expected, actual)) < -HIDDEN
    ):
        return ""  # a mask by another convention, or scores under one
    names, arrays = [name for name, _ in given], [array for _, array in given]
    return explain_forward(expected, actual, arrays, names=names)
