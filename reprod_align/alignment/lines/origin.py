"""Goes from the call that differs to the line that is to be mended: where a wrong constant was set."""

from dataclasses import replace

from reprod_align.alignment.lines.search import Difference
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.operation import Operation
from reprod_align.model.source.parsing import find_assignment, find_constant


def find_origin(found: Difference) -> tuple[SourceLine | None, SourceLine | None]:
    """Return both lines: of the calls, or of what gave a constant in them its value."""
    ours, theirs = found.ours, found.theirs
    lines = _source(ours), _source(theirs)
    if found.how not in ("call", "layout") or ours is None or theirs is None:
        return lines
    return _find_constant(ours, theirs) or lines[0], _find_constant(theirs, ours) or lines[1]


def _source(operation: Operation | None) -> SourceLine | None:
    return None if operation is None else operation.source


def _find_constant(operation: Operation, other: Operation) -> SourceLine | None:
    """Return where the constant of a call that the other call lacks was written; None if all are met."""
    own = [one for one in operation.constants if not _is_in(one, other)]
    for value in own:
        names = [name for name, held in operation.names.items() if _is_same(held, value)]
        literal = find_constant(operation.source, value)
        if not names:
            return literal if literal.line != operation.source.line else None
        for name in names:
            place = find_assignment(operation.source.file, operation.source.line, name)
            if place is not None:
                return replace(place, expression=operation.source.expression)
    return None


def _is_in(value: object, other: Operation) -> bool:
    return any(_is_same(value, one) for one in (*other.constants, *other.names.values()))


def _is_same(value: object, other: object) -> bool:
    if isinstance(value, str) or isinstance(other, str) or value is None or other is None:
        return value is other or value == other
    try:
        return bool(abs(value - other) <= 1e-12 * max(abs(value), abs(other)))  # type: ignore
    except TypeError:
        return False
