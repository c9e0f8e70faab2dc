"""Finds the places at fault where two sides diverge, and adds a finding for each.

Every paired module of the port gets the reference's inputs, and hands on the reference's outputs;
in the backward pass the same with gradients. So each call is judged by what it adds itself: a
module's own output, what a composite's own code does between its children, what a backward pass
does to a gradient. No fault hides another, and no fault is inherited.
"""

from collections.abc import Sequence
from dataclasses import replace

from reprod_align.alignment.comparing import (
    WHOLE_ROUNDING,
    Pass,
    compare_pass,
    is_float32_gradient,
    judge_all_gradients,
    limit_own_code,
    outputs_are_float32,
)
from reprod_align.alignment.findings import Findings, give_lines
from reprod_align.alignment.lines.origin import MEANT, describe_edit
from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.experiment import Experiment
from reprod_align.alignment.locating.explain import find_cause
from reprod_align.alignment.locating.fault import (
    FLOOR,
    Fault,
    compare,
    is_rounding,
    is_rounding_throughout,
    move_closer,
    note_rounding_as_a_whole,
)
from reprod_align.alignment.locating.faults import (
    find_backward_faults,
    find_forward_faults,
    list_differences,
)
from reprod_align.alignment.locating.lines import LineFinder, Lines
from reprod_align.alignment.locating.parameters import (
    add_parameter_faults,
    find_incomparable_layers,
)
from reprod_align.alignment.locating.pinning import run_on_chosen, run_pinned
from reprod_align.alignment.locating.shares import split_differences
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.api import split_references
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.difference import Gap, gap
from reprod_align.base.text import is_within, parent, shorten
from reprod_align.causes import explain_draws
from reprod_align.explain.edits import ROWS
from reprod_align.explain.scope import find_owner
from reprod_align.model.source import SourceLine
from reprod_align.model.trace import LeafPair, Trace, is_mask
from reprod_align.report import Finding, Suggestion
from reprod_align.report.finding import FindingKind, name_place

_NAMED = 3  # layers in one message


def locate(runner: Runner, findings: Findings, done: Pass) -> Trace:
    """Add a finding for each module at fault; return the port's run on the reference's numbers."""
    _forget_gradients(done)
    names, due = runner.pairing.names, done.reference.counts()
    places = (
        name_place(names[path], path)
        for path, count in done.natural.counts().items()
        if path in names and count <= max(due[names[path]], 1)
    )
    findings.report.called = list(dict.fromkeys([*findings.report.called, *places]))
    free, given = run_pinned(runner, done)
    if not (done.outputs_ok or findings.report.shares or findings.places_only):
        alone = done.natural
        if not alone.holds_inputs:
            alone = runner.run_port(done.training, "values", backward=False)
        findings.report.shares = split_differences(free, alone)
    faults: list[Fault] = []
    if not done.outputs_ok:
        faults += find_forward_faults(free, given, done.training and findings.eval_agrees)
    if not done.natural.deferred and (faults or not done.gradients_ok):
        faults += find_backward_faults(free, done.outputs_noise)
    before = len(findings.report.findings)
    rounding = _add_faults(runner, findings, done, free, faults)
    if not done.gradients_ok:
        add_parameter_faults(runner, findings, done, free, given)
    if len(findings.report.findings) == before and not _is_explained(findings, done, faults):
        done = _judge_again(runner, done)
        explained = _is_explained(findings, done, faults)
        if not (explained or _is_made_by(runner, done, free, rounding)):
            _add_unlocated(runner, findings, done, free)
    return free.port


def search(runner: Runner, findings: Findings, done: Pass) -> bool:
    """Add findings for faulty modules whose outputs and gradients still agree; True if there are any.

    Large differences are left aside: a fault of that size would reach the outputs. They arise inside
    modules that the two sides divide differently, and vanish there again.
    """
    free, given = run_pinned(runner, done)
    faults = find_forward_faults(free, given, done.training and findings.eval_agrees)
    faults += find_backward_faults(free, done.outputs_noise)
    hidden = [
        fault
        for fault in faults
        if fault.gap.relative <= WHOLE_ROUNDING
        and fault.kind != "kink"
        and not is_rounding(runner, fault)
    ]
    _add_faults(runner, findings, done, free, hidden)
    return bool(hidden)


