"""Takes two sides through the stages and collects what differs, in causal order."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import eq

from reprod_align.alignment.audit import describe_differences
from reprod_align.alignment.batch_stage import compare_batches, takes_time
from reprod_align.alignment.comparing import FAINT, Pass, compare_pass
from reprod_align.alignment.details import (
    add_gradients,
    add_layers,
    add_picture,
    add_setting_table,
    add_weights,
    describe_inputs,
)
from reprod_align.alignment.ends import judge_input_gradients, judge_values, note_left
from reprod_align.alignment.findings import Findings, give_lines
from reprod_align.alignment.float32_stage import compare_float32
from reprod_align.alignment.leftovers import add_leftovers, add_split_ties, judge_one_sided
from reprod_align.alignment.lines.construction import add_lines, find_torch_line
from reprod_align.alignment.locating.blame import locate, search
from reprod_align.alignment.loss_stage import (
    compare_losses,
    compare_own_gradient,
    describe_effects,
    describe_flips,
    judge_own_gradient,
)
from reprod_align.alignment.noise import Noise
from reprod_align.alignment.pair_models import leave_to_training, pair_models, share_draws
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.alignment.stage_edits import explain_training
from reprod_align.alignment.state_stage import compare_state, compare_statistics
from reprod_align.alignment.training import compare_training
from reprod_align.alignment.unjudged import (
    doubt_gradients,
    doubts,
    note_generators,
    note_made_tables,
    note_unread_rows,
    nothing_finite,
)
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.text import parent, shorten
from reprod_align.errors import ReprodError
from reprod_align.model.side import ModelFailure, Side
from reprod_align.model.trace import Trace
from reprod_align.model.watch import Keep
from reprod_align.pair import PairSpec
from reprod_align.report import PORT_RUNS, STAGES, Finding, Report, Stage
from reprod_align.report.finding import group_findings

import numpy as np

_FAILED_IN: Mapping[str, Stage] = {
    "loss": "loss",
    "backward pass": "backward",
    "optimizer": "optimizer",
    "scheduler": "schedule",
}
_NAMED = 3  # modules in one remark
_WITHOUT_EFFECT = "settings differ without an effect seen here"
_UNSEEN = "settings differ; the port raised before it could show their effect"


def judge(pair: PairSpec, dtype: str, put_back: bool = False, places_only: bool = False) -> Report:
    """Run all stages and return the report. Both sides must be in their working state.

    put_back: leave both sides with PyTorch's weights, in which a training step may have moved them.
    places_only: a pair that asks for float32 inside is judged up to the stage that shows it, without
    causes and lines.
    Raises ReprodError if nothing can be compared, ModelFailure if the PyTorch side fails.
    """
    findings = Findings()
    runner = pair_models(
        pair.reference,
        pair.port,
        pair.inputs,
        dtype,
        pair.name_map,
        pair.copy_weights,
        findings,
        pair.modules,
        defer=True,
    )
    findings.report.details.inputs = describe_inputs(pair.inputs)
    add_weights(runner.pairing, findings)
    add_split_ties(runner.pairing, findings)
    findings.ends_at_float32 = places_only and pair.asked_float32
    findings.places_only = pair.places_only or findings.ends_at_float32
    findings.tries_edits = pair.tries_edits and not findings.places_only
    done: Pass | None = None
    try:
        done = _run_mode(runner, findings, training=False)
        if done.is_deferred and not _may_wait(done):
            runner, done = _run_in_full(runner, findings)
        elif done.is_deferred and not done.outputs_ok and _drops_in_training(runner.pairing):
            runner, done = _run_reference_in_full(runner, findings, done)
        elif done.is_deferred and not _agrees(runner, done):
            runner, done = _run_in_full(runner, findings)
        done = _judge_mode(runner, findings, done)
        findings.attribute_to_float32()
        if findings.is_enough:
            return _conclude(runner, findings)
        note_unread_rows(runner, findings)
        if pair.copy_weights and not findings.places_only:
            note_made_tables(runner, findings)
        slow = pair.further and takes_time(runner)
        if not slow:  # else one short example does
            _judge_float32(findings, runner, done)
            _forget_details(runner)
        runner = replace(runner, differs=not (done.outputs_ok and done.gradients_ok))
        short = compare_batches(runner, findings, done, slow) if pair.further else None
        if slow:
            _judge_float32(findings, *(short or (runner, done)))
            _forget_details(runner)
        note_left(runner.pairing, findings, done)
        if pair.reference.loss is not None:
            runner, done = _judge_losses(runner, findings, done)
        findings.attribute_to_float32()
        if not runner.draws_shared:
            runner = share_draws(runner)
        trained = _run_mode(runner, findings, training=True, earlier=done)
        if done.is_deferred and not _stands_for(runner, trained, done):
            runner, done = _judge_deferred(runner, findings, done)
            findings.attribute_to_float32()
            if findings.is_enough:
                return _conclude(runner, findings)
        elif done.is_deferred:
            _judge_gradients(runner, findings, trained)
        trained = _judge_mode(runner, findings, trained, earlier=done)
        judge_one_sided(runner.pairing, findings, (done, trained))
        judge_input_gradients(runner, findings, trained)
        findings.attribute_to_float32()
        if pair.reference.optimizer is not None:
            compare_training(runner, findings, pair.steps)
    except ModelFailure as error:
        if done is not None:
            with suppress(ModelFailure):
                runner, done = _judge_deferred(runner, findings, done)
        _note_failure(runner, findings, error)
    add_leftovers(runner, findings)
    add_settings(runner.pairing, findings)
    add_setting_table(runner.pairing, findings)
    add_lines(findings, runner)
    with suppress(ModelFailure):
        explain_training(runner, findings, pair.steps)
    if put_back:
        runner.put_back()
    return _conclude(runner, findings)


def _run_mode(
    runner: Runner, findings: Findings, training: bool, earlier: Pass | None = None
) -> Pass:
    """Run both sides in eval or in train mode, and compare.

    earlier: the pass in the other mode. What both sides repeat bit by bit is not compared again.
    """
    keep: Keep
    reference, natural = runner.made.pop(training, (None, None))
    if reference is None:
        reference = runner.expected
        if training:
            keep = runner.kept_in_training
            reference = runner.run_reference(True, keep=keep, of_inputs=True)
    if natural is None:
        defers = reference.deferred
        keep = "outputs" if training else "values"  # which tell how a difference grows
        natural = runner.run_port(training, keep, of_inputs=training, defer=defers)
    made = _digest(reference, natural)
    if earlier is not None and earlier.digests and all(map(eq, made, earlier.digests)):
        return replace(earlier, training=training, reference=reference, natural=natural)
    once = earlier is not None or reference.deferred or _drops_in_training(runner.pairing)
    digests = () if once else tuple(made)  # before gradients that agree are let go of
    done = compare_pass(runner, reference, training, natural, findings.places_only)
    return replace(done, digests=digests)


def _agrees(runner: Runner, done: Pass) -> bool:
    """Tell whether a pass leaves nothing to look at closely."""
    pairing, found = runner.pairing, runner.pairing.match
    tensors = [pairing.torch.tensors[name] for name in found.torch_left]
    tensors += [pairing.paddle.tensors[name] for name in found.paddle_left]
    if pairing.one_sided or any(tensor.is_parameter for tensor in tensors):
        return False  # gradients tell what such a parameter does
    exact = runner.dtype == "float64" and _is_faint(done)
    values = all(found.gap.ok for found in done.values)
    return done.outputs_ok and done.gradients_ok and values and not exact


def _may_wait(done: Pass) -> bool:
    """Tell whether both sides' graphs are known, so that those of train mode can be held against them."""
    return done.reference.graph is not None and done.natural.graph is not None


