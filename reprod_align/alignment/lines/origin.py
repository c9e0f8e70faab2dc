"""Goes from the call that differs to the line that is to be mended.

That is where a constant of the call was set, where the function that it calls was chosen, or where a
value was passed on that should have been changed.
"""

import ast
from collections.abc import Sequence
from dataclasses import replace

from reprod_align.alignment.lines.divergence import Difference
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.operation import RETURN, Operation
from reprod_align.model.source.parsing import (
    find_assignment,
    find_condition,
    find_constant,
    find_single_renaming,
    is_parameter,
    is_same_function,
)

Lines = tuple[SourceLine | None, SourceLine | None]


def find_origin(found: Difference) -> Lines:
    """Return both lines: of the calls, or of what is behind them."""
    ours, theirs = found.ours, found.theirs
    lines = _source(ours), _source(theirs)
    if found.how in ("lacking", "value") and found.used is not None:
        return lines[0], _find_passing(found, found.used) or lines[1]
    if found.how not in ("call", "layout") or ours is None or theirs is None:
        return lines
    chosen = [
        (found.take_the_same and _find_maker(one)) or _find_constant(one, other) or one.source
        for one, other in ((ours, theirs), (theirs, ours))
    ]
    return chosen[0], chosen[1]


def _source(operation: Operation | None) -> SourceLine | None:
    return None if operation is None else operation.source


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


def _find_passing(found: Difference, used: Operation) -> SourceLine | None:
    """Return the statement that passed the wrong value on to `used`: a dropped call leaves `x = x`."""
    made, place = found.made, used.source
    held = [name for name, position in used.tensors.items() if position == found.position]
    if used.user is not None:
        return find_condition(place.file, place.line, held)
    if found.how != "lacking":
        return _find_handing(found, used, held) if made is None else None
    if made is not None and not held and not is_same_function(made.source, place):
        return made.source  # what a function of the user's returned
    inside = made is not None and made.source.file == place.file and made.source.line <= place.line
    after = made.source.line if made is not None and inside else 0
    lines = [find_assignment(place.file, place.line, name) for name in held]
    first = after - (used.name == RETURN and bool(used.called))  # such as `return Output(x=x)`
    named = next((line for line in lines if line is not None and line.line > first), None)
    if named is None and not inside and used.caller is not None and is_parameter(place, held):
        return find_single_renaming(used.caller, place, held) or used.caller
    return named


def _find_handing(found: Difference, used: Operation, held: Sequence[str]) -> SourceLine | None:
    """Return the call that hands a module another argument, if both sides use the parameter alike."""
    ours, caller = found.ours, used.caller
    if ours is None or caller is None or caller.file != used.source.file:
        return None
    alike = [name for name in held if name in ours.tensors]
    known = is_parameter(used.source, alike) and is_parameter(ours.source, alike)
    return caller if known else None


def _is_in(value: object, other: Operation) -> bool:
    return any(_is_same(value, one) for one in (*other.constants, *other.names.values()))


def _is_same(value: object, other: object) -> bool:
    if isinstance(value, str) or isinstance(other, str) or value is None or other is None:
        return value is other or value == other
    try:
        return bool(abs(value - other) <= 1e-12 * max(abs(value), abs(other)))  # type: ignore
    except TypeError:
        return False
