"""What the ranks did, held against what each should have: findings that name rank and axis."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from reprod_align.alignment.findings import Findings
from reprod_align.alignment.judge import Pair
from reprod_align.alignment.pair_models import pair_models
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base.difference import Gap, gap
from reprod_align.base.naming import parent
from reprod_align.errors import ReprodError
from reprod_align.model.side import ModelFailure
from reprod_align.model.trace import Array
from reprod_align.parallel.placement import Placement
from reprod_align.parallel.reasons import Held, Reason, explain
from reprod_align.parallel.side import Apart, ParallelSide
from reprod_align.report import Finding, Report, Stage
from reprod_align.report.codes import Kind

import numpy as np

_STAGE: Mapping[str, Stage] = {
    "gradient": "backward",
    "tensor": "optimizer",
    "loss": "loss",
    "rate": "schedule",
}


def examine(pair: Pair, port: ParallelSide, report: Report) -> None:
    """Add to a report what the ranks tell: of findings why, and what putting together hides.

    A pair that agrees, with ranks that agree, costs nothing.
    """
    if not report.findings and not port.apart:
        return
    apart = _sum_up(port.apart)
    findings = Findings()
    try:
        with ExitStack() as stack:
            stack.enter_context(pair.reference.working("float64"))
            stack.enter_context(port.working("float64", at_rest=True))
            runner = pair_models(pair.reference, port, pair.inputs, "float64", pair.name_map,
                                 pair.copy_weights, Findings())  # fmt: skip
            _explain_weights(runner, port, report)
            _explain_gradients(runner, port, report, findings)
            pairing: Pairing | None = runner.pairing
    except (ModelFailure, ReprodError):
        pairing = None  # what was found stands without it
    for one in apart:
        _add_apart(one, pairing, report, findings)
    report.findings += findings.report.findings


def _sum_up(apart: Sequence[Apart]) -> list[Apart]:
    """Return each disagreement once, where it was first seen."""
    found: dict[tuple[str, str, str], Apart] = {}
    for one in apart:
        found.setdefault((one.what, one.name, one.axis), one)
    return list(found.values())


def _explain_weights(runner: Runner, port: ParallelSide, report: Report) -> None:
    """Say of weights that are not PyTorch's what each rank holds instead."""
    if not any(finding.stage == "weights" for finding in report.findings):
        return
    expected = runner.pairing.convert(runner.weights)
    held = port.parts_given()
    for number, finding in enumerate(report.findings):
        name = finding.paddle_name
        if finding.stage == "weights" and name in expected and name in held:
            reason = explain(_hold(port, name, held[name], expected[name]))
            report.findings[number] = _with_reason(finding, reason)


def _explain_gradients(
    runner: Runner, port: ParallelSide, report: Report, findings: Findings
) -> None:
    """Find gradients whose parts tell by the numbers what became of their reduction."""
    has_loss = runner.reference.loss is not None
    reference = runner.run_reference(True, loss=has_loss)
    runner.run_port(True, "outputs", loss=has_loss)
    parts = port.gradients
    expected = runner.pairing.convert(_fill(runner.pairing, reference.gradients))
    scale = max((float(np.abs(a).max(initial=0.0)) for a in reference.gradients.values()), default=0.0)
    forward = any(f.stage in ("weights", "forward", "loss") for f in report.findings)
    for name, whole in expected.items():
        if not runner.pairing.paddle.tensors[name].is_trainable or name not in port.names:
            continue
        own = [part.get(name) for part in parts]
        shapes = [port.placement(name).scatter(whole, port.mesh, r) for r in range(port.mesh.size)]
        filled = [np.zeros(e.shape) if g is None else g for g, e in zip(own, shapes, strict=True)]
        held = Held(filled, shapes, port.placement(name), port.mesh)
        worst = max((gap(e, g, floor=1e-12 * scale) for e, g in zip(shapes, filled, strict=True)),
                    key=lambda one: one.exceed)  # fmt: skip
        if worst.ok:
            continue
        reason = explain(held)
        ours = _find_torch_name(runner.pairing, name)
        if reason is not None and not forward:
            kind: Kind = "rank-shard" if reason.is_shard else "rank-reduction"
            _add(findings, "backward", ours, name, _describe_wrong(held, worst), worst, kind,
                 _say(reason))  # fmt: skip