def _judge_again(runner: Runner, done: Pass) -> Pass:
    """Return the pass with all that is known of noise in its gradients, where any differs."""
    if done.gradients_ok or done.gradient_noise is not None:
        return done
    natural = runner.run_port(done.training, "outputs")
    return judge_all_gradients(runner.pairing, replace(done, natural=natural))


def _forget_gradients(done: Pass) -> None:
    """Keep of the port's own gradients the one that may be named: all take as much memory as the model."""
    worst = max(done.gradients, key=lambda one: one[2].relative, default=("", "", None))
    kept = done.natural.gradients.get(worst[1])
    done.natural.gradients = {} if kept is None else {worst[1]: kept}


def _is_explained(findings: Findings, done: Pass, faults: Sequence[Fault]) -> bool:
    """Tell whether something noted already can stand for a difference without a place of its own.

    That is an earlier finding, float32 that rounds somewhere, or a slope at 0.
    """
    if findings.float32_inside and is_rounding_throughout(done):
        return True
    if done.outputs_ok and any(fault.kind == "kink" for fault in faults):
        return True
    if done.outputs_ok and findings.at_stage("backward"):
        return True
    return bool(findings.at_stage("weights", "forward"))


def _is_made_by(runner: Runner, done: Pass, run: PinnedRun, rounding: Sequence[Fault]) -> bool:
    """Tell whether places that round as float32 does make all that differs, grown on its way.

    The port runs on its own numbers, but for what these places give: there it has the reference's.
    """
    if not rounding or done.reference.deferred:
        return False
    chosen = {fault.calls.theirs.key for fault in rounding}
    natural = run_on_chosen(runner, run, done.training, chosen)
    found = compare_pass(runner, done.reference, done.training, natural, until_one_differs=True)
    return found.outputs_ok and is_rounding_throughout(found)


def _add_faults(
    runner: Runner, findings: Findings, done: Pass, run: PinnedRun, faults: Sequence[Fault]
) -> list[Fault]:
    """Add a finding for each fault that is more than rounding, or a remark; return those that round."""
    rounding = []
    experiment = Experiment(runner, done.training, run, done.outputs_noise)
    finder = LineFinder(runner, done.training, run, faults, experiment)
    for fault in faults:
        ours = fault.place[0]
        if fault.kind == "kink":
            findings.remark(f"{ours}: its gradient differs where its input is exactly 0, "
                            "where each framework defines the slope in its own way")  # fmt: skip
        elif is_rounding(runner, fault, measured=not findings.places_only):
            findings.note_float32(ours or "the model", fault.gap.relative)
            rounding.append(fault)
        else:
            _add_fault(runner, findings, done, run, fault, finder, experiment)
    if experiment.search.is_disabled:
        findings.remark("no edit could be tried: every copy of this process ended before it answered; "
                        "a limit of memory or of processes may be the reason")  # fmt: skip
    return rounding


