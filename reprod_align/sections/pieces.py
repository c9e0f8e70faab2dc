"""The pieces of a divided pair, judged here or by workers: each needs one folder, and no other piece.

What is asked for is a `Request`, from which every process makes its own models, without memory.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from reprod_align.alignment import judge_in_float64, judge_widened
from reprod_align.base.console import tell
from reprod_align.base.tasks import ResultFolder, RunTasks, digest
from reprod_align.base.text import is_within
from reprod_align.errors import ReprodError
from reprod_align.model import Inputs, ModelInfo, UserFunction, check_inputs, limit_memory
from reprod_align.pair import PairSpec
from reprod_align.report import Report
from reprod_align.sections.cover import Piece
from reprod_align.sections.models import (
    Maker,
    SectionedPair,
    SectionedSide,
    build_model,
    divide_pair,
)
from reprod_align.sections.reports import digest_request, find_report, keep_report
from reprod_align.sections.stream import (
    SideRun,
    WholeRuns,
    add_gradients,
    join_runs,
    keep_run,
    read_run,
    run_side,
)
from reprod_align.weights import FileLocation, open_checkpoint

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
    torch_weights: str | FileLocation
    paddle_weights: str | FileLocation | None = None
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

    def open(self) -> "OpenedRequest":
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
        return OpenedRequest(pair, made_from, [*ours.files, *(theirs.files if theirs else ())])


OpenRequest = Callable[[], AbstractContextManager[Request]]
"""makes the request anew in another process; its files are open while the block runs"""


@dataclass(frozen=True)
class OpenedRequest:
    """A request's divided pair."""

    pair: SectionedPair
    made_from: str
    """a digest of all that decides what the reports say, but for the weights"""
    files: Sequence[FileLocation]
    """of the weights"""


@dataclass(frozen=True)
class Job:
    """What a worker is told of a request."""

    open_request: OpenRequest
    folder: Path
    made_from: str
    key: str
    """a digest of `made_from` and of the weights"""


REFERENCE, PORT, GRADIENTS = "PyTorch forward", "Paddle forward", "PyTorch backward"
WIDENED = "PyTorch forward in float64 throughout", "Paddle forward in float64 throughout"
RUNS = REFERENCE, PORT, GRADIENTS, *WIDENED


class SectionWork:
    """What is done of a request: runs of the whole models, and reports on pieces, each made once."""

    def __init__(self, opened: OpenedRequest, results: ResultFolder, key: str, apart: bool) -> None:
        """Take the divided pair and where results are kept; apart: other processes need the runs."""
        self.pair, self._results, self._key, self._apart = opened.pair, results, key, apart
        self._runs: dict[str, SideRun] = {}

    def keep_names(self) -> None:
        """Write which file holds what: people read it, and a worker recognises the folder by it."""
        names = [*RUNS, *(piece.name for piece in self.pair.pieces)]
        self._results.keep(self._key, {name: digest(self._key, name) for name in names})

    def find_run(self, name: str) -> SideRun:
        """Return a run: the one that is kept, or else the model runs, and it is kept.

        Raises ModelFailure if the model fails.
        """
        if name not in self._runs:
            self._runs[name] = self._read_run(name) or self._make_run(name)
        return self._runs[name]

    def _read_run(self, name: str) -> SideRun | None:
        path = self._find_path(name)
        if path is None or not path.is_file():
            return None
        with suppress(ReprodError, LookupError, TypeError, ValueError, AttributeError):  # damaged
            return read_run(path, self._find_side(name).side.fw.constant(np.zeros(())))
        return None

    def _make_run(self, name: str) -> SideRun:
        side, path = self._find_side(name), self._find_path(name)
        if name == GRADIENTS:
            made = add_gradients(self.pair, self.find_run(REFERENCE), self.find_run(PORT))
        else:
            made = run_side(side, self.pair.spec.inputs, name in WIDENED)
        if path is not None:
            try:
                keep_run(path, made, side.side.fw.is_tensor)
            except TypeError as error:
                if self._apart:
                    raise ReprodError(
                        f"a section returns {error}, which cannot be handed to workers: leave them out"
                    ) from error
        return made

    def _find_path(self, name: str) -> Path | None:
        return self._results.path(digest(self._key, name), ".safetensors")

    def _find_side(self, name: str) -> SectionedSide:
        return self.pair.port if name in (PORT, WIDENED[1]) else self.pair.reference

    @cached_property
    def runs(self) -> WholeRuns:
        """Both models' runs."""
        made = join_runs(self.pair, self.find_run(GRADIENTS), self.find_run(PORT))
        self._runs.clear()  # what the pieces do not need
        return made

    def judge(self, settled: bool, piece: str) -> Report:
        """Return the report on a piece: the one that is kept, or else it is judged, and kept.

        settled: another piece shows what float32 inside does: this one is judged in float64 throughout.
        """
        pieces = self.pair.pieces
        number = [one.name for one in pieces].index(piece)
        made_from = digest(self._key, piece)
        report = find_report(self._results, made_from)
        if report is None:
            tell(f"section {number + 1} of {len(pieces)}: {piece}")
            report = judge_piece(
                self.pair, self.runs, pieces[number], with_loss=number == 0, widened=settled
            )
            keep_report(self._results, made_from, report)
        return report


