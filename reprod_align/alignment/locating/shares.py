"""Splits the difference at every module into what it made, what it was given, and how that grew.

With f the reference's module and g the port's, x and y what each is given in its own run,
    g(y) - f(x)  =  [g(x) - f(x)]  +  [g(y) - g(x)]
    total        =  introduced     +  inherited
where g(x) is known from the run in which the port is given the reference's numbers.
"""

from collections.abc import Mapping

from reprod_align.alignment.locating.pins import ReferencePins
from reprod_align.base.difference import RELATIVE_TOLERANCE, divide, gap, magnitude
from reprod_align.model.leaf import LeafPair
from reprod_align.model.trace import Array, Call, Leaf, Trace
from reprod_align.report import ModuleShare


def module_shares(
    reference: Trace, natural: Trace, given: Trace, pins: ReferencePins
) -> list[ModuleShare]:
    """Return the shares of every paired call, in the order in which the calls ended.

    natural: the port's own run, with inputs. given: its run on the reference's numbers.
    """
    own = natural.by_key()
    shares: list[tuple[int, ModuleShare]] = []
    for call in given.calls:
        other, free = pins.counterpart(call), own.get(call.key)
        if other is None or free is None or call.finished < 0:
            continue
        received = _worst(other, free, call, pins, "inputs")
        made = _worst(other, free, call, pins, "outputs")
        if call.parent is not None and received[0] > RELATIVE_TOLERANCE:  # by the code around it
            above = reference.parent_path(other), given.parent_path(call)
            handed = ModuleShare(*above, call.index, 0.0, *received, handed_to=call.path)
            shares.append((call.began, handed))
        shares.append((call.finished, ModuleShare(
            other.path, call.path, call.index, received[2], *made
        )))  # fmt: skip
    return [share for _, share in sorted(shares, key=lambda one: one[0])]


def _worst(
    other: Call, free: Call, call: Call, pins: ReferencePins, which: str
) -> tuple[float, float, float]:
    """Return the largest introduced, inherited and total difference of the call's float leaves."""
    ours, alone, local = (getattr(c, which) for c in (other, free, call))
    parts = [
        _parts(pair, ours, alone, local)
        for pair in pins.pairs(other, call, which)
        if pair.actual in alone and ours[pair.expected].array.dtype.kind == "f"
    ]
    introduced, inherited, total = zip((0.0, 0.0, 0.0), *parts, strict=True)
    return max(introduced), max(inherited), max(total)


def _parts(
    pair: LeafPair, ours: Mapping[str, Leaf], free: Mapping[str, Leaf], given: Mapping[str, Leaf]
) -> tuple[float, float, float]:
    """Return introduced, inherited and total, each relative to the reference's largest value."""
    expected = pair.to_port(ours[pair.expected].array)
    theirs, local = free[pair.actual].array, given[pair.actual].array
    scale = magnitude(expected)
    return (
        _apart(expected, local, scale),
        _apart(local, theirs, scale),
        _apart(expected, theirs, scale),
    )


def _apart(expected: Array, actual: Array, scale: float) -> float:
    """Return the largest difference over `scale`."""
    return divide(gap(expected, actual).difference, scale)
