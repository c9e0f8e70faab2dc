"""Runs the port with the reference's numbers in place of its own."""

from collections.abc import Collection, Container
from functools import partial

from reprod_align.alignment.comparing import Pass
from reprod_align.alignment.locating.counterparts import Boundary, Counterparts, PinnedRun
from reprod_align.alignment.locating.pinning.boundaries import find_moved
from reprod_align.alignment.locating.pinning.pins import ChosenPins, ReferencePins, differ_in_effect
from reprod_align.alignment.locating.pinning.places import find_gradients, find_values
from reprod_align.alignment.runner import Runner
from reprod_align.model.side import ModelFailure
from reprod_align.model.trace import Trace

Key = tuple[str, int]
"""a module of the port, and which of its calls"""


def run_pinned(runner: Runner, done: Pass) -> tuple[PinnedRun, PinnedRun]:
    """Return the port's runs on the reference's numbers: masks and indices left alone, and given.

    Where the two sides divide their work in other ways, the port keeps its own numbers.
    """
    counterparts = Counterparts(runner.pairing, done.reference, done.natural)
    free = _run_on(runner, done, counterparts)
    for find_places, backward in (find_values, False), (find_gradients, True):
        rerun = partial(_run_without, runner, done, counterparts, backward)
        moved = find_moved(free, rerun, find_places)
        if moved:
            counterparts = counterparts.without(moved)
            free = _run_on(runner, done, counterparts)
    pins = [ReferencePins(counterparts, done.reference, constants) for constants in (False, True)]
    if not any(differ_in_effect(call, *pins) for call in free.port.calls):
        return free, free
    try:
        return free, _run_on(runner, done, counterparts, constants=True)
    except ModelFailure:  # a mask of the other convention need not fit
        return free, free


def run_on_chosen(runner: Runner, run: PinnedRun, training: bool, chosen: Container[Key]) -> Trace:
    """Return the port's own run, but for what a few of its calls give: there it has the reference's."""
    pins = ChosenPins(run.counterparts, run.reference, chosen)
    return runner.run_port(training, "all", pins)


def _run_without(
    runner: Runner,
    done: Pass,
    counterparts: Counterparts,
    backward: bool,
    moved: Collection[Boundary],
) -> PinnedRun:
    return _run_on(runner, done, counterparts.without(moved), backward=backward)


def _run_on(
    runner: Runner,
    done: Pass,
    counterparts: Counterparts,
    constants: bool = False,
    backward: bool = True,
) -> PinnedRun:
    """Run the port on the reference's numbers; constants: masks and indices are given as well."""
    pins = ReferencePins(counterparts, done.reference, constants)
    port = runner.run_port(done.training, "all", pins, backward=backward)
    return PinnedRun(done.reference, port, counterparts, done.noise)
