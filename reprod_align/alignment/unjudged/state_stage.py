"""What a model keeps outside parameters and buffers: numbers, lists, arrays in plain attributes.

Each run starts as if no other had been, so that a state which train mode writes and eval mode reads
shows in no single run. Where a run in train mode changed such an attribute, two calls in train mode
and one in eval mode follow each other on both sides, and the outputs of the last two are compared.
"""

from collections.abc import Mapping

from reprod_align.alignment.comparing import Pass, compare_outputs
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.runner import Runner
from reprod_align.base.difference import gap
from reprod_align.base.naming import parent
from reprod_align.base.text import shorten
from reprod_align.model.leaf import find_unpaired
from reprod_align.model.side import ModelFailure
from reprod_align.model.trace import Array, Trace

import numpy as np

_NAMED = 3  # attributes in one sentence
_CALLS = ("in a second call in train mode", "in eval mode after two calls in train mode")

Changed = Mapping[str, Array | None]


def compare_state(runner: Runner, findings: Findings, trained: Pass, evaluated: Pass) -> None:
    """Compare outputs of calls that follow each other, where calls change attributes of a model.

    trained, evaluated: the passes in train and in eval mode.
    """
    changed = (
        _leave_out_alike(trained.reference.changed, evaluated.reference.changed),
        _leave_out_alike(trained.natural.changed, evaluated.natural.changed),
    )
    if not any(changed) or findings.report.findings:
        return
    words = _describe(*changed)
    if runner.dtype != "float64" or findings.float32_inside:
        findings.leave_unjudged("state", f"what {words} do to later calls: float64 does not run")
        return
    try:
        ours, theirs = runner.run_in_turn(runner.reference), runner.run_in_turn(runner.port)
    except ModelFailure as error:
        findings.leave_unjudged("state", f"what {words} do to later calls: {error}")
        return
    gaps = [_compare_call(runner, findings, *calls, (when, words, changed))
            for calls, when in zip(zip(ours, theirs, strict=True), _CALLS, strict=True)]  # fmt: skip
    findings.check("forward", "outputs after calls in train mode", max(apart for apart, _ in gaps),
                   all(ok for _, ok in gaps))  # fmt: skip
    if not findings.report.findings:
        _note_differing(runner, findings, ours[0].changed, theirs[0].changed)


def _leave_out_alike(trained: Changed, evaluated: Changed) -> Changed:
    """Return what a run in train mode changed, without flags and tables that eval mode makes as well.

    A single number may be a counter.
    """
    return {
        name: values
        for name, values in trained.items()
        if name not in evaluated or not _is_alike(values, evaluated[name])
    }


def _is_alike(values: Array | None, others: Array | None) -> bool:
    if values is None or others is None:
        return values is others
    return values.size != 1 and np.array_equal(values, others, equal_nan=True)


def _compare_call(
    runner: Runner,
    findings: Findings,
    reference: Trace,
    port: Trace,
    about: tuple[str, str, tuple[Changed, Changed]],
) -> tuple[float, bool]:
    """Return how far the outputs of a call are apart and whether they agree; add a finding if not."""
    when, words, changed = about
    found = compare_outputs(runner.pairing, reference, port)
    missing = find_unpaired(reference.outputs, port.outputs, [pair for pair, _ in found])
    worst = max((one for _, one in found), key=lambda one: one.relative)
    ok = missing is None and all(one.ok for _, one in found)
    if not ok and not findings.report.findings:
        text = f"{when} the outputs differ, and the calls before change {words}; {worst.words}"
        findings.add("forward", *_find_place(runner, *changed), text, worst, kind="kept-state")
    return worst.relative, ok


def _find_place(runner: Runner, ours: Changed, theirs: Changed) -> tuple[str, str]:
    """Return the paired modules that hold all changed attributes; the model if they are several."""
    modules = runner.pairing.modules
    places = {parent(name) for name in ours} | {
        next((a for a, b in modules.items() if b == parent(name)), "") for name in theirs
    }
    place = places.pop() if len(places) == 1 else ""
    return place, modules.get(place, "")


def _describe(ours: Changed, theirs: Changed) -> str:
    sides = (("PyTorch", ours), ("Paddle", theirs))
    return " and ".join(
        f"{shorten(list(names), _NAMED) if names else 'no attribute'} in {side}"
        for side, names in sides
    )


def _note_differing(runner: Runner, findings: Findings, ours: Changed, theirs: Changed) -> None:
    """Note attributes of one name that hold other numbers, though no output shows it."""
    modules = runner.pairing.modules
    for name, values in ours.items():
        around = modules.get(parent(name), "")
        other = f"{around}.{name.rpartition('.')[2]}".lstrip(".")
        actual = theirs.get(other)
        if values is None or actual is None:
            continue
        same = values.shape == actual.shape and gap(values, actual).ok
        if not same:
            findings.leave_unjudged(
                "state", f"{name} holds other numbers than in Paddle after two calls in train mode; "
                "no output compared depends on it")  # fmt: skip
