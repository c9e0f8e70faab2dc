"""Judges a divided pair: piece by piece, and the outputs of the whole models."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from reprod_align.alignment import judge_in_float64, note_rounded
from reprod_align.alignment.comparing import WHOLE_ROUNDING, compare_outputs
from reprod_align.alignment.findings import OUTPUTS_IN_EVAL, Findings, give_lines
from reprod_align.alignment.judge import add_settings
from reprod_align.alignment.lines.construction import find_torch_line
from reprod_align.alignment.loss_stage import describe_effects
from reprod_align.base.console import tell
from reprod_align.base.naming import is_within
from reprod_align.model.leaf import LeafPair
from reprod_align.model.side import ModelFailure, ModelInfo
from reprod_align.model.trace import Trace
from reprod_align.report import PORT_RUNS, Report
from reprod_align.sections.cover import Piece
from reprod_align.sections.models import SectionedPair
from reprod_align.sections.reports import StateFile, join_unjudged, merge_reports
from reprod_align.sections.stream import WholeRuns, run_both, run_outputs


def judge_sections(pair: SectionedPair, state: StateFile) -> Report:
    """Return the report on the whole pair; `state` keeps what is done."""
    try:
        runs = run_both(pair)
    except ModelFailure as error:
        return _report_failure(pair, error)
    reports = []
    for number, piece in enumerate(pair.pieces, 1):
        tell(f"section {number} of {len(pair.pieces)}: {piece.name}")
        report = state.find(piece.name)
        if report is None:
            report = _judge_piece(pair, runs, piece, with_loss=number == 1)
            state.add(piece.name, report)
        reports.append(report)
    tell("")
    return _conclude(pair, runs, merge_reports(reports))


def _judge_piece(pair: SectionedPair, runs: WholeRuns, piece: Piece, with_loss: bool) -> Report:
    """Judge the pair with the sections of one piece real."""
    real = {section.torch for section in piece.sections}
    sides = pair.reference.side, pair.port.side
    stand_ins = {ours: theirs for ours, theirs in pair.modules.items() if ours not in real}
    with (
        pair.reference.with_stand_ins([one.torch for one in piece.sections], runs.ours),
        pair.port.with_stand_ins([one.paddle for one in piece.sections], runs.theirs),
        _losses(pair, with_loss),
    ):
        names = _choose_names(pair.spec.name_map or {}, *(side.describe() for side in sides))
        return judge_in_float64(replace(pair.spec, name_map=names, modules=stand_ins))


@contextmanager
def _losses(pair: SectionedPair, wanted: bool) -> Iterator[None]:
    """Let the sides have their losses in the block if that is wanted: one piece is enough for them."""
    sides = pair.reference.side, pair.port.side
    losses = [side.loss for side in sides]
    for side in sides:
        side.asked_float32 = False
        side.loss = side.loss if wanted or side.optimizer else None
    try:
        yield
    finally:
        for side, loss in zip(sides, losses, strict=True):
            side.loss = loss


def _choose_names(
    name_map: Mapping[str, str], torch: ModelInfo, paddle: ModelInfo
) -> dict[str, str]:
    """Return what the user's map says of the modules and tensors that are there."""
    return {
        ours: theirs
        for ours, theirs in name_map.items()
        if _holds(torch, ours) and _holds(paddle, theirs)
    }


def _holds(info: ModelInfo, name: str) -> bool:
    return any(is_within(other, name) for other in (*info.modules, *info.tensors))


def _report_failure(pair: SectionedPair, error: ModelFailure) -> Report:
    """Return the report on a port that raises. Raises the error again if PyTorch's model made it."""
    if error.framework != pair.port.side.name:
        raise error
    pair.show()
    findings = Findings()
    findings.check("forward", PORT_RUNS, math.inf, False)
    text = f"the Paddle {error.what} raises {error.text}"
    around = pair.pairing.find_around(error.path)
    findings.add(
        "forward", around, error.path, text, lines=(None, error.source), kind="port-raises"
    )
    add_settings(pair.pairing, findings)
    for finding in list(findings.report.findings):
        line = find_torch_line(finding, pair.reference.side, pair.pairing)
        findings.replace(finding, give_lines(finding, line, None))
    findings.report.verdict = "diverges"
    return findings.report


def _conclude(pair: SectionedPair, runs: WholeRuns, report: Report) -> Report:
    """Add what only the whole models show, and return the report."""
    reference, port = runs.reference, runs.port
    if report.verdict == "agrees to float32":
        reference, port = run_outputs(pair)
    findings = Findings()
    _compare_outputs(pair, runs.pairs, reference, port, findings, report)
    if pair.extra:
        findings.remark(f"in torch_weights and not in the model: {', '.join(pair.extra[:6])}")
    whole = findings.report
    report.checks = [*whole.checks, *report.checks]
    report.findings = [*whole.findings, *report.findings]
    report.remarks += whole.remarks
    report.not_judged = join_unjudged((report, whole))
    if report.findings:
        report.verdict = "diverges"
    report.consequences = whole.consequences or report.consequences
    note_rounded(report)
    return report


def _compare_outputs(
    pair: SectionedPair,
    pairs: list[LeafPair],
    reference: Trace,
    port: Trace,
    findings: Findings,
    report: Report,
) -> None:
    """Compare what the whole models return; a difference that no section explains is a finding.

    report: on the sections. Where float32 is inside, rounding grows on its way to the outputs.
    """
    compared = compare_outputs(replace(pair.pairing, outputs=pairs), reference, port)
    gaps = [found for _, found in compared]
    findings.check_gaps("forward", OUTPUTS_IN_EVAL, gaps, bool(gaps) and all(g.ok for g in gaps))
    findings.report.consequences += describe_effects(reference.outputs, port.outputs, pairs)
    wrong = [found for found in gaps if not found.ok]
    if report.verdict == "agrees to float32":
        wrong = [found for found in wrong if found.relative > WHOLE_ROUNDING]
    if wrong and not report.findings:
        worst = max(wrong, key=lambda found: found.relative)
        text = f"the outputs differ, but no section makes the difference: {worst.words}"
        findings.add("forward", "", "", text, worst, kind="outputs")
    elif not gaps:
        findings.add("forward", "", "", "no output can be compared", kind="not-comparable")
