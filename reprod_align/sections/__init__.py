"""`align` for models larger than memory: one section of both models at a time.

Both models are made without memory. Each is run once as a whole, with the weights of one section in
memory at a time; what crosses the sections' borders is kept. Then `align`'s own engine judges the
pair once for each piece, with the piece's sections real and the others replaced by stand-ins, which
return what the sections returned and pass differences on.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from reprod_align.alignment import (
    OUTPUTS_IN_EVAL,
    WHOLE_ROUNDING,
    Findings,
    compare_outputs,
    describe_effects,
    note_rounded,
    report_failure,
)
from reprod_align.base.console import tell
from reprod_align.base.tasks import ResultFolder, RunTasks, Workers, digest
from reprod_align.errors import ReprodError
from reprod_align.model import Inputs, LeafPair, ModelFailure, Trace, UserFunction, limit_memory
from reprod_align.report import Report
from reprod_align.sections.models import Maker, SectionedPair
from reprod_align.sections.pieces import (
    SECTION_SIZE,
    WIDENED,
    Job,
    OpenRequest,
    Request,
    SectionWork,
    judge_pieces,
    prepare_apart,
)
from reprod_align.sections.reports import digest_files, join_unjudged, merge_reports
from reprod_align.weights import FileLocation

__all__ = ["Request", "SECTION_SIZE", "align_sections", "judge_request"]


def align_sections(
    torch_model: Maker,
    paddle_model: Maker,
    inputs: Inputs,
    torch_weights: str | FileLocation,
    paddle_weights: str | FileLocation | None = None,
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
    jobs: int = 1,
    cluster: str = "",
) -> Report:
    """Compare a PyTorch model with its Paddle port as `align` does, one section at a time.

    torch_model, paddle_model: functions that make the models; they are made without memory, so
    that a function must not load weights. torch_weights: a file of weights, or a folder with the
    parts of one: safetensors, `.bin`, `.pth`; or the address of a safetensors file or of its index,
    https://..., of which each tensor is read once. paddle_weights: Paddle's own weights, to be compared;
    None: PyTorch's are converted. section_size: parameters of a section and of the sections that
    are judged together; a layer that is larger is a section of its own. state: a folder that keeps
    what is done, so that an interrupted run goes on from there, however it is started. jobs: processes
    that judge sections here; cluster: the address of a scheduler of dask.distributed whose workers do,
    and that see `state`. memory: of each process. The rest: as for `align`. Further batches are
    not derived: only the inputs given are run.

    Raises ReprodError if an argument can't be what it should be, a worker ends each time or the
    scheduler is gone, WeightsError if a file can't be read or does not fit its model, ModelFailure if
    the PyTorch side itself fails.
    """
    request = Request(
        torch_model, paddle_model, inputs, torch_weights, paddle_weights, torch_loss, paddle_loss,
        torch_optimizer, paddle_optimizer, torch_scheduler, paddle_scheduler, steps, name_map,
        section_size, memory,
    )  # fmt: skip
    return judge_request(partial(_open_given, request), state, Workers(jobs, cluster))


@contextmanager
def _open_given(request: Request) -> Iterator[Request]:
    yield request


def judge_request(open_request: OpenRequest, state: Path | None, workers: Workers) -> Report:
    """Return the report of `align_sections` on what a function opens, here and in the workers."""
    if workers.cluster and state is None:
        raise ReprodError("cluster needs state: a folder that its workers see, too")
    with ExitStack() as stack:
        results = ResultFolder(state)
        run = stack.enter_context(workers.at_work(partial(prepare_apart, open_request)))
        request = stack.enter_context(open_request())
        opened = request.open()
        if state is None and workers.are_apart:
            results = ResultFolder(Path(stack.enter_context(TemporaryDirectory())))
        stack.enter_context(limit_memory(request.memory))
        folder = results.folder
        key = digest(opened.made_from, digest_files(opened.files)) if folder else ""
        job = Job(open_request, (folder or Path()).absolute(), opened.made_from, key)
        work = SectionWork(opened, results, key, workers.are_apart)
        work.keep_names()
        report = _judge_sections(work, job, run, workers.are_apart)
        report.remarks += request.remarks
        return report


def _judge_sections(work: SectionWork, job: Job, run: RunTasks, apart: bool) -> Report:
    """Return the report on the whole pair. Raises ModelFailure if PyTorch's model fails."""
    pair = work.pair
    try:
        reports = judge_pieces(work, job, run, apart)
    except ModelFailure as error:
        if error.framework != pair.port.side.name:
            raise
        pair.show()
        return report_failure(pair.reference.side, pair.pairing, error)
    tell("")
    return _conclude(work, merge_reports(reports))


def _conclude(work: SectionWork, report: Report) -> Report:
    """Add what only the whole models show, and return the report."""
    pair, runs = work.pair, work.runs
    reference, port = runs.reference, runs.port
    if report.rounded or report.verdict == "agrees to float32":
        reference, port = (work.find_run(name).trace for name in WIDENED)
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
