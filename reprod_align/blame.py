"""Finds the places at fault where two sides part, and adds a finding for each to the report."""

from reprod_align.bench import CODE_ROUNDING, LAYER_ROUNDING, WHOLE_ROUNDING, Bench
from reprod_align.comparing import gradient_gaps
from reprod_align.explain import cause_of
from reprod_align.leaf import Gap, LeafPair
from reprod_align.locate import Fault, backward_faults, forward_faults
from reprod_align.naming import parent
from reprod_align.pins import ReferencePins
from reprod_align.side import ModelFailure
from reprod_align.trace import Trace

import numpy as np


def locate(
    bench: Bench,
    reference: Trace,
    natural: Trace,
    training: bool,
    outputs_ok: bool,
    gradients_ok: bool,
    gaps: list[tuple[LeafPair, Gap]],
    gradients: list[tuple[str, str, Gap]],
) -> None:
    """Find the modules at fault and add a finding for each."""
    pins = _reference_pins(bench, reference, natural, False)
    traces = [bench.run_port(training, "all", pins)]
    try:
        giving = _reference_pins(bench, reference, natural, True)
        traces.append(bench.run_port(training, "all", giving))
    except ModelFailure:  # a mask of the other convention need not fit
        traces.append(traces[0])
    found = []
    if not outputs_ok:
        found += forward_faults(reference, traces[0], traces[1], pins)
    if not gradients_ok or found:
        found += backward_faults(reference, traces[0], pins)
    before = len(bench.result.findings)
    for fault in found:
        if fault.kink:
            bench.remark(f"{fault.torch_path}: its gradient differs where its input is exactly 0, "
                        "where each framework settles the slope its own way")  # fmt: skip
        elif not _is_coarse(bench, fault, training):
            _add_fault(bench, fault, reference, training)
    if not gradients_ok:
        _parameter_faults(bench, reference, traces[0], training)
    excused = outputs_ok and any(fault.kink for fault in found)
    worst = max(
        (g.relative for g in [*(g for _, g in gaps), *(g for *_, g in gradients)]),
        default=np.inf,
    )
    excused |= bool(bench.coarse) and worst <= WHOLE_ROUNDING
    if len(bench.result.findings) == before and not excused and not _explained(bench, outputs_ok):
        _unlocated(bench, reference, natural, outputs_ok, gaps, gradients, training)


def _reference_pins(
    bench: Bench, reference: Trace, natural: Trace, constants: bool
) -> ReferencePins:
    """Return what gives the port the reference's numbers."""
    modules = bench.torch_info.modules, bench.paddle_info.modules
    same = {
        theirs
        for theirs, ours in bench.names.items()
        if modules[0][ours].kind and modules[0][ours].kind == modules[1][theirs].kind
    }
    altered = {
        theirs for theirs, ours in bench.names.items() if bench.settings_differ(ours, theirs)
    }
    stock = bench.paddle_info.stock
    return ReferencePins(reference, natural, bench.names, stock, same, altered, constants)


def _is_coarse(bench: Bench, fault: Fault, training: bool) -> bool:
    """Tell whether a fault is float32 rounding inside a layer; note it if so."""
    limit = LAYER_ROUNDING if fault.stock and not fault.own_code else CODE_ROUNDING
    at = fault.torch_path, fault.paddle_path
    if not fault.gap.relative <= limit or bench.settings_differ(*at):
        return False
    bench.note_coarse(at[0] or "the model", fault.gap.relative)
    return True


def _explained(bench: Bench, outputs_ok: bool) -> bool:
    """Tell whether an earlier finding can stand for a difference that has no place of its own."""
    stages = {"weights", "forward"} if not outputs_ok else {"weights", "forward", "backward"}
    return any(finding.stage in stages for finding in bench.result.findings)


def _add_fault(bench: Bench, fault: Fault, reference: Trace, training: bool) -> None:
    """Add a finding for a fault, unless its place has one already."""
    at = fault.torch_path, fault.paddle_path
    if fault.stage == "backward" and _has_frozen(bench, fault.paddle_call.path):
        return  # the frozen parameter has a finding of its own
    same = [f for f in bench.result.findings if (f.torch_name, f.paddle_name) == at]
    if any(f.stage in ("forward", fault.stage) for f in same):
        return
    mode = " in train mode" if training else ""
    message = f"{_describe(fault)}{mode}; {fault.where}"
    cause = cause_of(fault, reference, bench.torch_info.modules.get(fault.torch_path))
    message += f". {cause}" if cause else ""
    bench.add(fault.stage, *at, message, fault.gap)


