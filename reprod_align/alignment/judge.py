"""Takes two sides through the stages and collects what differs, in causal order."""

from collections.abc import Mapping, Sequence

from reprod_align.alignment.audit import SettingDifference, told
from reprod_align.alignment.bench import CODE_ROUNDING, FAINT, LAYER_ROUNDING, Bench
from reprod_align.alignment.comparing import Pass, compared
from reprod_align.alignment.consequence import consequences, effect_on_loss
from reprod_align.alignment.float32_stage import compare_float32
from reprod_align.alignment.locating.blame import locate, search
from reprod_align.alignment.locating.pins import EndPins
from reprod_align.alignment.pairing import pair_models
from reprod_align.alignment.statistics_check import paddle_statistic
from reprod_align.alignment.training.steps import compare_training
from reprod_align.alignment.vacuity import (
    empty_inputs,
    empty_outputs,
    identical,
    nothing_finite,
    uncalled,
    untested_gradients,
)
from reprod_align.alignment.weights_check import left_over, tie_findings
from reprod_align.base.difference import RELATIVE_TOLERANCE, Gap, gap, magnitude
from reprod_align.base.naming import parent
from reprod_align.causes import loss_cause
from reprod_align.errors import ReprodError
from reprod_align.model.side import ModelFailure
from reprod_align.model.tensor_pair import TensorPair
from reprod_align.model.trace import Array, Trace
from reprod_align.report import PORT_RUNS, STAGES, Finding, Report, Stage

import numpy as np

_FAILED_IN: Mapping[str, Stage] = {
    "loss": "loss",
    "backward pass": "backward",
    "optimizer": "optimizer",
    "scheduler": "schedule",
}


def judged(bench: Bench, name_map: Mapping[str, str] | None, copy_weights: bool) -> Report:
    """Run all stages and return the report.

    Raises ReprodError if nothing can be compared, ModelFailure if the PyTorch side fails.
    """
    if not bench.expected.outputs:
        raise ReprodError("the PyTorch model returns no tensor: nothing can be compared")
    pair_models(bench, name_map, copy_weights)
    _ties(bench)
    try:
        _mode(bench, False)
        _loss(bench)
        _mode(bench, True)
        _steps(bench)
    except ModelFailure as error:
        ours = error.framework != bench.port.name
        if ours and error.is_unshared and bench.result.checks:
            bench.remark(f"not compared from there on: {error}")
        elif ours or (error.lacks_kernel and bench.dtype == "float64"):
            raise
        else:
            _failed(bench, error)
    _leftovers(bench)
    _settings(bench)
    return _finished(bench)


def _ties(bench: Bench) -> None:
    """Add findings for parameters that are one on one side and two on the other."""
    findings = tie_findings(bench.match, bench.torch_info, bench.paddle_info)
    bench.result.findings += findings
    ties = {bench.torch_info.tensors[finding.torch_name].tie for finding in findings}
    tensors = bench.torch_info.tensors.values()
    bench.untied = frozenset(tensor.name for tensor in tensors if tensor.tie in ties)


def _mode(bench: Bench, training: bool) -> None:
    """Compare one forward and backward pass, in eval or in train mode."""
    again = training or bench.wanted != frozenset(bench.expected.outputs) or bench.expected.drawn
    reference = bench.run_reference(training) if again else bench.expected
    if not training:
        bench.expected = reference
        bench.port_buffers = bench.not_loaded()
    done = compared(bench, reference, training)
    bench.eval_agrees |= done.outputs_ok and not training
    bench.check("forward", f"outputs, {done.mode} mode",
                _worst([g for _, g in done.gaps]), done.outputs_ok)  # fmt: skip
    if done.gradients:
        bench.check("backward", f"gradients, {done.mode} mode",
                    _worst([g for *_, g in done.gradients]), done.gradients_ok)  # fmt: skip
    given = None if done.outputs_ok and done.gradients_ok else locate(bench, done)
    if given is None and not training and bench.dtype == "float64" and _is_faint(done):
        search(bench, done)
    if training:  # what a fault before it does to a statistic is not the statistic's
        _statistics(bench, reference, done.natural if given is None else given)
    else:
        _meaning(bench, done)
        if bench.dtype == "float64" and not _has_forward(bench):
            compare_float32(bench, done)


