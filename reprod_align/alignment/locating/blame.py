"""Finds the places at fault where two sides part, and adds a finding for each to the report."""

from collections.abc import Mapping, Sequence

from reprod_align.alignment.comparing import (
    CODE_ROUNDING,
    LAYER_ROUNDING,
    WHOLE_ROUNDING,
    Pass,
    compare_gradients,
)
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.closer import moved_closer
from reprod_align.alignment.locating.explain import cause_of
from reprod_align.alignment.locating.locate import Fault, backward_faults, forward_faults
from reprod_align.alignment.locating.pins import ReferencePins
from reprod_align.alignment.locating.shares import module_shares
from reprod_align.alignment.runner import Runner
from reprod_align.base.difference import Gap
from reprod_align.base.naming import is_within, parent
from reprod_align.base.text import shorten
from reprod_align.causes.draws import explain_draws
from reprod_align.model.leaf import find_unpaired, is_mask
from reprod_align.model.side import ModelFailure
from reprod_align.model.trace import Call, Trace

import numpy as np

_NAMED = 3  # layers in one message


def locate(runner: Runner, findings: Findings, done: Pass) -> Trace:
    """Find the modules at fault and add a finding for each; return the run on the reference's numbers."""
    pins = _reference_pins(runner, findings, done, False)
    traces = _pinned(runner, findings, done, pins)
    if not done.outputs_ok and not findings.report.shares:
        alone = runner.run_port(done.training, "all")
        findings.report.shares = module_shares(done.reference, alone, traces[0], pins)
    found = []
    if not done.outputs_ok:
        found += forward_faults(done.reference, *traces, pins)
    if not done.gradients_ok or found:
        found += backward_faults(done.reference, traces[0], pins, done.outputs_noise)
    before = len(findings.report.findings)
    _add_faults(runner, findings, found, done, _unmet(runner, findings, traces[0], pins))
    if not done.gradients_ok:
        _parameter_faults(runner, findings, done, *traces, pins)
    none_new = len(findings.report.findings) == before
    if (
        none_new
        and not _excused(runner, findings, done, found)
        and not _explained(runner, findings, done.outputs_ok)
    ):
        _unlocated(runner, findings, done)
    return traces[0]


def search(runner: Runner, findings: Findings, done: Pass) -> bool:
    """Add findings for modules at fault whose fault outputs and gradients hide; True if any is.

    What would be seen if it were one, a large difference, is left aside: it is made and undone inside
    modules that the two sides cut differently.
    """
    pins = _reference_pins(runner, findings, done, False)
    traces = _pinned(runner, findings, done, pins)
    found = forward_faults(done.reference, *traces, pins)
    found += backward_faults(done.reference, traces[0], pins, done.outputs_noise)
    hidden = [
        fault
        for fault in found
        if fault.gap.relative <= WHOLE_ROUNDING
        and not fault.kink
        and not _rounds(runner, findings, fault)
    ]
    _add_faults(runner, findings, hidden, done, _unmet(runner, findings, traces[0], pins))
    return bool(hidden)


def _add_faults(
    runner: Runner, findings: Findings, found: Sequence[Fault], done: Pass, unmet: Mapping[str, str]
) -> None:
    """Add a finding for each fault that is more than rounding, or a remark."""
    for fault in found:
        if fault.kink:
            findings.remark(f"{fault.torch_path}: its gradient differs where its input is exactly 0, "
                         "where each framework settles the slope its own way")  # fmt: skip
        elif not _is_coarse(runner, findings, fault):
            _add_fault(
                runner, findings, moved_closer(fault, runner.pairing, done.reference), done, unmet
            )


def _pinned(
    runner: Runner, findings: Findings, done: Pass, pins: ReferencePins
) -> tuple[Trace, Trace]:
    """Return the port's runs on the reference's numbers: masks and indices left alone, and given."""
    free = runner.run_port(done.training, "all", pins)
    try:
        giving = _reference_pins(runner, findings, done, True)
        return free, runner.run_port(done.training, "all", giving)
    except ModelFailure:  # a mask of the other convention need not fit
        return free, free