def _describe(fault: Fault) -> str:
    """Return what is wrong at a fault, in words."""
    if fault.stage == "backward":
        return "the gradient parts here"
    if fault.made_with:
        return "its own code makes another mask or index"
    if not fault.own_code:
        return "its inputs agree and its output does not"
    return "its children agree and its own code does not"


def _parameter_faults(bench: Bench, reference: Trace, given: Trace, training: bool) -> None:
    """Add findings for parameters whose gradients differ although all that meets them agrees."""
    gaps = reversed(gradient_gaps(bench, reference, given, training))
    for name, other, found in sorted(gaps, key=lambda g: not _is_frozen(bench, g[0], g[1])):
        covered = {name, parent(name)} & _places_found(bench)
        if found.ok or covered:
            continue
        at = parent(name), parent(other)
        if found.relative <= LAYER_ROUNDING and not bench.settings_differ(*at):
            bench.note_coarse(name, found.relative)
            continue
        bench.add("backward", name, other, _gradient_words(bench, name, other, given, found), found)


def _places_found(bench: Bench) -> set[str]:
    """Return where forward and backward findings are: modules, and parameters with their modules."""
    names = [f.torch_name for f in bench.result.findings if f.stage in ("forward", "backward")]
    owners = {parent(name) for name in names if name in bench.torch_info.tensors}
    return {*names, *owners}


def _is_frozen(bench: Bench, name: str, other: str) -> bool:
    """Tell whether the parameter is trained on one side alone."""
    ours, theirs = bench.torch_info.tensors[name], bench.paddle_info.tensors[other]
    return ours.is_trainable != theirs.is_trainable


def _has_frozen(bench: Bench, path: str) -> bool:
    """Tell whether a module of the port holds a parameter that is trained on one side alone."""
    pairs = [(pair.torch[0], other) for pair in bench.match.pairs for other in pair.paddle]
    return any(parent(other) == path and _is_frozen(bench, name, other) for name, other in pairs)


def _gradient_words(bench: Bench, name: str, other: str, given: Trace, found: Gap) -> str:
    """Return what is wrong with a parameter's gradient, in words."""
    ours, theirs = bench.torch_info.tensors[name], bench.paddle_info.tensors[other]
    if ours.is_trainable and not theirs.is_trainable:
        return "frozen in Paddle (stop_gradient=True), trained in PyTorch"
    if theirs.is_trainable and not ours.is_trainable:
        return "frozen in PyTorch (requires_grad=False), trained in Paddle"
    if other not in given.gradients:
        return "gets no gradient in Paddle"
    return f"its gradient differs though all that meets it agrees; {found.words}"


def _unlocated(
    bench: Bench,
    reference: Trace,
    natural: Trace,
    outputs_ok: bool,
    gaps: list[tuple[LeafPair, Gap]],
    gradients: list[tuple[str, str, Gap]],
    training: bool,
) -> None:
    """Add a finding for a difference of which no single place could be found."""
    mode = " in train mode" if training else ""
    if not gaps:
        _unpaired_outputs(bench, reference, natural)
        return
    if not outputs_ok:
        worst = max((found for _, found in gaps), key=lambda g: g.relative)
        text = f"the outputs differ{mode}, by no single module: {worst.words}"
        bench.add("forward", "", "", text, worst)
        return
    name, other, worst = max((g for g in gradients if not g[2].ok), key=lambda g: g[2].relative)
    bench.add("backward", name, other, f"the gradient differs{mode}: {worst.words}", worst)


def _unpaired_outputs(bench: Bench, reference: Trace, natural: Trace) -> None:
    """Add a finding for outputs of which none can be compared."""
    shapes = [
        [leaf.array.shape for leaf in trace.outputs.values()] for trace in (reference, natural)
    ]
    text = f"no output can be compared: shapes {shapes[0]} in PyTorch, {shapes[1]} in Paddle"
    bench.add("forward", "", "", text, Gap(np.inf, 0.0, 0.0, ""))