def _stands_for(runner: Runner, trained: Pass, done: Pass) -> bool:
    """Tell whether the gradients of train mode say all that those of eval mode would.

    Both sides' backward passes are the same in both modes, and nothing is left to tell the modes apart
    by: the gradients agree, or the outputs differed in eval mode already.
    """
    graphs = (trained.reference.graph, trained.natural.graph)
    alike = graphs == (done.reference.graph, done.natural.graph)
    return alike and (not done.outputs_ok or _agrees(runner, trained))


def _run_in_full(runner: Runner, findings: Findings) -> tuple[Runner, Pass]:
    """Return the pass in eval mode with its backward passes, which were left out, and its runner."""
    runner = _run_back(runner, findings)
    return runner, _run_mode(runner, findings, training=False)


def _run_reference_in_full(runner: Runner, findings: Findings, done: Pass) -> tuple[Runner, Pass]:
    """Return the pass in eval mode, whose outputs differ, with PyTorch's backward pass, and its runner.

    Its gradients tell where a difference is felt. Those of the port are judged in train mode, which
    never repeats eval mode's numbers here.
    """
    runner = _run_back(runner, findings)
    return runner, compare_pass(runner, runner.expected, False, done.natural)


def _run_back(runner: Runner, findings: Findings) -> Runner:
    """Return the runner with PyTorch's run in eval mode and its backward pass, if there can be one."""
    try:
        return replace(runner, expected=runner.run_reference(False))
    except ModelFailure as error:
        leave_to_training(findings, error)
        expected = runner.run_reference(False, backward=False)
        return replace(runner, expected=expected, eval_backward=False)