def _is_faint(done: Pass) -> bool:
    """Tell whether outputs that pass are further apart than those of faithful models are."""
    return any(found.exceed * RELATIVE_TOLERANCE > FAINT for _, found in done.gaps)


def _meaning(bench: Bench, done: Pass) -> None:
    """Say what the outputs in eval mode mean to a user, and where their agreement shows little."""
    outputs, info = done.reference.outputs, bench.torch_info
    bench.result.consequences += consequences(outputs, done.natural.outputs, done.pairs)
    if not done.outputs_ok:
        return
    _require_layout(bench, done)
    if nothing_finite(outputs, done.pairs):
        text = "no output holds a finite number, on either side: there is nothing to compare"
        bench.add("forward", "", "", text, Gap(np.inf, 0.0, 0.0, ""))
    if identical(done.reference, done.natural, done.pairs, info):
        bench.remark("the outputs are bit for bit the same, which two frameworks hardly ever are: "
                     "do both models really compute?")  # fmt: skip
    differentiable = any(leaf.differentiable for leaf in outputs.values())
    for text in (
        *empty_inputs(bench.inputs),
        *empty_outputs(outputs, done.pairs),
        *untested_gradients(done.reference.gradients, info, differentiable),
        *uncalled(done.reference, info),
    ):
        bench.remark(text)


def _require_layout(bench: Bench, done: Pass) -> None:
    """Add a finding for each output that agrees in another place, or with its axes in another order."""
    ours, theirs = done.reference.outputs, done.natural.outputs
    for pair in done.pairs:
        name, text = f"its output {pair.actual}".rstrip(), ""
        shapes = ours[pair.expected].array.shape, theirs[pair.actual].array.shape
        if pair.axes is not None:
            text = (f"{name} has its axes in another order: {shapes[0]} in PyTorch, {shapes[1]} in Paddle, "
                    f"the same numbers transposed by {pair.axes}. If that is meant, judge a model around "
                    "it that transposes back")  # fmt: skip
        elif ours.keys() == theirs.keys() and pair.expected != pair.actual:
            text = f"{name} is PyTorch's output {pair.expected}: the outputs are in another order"
        if text:
            bench.add("forward", "", "", text, Gap(np.inf, 0.0, 0.0, ""))


def _has_forward(bench: Bench) -> bool:
    """Tell whether the outputs are known to part."""
    return any(finding.stage == "forward" for finding in bench.result.findings)


def _loss(bench: Bench) -> None:
    """Compare the losses, and their gradients, on the reference's own outputs."""
    if bench.reference.loss is None:
        return
    training = not bench.eval_backward
    reference = bench.run_reference(training, loss=True)
    given = bench.run_port(training, "ends", EndPins(reference), loss=True)
    if _has_forward(bench):
        own = bench.run_port(training, "none", None, loss=True)
        if reference.loss is not None and own.loss is not None:
            bench.result.consequences.append(effect_on_loss(reference.loss, own.loss))
    if _loss_value(bench, reference, given):
        _loss_gradient(bench, reference, given)


