"""What a model keeps between two calls: running statistics, and numbers, lists, arrays in plain attributes.

Each run starts as if no other had been, so that a state which train mode writes and eval mode reads
shows in no single run. Where a run in train mode changed a plain attribute, two calls in train mode
and one in eval mode follow each other on both sides, and the outputs of the last two are compared.

Running statistics are compared after one step in train mode with what a faithful port's are: Paddle
keeps the biased running variance where PyTorch keeps the unbiased one, and its kernel takes the
momentum as a float32: 0.9 becomes 0.899999976, in float64 too.
"""

from collections.abc import Mapping

from reprod_align.alignment.comparing import LAYER_ROUNDING, Pass, compare_outputs
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.fault import FLOOR
from reprod_align.alignment.runner import Runner
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.difference import Gap, gap
from reprod_align.base.text import count, parent, shorten
from reprod_align.match import TensorPair, name_role
from reprod_align.model.side import ModelFailure, ModelInfo
from reprod_align.model.trace import Trace, find_unpaired

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
    sides = ((str(REFERENCE), ours), (str(PORT), theirs))
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
                "state", f"{name} holds other numbers than in {PORT} after two calls in train mode; "
                "no output compared depends on it")  # fmt: skip


def compare_statistics(runner: Runner, findings: Findings, reference: Trace, port: Trace) -> None:
    """Compare the float buffers of two runs in train mode; add a finding for each that differs."""
    gaps = []
    for pair in runner.pairing.match.pairs:
        name, other = pair.torch[0], pair.paddle[0]
        known = name in reference.buffers and other in port.buffers
        if known and runner.weights[name].dtype.kind == "f":
            found = _compare(runner, findings, pair, reference, port)
            gaps.append(found)
            if not found.ok:
                limit = max(LAYER_ROUNDING, _limit_table(runner, pair, reference, port))
                _add(runner, findings, name, other, found, limit)
    if gaps:
        findings.check_gaps(
            "forward", f"{count(len(gaps), 'running statistic')} after a step", gaps
        )


def _compare(
    runner: Runner, findings: Findings, pair: TensorPair, reference: Trace, port: Trace
) -> Gap:
    """Compare one statistic; where Paddle's layers keep another, with what a faithful port has."""
    name, actual = pair.torch[0], port.buffers[pair.paddle[0]]
    expected = reference.buffers[name]
    if expected.shape == runner.weights[name].shape:  # a call may put another one in its place
        expected = pair.to_paddle({name: expected})[pair.paddle[0]]
    found = gap(expected, actual)
    made = _faithful_value(name, runner.weights[name], reference, runner.pairing.torch)
    if found.ok or made is None:
        return found
    own, floor = made
    if gap(own, actual, floor=floor).ok and name_role(name.rpartition(".")[2]) == "running_var":
        findings.remark("Paddle's batch norm keeps the biased running variance where "
                        "PyTorch keeps the unbiased one: a faithful port differs there")  # fmt: skip
    return gap(own, actual, floor=floor)


def _limit_table(runner: Runner, pair: TensorPair, reference: Trace, port: Trace) -> float:
    """Return how far two tables of constants may be apart; 0.0 for numbers that a step changes.

    In a table of n rows an angle reaches n. A last bit of its float32 rate is n * 2**-23 there, and each
    side rounds the product by n * 2**-25 or less.
    """
    name = pair.torch[0]
    before, ours, theirs = (
        runner.weights[name],
        reference.buffers[name],
        port.buffers[pair.paddle[0]],
    )
    single = all(np.array_equal(one, one.astype(np.float32)) for one in (ours, theirs))
    return max(ours.shape, default=0) * 2.0**-22 if single and np.array_equal(before, ours) else 0.0


def _add(
    runner: Runner, findings: Findings, name: str, other: str, found: Gap, limit: float
) -> None:
    owner = parent(name), parent(other)
    if found.relative <= limit and not runner.pairing.settings_differ(*owner):
        findings.note_float32(owner[0], found.relative)
    elif not findings.at(*owner):
        text = (f"running statistic {name.rpartition('.')[2]} differs "
                f"after one step in train mode: {found.words}")  # fmt: skip
        findings.add("forward", *owner, text, found, kind="running-statistics")


def _faithful_value(
    name: str, before: Array, reference: Trace, info: ModelInfo
) -> tuple[Array, float] | None:
    """Return what the port's layer holds after the step in which the reference's started from `before`, (C,).

    Beside it stands what rounding can leave of it where the values of a mean cancel. name: of the
    reference's buffer. A class of the user's may lay its input out anew: then the batch's statistic is
    the one that the reference's step added. None for any other buffer, or where the step is not known
    (a cumulative average over several calls, inputs that were not kept, several calls of such a class).
    """
    owner, _, role = name.rpartition(".")
    role = name_role(role)
    settings = info.modules[owner].values
    momentum = settings.get("momentum")
    calls = [call for call in reference.calls if call.path == owner]
    if momentum is None and "momentum" in settings and len(calls) == 1:  # the mean of all batches
        batches = reference.buffers.get(f"{owner}.num_batches_tracked")
        momentum = None if batches is None else 1 / max(1, int(batches))
    if role not in ("running_mean", "running_var") or not momentum or not calls:
        return None
    given, single = 1 - momentum, float(np.float32(1 - momentum))  # Paddle's kernel takes a float32
    own, keep = PORT.choose((single, given), (given, single))
    counted = PORT.choose(1, 0)  # what the port's variance takes off the number of values
    statistic, floor = before, 0.0
    for call in calls:
        if not call.inputs:
            return None
        values = next(iter(call.inputs.values())).array
        if values.shape[1:2] == before.shape:
            axes = tuple(axis for axis in range(values.ndim) if axis != 1)
            batch = values.mean(axes) if role == "running_mean" else values.var(axes, ddof=counted)
        elif len(calls) == 1 and reference.buffers[name].shape == before.shape:
            batch = (reference.buffers[name] - own * before) / (1 - own)
            each = values.size // max(1, before.size)
            off = 1 - counted  # what the reference's takes off
            batch = batch * (each - off) / (each - counted) if role == "running_var" else batch
        else:
            return None
        statistic = keep * statistic + (1 - keep) * batch
        if role == "running_mean":  # squares do not cancel
            floor += (1 - keep) * FLOOR * float(np.abs(values).max(initial=0.0))
    return statistic, floor