def _fill(pairing: Pairing, gradients: Mapping[str, Array]) -> dict[str, Array]:
    """Return gradients of all trained tensors: one that never arrived is zero."""
    zeros = {n: np.zeros(t.shape) for n, t in pairing.torch.tensors.items() if t.is_parameter}
    return zeros | pairing.torch.spread(gradients)


def _hold(port: ParallelSide, name: str, parts: Sequence[Array], whole: Array) -> Held:
    placement: Placement = port.placement(name)
    expected = [placement.scatter(whole, port.mesh, rank) for rank in range(port.mesh.size)]
    return Held(parts, expected, placement, port.mesh)


def _describe_wrong(held: Held, worst: Gap) -> str:
    ranks = held.wrong or list(range(held.mesh.size))
    named = ", ".join(map(str, ranks))
    return f"its gradient differs on rank{'s' if len(ranks) > 1 else ''} {named} of {held.mesh.name}; {worst.words}"


def _say(reason: Reason) -> str:
    return reason.text if not reason.axis or reason.axis in reason.text else f"along {reason.axis}, {reason.text}"


def _with_reason(finding: Finding, reason: Reason | None) -> Finding:
    if reason is None:
        return finding
    kind: Kind = "rank-shard" if reason.is_shard else finding.kind
    return replace(finding, kind=kind, cause=". ".join(filter(None, [_say(reason), finding.cause])))


def _find_torch_name(pairing: Pairing, name: str) -> str:
    others = set(pairing.paddle.other_names(name))
    return next((pair.torch[0] for pair in pairing.match.pairs if others & set(pair.paddle)), name)


def _add(
    findings: Findings, stage: Stage, ours: str, theirs: str, text: str, found: Gap, kind: Kind, cause: str
) -> None:
    """Add a finding; those of the same cause are places of the first."""
    for number, known in enumerate(findings.report.findings):
        if (known.stage, known.kind, known.cause) == (stage, kind, cause) and cause:
            shown = ours if ours == theirs else f"{ours} (Paddle: {theirs})"
            findings.report.findings[number] = replace(known, places=(*known.places, shown))
            return
    findings.add(stage, ours, theirs, text, found, kind=kind, cause=cause)


def _add_apart(
    one: Apart, pairing: Pairing | None, report: Report, findings: Findings
) -> None:
    """Add a finding for ranks that disagree, unless one says so of the same place already."""
    first, second = one.ranks
    where = f"ranks {first} and {second} of {one.axis}" if one.axis else f"ranks {first} and {second}"
    if one.what.startswith("stream"):
        alike = one.what == "stream shared"
        text = (
            f"{where} draw from the same random stream for the parts that each holds: the masks repeat"
            if alike
            else f"{where} draw from different random streams for a tensor that both hold: the masks differ"
        )
        path = one.name
        theirs = path if pairing is None else pairing.modules.get(path, path)
        _add(findings, "forward", path, theirs, text, Gap(np.inf, 0.0, 0.0), "rank-dropout", "")
        return
    found = gap(one.parts[first], one.parts[second]) if one.parts else Gap(np.inf, 0.0, 0.0)
    ours = one.name
    if pairing is not None and one.name in pairing.paddle.tensors:
        ours = _find_torch_name(pairing, one.name)
    if any(one.name and one.name in (f.paddle_name, *f.places) or one.name in " ".join(f.places).split()
           for f in findings.report.findings if one.name and f.stage == _STAGE[one.what]):  # fmt: skip
        return
    stage = _STAGE[one.what]
    is_buffer = pairing is not None and one.name in pairing.paddle.tensors and not (
        pairing.paddle.tensors[one.name].is_parameter
    )
    what = {
        "gradient": "its gradient",
        "tensor": "its running value" if is_buffer else "the weight",
        "loss": "the loss",
        "rate": "the learning rate",
    }[one.what]
    when = "" if one.step is None else f" after step {one.step}"
    text = f"{what} differs between {where}{when}, where it should be the same; {found.words}"
    kind: Kind = "running-statistics" if is_buffer else "rank-apart"
    cause = "" if one.what != "tensor" or is_buffer else f"it drifts apart along {one.axis}"
    if is_buffer:
        stage = "forward"
    _add(findings, stage, ours, one.name, text, found, kind, cause)


def name_modules(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the modules of findings at parameters."""
    for finding in findings:
        yield parent(finding.paddle_name)