def _loss_value(bench: Bench, reference: Trace, given: Trace) -> bool:
    """Compare the losses; True if it makes sense to go on with the gradients."""
    ours, theirs = (np.array(0.0 if t.loss is None else t.loss) for t in (reference, given))
    found = gap(ours, theirs)
    bench.check("loss", "loss on the same outputs", found.exceed * RELATIVE_TOLERANCE, found.ok)
    if found.ok:
        return True
    if found.relative <= CODE_ROUNDING:
        bench.note_coarse("the loss", found.relative)
        return True
    outputs = [leaf.array for leaf in reference.outputs.values()]
    cause = loss_cause(float(ours), float(theirs), outputs)
    text = (f"the loss of the same outputs is {float(theirs):.9g} in Paddle and "
            f"{float(ours):.9g} in PyTorch")  # fmt: skip
    bench.add("loss", "", "", f"{text}. {cause}" if cause else text, found)
    return False


def _loss_gradient(bench: Bench, reference: Trace, given: Trace) -> None:
    """Compare the gradients of the losses with respect to the outputs; none means zero."""
    for pair in bench.output_pairs(reference, given):
        ours, theirs = reference.outputs[pair.expected], given.outputs[pair.actual]
        cut = ours.differentiable and not theirs.differentiable  # by the model, not by the loss
        if cut or (ours.gradient is None and theirs.gradient is None):
            continue
        zeros = np.zeros(theirs.array.shape)
        expected = zeros if ours.gradient is None else pair.turned(ours.gradient)
        actual = zeros if theirs.gradient is None else theirs.gradient
        found = gap(expected, actual, floor=1e-13 * magnitude(expected))
        bench.check("loss", "gradient of the loss", found.exceed * RELATIVE_TOLERANCE, found.ok)
        if not found.ok and found.relative <= CODE_ROUNDING:
            bench.note_coarse("the loss", found.relative)
        elif not found.ok:
            bench.add("loss", "", "", "the loss agrees and its gradient with respect to the "
                      f"outputs does not: {found.words}", found)  # fmt: skip


def _statistics(bench: Bench, reference: Trace, port: Trace) -> None:
    """Compare running statistics after one step in train mode."""
    gaps = []
    for pair in bench.match.pairs:
        name, other = pair.torch[0], pair.paddle[0]
        is_float = bench.torch_values[name].dtype.kind == "f"
        if name in reference.buffers and other in port.buffers and is_float:
            found = _statistic(bench, pair, reference, port)
            gaps.append(found)
            if not found.ok:
                _add_statistic(bench, name, other, found)
    if gaps:
        what = f"{len(gaps)} running statistic(s) after a step"
        bench.check("forward", what, _worst(gaps), all(found.ok for found in gaps))


def _statistic(bench: Bench, pair: TensorPair, reference: Trace, port: Trace) -> Gap:
    """Compare one; where Paddle's layers keep another, with what a faithful port has."""
    name, actual = pair.torch[0], port.buffers[pair.paddle[0]]
    found = gap(pair.to_paddle({name: reference.buffers[name]})[pair.paddle[0]], actual)
    own = paddle_statistic(name, bench.torch_values[name], reference, bench.torch_info)
    if found.ok or own is None:
        return found
    if gap(own, actual).ok and name.endswith("var"):
        bench.remark("Paddle's batch norm keeps the biased running variance where "
                     "PyTorch keeps the unbiased one: a faithful port differs there")  # fmt: skip
    return gap(own, actual)


def _add_statistic(bench: Bench, name: str, other: str, found: Gap) -> None:
    owner = parent(name), parent(other)
    if found.relative <= LAYER_ROUNDING and not bench.settings_differ(*owner):
        bench.note_coarse(owner[0], found.relative)
    elif not bench.found_at(*owner):
        text = (f"running statistic {name.rpartition('.')[2]} differs "
                f"after one step in train mode: {found.words}")  # fmt: skip
        bench.add("forward", *owner, text, found)


def _steps(bench: Bench) -> None:
    """Train both sides and compare losses, rates and parameters after every step."""
    if bench.reference.optimizer is None:
        return
    compare_training(bench)


