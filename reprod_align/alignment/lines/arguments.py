"""The line at which the user's code sets a layer: that of the argument, not the call's first."""

from collections.abc import Collection, Iterator, Sequence

from reprod_align.base.naming import parent
from reprod_align.model.side import ModelInfo, Side
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.making import Making, find_making
from reprod_align.model.source.operation import Operation
from reprod_align.model.source.settings import (
    Trail,
    read_attributes,
    trace_argument,
    trace_attribute,
)

_SIZES = frozenset(
    {"d_model", "embed_dim", "in_features", "out_features", "hidden_size", "kdim", "vdim"}
)
"""parameters that shape the weights: those fit, so that another one is at fault"""


def find_argument(
    side: Side, info: ModelInfo, path: str, names: Sequence[str], handed: bool = False
) -> SourceLine | None:
    """Return where the user's code sets a module; None if nothing tells.

    names: of an attribute of the module or of a parameter of its constructor, one of which is right.
    The value is followed out of constructors of the framework's and of the user's as long as it is
    handed in as it is. handed: the names are of parameters alone.
    """
    classes, own = side.find_classes(path, anywhere=True), list_files(side, path)
    trail = Trail(None, tuple(names)) if handed else trace_attribute(classes, names, own)
    found = _keep_own(trail, own)
    while trail is not None and trail.parameters:
        step = next(find_makings(side, info, path), None)
        if step is None:
            break
        owner, making = step
        own = list_files(side, owner)
        classes, parameters = side.find_classes(path, anywhere=True), trail.parameters
        ordered = sorted(parameters, key=lambda name: name in _SIZES)
        trail = trace_argument(making, ordered, classes, own)
        found = _keep_own(trail, own) or found
        path = owner
    return found


def find_deciding(
    side: Side, info: ModelInfo, operation: Operation | None, line: SourceLine | None
) -> SourceLine | None:
    """Return the user's line that decides what a call does.

    line: at which the call, or what is behind it, is written. In a layer of the framework's, or in a
    constructor, it leads to the argument that it takes its value from.
    """
    if operation is None or line is None:
        return line
    if operation.user is not None and line.file == operation.user.file:
        return line
    names = [
        name for name in read_attributes(line) if f"{operation.module}.{name}" not in info.modules
    ]
    if operation.user is not None:
        return find_argument(side, info, operation.module, names)
    set_here = [name for name in names if line.text.startswith((f"self.{name} =", f"self.{name}:"))]
    if line.line == operation.source.line or not set_here:
        return line
    return find_argument(side, info, operation.module, set_here) or line


def find_makings(side: Side, info: ModelInfo, path: str) -> Iterator[tuple[str, Making]]:
    """Yield the modules around one that make it, the nearest first, each with where it does so."""
    kind, owner = info.modules[path].class_name if path in info.modules else "", path
    while owner:
        owner = parent(owner)
        steps = path[len(owner) :].lstrip(".").split(".")
        classes = side.find_classes(owner, anywhere=True)
        making = find_making(classes, steps, kind)
        if making is not None and (
            making.is_call_of(kind) or making.file in list_files(side, owner)
        ):
            yield owner, making


def list_files(side: Side, path: str) -> set[str]:
    """Return the user's files in which a module's class is written."""
    return {line.file for line in side.find_classes(path)}


def _keep_own(trail: Trail | None, own: Collection[str]) -> SourceLine | None:
    """Return the place of a trail if it is in one of the user's files."""
    place = None if trail is None else trail.place
    return place if place is not None and place.file in own else None
