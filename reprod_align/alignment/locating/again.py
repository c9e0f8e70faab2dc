"""Runs the port once more, on the reference's numbers, as far as the place at which a fault showed."""

from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.fault import Fault
from reprod_align.alignment.locating.pinning.pins import ReferencePins
from reprod_align.alignment.runner import Runner
from reprod_align.model.side import ModelFailure
from reprod_align.model.source.operation import Switch, Wanted


def is_gone(
    runner: Runner, training: bool, run: PinnedRun, fault: Fault, switch: Switch | None = None
) -> bool:
    """Tell whether the port has what is due at a fault of the forward pass now that it was changed.

    run: in which the fault was found. switch: another value that a module holds.
    """
    place = fault.find_wrong()
    if place is None:
        return False
    last = fault.calls.theirs.key, place[0]
    wanted = Wanted(frozenset(), frozenset(), last=last, switch=switch)
    pins = ReferencePins(run.counterparts, run.reference, constants=False)
    try:
        trace = runner.run_port(training, "all", pins, backward=False, wanted=wanted)
    except ModelFailure:
        return False
    call = trace.by_key().get(fault.calls.theirs.key)
    leaf = None if call is None else getattr(call, place[0]).get(place[1])
    return leaf is not None and fault.agrees(leaf.array)