def _leftovers(bench: Bench) -> None:
    """Judge tensors that have no counterpart: at fault if the outputs depend on them."""
    findings, remarks = left_over(bench.match, bench.expected.gradients, bench.torch_info, bench.paddle_info,
                                  _port_gradients(bench), _all_agree(bench))  # fmt: skip
    bench.result.findings[:0] = _by_owner(bench, findings)
    bench.result.remarks += remarks


def _by_owner(bench: Bench, findings: Sequence[Finding]) -> list[Finding]:
    """Put one finding in place of those of a module whose namesake is set differently."""
    whole: dict[str, Finding] = {}
    for finding in findings:
        owner = parent(finding.torch_name)
        if not bench.settings_differ(owner, owner):
            owner = ""
        if owner:
            found = bench.differences(owner, owner)
            text = told(difference for difference in found if difference.conclusive)
            message = f"its weights have no counterpart, since it is set differently: {text}"
            finding = Finding("weights", owner, owner, message, finding.difference, 0.0)
        whole.setdefault(owner or finding.torch_name or finding.paddle_name, finding)
    return list(whole.values())


def _port_gradients(bench: Bench) -> Mapping[str, Array]:
    """Return the port's own gradients of the projection, {} if nothing asks or it does not run."""
    if not bench.match.paddle_left:
        return {}
    try:
        return bench.run_port(False, "none", None).gradients
    except ModelFailure:
        return {}


def _all_agree(bench: Bench) -> bool:
    """Tell whether every comparison passed."""
    return all(check.passed for check in bench.result.checks)


def _settings(bench: Bench) -> None:
    """Compare the settings of paired modules; explain findings by them, remark on the rest."""
    for ours, theirs in bench.pairs.items():
        found = bench.differences(ours, theirs)
        if found:
            _explain(bench, ours, theirs, found)


def _explain(bench: Bench, ours: str, theirs: str, found: list[SettingDifference]) -> None:
    """Add the settings that differ to the module's finding; else remark on them."""
    for number, finding in enumerate(bench.result.findings):
        if (finding.torch_name, finding.paddle_name) == (ours, theirs):
            text = told(found, finding.message)
            message = f"{finding.message}. Settings differ: {text}"
            bench.result.findings[number] = _with(finding, message)
            return
    text = told(found)
    bench.remark(f"{ours or 'the model'}: settings differ without an effect seen here: {text}")


def _failed(bench: Bench, error: ModelFailure) -> None:
    """Add a finding for a port that raised."""
    ours = next((name for name in _upwards(error.path) if name in bench.names), "")
    text = f"the Paddle {error.what} raises {error.text}"
    stage = _FAILED_IN.get(error.what, "forward")
    bench.check(stage, PORT_RUNS, np.inf, False)
    bench.add(stage, bench.names.get(ours, ""), error.path, text, Gap(np.inf, 0.0, 0.0, ""))


def _finished(bench: Bench) -> Report:
    """Return the report with its findings in causal order and its verdict."""
    rank = {stage: number for number, stage in enumerate(STAGES)}
    bench.result.findings.sort(key=lambda finding: rank[finding.stage])
    bench.result.remarks += [*bench.reference.remarks, *bench.port.remarks]
    bench.result.verdict = "diverges" if bench.result.findings else "faithful"
    if bench.coarse and not bench.result.findings:
        bench.result.verdict = "agrees to float32"
    if not bench.result.checks:
        raise ReprodError("nothing could be compared")
    return bench.result


def _upwards(path: str) -> list[str]:
    names = [path]
    while path:
        path = parent(path)
        names.append(path)
    return names


def _worst(gaps: list[Gap]) -> float:
    """Return the largest difference, relative; what is allowed beside RELATIVE_TOLERANCE counts as scale."""
    return max((found.exceed * RELATIVE_TOLERANCE for found in gaps), default=float("inf"))


def _with(finding: Finding, message: str) -> Finding:
    return Finding(
        finding.stage, finding.torch_name, finding.paddle_name, message,
        finding.difference, finding.tolerance,
    )  # fmt: skip
