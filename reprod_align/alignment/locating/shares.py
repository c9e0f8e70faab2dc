"""Splits the difference at every module into what it made, what it was given, and how that grew.

With f the reference's module and g the port's, x and y what each is given in its own run,
    g(y) - f(x)  =  [g(x) - f(x)]  +  [g(y) - g(x)]
    total        =  introduced     +  inherited
where g(x) is known from the run in which the port is given the reference's numbers.
"""

from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which
from reprod_align.base.blocks import Array
from reprod_align.base.difference import RELATIVE_TOLERANCE, divide, gap
from reprod_align.base.local import measure_ordinary
from reprod_align.model.trace import Call, Trace
from reprod_align.report import ModuleShare


def split_differences(run: PinnedRun, natural: Trace) -> list[ModuleShare]:
    """Return the shares of every call that has a counterpart, in the order in which the calls ended.

    run: on the reference's numbers. natural: the port's own run, with inputs.
    """
    own = natural.by_key()
    shares: list[tuple[int, ModuleShare]] = []
    for calls in run.calls:
        call, free = calls.theirs, own.get(calls.theirs.key)
        if free is None or call.finished < 0:
            continue
        received = _split_worst(run, calls, free, "inputs")
        made = _split_worst(run, calls, free, "outputs")
        if call.parent is not None and received[0] > RELATIVE_TOLERANCE:  # by the code around it
            handed = ModuleShare(*run.code_around(calls), call.index, 0.0, *received, call.path)
            shares.append((call.began, handed))
        shares.append((call.finished, ModuleShare(*calls.paths, call.index, received[2], *made)))
    return [share for _, share in sorted(shares, key=lambda one: one[0])]


def _split_worst(
    run: PinnedRun, calls: CallPair, free: Call, which: Which
) -> tuple[float, float, float]:
    """Return the largest introduced, inherited and total difference of a call's float leaves."""
    alone = getattr(free, which)
    parts = [(0.0, 0.0, 0.0)]
    for pair in run.pair_leaves(calls, which):
        ours, local = calls.leaves(pair, which)
        if pair.actual in alone and ours.array.dtype.kind == "f":
            parts.append(_split(pair.to_port(ours.array), local.array, alone[pair.actual].array))
    introduced, inherited, total = zip(*parts, strict=True)
    return max(introduced), max(inherited), max(total)


def _split(expected: Array, local: Array, alone: Array) -> tuple[float, float, float]:
    """Return introduced, inherited and total, each relative to the reference's largest value.

    expected: the reference's. local, alone: the port's, on the reference's numbers and in its own run.
    """
    scale = measure_ordinary(expected)
    introduced, inherited, total = gap(expected, local), gap(local, alone), gap(expected, alone)
    return (
        divide(introduced.difference, scale),
        divide(inherited.difference, scale),
        divide(total.difference, scale),
    )