def _judge_deferred(runner: Runner, findings: Findings, done: Pass) -> tuple[Runner, Pass]:
    """Judge the backward passes of eval mode, if they were left out: something differs elsewhere."""
    if done.is_deferred:
        runner, done = _run_in_full(runner, findings)
        _check_gradients(findings, done)
        if not done.gradients_ok:
            locate(runner, findings, done)
        _judge_gradients(runner, findings, done)
    return runner, done


def _judge_losses(runner: Runner, findings: Findings, done: Pass) -> tuple[Runner, Pass]:
    """Judge the losses; where no optimizer's steps compare what it makes of them, their gradients too."""
    runs = compare_losses(runner, findings)
    if runner.reference.optimizer is not None:
        return runner, done
    own = compare_own_gradient(runner, findings, *runs)
    if own is not None:
        if not own.gradients_ok:
            runner, done = _judge_deferred(runner, findings, done)
        judge_own_gradient(runner, findings, own)
    return runner, done


def _judge_mode(
    runner: Runner, findings: Findings, done: Pass, earlier: Pass | None = None
) -> Pass:
    """Judge a pass, and look closely where it differs; earlier: the pass in the other mode.

    Returns the pass, with every module's numbers if they were needed.
    """
    training, repeated = done.training, earlier is not None and bool(done.digests)
    outputs = [found for _, found in done.outputs]
    findings.check_gaps("forward", f"outputs, {done.mode} mode", outputs, done.outputs_ok)
    _check_gradients(findings, done)
    note_generators(findings, done.reference, done.natural, done.mode)
    if training:
        _require_outputs(runner, findings, done)
    port = done.natural
    if not (repeated or (done.outputs_ok and done.gradients_ok)):
        done = _complete(runner, done)
        port = locate(runner, findings, done)
    elif not training and runner.dtype == "float64" and _is_faint(done):
        search(runner, findings, done)
    judge_values(runner, findings, done)
    # a fault before a statistic changes it, but not in a run on the reference's numbers
    if training:
        compare_statistics(runner, findings, done.reference, port)
        if earlier is not None:
            compare_state(runner, findings, done, earlier)
    elif not findings.is_enough:
        add_layers(runner, findings, done)
        add_picture(runner, findings, done)
        _judge_outputs(runner, findings, done)
    return done


def _require_outputs(runner: Runner, findings: Findings, done: Pass) -> None:
    """Add a finding for an output that train mode alone has, as of an auxiliary head, and Paddle lacks."""
    known = runner.expected.outputs.keys() | {pair.expected for pair in done.pairs}
    missing = [name for name in done.reference.outputs if name not in known]
    if missing:
        text = (
            f"in train mode {REFERENCE}'s model returns {', '.join(missing)} too; "
            f"the {PORT} model does not"
        )
        findings.add("forward", "", "", text, kind="output-missing")