def _excused(runner: Runner, findings: Findings, done: Pass, found: Sequence[Fault]) -> bool:
    """Tell whether a slope at 0, or float32 inside a layer, can stand for the whole difference."""
    if done.outputs_ok and any(fault.kink for fault in found):
        return True
    if not findings.float32_inside:
        return False
    groups = [found for _, found in done.outputs], [found for *_, found in done.gradients]
    return all(_is_small(group) for group in groups)


def _is_small(gaps: Sequence[Gap]) -> bool:
    """Tell whether what differs is rounding, next to the largest value of all (or its own, if larger)."""
    largest = max((found.scale for found in gaps), default=0.0)
    return all(
        found.ok or found.difference <= WHOLE_ROUNDING * (found.scale or largest) for found in gaps
    )


def _reference_pins(
    runner: Runner, findings: Findings, done: Pass, constants: bool
) -> ReferencePins:
    """Return what gives the port the reference's numbers."""
    modules = runner.pairing.torch.modules, runner.pairing.paddle.modules
    same = {
        theirs
        for theirs, ours in runner.pairing.names.items()
        if modules[0][ours].kind and modules[0][ours].kind == modules[1][theirs].kind
    }
    altered = {
        theirs
        for theirs, ours in runner.pairing.names.items()
        if runner.pairing.settings_differ(ours, theirs)
    }
    stock = runner.pairing.paddle.stock
    calm = done.training and findings.eval_agrees
    return ReferencePins(
        done.reference, done.natural, runner.pairing.names, stock, same, altered, constants, calm
    )


def _is_coarse(runner: Runner, findings: Findings, fault: Fault) -> bool:
    """Tell whether a fault is float32 rounding inside a layer; note it if so."""
    if not _rounds(runner, findings, fault):
        return False
    findings.note_float32(fault.torch_path or "the model", fault.gap.relative)
    return True


_PRODUCTS = {"Linear", "Embedding", "Bilinear"} | {
    f"Conv{transpose}{axes}d" for transpose in ("", "Transpose") for axes in (1, 2, 3)
}
"""sums of products: there is no constant in them that a float32 could hold"""


def _may_round(runner: Runner, ours: str, theirs: str) -> bool:
    """Tell whether a small difference in a pair of modules can be float32's, of a constant or of all."""
    paddle = runner.pairing.paddle
    exact = theirs in paddle.stock and paddle.modules[theirs].kind in _PRODUCTS
    if exact and runner.dtype == "float64":
        return False
    return not runner.pairing.settings_differ(ours, theirs)


def _rounds(runner: Runner, findings: Findings, fault: Fault) -> bool:
    """Tell whether a fault is float32 rounding inside a layer."""
    limit = LAYER_ROUNDING if fault.stock and not fault.own_code else CODE_ROUNDING
    small = not fault.cut and fault.gap.relative <= limit
    return small and _may_round(runner, fault.torch_path, fault.paddle_path)


def _explained(runner: Runner, findings: Findings, outputs_ok: bool) -> bool:
    """Tell whether an earlier finding can stand for a difference that has no place of its own."""
    stages = {"weights", "forward"} if not outputs_ok else {"weights", "forward", "backward"}
    return any(finding.stage in stages for finding in findings.report.findings)


def _unmet(runner: Runner, findings: Findings, trace: Trace, pins: ReferencePins) -> dict[str, str]:
    """Return the port's layers with tensors that can't be compared, each with what can around it."""
    holders = {parent(name) for name in runner.pairing.paddle.tensors}
    called: dict[str, list[Call]] = {}
    for call in trace.calls:
        called.setdefault(call.path, []).append(call)
    met = {""} | {path for path, calls in called.items() if _is_met(calls, pins)}
    unmet = {}
    for path in called:
        if path in holders and path not in met:
            around = parent(path)
            while around not in met:
                around = parent(around)
            unmet[path] = around
    return unmet


