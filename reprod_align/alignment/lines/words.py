"""The difference of two calls, or an edit, in the user's own words."""

import re

from reprod_align.alignment.lines.divergence import Difference
from reprod_align.model.source.operation import RETURN, Operation
from reprod_align.report import Suggestion

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


def describe_edit(edit: Suggestion) -> str:
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