def judge_pieces(work: SectionWork, job: Job, run: RunTasks, apart: bool) -> list[Report]:
    """Return the reports on the pieces, in their order; apart: workers make them.

    A piece that shows float32 inside spares those that are judged after it a second judgement. Where the
    models ask for float32, two pieces are judged at a time until one does, and then all others at once.
    Raises ModelFailure if a model fails.
    """
    make_run = partial(make_run_apart, job) if apart else work.find_run
    judge = partial(judge_apart, job) if apart else work.judge
    for _ in run(make_run, (REFERENCE, PORT)):
        pass
    asked = work.find_run(REFERENCE).asked_float32 or work.find_run(PORT).asked_float32
    # those in float64 throughout are needed at the end: here they would wait for their turn
    for _ in run(make_run, (GRADIENTS, *(WIDENED if apart and asked else ()))):
        pass
    names, reports = [piece.name for piece in work.pair.pieces], dict[str, Report]()
    while len(reports) < len(names):
        settled = any(one.rounded or one.verdict == "agrees to float32" for one in reports.values())
        left = [name for name in names if name not in reports]
        chosen = left if settled or not asked else left[:2]
        for name, report in run(partial(judge, settled), chosen):
            reports[name] = report
            if apart:
                tell(f"sections judged: {len(reports)} of {len(names)}")
    return [reports[name] for name in names]


# ---------------------------------------------------------------------- in a worker

_opened: list[tuple[ExitStack, OpenedRequest]] = []
"""what this process has opened: one at most, since it serves one command"""
_works: dict[str, SectionWork] = {}
"""the work on it, by the job's key"""


def prepare_apart(open_request: OpenRequest) -> None:
    """Make the models, in a worker, while the command makes its own."""
    if not _opened:
        with ExitStack() as stack:
            opened = stack.enter_context(open_request()).open()
            _opened.append((stack.pop_all(), opened))


def make_run_apart(job: Job, name: str) -> None:
    """Run a model as a whole, in a worker, and keep the run in the folder."""
    with _open(job) as work:
        work.find_run(name)


def judge_apart(job: Job, settled: bool, piece: str) -> Report:
    """Return the report on a piece, in a worker."""
    with _open(job) as work:
        return work.judge(settled, piece)


@contextmanager
def _open(job: Job) -> Iterator[SectionWork]:
    """Yield the work on a request, which this process opens once."""
    if job.key not in _works:
        where = f"the worker on {socket.gethostname()}"
        prepare_apart(job.open_request)
        _, opened = _opened[0]
        if opened.made_from != job.made_from:
            raise ReprodError(
                f"{where} finds other models, inputs or sources than the command did: does it see the "
                "same files?"
            )
        results = ResultFolder(job.folder)
        if results.find(job.key) is None:
            raise ReprodError(f"{where} does not see {job.folder}: name a folder that is shared")
        _works[job.key] = SectionWork(opened, results, job.key, True)
    work = _works[job.key]
    with limit_memory(work.pair.spec.memory):
        yield work


# ---------------------------------------------------------------------- one piece


def judge_piece(
    pair: SectionedPair, runs: WholeRuns, piece: Piece, with_loss: bool, widened: bool
) -> Report:
    """Judge the pair with the sections of one piece real.

    widened: an earlier piece shows what float32 inside does: this one is judged once, with float64 in
    place of float32, where what float32 can't explain shows.
    """
    real = {section.torch for section in piece.sections}
    sides = pair.reference.side, pair.port.side
    stand_ins = {mine: other for mine, other in pair.modules.items() if mine not in real}
    with (
        pair.reference.with_stand_ins([one.torch for one in piece.sections], runs.ours),
        pair.port.with_stand_ins([one.paddle for one in piece.sections], runs.theirs),
        _choose_losses(pair, with_loss),
    ):
        ours, theirs = (side.describe() for side in sides)
        names = {mine: other for mine, other in (pair.spec.name_map or {}).items()
                 if _holds(ours, mine) and _holds(theirs, other)}  # fmt: skip
        spec = replace(pair.spec, name_map=names, modules=stand_ins)
        report = judge_widened(spec) if widened else None
        if report is None:
            return judge_in_float64(spec)
        if spec.asked_float32 and not report.findings:
            report.remarks.append(_ONE_PIECE)
        return report


@contextmanager
def _choose_losses(pair: SectionedPair, wanted: bool) -> Iterator[None]:
    """Keep the losses of both sides in the block only if that is wanted: one piece compares them."""
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


def _holds(info: ModelInfo, name: str) -> bool:
    return any(is_within(other, name) for other in (*info.modules, *info.tensors))