def _check_gradients(findings: Findings, done: Pass) -> None:
    """Note the comparison of a pass's gradients, if there was one."""
    if done.gradients:
        gradients = [found for *_, found in done.gradients]
        findings.check_gaps("backward", f"gradients, {done.mode} mode", gradients)


def _judge_gradients(runner: Runner, findings: Findings, done: Pass) -> None:
    """Note each layer's gradients, and say where their agreement shows little."""
    add_gradients(findings, done)
    if done.outputs_ok and not findings.at_stage("forward"):
        for text in doubt_gradients(done, runner.pairing.torch):
            findings.remark(text)


def _drops_in_training(pairing: Pairing) -> bool:
    """Tell whether PyTorch's model draws random numbers in train mode: it never repeats eval mode then."""
    modules = pairing.torch.modules.values()
    return any("Dropout" in known.kind and known.values.get("p") for known in modules)


def _digest(*runs: Trace) -> Iterator[str]:
    """Yield digests of runs: of their outputs first, which mostly tell."""
    for whole in (False, True):
        for run in runs:
            yield run.digest(whole)


def _complete(runner: Runner, done: Pass) -> Pass:
    """Return the pass with every module's numbers in the reference's run, which is repeated for it.

    Also where its inputs required a gradient: those of the runs that `locate` makes do not.
    """
    asked = bool(done.reference.input_gradients)
    if not done.training or (runner.kept_in_training == "all" and not asked):
        return done
    reference = runner.run_reference(True)
    reference.input_gradients = done.reference.input_gradients
    return replace(done, reference=reference, noise=Noise(runner, True, reference))


def _forget_details(runner: Runner) -> None:
    """Drop what no later stage reads of PyTorch's run in eval mode: outputs stay, and unpaired gradients."""
    expected, pairing = runner.expected, runner.pairing
    left = {other for n in pairing.match.torch_left for other in pairing.torch.other_names(n)}
    expected.gradients = {n: array for n, array in expected.gradients.items() if n in left}
    for call in expected.calls[1:]:
        call.inputs, call.outputs = {}, {}


def _is_faint(done: Pass) -> bool:
    """Tell whether outputs that pass are further apart than those of faithful models are."""
    return any(found.exceed * RELATIVE_TOLERANCE > FAINT for _, found in done.outputs)


def _judge_outputs(runner: Runner, findings: Findings, done: Pass) -> None:
    """Say what the outputs in eval mode mean to a user, and where their agreement shows little."""
    effects = describe_effects(done.reference.outputs, done.natural.outputs, done.pairs)
    findings.report.consequences += effects
    if done.outputs_ok:
        _require_layout(findings, done)
        _require_predictions(findings, done)
        if nothing_finite(done):
            text = "no output holds a finite number, on either side: there is nothing to compare"
            findings.add("forward", "", "", text, kind="nothing-finite")
        for text in doubts(done, runner.inputs, runner.pairing.torch):
            findings.remark(text)
        if not done.is_deferred:
            for text in doubt_gradients(done, runner.pairing.torch):
                findings.remark(text)


def _judge_float32(findings: Findings, runner: Runner, done: Pass) -> None:
    """Compare both sides in float32, where a pass in float64 shows no fault."""
    if runner.dtype == "float64" and not findings.at_stage("forward"):
        compare_float32(runner, findings, done)


def _require_layout(findings: Findings, done: Pass) -> None:
    """Add a finding for each output that agrees in another place, or with its axes in another order."""
    ours, theirs = done.reference.outputs, done.natural.outputs
    for pair in done.pairs:
        name = f"its output {pair.actual}".rstrip()
        shapes = ours[pair.expected].array.shape, theirs[pair.actual].array.shape
        if pair.axes is not None:
            text = (
                f"{name} has its axes in another order: {shapes[0]} in {REFERENCE}, {shapes[1]} in "
                f"{PORT}, the same numbers transposed by {pair.axes}. If that is intended, compare "
                "a wrapper that transposes it back"
            )
            findings.add("forward", "", "", text, kind="axes-exchanged")
        elif ours.keys() == theirs.keys() and pair.expected != pair.actual:
            text = (
                f"{name} is {REFERENCE}'s output {pair.expected}: the outputs are in another order"
            )
            findings.add("forward", "", "", text, kind="outputs-exchanged")


