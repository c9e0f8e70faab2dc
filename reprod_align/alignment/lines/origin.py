"""Goes from the call that differs to the line that is to be mended, and says what is different there.

That is where a constant of the call was set, where the function that it calls was chosen, or where a
value was passed on that should have been changed.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from reprod_align.alignment.lines.divergence import Difference, is_mask_added
from reprod_align.alignment.lines.graph import is_same
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.text import ancestors, is_within
from reprod_align.model.source import RETURN, Operation, SourceLine
from reprod_align.model.source.parsing import (
    find_assignment,
    find_condition,
    find_constant,
    find_returned,
    find_single_renaming,
    follow_renamings,
    is_parameter,
    is_same_function,
    list_earlier_names,
    list_handed,
    list_names,
    list_targets,
)
from reprod_align.report import Suggestion

Lines = tuple[SourceLine | None, SourceLine | None]


def find_origin(found: Difference, modules: Mapping[str, str] = MappingProxyType({})) -> Lines:
    """Return both lines: of the calls, or of what is behind them. modules: Paddle's name -> PyTorch's."""
    ours, theirs = found.ours, found.theirs
    lines = _read_source(ours), _read_source(theirs)
    if found.how in ("lacking", "value") and found.used is not None:
        return lines[0], _find_passing(found, found.used, modules) or lines[1]
    if found.how == "mask" and theirs is not None:
        return lines[0], _find_table(theirs) or lines[1]
    if found.how not in ("call", "layout") or ours is None or theirs is None:
        return lines
    chosen = [
        (found.take_the_same and _find_maker(one)) or _find_constant(one, other) or one.source
        for one, other in ((ours, theirs), (theirs, ours))
    ]
    return chosen[0], chosen[1]


def _read_source(operation: Operation | None) -> SourceLine | None:
    return None if operation is None else operation.source


def _find_table(operation: Operation) -> SourceLine | None:
    """Return where a tensor that a module holds was made, if a call takes one as it is."""
    held = [
        name
        for name, position in operation.tensors.items()
        if name.startswith("self.") and operation.makers[position] is None
    ]
    return find_assignment(operation.source.file, operation.source.line, held[0]) if held else None


def _find_maker(operation: Operation) -> SourceLine | None:
    """Return where the layer or function that is called got its name: "self.x", or a variable's."""
    source = operation.source
    if not operation.called.startswith("self.") and not operation.called.isidentifier():
        return None
    if _is_set_in_call(operation):
        return None
    place = find_assignment(source.file, source.line, operation.called)
    return None if place is None else replace(place, expression=source.expression)


def _is_set_in_call(operation: Operation) -> bool:
    """Tell whether a call writes out an argument beside its tensors, as `self.act(x, approximate=True)`."""
    try:
        call = ast.parse(operation.source.expression, mode="eval").body
    except SyntaxError:
        return False
    given = (
        [*call.args, *(one.value for one in call.keywords)] if isinstance(call, ast.Call) else []
    )
    return any(isinstance(one, ast.Constant) and one.value is not None for one in given)


def _find_constant(operation: Operation, other: Operation) -> SourceLine | None:
    """Return where the constant of a call that the other call lacks was written; None if all are met."""
    source, whole = operation.source, other.whole or other
    for value in [one for one in operation.constants if not _is_in(one, whole)]:
        names = [name for name, held in operation.names.items() if _is_same(held, value)]
        if not names:
            literal = find_constant(source, value)
            return literal if literal.line != source.line else None
        for name in names:
            place = find_assignment(source.file, source.line, name)
            if place is not None:
                return replace(place, expression=source.expression)
        return None
    return None