def _add_fault(
    runner: Runner,
    findings: Findings,
    done: Pass,
    run: PinnedRun,
    fault: Fault,
    finder: LineFinder,
    experiment: Experiment,
) -> None:
    """Add a finding for a fault, unless its place has one already."""
    pairing, first = runner.pairing, fault
    leave_out = findings.places_only or _has_finding(findings, fault)
    lines = Lines() if leave_out else finder.find(fault)
    fault = move_closer(fault, pairing, done.reference)
    resized = _find_resized(fault, pairing, run)
    if resized is not None and not findings.tries_edits:
        _add_resized(findings, resized, done)
        return
    ours, theirs = fault.place
    if fault.stage == "backward" and _meets_frozen(pairing, fault):
        return  # the frozen parameter has a finding of its own
    if fault.stage == "backward" and _is_in_blamed_code(findings, fault, run):
        return
    if _has_finding(findings, fault):
        return
    mode = " in train mode" if done.training else ""
    text = f"{_describe(fault, pairing, run)}{mode}; {fault.where}"
    guess = "" if findings.places_only else _explain_numbers(runner, done, fault)
    both = lines.torch, lines.paddle
    kind, why = _name_kind(fault), _rank_causes(guess, lines, None)
    findings.add(
        fault.stage, ours, theirs, text, fault.gap, both, kind=kind, cause=why, remedy=lines.remedy
    )
    if findings.tries_edits and not pairing.settings_differ(ours, theirs):
        finding = findings.report.findings[-1]
        told = bool(lines.words or lines.remedy)
        # what a module holds makes the fault go away: only what PyTorch's code says there says more
        rows = ("reference",) if lines.is_proven else ROWS
        near = told, lines.is_sure, lines.first
        made = lines.table and experiment.explain_making(finding, lines.table)
        edit = made or experiment.explain(finding, first, near, lines.call, rows)
        if edit is not None:
            why = _rank_causes(guess, lines, edit)
            shown = _move_to_owner(runner, _show_edit(finding, edit, why), edit, fault)
            if any(one.edit == edit for one in findings.at(shown.torch_name, shown.paddle_name)):
                findings.report.findings.remove(finding)  # the other mode shows the same
            else:
                findings.replace(finding, shown)
        elif resized is not None:  # no edit of the code around the layer mends it
            findings.report.findings.remove(finding)
            _add_resized(findings, resized, done)
        elif lines.is_open:  # no edit has proven it
            why = _rank_causes(guess, replace(lines, words=""), None)
            findings.replace(finding, replace(finding, cause=why))
        elif not told and (found := finder.find_resized(first)) is not None:
            _show_resized(findings, finding, found)


def _show_resized(findings: Findings, finding: Finding, found: tuple[Fault, Lines]) -> None:
    """Show a finding by the tensor of another size that its code hands on first."""
    fault, lines = found
    evidence = f"{finding.evidence.partition('; ')[0]}; {fault.where}"
    shown = replace(
        finding, cause=lines.words, torch_line=None, paddle_line=None, evidence=evidence
    )
    findings.replace(finding, give_lines(shown, lines.torch, lines.paddle))


def _find_resized(fault: Fault, pairing: Pairing, run: PinnedRun) -> Fault | None:
    """Return a fault at the one layer in its code that nothing compares, if that is set otherwise.

    Where another layer is set otherwise in the same respect and the code around it is right, as where one
    side pads by a call of its own, the setting is not what is wrong.
    """
    if not fault.own_code or fault.kind == "mask" or fault.stage != "forward":
        return None
    layers = find_incomparable_layers(pairing, run)
    inner = [path for path, around in layers.items() if around == fault.place[1]]
    ours = pairing.names.get(inner[0]) if len(inner) == 1 else None
    if ours is None or not pairing.settings_differ(ours, inner[0]):
        return None
    wrong = {one.place[1] for one in list_differences(run)}
    respects = _name_respects(pairing, inner[0])
    for path, around in layers.items():
        if around not in wrong and respects & _name_respects(pairing, path):
            return None
    where = f"in {fault.place[1] or 'the model'}, {fault.where}"
    return replace(fault, place=(ours, inner[0]), where=where, own_code=False)


def _add_resized(findings: Findings, fault: Fault, done: Pass) -> None:
    """Add a finding for a layer that is set otherwise, so that nothing compares it, unless it has one."""
    if not _has_finding(findings, fault):
        mode = " in train mode" if done.training else ""
        text = f"its settings differ, so that it cannot be compared{mode}; {fault.where}"
        findings.add(fault.stage, *fault.place, text, fault.gap, kind=_name_kind(fault))


def _name_respects(pairing: Pairing, path: str) -> set[str]:
    """Return the names of the settings in which a layer of the port differs from its counterpart."""
    ours = pairing.names.get(path)
    return {one.name for one in pairing.compare_settings(ours, path)} if ours is not None else set()


