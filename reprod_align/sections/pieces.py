"""The pieces of a divided pair, judged here or by workers: each needs one folder, and no other piece.

What is asked for is a `Request`, from which every process makes its own models, without memory.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from reprod_align.alignment import judge_in_float64, judge_widened
from reprod_align.base.console import tell
from reprod_align.base.tasks import ResultFolder, Workers, digest
from reprod_align.base.text import is_within
from reprod_align.errors import ReprodError
from reprod_align.model import Inputs, ModelInfo, UserFunction, check_inputs, limit_memory
from reprod_align.pair import PairSpec
from reprod_align.report import Report
from reprod_align.sections.boundaries import keep_runs, read_runs
from reprod_align.sections.cover import Piece
from reprod_align.sections.models import Maker, SectionedPair, build_model, divide_pair
from reprod_align.sections.reports import KeptReports, digest_request
from reprod_align.sections.stream import WholeRuns, run_both
from reprod_align.weights import Place, open_checkpoint

import numpy as np

SECTION_SIZE = 70_000_000
"""parameters of a piece: in float64, about 4 GB for both sides (docs/align_reference.md)"""
_ONE_PIECE = ("float32 inside was compared in the first section that has it; in the others float64 "
              "took its place")  # fmt: skip


@dataclass(frozen=True)
class Request:
    """The arguments of `align_sections` that say what is judged."""

    torch_model: Maker
    paddle_model: Maker
    inputs: Inputs
    torch_weights: str | Place
    paddle_weights: str | Place | None = None
    torch_loss: UserFunction | None = None
    paddle_loss: UserFunction | None = None
    torch_optimizer: UserFunction | None = None
    paddle_optimizer: UserFunction | None = None
    torch_scheduler: UserFunction | None = None
    paddle_scheduler: UserFunction | None = None
    steps: int = 3
    name_map: Mapping[str, str] | None = None
    section_size: int = SECTION_SIZE
    memory: int | None = None
    remarks: Sequence[str] = ()
    """what the report says besides"""

    def open(self) -> "Opened":
        """Make both models and divide them. Raises what `align_sections` raises."""
        from reprod_align.backends import paddle as paddle_init
        from reprod_align.backends import torch as torch_init
        from reprod_align.pair import paddle_side, torch_side

        check_inputs(self.inputs)
        size = self.section_size
        if type(size) is not int or size < 1:
            raise ReprodError(f"section_size: expected a whole number above 0, got {size!r}")
        reference = torch_side(
            build_model(self.torch_model, torch_init),
            *(self.torch_loss, self.torch_optimizer, self.torch_scheduler),
        )
        port = paddle_side(
            build_model(self.paddle_model, paddle_init),
            *(self.paddle_loss, self.paddle_optimizer, self.paddle_scheduler),
        )
        copied = self.paddle_weights is None
        spec = PairSpec(
            reference, port, self.inputs, self.steps, self.name_map, copied, self.memory,
            further=False,
        ).check()  # fmt: skip
        ours = open_checkpoint(self.torch_weights)
        theirs = None if self.paddle_weights is None else open_checkpoint(self.paddle_weights)
        settings = (size, self.steps, self.name_map)
        makers = self.torch_model, self.paddle_model
        made_from = digest_request(self.inputs, (reference, port), settings, *makers)
        pair = divide_pair(spec, ours.tensors, theirs.tensors if theirs else None, size)
        return Opened(pair, made_from, [*ours.files, *(theirs.files if theirs else ())])


OpenRequest = Callable[[], AbstractContextManager[Request]]
"""makes the request anew in another process; its files are open while the block runs"""


@dataclass(frozen=True)
class Opened:
    """A request's divided pair."""

    pair: SectionedPair
    made_from: str
    """a digest of all that decides what the reports say, but for the weights"""
    files: Sequence[Place]
    """of the weights"""


@dataclass(frozen=True)
class Job:
    """A request whose whole runs are kept: what a worker is told."""

    open_request: OpenRequest
    folder: Path
    made_from: str
    key: str
    """a digest of `made_from` and of the weights"""


