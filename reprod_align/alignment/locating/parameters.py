"""Finds parameters whose gradients differ although everything that meets their module agrees."""

from collections.abc import Sequence

from reprod_align.alignment.comparing import (
    LAYER_ROUNDING,
    ParameterGap,
    Pass,
    compare_gradients,
    is_float32_gradient,
    may_be_noise,
    measure_gradient_noise,
)
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.fault import may_round
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base import PORT
from reprod_align.base.text import is_within, parent
from reprod_align.report.finding import FindingKind


def add_parameter_faults(
    runner: Runner, findings: Findings, done: Pass, free: PinnedRun, given: PinnedRun
) -> None:
    """Add findings for parameters whose gradients differ on the reference's numbers.

    free and given: runs with the port's own masks and indices, and with the reference's. A gradient
    that agrees in the second run differs because of a mask.
    """
    pairing = runner.pairing
    ports = [free.port] if given is free else [free.port, given.port]
    found_in = [compare_gradients(pairing, done, port) for port in ports]
    if done.gradient_noise is None and _hang_on_noise(pairing, findings, done, sum(found_in, [])):
        done = measure_gradient_noise(pairing, done)
        found_in = [compare_gradients(pairing, done, port) for port in ports]
    gaps = found_in[0]
    silenced = {calls.theirs.path for calls in free.calls if free.is_silenced(calls)}
    if not findings.at_stage("backward"):
        silenced = set()  # nothing says yet what stops these gradients
    by_mask = {other for gaps_given in found_in[1:] for _, other, found in gaps_given if found.ok}
    for name, other, found in sorted(
        reversed(gaps), key=lambda gap: not pairing.is_frozen_on_one_side(*gap[:2])
    ):
        if found.ok or other in by_mask or name in pairing.untied or parent(other) in silenced:
            continue
        grads = free.reference.gradients.get(name), pairing.paddle.find(free.port.gradients, other)
        if silenced and sum(one is None for one in grads) == 1:
            continue  # it stands before what stops gradients on one side
        frozen, module = pairing.is_frozen_on_one_side(name, other), parent(name)
        place = module if frozen else _find_comparable(pairing, free, module)
        if {name, module, place} & _list_places_with_findings(findings, pairing):
            continue
        split = pairing.modules.get(module, parent(other)) != parent(other)  # a whole, and parts
        if place == module and not (split and runner.dtype == "float32"):
            narrow, rounds = name, may_round(runner, module, parent(other))
        else:  # the gradient is made of values that nothing has put right
            narrow, rounds = place or "the model", _may_round_within(pairing, place)
        if rounds and is_float32_gradient(
            pairing, done, free.port, (name, other, found), LAYER_ROUNDING
        ):
            findings.note_float32(narrow, found.relative)
            continue
        text = pairing.describe_frozen(name, other)
        if not text and pairing.paddle.find(free.port.gradients, other) is None:
            text = f"gets no gradient in {PORT}"
        elif not text and place != module:
            text = (
                f"its gradient differs; the values at its module cannot be compared; {found.words}"
            )
        elif not text:
            text = f"its gradient differs, although all values at its module agree; {found.words}"
        kind: FindingKind = "parameter-frozen" if frozen else "parameter-gradient"
        findings.add("backward", name, other, text, found, kind=kind)


def _hang_on_noise(
    pairing: Pairing, findings: Findings, done: Pass, gaps: Sequence[ParameterGap]
) -> bool:
    """Tell whether a gradient differs by no more than noise may make, where nothing was found yet."""
    known = _list_places_with_findings(findings, pairing)
    return any(
        not found.ok and not {name, parent(name)} & known and may_be_noise(done, found)
        for name, _, found in gaps
    )


def find_incomparable_layers(pairing: Pairing, run: PinnedRun) -> dict[str, str]:
    """Return the port's layers with tensors that can't be compared, each with what can around it."""
    holders = {parent(name) for name in pairing.paddle.tensors}
    comparable = {"", *run.comparable}
    called = dict.fromkeys(call.path for call in run.port.calls)
    around = {path: parent(path) for path in called if path in holders - comparable}
    for path in around:
        while around[path] not in comparable:
            around[path] = parent(around[path])
    return around


def _find_comparable(pairing: Pairing, run: PinnedRun, path: str) -> str:
    """Return PyTorch's module, or the first around it, whose calls can be compared."""
    called = run.reference.counts()
    while path and not (called[path] and pairing.modules.get(path) in run.comparable):
        path = parent(path)
    return path


def _may_round_within(pairing: Pairing, place: str) -> bool:
    """Tell whether a small difference can be float32's, of any layer in PyTorch's module `place`."""
    inside = (pair for pair in pairing.modules.items() if is_within(pair[0], place))
    return not any(pairing.settings_differ(*pair) for pair in inside)


def _list_places_with_findings(findings: Findings, pairing: Pairing) -> set[str]:
    """Return where forward and backward findings are: modules, and parameters with their modules."""
    names = {finding.torch_name for finding in findings.at_stage("forward", "backward")}
    return names | {parent(name) for name in names if name in pairing.torch.tensors}
