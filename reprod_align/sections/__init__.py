"""`align` for models larger than memory: one section of both models at a time.

Both models are made without memory. Each is run once as a whole, with the weights of one section in
memory at a time; what crosses the sections' borders is kept. Then `align`'s own engine judges the
pair once for each piece, with the piece's sections real and the others replaced by stand-ins, which
return what the sections returned and pass differences on.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from reprod_align.alignment import (
    OUTPUTS_IN_EVAL,
    WHOLE_ROUNDING,
    Findings,
    compare_outputs,
    describe_effects,
    judge_in_float64,
    judge_widened,
    note_rounded,
    report_failure,
)
from reprod_align.base.console import tell
from reprod_align.base.text import is_within
from reprod_align.errors import ReprodError
from reprod_align.model import (
    Inputs,
    LeafPair,
    ModelFailure,
    ModelInfo,
    Trace,
    UserFunction,
    check_inputs,
    limit_memory,
)
from reprod_align.pair import PairSpec
from reprod_align.report import Report
from reprod_align.sections.cover import Piece
from reprod_align.sections.models import Maker, SectionedPair, build_model, divide_pair
from reprod_align.sections.reports import StateFile, join_unjudged, merge_reports, take_fingerprint
from reprod_align.sections.stream import WholeRuns, run_both, run_outputs
from reprod_align.weights import open_checkpoint

SECTION_SIZE = 70_000_000
"""parameters of a piece: in float64, about 4 GB for both sides (docs/align_reference.md)"""
_ONE_PIECE = ("float32 inside was compared in the first section that has it; in the others float64 "
              "took its place")  # fmt: skip


def align_sections(
    torch_model: Maker,
    paddle_model: Maker,
    inputs: Inputs,
    torch_weights: Path,
    paddle_weights: Path | None = None,
    torch_loss: UserFunction | None = None,
    paddle_loss: UserFunction | None = None,
    torch_optimizer: UserFunction | None = None,
    paddle_optimizer: UserFunction | None = None,
    torch_scheduler: UserFunction | None = None,
    paddle_scheduler: UserFunction | None = None,
    steps: int = 3,
    name_map: Mapping[str, str] | None = None,
    section_size: int = SECTION_SIZE,
    state: Path | None = None,
    memory: int | None = None,
) -> Report:
    """Compare a PyTorch model with its Paddle port as `align` does, one section at a time.

    torch_model, paddle_model: functions that make the models; they are made without memory, so
    that a function must not load weights. torch_weights: a file of weights, or a folder with the
    parts of one: safetensors, `.bin`, `.pth`. paddle_weights: Paddle's own weights, to be compared;
    None: PyTorch's are converted. section_size: parameters of a section and of the sections that
    are judged together; a layer that is larger is a section of its own. state: a file that keeps what
    is done, so that an interrupted run goes on from there. The rest: as for `align`. Further batches are
    not derived: only the inputs given are run.

    Raises ReprodError if an argument can't be what it should be, WeightsError if a file can't be
    read or does not fit its model, ModelFailure if the PyTorch side itself fails.
    """
    from reprod_align.backends import paddle as paddle_init
    from reprod_align.backends import torch as torch_init
    from reprod_align.pair import paddle_side, torch_side

    check_inputs(inputs)
    if type(section_size) is not int or section_size < 1:
        raise ReprodError(f"section_size: expected a whole number above 0, got {section_size!r}")
    reference = torch_side(
        build_model(torch_model, torch_init), torch_loss, torch_optimizer, torch_scheduler
    )
    port = paddle_side(
        build_model(paddle_model, paddle_init), paddle_loss, paddle_optimizer, paddle_scheduler
    )
    copied = paddle_weights is None
    spec = PairSpec(reference, port, inputs, steps, name_map, copied, memory, further=False).check()
    ours = open_checkpoint(torch_weights)
    theirs = None if paddle_weights is None else open_checkpoint(paddle_weights)
    files = [*ours.files, *(theirs.files if theirs else ())]
    settings = (section_size, steps, name_map)
    print_ = take_fingerprint(files, inputs, (reference, port), settings) if state else ""
    pair = divide_pair(spec, ours.tensors, theirs.tensors if theirs else None, section_size)
    with limit_memory(memory):
        return _judge_sections(pair, StateFile(state, print_))


def _judge_sections(pair: SectionedPair, state: StateFile) -> Report:
    """Return the report on the whole pair; `state` keeps what is done."""
    try:
        runs = run_both(pair)
    except ModelFailure as error:
        return _report_failure(pair, error)
    reports: list[Report] = []
    for number, piece in enumerate(pair.pieces, 1):
        tell(f"section {number} of {len(pair.pieces)}: {piece.name}")
        report = state.find(piece.name)
        if report is None:
            widened = any(one.verdict == "agrees to float32" for one in reports)
            report = _judge_piece(pair, runs, piece, with_loss=number == 1, widened=widened)
            state.add(piece.name, report)
        reports.append(report)
    tell("")
    return _conclude(pair, runs, merge_reports(reports))


def _judge_piece(
    pair: SectionedPair, runs: WholeRuns, piece: Piece, with_loss: bool, widened: bool
) -> Report:
    """Judge the pair with the sections of one piece real.

    widened: an earlier piece agrees to float32, which is the verdict on the whole then at best. What
    float32 inside can't explain shows with float64 in its place, so that one judgement is enough.
    """
    real = {section.torch for section in piece.sections}
    sides = pair.reference.side, pair.port.side
    stand_ins = {ours: theirs for ours, theirs in pair.modules.items() if ours not in real}
    with (
        pair.reference.with_stand_ins([one.torch for one in piece.sections], runs.ours),
        pair.port.with_stand_ins([one.paddle for one in piece.sections], runs.theirs),
        _choose_losses(pair, with_loss),
    ):
        names = _choose_names(pair.spec.name_map or {}, *(side.describe() for side in sides))
        spec = replace(pair.spec, name_map=names, modules=stand_ins)
        report = judge_widened(spec) if widened else None
        if report is None:
            return judge_in_float64(spec)
        if spec.asked_float32 and not report.findings:
            report.remarks.append(_ONE_PIECE)
        return report


@contextmanager
def _choose_losses(pair: SectionedPair, wanted: bool) -> Iterator[None]:
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
    return report_failure(pair.reference.side, pair.pairing, error)


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