def _rank_causes(guess: str, lines: Lines, edit: Suggestion | None) -> str:
    """Return the causes, the one that rests on most first: a run, the calls of both sides, the numbers.

    An edit with which the fault is gone leaves of the calls what is said of its own line. Numbers that
    one mistake makes another may make as well: only one that the table of APIs knows leads.
    """
    words = lines.words if edit is None or _is_beside(lines.paddle, edit) else ""
    shown = words or lines.idle
    if edit is not None:
        shown = MEANT.get(edit.kind) or words or describe_edit(edit)
    shown = "" if shown in guess else shown
    if split_references(guess)[1]:
        causes = [guess, shown]
    else:
        causes = [shown, "" if lines.is_proven else guess]
    return ". ".join(filter(None, causes))


def _explain_numbers(runner: Runner, done: Pass, fault: Fault) -> str:
    """Return why the numbers of a fault differ, as far as they tell it; "" if they do not."""
    pairing = runner.pairing
    if fault.place[1] in pairing.paddle.stock and "p" in _name_respects(pairing, fault.place[1]):
        return ""  # two dropouts of other rates look as if one side alone dropped
    cause = find_cause(fault, done.reference, runner.weights, pairing.paddle.modules)
    if not cause and fault.own_code and fault.stage == "forward":
        return explain_draws(
            fault.place[1], done.reference.drawn, done.natural.drawn, pairing.places
        )
    return cause


def _move_to_owner(runner: Runner, finding: Finding, edit: Suggestion, fault: Fault) -> Finding:
    """Return a finding at the module in whose code its edit stands, where that is one around its place."""
    place = fault.place[1]
    owner = find_owner(runner.port, place, edit.file, edit.line)
    if owner in (None, place) or fault.stage != "forward":
        return finding
    ours = runner.pairing.find_around(owner)
    text = f"its own code hands on another value; it reaches {place}: {fault.gap.words}"
    return replace(finding, torch_name=ours, paddle_name=owner, evidence=text, kind="own-code")


def _show_edit(finding: Finding, edit: Suggestion, cause: str) -> Finding:
    """Return a finding with the edit that mends it, at its line, and the cause that is known then."""
    place = SourceLine(edit.file, edit.line, edit.before)
    beside = _is_beside(finding.paddle_line, edit)
    found = replace(finding, edit=edit, cause=cause, remedy=finding.remedy if beside else "")
    if beside and finding.paddle_line == str(place):
        return found
    return give_lines(replace(found, paddle_line=None), None, place)


def _is_beside(place: SourceLine | str | None, edit: Suggestion) -> bool:
    """Tell whether a line is that of an edit, or next to it."""
    file, _, line = str(place or "").rpartition(":")
    own = str(SourceLine(edit.file, edit.line, edit.before)).rpartition(":")[0]
    return file == own and abs(int(line) - edit.line) <= 1


def _name_kind(fault: Fault) -> FindingKind:
    """Return the code of a fault of which no more is known than where and how it shows."""
    if fault.stage == "backward":
        return "gradient-cut" if fault.kind == "cut" else "gradient"
    if fault.kind == "mask":
        return "mask"
    return "own-code" if fault.own_code else "module"


def _has_finding(findings: Findings, fault: Fault) -> bool:
    """Tell whether the place of a fault, or what is around it in PyTorch, has a finding already."""
    ours, theirs = fault.place
    known = findings.at_stage("forward", fault.stage)
    return any(f.paddle_name == theirs and is_within(ours, f.torch_name) for f in known)


def _is_in_blamed_code(findings: Findings, fault: Fault, run: PinnedRun) -> bool:
    """Tell whether a layer gives numbers that cannot be compared to code that has a finding already."""
    calls = fault.calls.theirs
    around = run.port.parent_path(calls)
    compared = not calls.outputs or run.pair_leaves(fault.calls, "outputs")
    return not compared and any(f.paddle_name == around for f in findings.at_stage("forward"))


def _meets_frozen(pairing: Pairing, fault: Fault) -> bool:
    """Tell whether a module at the fault holds a parameter that is trained on one side alone."""
    modules = {fault.calls.theirs.path, *(fault.place[1:] if fault.kind == "cut" else ())}
    pairs = [(pair.torch[0], other) for pair in pairing.match.pairs for other in pair.paddle]
    return any(
        parent(other) in modules and pairing.is_frozen_on_one_side(name, other)
        for name, other in pairs
    )