def _find_passing(
    found: Difference, used: Operation, modules: Mapping[str, str]
) -> SourceLine | None:
    """Return the statement that passed the wrong value on to `used`: a dropped call leaves `x = x`."""
    made, place = found.made, used.source
    held = found.held
    if used.user is not None:
        return find_condition(place.file, place.line, held)
    if found.how != "lacking" and made is None:
        return _find_handing(found, used, held)
    since = made.source.line if made is not None and is_same_function(made.source, place) else None
    renamings = [
        one for name in held for one in follow_renamings(place.file, place.line, name, since)
    ]
    if found.ours is not None and is_mask_added(found.ours):
        if (idle := _find_idle(used)) is not None:
            return idle.source
    if found.how != "lacking":  # PyTorch's value is made by a call that the port does not make
        return renamings[-1] if renamings and not found.is_sure else None
    if made is not None and (handed := _find_handed_in(found, used, made, modules)) is not None:
        return handed
    if made is not None and not is_same_function(made.source, place):
        if (renamed := _find_renamed(made)) is not None:
            return renamed
        around = None if found.ours is None else found.ours.module
        theirs = modules.get(made.module) if made.module != used.module else None
        if not held or (theirs is not None and theirs == around):
            return made.source  # what a function of the user's returned
    inside = made is not None and made.source.file == place.file and made.source.line <= place.line
    after = made.source.line if made is not None and inside else 0
    lines = [find_assignment(place.file, place.line, name) for name in held]
    first = after - (used.name == RETURN and bool(used.called))  # such as `return Output(x=x)`
    named = next((line for line in lines if line is not None and line.line > first), None)
    due = set() if found.ours is None else {*list_targets(found.ours.source)}
    for one in renamings if named is not None else ():
        if due.intersection(list_targets(one)) and one.line > first:
            return one
    if since is not None and renamings and renamings[0].line > first:
        return renamings[0]
    if (
        made is not None
        and inside
        and not renamings
        and (found.ours is None or found.ours.whole is None)
        and {*held}.intersection(list_targets(made.source))
    ):
        return made.source  # another assignment between did not run
    if used.name == RETURN:  # a function that gives back what it was given lacks the call itself
        return named
    if found.ours is not None and found.ours.whole is not None and not renamings:
        return place  # the port writes the function out: the step is due where its result is taken
    if named is None and not inside and used.callers and is_parameter(place, held):
        return find_single_renaming(used.callers[0], place, held) or used.callers[0]
    return named


def _find_handed_in(
    found: Difference, used: Operation, made: Operation, modules: Mapping[str, str]
) -> SourceLine | None:
    """Return the statement at which a module is handed a value that a call should have changed before.

    It stands in the function that makes the value and calls the module. None where PyTorch makes the call
    inside the module's counterpart.
    """
    ours = "" if found.ours is None else found.ours.module
    known = [modules[one] for one in ancestors(used.module) if one and one in modules]
    if all(is_within(ours, one) for one in known):
        return None
    place, held = used.source, [*found.held]
    for caller in used.callers:
        held += [one for name in held for one in list_earlier_names(place.file, place.line, name)]
        if any(is_same_function(caller, one) for one in (made.source, *made.callers)):
            return find_single_renaming(caller, place, held) or caller
        place, held = caller, list_handed(caller, place, held)
    return None


_NEAR = 4  # calls


def _find_idle(used: Operation) -> Operation | None:
    """Return a call shortly before one that takes several values and gives back one of them as it is.

    Where a mask is lacking, that is the call that should hide: `where(mask, x, x)`.
    """
    above = [used]
    for one in above:
        if one is not used and len(one.inputs) > 1 and len(one.outputs) == 1:
            if any(is_same(given, one.outputs[0]) for given in one.inputs):
                return one
        if len(above) <= _NEAR:
            above += [
                it
                for it in one.makers
                if it is not None and is_same_function(it.source, used.source)
            ]
    return None


def _find_renamed(made: Operation) -> SourceLine | None:
    """Return a statement of the function of a call that only gave another name to what the call gives.

    A call that gives what it takes, such as a dropout in eval mode, may come after it.
    """
    passes = made.inputs and made.outputs and is_same(made.inputs[0], made.outputs[0])
    given = [(made.source.line, name) for name in list_names(made.source) if passes]
    for line, name in [*find_returned(made.source), *given]:
        for one in follow_renamings(made.source.file, line, name):
            return one
    return None