def find_runs(opened: Opened, results: ResultFolder, key: str, apart: bool) -> WholeRuns:
    """Return what both models did as a whole: what is kept of it, or else they run, and it is kept.

    apart: workers need it kept. Raises ModelFailure if a model fails.
    """
    path = results.path(key, ".safetensors")
    sides = opened.pair.reference.side.fw, opened.pair.port.side.fw
    if path is not None and path.is_file():
        try:
            return read_runs(
                path, (sides[0].constant(np.zeros(())), sides[1].constant(np.zeros(())))
            )
        except (ReprodError, LookupError, TypeError, ValueError, AttributeError):
            pass  # it is damaged
    runs = run_both(opened.pair)
    if path is not None:
        try:
            keep_runs(path, runs, (sides[0].is_tensor, sides[1].is_tensor))
        except TypeError as error:
            if apart:
                raise ReprodError(
                    f"a section returns {error}, which cannot be handed to workers: leave them out"
                ) from error
    return runs


def judge_pieces(
    opened: Opened, runs: WholeRuns, job: Job, results: ResultFolder, workers: Workers
) -> list[Report]:
    """Return the reports on the pieces, in their order.

    A piece that agrees to float32 spares those that are judged after it a second judgement; where the
    models ask for float32, pieces are judged one by one until that is so, and then all at once.
    """
    names, reports = [piece.name for piece in opened.pair.pieces], dict[str, Report]()
    work: Callable[[bool, str], Report] = partial(judge_kept, opened, runs, job.key, results)
    if workers.are_apart:
        work = partial(judge_apart, job)
    with workers.at_work() as run:
        while len(reports) < len(names):
            settled = any(one.verdict == "agrees to float32" for one in reports.values())
            left = [name for name in names if name not in reports]
            chosen = left if settled or not runs.asked_float32 else left[:1]
            for name, report in run(partial(work, settled), chosen):
                reports[name] = report
                if workers.are_apart:
                    tell(f"sections judged: {len(reports)} of {len(names)}")
    return [reports[name] for name in names]


def judge_kept(
    opened: Opened, runs: WholeRuns, key: str, results: ResultFolder, settled: bool, piece: str
) -> Report:
    """Return the report on a piece: the one that is kept, or else it is judged, and kept.

    settled: another piece agrees to float32, which is the verdict on the whole then at best.
    """
    pieces, kept, made_from = opened.pair.pieces, KeptReports(results), digest(key, piece)
    number = [one.name for one in pieces].index(piece)
    tell(f"section {number + 1} of {len(pieces)}: {piece}")
    report = kept.find(made_from)
    if report is None:
        report = judge_piece(
            opened.pair, runs, pieces[number], with_loss=number == 0, widened=settled
        )
        kept.keep(made_from, report)
    return report


# ---------------------------------------------------------------------- in a worker

_open: dict[str, tuple[ExitStack, Opened, WholeRuns]] = {}
"""what this worker has opened, by the job's key: one at most"""


def judge_apart(job: Job, settled: bool, piece: str) -> Report:
    """Return the report on a piece, in a worker: it opens a request once."""
    results = ResultFolder(job.folder)
    if job.key not in _open:
        while _open:
            _open.popitem()[1][0].close()
        stack = ExitStack()
        request = stack.enter_context(job.open_request())
        opened = request.open()
        if opened.made_from != job.made_from:
            raise ReprodError(
                f"the worker on {socket.gethostname()} finds other models, inputs or sources than the "
                "command did: does it see the same files?"
            )
        path = results.path(job.key, ".safetensors")
        if path is None or not path.is_file():
            raise ReprodError(
                f"{job.folder} is not seen by the worker on {socket.gethostname()}: name a shared folder"
            )
        runs = find_runs(opened, results, job.key, True)
        _open[job.key] = stack, opened, runs
    _, opened, runs = _open[job.key]
    with limit_memory(opened.pair.spec.memory):
        return judge_kept(opened, runs, job.key, results, settled, piece)


# ---------------------------------------------------------------------- one piece


def judge_piece(
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