def _add_fault(
    runner: Runner, findings: Findings, fault: Fault, done: Pass, unmet: Mapping[str, str]
) -> None:
    """Add a finding for a fault, unless its place has one already."""
    at = fault.torch_path, fault.paddle_path
    places = {fault.paddle_call.path, *([fault.paddle_path] if fault.cut else [])}
    if fault.stage == "backward" and any(_has_frozen(runner, findings, path) for path in places):
        return  # the frozen parameter has a finding of its own
    same = [f for f in findings.report.findings
            if f.paddle_name == at[1] and is_within(at[0], f.torch_name)]  # fmt: skip
    if any(f.stage in ("forward", fault.stage) for f in same):
        return
    message = f"{_describe(fault, unmet)}{_mode(done)}; {fault.where}"
    cause = cause_of(fault, done.reference, runner.pairing.torch.modules.get(fault.torch_path))
    if not cause and fault.own_code and fault.stage == "forward":
        drawn = done.reference.drawn, done.natural.drawn
        cause = explain_draws(fault.paddle_path, *drawn, runner.pairing.places)
    message += f". {cause}" if cause else ""
    findings.add(fault.stage, *at, message, fault.gap)


def _mode(done: Pass) -> str:
    return " in train mode" if done.training else ""


def _describe(fault: Fault, unmet: Mapping[str, str]) -> str:
    """Return what is wrong at a fault, in words."""
    if fault.stage == "backward":
        return "the gradient parts here"
    if fault.made_with:
        masks = fault.expected is None or is_mask(fault.expected)
        return f"its own code makes another {'mask or index' if masks else 'constant or input'}"
    if not fault.own_code:
        return "its inputs agree and its output does not"
    inner = [path for path, around in unmet.items() if around == fault.paddle_path]
    if inner:
        return f"it does not agree, in its own code or in {shorten(inner, _NAMED)} (not comparable)"
    return "its children agree and its own code does not"


def _parameter_faults(
    runner: Runner, findings: Findings, done: Pass, free: Trace, given: Trace, pins: ReferencePins
) -> None:
    """Add findings for parameters whose gradients differ although all that meets them agrees.

    free and given: the port's traces with values that carry no gradient left alone, and given.
    """
    gaps = reversed(compare_gradients(runner.pairing, done, free))
    with_all = compare_gradients(runner.pairing, done, given)
    by_input = {other for _, other, found in with_all if found.ok}
    for name, other, found in sorted(
        gaps, key=lambda g: not _is_frozen(runner, findings, g[0], g[1])
    ):
        if other in by_input:
            continue
        place = _met_place(runner, findings, done.reference, free, parent(name), pins)
        place = parent(name) if _is_frozen(runner, findings, name, other) else place
        covered = {name, parent(name), place} & _places_found(runner, findings)
        if found.ok or covered or name in runner.pairing.untied:
            continue
        at = parent(name), parent(other)
        if found.relative <= LAYER_ROUNDING and _may_round(runner, *at):
            findings.note_float32(name, found.relative)
            continue
        findings.add(
            "backward",
            name,
            other,
            _gradient_words(runner, findings, name, other, free, found, place),
            found,
        )


def _met_place(
    runner: Runner,
    findings: Findings,
    reference: Trace,
    given: Trace,
    path: str,
    pins: ReferencePins,
) -> str:
    """Return the module, or the first around it that hooks saw, given the reference's numbers."""
    called = reference.counts()
    while path:
        calls = [call for call in given.calls if call.path == runner.pairing.modules.get(path)]
        if calls and called[path] and _is_met(calls, pins):
            break
        path = parent(path)
    return path