def _find_handing(found: Difference, used: Operation, held: Sequence[str]) -> SourceLine | None:
    """Return the call that hands on another argument, if the code that it calls is right.

    Both sides then use the parameter alike, or nothing else in that code uses the value rightly.
    """
    ours = found.ours
    if ours is None or not used.callers:
        return None
    alike = [name for name in held if name in ours.tensors]
    if is_parameter(used.source, alike) and is_parameter(ours.source, alike):
        return used.callers[0] if used.callers[0].file == used.source.file else None
    return find_handing(used, held, found.handed)


def find_handing(used: Operation, held: Sequence[str], most: int) -> SourceLine | None:
    """Follow a value from parameter to argument, outwards; return the last call, None without a parameter.

    held: the variables that hold it at `used`. most: how many calls are followed.
    """
    place, found = used.source, None
    for caller in used.callers[:most]:
        if not is_parameter(place, held) or caller.file != place.file:
            break
        held, place, found = list_handed(caller, place, held), caller, caller
    return found


def _is_in(value: object, other: Operation) -> bool:
    return any(_is_same(value, one) for one in (*other.constants, *other.names.values()))


def _is_same(value: object, other: object) -> bool:
    if isinstance(value, str) or isinstance(other, str) or value is None or other is None:
        return value is other or value == other
    try:
        return bool(abs(value - other) <= 1e-12 * max(abs(value), abs(other)))  # type: ignore
    except TypeError:
        return False


_LONGEST = 90  # characters of an expression


def describe_difference(found: Difference) -> str:
    """Return what the two lines do differently; "" where only the lines themselves can tell."""
    ours, theirs = _quote(found.ours), _quote(found.theirs)
    if found.ours is not None and found.ours.whole is not None:
        ours = f"{found.ours.name} inside {ours}"
    if found.how == "cut" and found.theirs is not None:
        stops, place = (
            (str(REFERENCE), ours) if found.theirs.differentiable else (str(PORT), theirs)
        )
        return f"the gradient stops at {place} in {stops}"
    if not found.is_sure:
        return ""
    if found.how == "lacking" and found.ours is not None and is_mask_added(found.ours):
        return f"{REFERENCE} adds a mask inside {_quote(found.ours)} here, and {PORT} does not"
    if found.how == "lacking" and ours:
        return f"{REFERENCE} calls {ours} here, and {PORT} does not"
    if found.how == "extra" and theirs:
        return f"{PORT} calls {theirs} here, and {REFERENCE} does not"
    if ours and theirs and _strip_names(ours) != _strip_names(theirs):
        return f"{theirs} in {PORT}, {ours} in {REFERENCE}"
    return ""


def _quote(operation: Operation | None) -> str:
    if operation is None or not operation.source.expression:
        return ""
    text = " ".join(operation.source.expression.split())
    if operation.name == RETURN:
        text = text.removeprefix("return ") or text
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + ' …'}`"


def _strip_names(text: str) -> str:
    return re.sub(r"\W|paddle|torch", "", text)


MEANT: Final[Mapping[str, str]] = {
    "mask-sense": "the mask is inverted",
    "mask": "a mask is not handed on, or does not hide",
    "unpacking": "the values that are unpacked here are exchanged",
    "stopped-gradient": "no gradient flows through what runs here",
    "gradient-not-stopped": f"{REFERENCE} lets no gradient flow through what runs here",
}
"""kind of an edit -> what was wrong without it, whatever the calls around it say"""


def describe_edit(edit: Suggestion) -> str:
    """Return what an edit says is different, where it adds a call or takes one out; "" elsewhere."""
    texts = "".join(edit.before.split()), "".join(edit.after.split())
    for sides, (part, whole) in (
        ((str(REFERENCE), str(PORT)), texts),
        ((str(PORT), str(REFERENCE)), texts[::-1]),
    ):
        name = whole.removesuffix(")").partition(f"({part}")[0]
        is_added = whole.startswith((f"{name}({part})", f"{name}({part},"))
        if is_added and name.replace(".", "").isidentifier():
            return f"{sides[0]} calls `{name}` here, and {sides[1]} does not"
    return ""