def _describe(fault: Fault, pairing: Pairing, run: PinnedRun) -> str:
    """Return what is wrong at a fault, in words."""
    if fault.stage == "backward":
        return "the gradient diverges here"
    if fault.kind == "mask":
        masks = fault.expected is None or is_mask(fault.expected)  # None: a change of one is proven
        return f"its own code makes another {'mask or index' if masks else 'constant or input'}"
    if not fault.own_code:
        return "its inputs agree and its output does not"
    layers = find_incomparable_layers(pairing, run)
    inner = [path for path, around in layers.items() if around == fault.place[1]]
    if inner:
        return f"it differs, in its own code or in {shorten(inner, _NAMED)} (not comparable)"
    return "its children agree and its own code does not"


def _add_unlocated(runner: Runner, findings: Findings, done: Pass, run: PinnedRun) -> None:
    """Add a finding for a difference that no single place makes."""
    mode = " in train mode" if done.training else ""
    if not done.outputs:
        ours, theirs = (
            [leaf.array.shape for leaf in trace.outputs.values()]
            for trace in (done.reference, done.natural)
        )
        text = f"no output can be compared: shapes {ours} in {REFERENCE}, {theirs} in {PORT}"
        findings.add("forward", "", "", text, kind="not-comparable")
    elif not done.outputs_ok:
        pair, worst = max(done.outputs, key=lambda output: output[1].relative)
        small = outputs_are_float32(done, limit_own_code(runner.dtype))
        if not note_rounding_as_a_whole(runner, findings, "the model", worst, small):
            exchanged = _describe_exchange(done, pair)
            text = "" if exchanged else ", but no single module makes the difference"
            text = f"the outputs differ{mode}{text}: {worst.words}"
            lines = _find_own_lines(runner, done, run, pair, worst)
            cause = exchanged or lines.words
            both = lines.torch, lines.paddle
            kind: FindingKind = "outputs-exchanged" if exchanged else "outputs"
            findings.add("forward", "", "", text, worst, both, kind=kind, cause=cause)
    else:
        wrong = [gradient for gradient in done.gradients if not gradient[2].ok]
        apart = name, other, worst = max(wrong, key=lambda g: g[2].relative)
        limit = limit_own_code(runner.dtype)
        small = is_float32_gradient(runner.pairing, done, done.natural, apart, limit, whole=True)
        if not note_rounding_as_a_whole(runner, findings, name, worst, small):
            text = f"the gradient differs{mode}: {worst.words}"
            findings.add("backward", name, other, text, worst, kind="gradient")


def _describe_exchange(done: Pass, pair: LeafPair) -> str:
    """Say that an output is another one of PyTorch's; "" if it is not."""
    actual = done.natural.outputs[pair.actual].array
    for name, leaf in done.reference.outputs.items():
        if (
            name != pair.expected
            and leaf.array.shape == actual.shape
            and gap(leaf.array, actual).ok
        ):
            return f"outputs are exchanged: output {pair.actual} is {REFERENCE}'s output {name}"
    return ""


def _find_own_lines(
    runner: Runner,
    done: Pass,
    run: PinnedRun,
    pair: LeafPair,
    found: Gap,
) -> Lines:
    """Return the lines in the model's own code that make another output."""
    calls = next((one for one in run.calls if one.theirs.parent is None), None)
    if calls is None or pair.actual not in calls.theirs.outputs:
        return Lines()
    expected = pair.to_port(done.reference.outputs[pair.expected].array)
    actual = calls.theirs.outputs[pair.actual].array
    if compare(pair, done.reference.outputs[pair.expected].array, actual, FLOOR).ok:
        return Lines()  # on the reference's numbers its own code is right
    fault = Fault("forward", calls.paths, found, "its output", calls.theirs.finished, calls, True,
                  expected, actual)  # fmt: skip
    experiment = Experiment(runner, done.training, run)
    finder = LineFinder(runner, done.training, run, [fault], experiment)
    return finder.find_unpacking(fault, pair.expected) or finder.find(fault)