def _is_met(calls: Sequence[Call], pins: ReferencePins) -> bool:
    """Tell whether the reference's numbers fit all that a module of the port takes and gives."""
    for call in calls:
        other = pins.counterpart(call)
        if other is None:
            return False
        for ours, theirs, which in (
            (other.inputs, call.inputs, "inputs"),
            (other.outputs, call.outputs, "outputs"),
        ):
            if find_unpaired(ours, theirs, pins.pairs(other, call, which)) is not None:
                return False
    return True


def _places_found(runner: Runner, findings: Findings) -> set[str]:
    """Return where forward and backward findings are: modules, and parameters with their modules."""
    names = [f.torch_name for f in findings.report.findings if f.stage in ("forward", "backward")]
    owners = {parent(name) for name in names if name in runner.pairing.torch.tensors}
    return {*names, *owners}


def _is_frozen(runner: Runner, findings: Findings, name: str, other: str) -> bool:
    """Tell whether the parameter is trained on one side alone."""
    ours, theirs = runner.pairing.torch.tensors[name], runner.pairing.paddle.tensors[other]
    return ours.is_trainable != theirs.is_trainable


def _has_frozen(runner: Runner, findings: Findings, path: str) -> bool:
    """Tell whether a module of the port holds a parameter that is trained on one side alone."""
    pairs = [(pair.torch[0], other) for pair in runner.pairing.match.pairs for other in pair.paddle]
    return any(
        parent(other) == path and _is_frozen(runner, findings, name, other) for name, other in pairs
    )


def _gradient_words(
    runner: Runner, findings: Findings, name: str, other: str, given: Trace, found: Gap, place: str
) -> str:
    """Return what is wrong with a parameter's gradient, in words."""
    ours, theirs = runner.pairing.torch.tensors[name], runner.pairing.paddle.tensors[other]
    if ours.is_trainable and not theirs.is_trainable:
        return "frozen in Paddle (stop_gradient=True), trained in PyTorch"
    if theirs.is_trainable and not ours.is_trainable:
        return "frozen in PyTorch (requires_grad=False), trained in Paddle"
    if other not in given.gradients:
        return "gets no gradient in Paddle"
    if place != parent(name):
        return f"its gradient differs; what meets its module cannot be compared; {found.words}"
    return f"its gradient differs though all that meets it agrees; {found.words}"


def _unlocated(runner: Runner, findings: Findings, done: Pass) -> None:
    """Add a finding for a difference of which no single place could be found."""
    if not done.outputs:
        _unpaired_outputs(runner, findings, done)
        return
    if not done.outputs_ok:
        worst = max((found for _, found in done.outputs), key=lambda g: g.relative)
        if _rounds_as_a_whole(runner, findings, "the model", worst):
            return
        text = f"the outputs differ{_mode(done)}, by no single module: {worst.words}"
        findings.add("forward", "", "", text, worst)
        return
    wrong = [gradient for gradient in done.gradients if not gradient[2].ok]
    name, other, worst = max(wrong, key=lambda g: g[2].relative)
    if _rounds_as_a_whole(runner, findings, name, worst):
        return
    findings.add(
        "backward", name, other, f"the gradient differs{_mode(done)}: {worst.words}", worst
    )


def _rounds_as_a_whole(runner: Runner, findings: Findings, place: str, worst: Gap) -> bool:
    """Tell whether what no module alone makes is float32 rounding that adds up; note it if so."""
    small = worst.relative <= CODE_ROUNDING and _may_round(runner, "", "")
    if small:
        findings.note_float32(place, worst.relative)
    return small


def _unpaired_outputs(runner: Runner, findings: Findings, done: Pass) -> None:
    """Add a finding for outputs of which none can be compared."""
    ours, theirs = (
        [leaf.array.shape for leaf in trace.outputs.values()]
        for trace in (done.reference, done.natural)
    )
    text = f"no output can be compared: shapes {ours} in PyTorch, {theirs} in Paddle"
    findings.add("forward", "", "", text, Gap(np.inf, 0.0, 0.0, ""))