def _require_predictions(findings: Findings, done: Pass) -> None:
    """Add a finding where predictions flip although the numbers agree; float32 may be the reason."""
    if findings.float32_inside or findings.at_stage("forward"):
        return
    for text in describe_flips(done.reference.outputs, done.natural.outputs, done.pairs):
        text = f"{text}, although every number is within its tolerance"
        findings.add("forward", "", "", text, kind="predictions-flip")


def add_settings(pairing: Pairing, findings: Findings) -> None:
    """Add settings that differ to the finding of their module; remark on them if it has none.

    Modules that differ in the same way are one remark.
    """
    idle: dict[str, list[str]] = {}
    for ours, theirs in pairing.modules.items():
        differences = pairing.compare_settings(ours, theirs)
        if not differences:
            continue
        known = findings.at(ours, theirs) or _at_parameters(findings, ours)
        if known:
            unsaid = [one for one in differences if one.message not in known[0].message]
            if unsaid:
                text = describe_differences(unsaid, known[0].message)
                findings.add_settings(known[0], text)
        else:
            idle.setdefault(describe_differences(differences), []).append(ours or "the model")
    effect = _UNSEEN if findings.report.port_raised else _WITHOUT_EFFECT
    for text, places in idle.items():
        findings.remark(f"{shorten(places, _NAMED)}: {effect}: {text}")


def _at_parameters(findings: Findings, module: str) -> list[Finding]:
    """Return the findings at parameters of a module: their gradients tell of its settings too."""
    return [
        finding
        for finding in findings.at_stage("backward")
        if module and parent(finding.torch_name) == module
    ]


def _note_failure(runner: Runner, findings: Findings, error: ModelFailure) -> None:
    """Add a finding for a port that raised. Raises the error again if it is not the port's fault."""
    ours = error.framework != runner.port.name
    if (ours or error.lacks_name) and error.is_unshared and findings.report.checks:
        findings.remark(f"the rest was not compared: {error.reason}")
        return
    if ours or (error.lacks_kernel and runner.dtype == "float64"):
        raise error
    _add_failure(findings, runner.pairing, error)


def _add_failure(findings: Findings, pairing: Pairing, error: ModelFailure) -> None:
    stage = _FAILED_IN.get(error.what, "forward")
    findings.check(stage, PORT_RUNS, np.inf, False)
    text = f"the {PORT} {error.what} raises {error.text}"
    around = pairing.find_around(error.path)
    findings.add(stage, around, error.path, text, lines=(None, error.source), kind="port-raises")


def report_failure(reference: Side, pairing: Pairing, error: ModelFailure) -> Report:
    """Return the report on a port that raises before anything of it is compared."""
    findings = Findings()
    _add_failure(findings, pairing, error)
    add_settings(pairing, findings)
    for finding in list(findings.report.findings):
        line = find_torch_line(finding, reference, pairing)
        findings.replace(finding, give_lines(finding, line, None))
    findings.report.verdict = "diverges"
    return findings.report


def find_rank(finding: Finding) -> tuple[bool, int]:
    """Return the place of a finding among others: by stage, and last if no single module makes it.

    What another one explains is rounding that the model makes larger, as train mode's batch norms do.
    """
    lost = finding.kind == "outputs" and not finding.cause and not finding.torch_name
    return lost, STAGES.index(finding.stage)


def _conclude(runner: Runner, findings: Findings) -> Report:
    """Return the report with its findings in causal order and its verdict."""
    report = findings.report
    report.findings.sort(key=find_rank)
    report.findings = group_findings(report.findings)
    said = [*runner.reference.remarks, *runner.port.remarks]
    report.remarks += [text for text in said if not any(text in one for one in report.remarks)]
    if report.findings:
        report.verdict = "diverges"
    elif findings.float32_inside:
        report.verdict = "agrees to float32"
    if not report.checks:
        raise ReprodError("nothing could be compared")
    return report
