"""`fix`: mends a port, one fault after another, each by the edit with which it is gone; then the proof."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, cast

from reprod_align.base.console import tell
from reprod_align.explain.code import Edit
from reprod_align.explain.executed import Ran
from reprod_align.explain.scope import Scope, Sources, find_scope
from reprod_align.explain.trials import BUDGETS, Files
from reprod_align.mending.bench import Bench, Fault, MakeGiven, MakePort, Outcome, list_homes
from reprod_align.mending.proof import Proof, find_failing, list_seen, prove
from reprod_align.mending.result import Mend, Mended, make_patch
from reprod_align.mending.search import WIDE, Search, find_edit, find_step
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs
from reprod_align.pair import PairSpec, make_pair, with_arguments_of
from reprod_align.report import Finding, Report, Suggestion

_MOST = 12  # edits
_AIMS = 3  # findings that are tried, of those that differ first
_FURTHER = 0.5  # of the time for one of them is left to the others where it has none
_NEAR = 0.5  # of the time for an edit that mends goes to the likeliest ones
_FIRST_STEPS = 100
"""edits: what PyTorch says near a finding; where there is one mistake alone they cost 10 seconds"""
Look = Literal["told", "near", "step", "far", "late"]
"""at the edit that `align` has found; for the edit that mends a fault among the likeliest; for one of two
mistakes among what PyTorch says, of the first fault; for an edit that mends among all others; for one of
two mistakes of any fault"""
_LOOKS: Final[Sequence[Look]] = ("told", "near", "step", "far", "late")


@dataclass
class Course:
    """The way from the port as it came to the port with the edits."""

    texts: dict[str, str] = field(default_factory=dict)
    mends: list[Mend] = field(default_factory=list)
    edits: list[tuple[str, Edit]] = field(default_factory=list)
    """each in the text that the ones before it have made"""
    mended: list[Fault] = field(default_factory=list)
    """what they have mended"""
    seen: list[Inputs] = field(default_factory=list)
    """further batches on which an edit must hold before it is taken"""
    has_source: bool = False
    """whether there was any source to edit"""
    tried: int = 0
    """edits"""
    in_vain: dict[tuple[Fault, Look], int] = field(default_factory=dict)
    """a fault, and what was looked for -> how many edits there were when none was found"""
    near: dict[Fault, int] = field(default_factory=dict)
    """a fault -> how many of the likeliest edits were tried with the texts as they are"""
    report: Report | None = None
    """the whole one with the texts as they are"""
    open: Fault | None = None
    """what the edits from `stands` on mend one mistake of, with another one left"""
    stands: int = 0
    """how many edits stay whatever becomes of those"""

    def may_try(self, fault: Fault, look: Look, again: bool) -> bool:
        """Tell whether an edit was never looked for, or, again, whether there are more edits since."""
        failed = self.in_vain.get((fault, look))
        return failed is None if not again else failed is not None and failed < len(self.mends)

    def take_back(self, files: Files) -> None:
        """Take out the edits that stand on trial: the other mistake was not found."""
        assert self.open is not None
        del self.mends[self.stands :], self.edits[self.stands :]
        self.in_vain |= {(self.open, look): self.stands for look in _LOOKS}
        self.open, self.texts = None, {}
        self.near.clear()
        for file, edit in self.edits:
            self.texts = files.splice(self.texts, file, edit)


def mend_port(
    pair: PairSpec,
    make_port: MakePort,
    make_given: MakeGiven | None = None,
    allows: Callable[[str, int, str], bool] = lambda file, line, stage: True,
) -> Mended:
    """Return the edits that make a port faithful, and their proof. Its files are left as they are.

    pair: of two models in this process. make_port: makes the Paddle side, a new model each time if
    constructors may be edited. make_given: makes PyTorch's side and the inputs anew, for the proof that
    no edit changes them. allows: tells whether a line of a file may be edited for a fault of a stage.
    The patch names files from the working directory.
    Raises ReprodError if the pair cannot be judged.
    """
    pair.check()
    reference, port = pair.reference, cast(LocalSide, pair.port)
    bench = Bench(
        pair,
        make_port,
        make_given=make_given or (lambda: (bench.reference, pair.inputs)),
        homes=list_homes(port),
        allows=allows,
    )
    tell("judging the port")
    first = bench.judge_fully({})
    if first.passed:
        return Mended(first, (), "", Proof(first))
    bench = replace(bench, widened=reference.asked_float32 or port.asked_float32)
    search = find_failing(bench)
    course = _mend_all(search, first if search is bench else None)
    _leave_out(search, course)
    tell("proving the edits")
    proof = prove(bench, course.texts) if course.mends else Proof(course.report or first)
    edits = tuple(replace(one, level=proof.level) for one in course.mends)
    patch = make_patch(bench.files.loaded, course.texts, Path.cwd())
    left = () if proof.report.passed else tuple(proof.report.findings)
    lacking = tuple(one.torch_name for one in left if _is_of_lacking_layer(one, bench))
    texts, has_source = course.texts, course.has_source
    return Mended(first, edits, patch, proof, left, texts, has_source, lacking, course.tried)


def _is_of_lacking_layer(finding: Finding, bench: Bench) -> bool:
    """Tell whether a finding is about a parameter, but for a bias, that the port has nowhere."""
    theirs, ours = (side.describe().tensors for side in (bench.reference, bench.pair.port))
    unpaired = finding.torch_name in theirs and finding.paddle_name not in ours
    return (
        finding.kind == "parameter-unpaired"
        and unpaired
        and theirs[finding.torch_name].role != "bias"
    )


def _mend_all(bench: Bench, report: Report | None) -> Course:
    """Find an edit for one finding after another, until none differs or none is found.

    report: of the port as it came, if it is known.
    """
    course = Course(seen=[*list_seen(bench)])
    while len(course.mends) < _MOST:
        before = bench.judge(course.texts)
        if before.passed:
            break
        if course.edits or report is None:
            report = bench.judge_fully(course.texts)
        course.report = report
        if report.passed:
            break
        if not _mend_any(bench, course, report, before):
            if course.open is None:
                break
            course.take_back(bench.files)
    if course.open is not None:
        course.take_back(bench.files)
    return course


def _mend_any(bench: Bench, course: Course, report: Report, before: Outcome) -> bool:
    """Find an edit for one of the findings; tell whether there is any.

    First those that `align` has found are tried, then the likeliest of each, then for two mistakes behind
    one value, throughout, then all other edits; then again, with the edits that have come since, for those
    for which none was found.
    """
    ran, wide = bench.watch(course.texts), None
    for again, look in product((False, True), _LOOKS):
        if look in ("step", "late"):
            wide = wide or bench.judge(course.texts, throughout=True)
        told = wide if look in ("step", "late") and wide else before
        if _mend_one(bench, course, report, told, ran, look, again):
            return True
    return False


def _mend_one(
    bench: Bench,
    course: Course,
    report: Report,
    before: Outcome,
    ran: Ran,
    look: Look,
    again: bool,
) -> bool:
    """Find an edit for the first finding that has one; tell whether there is any."""
    aims = [one for one in _list_aims(report, before, course.open)
            if course.may_try(one[1], look, again)]  # fmt: skip
    seconds, spent = BUDGETS["fix"].seconds, 0.0
    all_seconds = seconds
    if look == "step":
        aims = [one for one in aims[:1] if one[1][0] == "forward"]
    elif look in ("near", "far"):
        aims, share = aims[:_AIMS], _NEAR if look == "near" else 1 - _NEAR
        seconds, all_seconds = share * seconds, share * (1 + _FURTHER) * seconds
    for finding, fault, scope in _find_scopes(bench, course, report, aims, ran):
        if spent >= all_seconds:
            break
        search = _search(
            look,
            bench,
            course,
            (finding, fault, scope),
            before,
            min(seconds, all_seconds - spent),
        )
        course.tried += search.tried
        spent += search.seconds
        if search.found is None:
            course.in_vain[fault, look] = len(course.mends)
            if look == "near":
                course.near[fault] = search.tried
            continue
        _keep(bench, course, search, finding, fault)
        return True
    return False


def _search(
    look: Look,
    bench: Bench,
    course: Course,
    aim: tuple[Finding, Fault, Scope],
    before: Outcome,
    seconds: float,
) -> Search:
    """Look for an edit for a finding with the texts as they are."""
    finding, fault, scope = aim
    given = (bench, course.texts, scope, fault, before, course.mended, course.seen, seconds)
    if look in ("step", "late"):
        return find_step(*given, most=_FIRST_STEPS if look == "step" else WIDE)
    if look == "told":
        known = _read_edit(finding)
        return Search(None, 0, 0.0) if known is None else find_edit(*given, known=known, most=0)
    if look == "near":
        return find_edit(*given, most=WIDE)
    return find_edit(*given, start=course.near.get(fault, 0))


def _find_scopes(
    bench: Bench, course: Course, report: Report, aims: Sequence[tuple[Finding, Fault]], ran: Ran
) -> list[tuple[Finding, Fault, Scope]]:
    """Return each aim with the code in which its edit may be."""
    if not aims:
        return []
    sources = Sources(course.texts)
    with bench.port_with(course.texts) as port:
        found = [
            (one, fault, find_scope(one, bench.reference, port, report.pairs, sources, ran))
            for one, fault in aims
        ]
    course.has_source = course.has_source or any(scope.has_own for *_, scope in found)
    return found


def _read_edit(finding: Finding) -> Suggestion | None:
    """Return the edit that `align` has found, if it knows the place of it."""
    return finding.edit if finding.edit is not None and finding.edit.column else None


def _list_aims(report: Report, before: Outcome, only: Fault | None) -> list[tuple[Finding, Fault]]:
    """Return the findings that `before` knows too, with their faults. only: of this fault's place, one."""
    aims = [
        (one, fault)
        for one in report.findings
        for fault in before.faults
        if fault[:2] == (one.stage, one.place) and (only is None or fault[:2] == only[:2])
    ]
    if only is not None:
        return aims[:1]
    return aims or [(report.findings[0], fault) for fault in [*before.faults][:1]]


def _keep(bench: Bench, course: Course, search: Search, finding: Finding, fault: Fault) -> None:
    """Take an edit; one that mends the first of two mistakes stands on trial."""
    assert search.found is not None
    trial, one = search.found, search.found.candidate
    if not search.moves:
        course.mended.append(fault)
    elif course.open is None:
        course.stands = len(course.mends)
    course.open = fault if search.moves else None
    course.near.clear()
    if search.moves:  # what `find_edit` could not see may be all that is left
        for look in ("near", "far"):
            course.in_vain.pop((fault, look), None)
    course.texts = bench.files.apply(course.texts, trial)
    course.edits.append((trial.file, one.edit))
    course.mends.append(
        Mend(
            one.kind,
            trial.file,
            one.line,
            one.before,
            one.after,
            *fault[:2],
            finding.message,
            finding.difference,
        )
    )


def _leave_out(bench: Bench, course: Course) -> None:
    """Take out the edits that are not needed: without one of them the rest do."""
    if len(course.mends) < 2 or not bench.judge(course.texts).passed:
        return
    for number in reversed(range(len(course.mends) - 1)):
        texts = _without(bench, course, number)
        if texts is not None and bench.judge(texts).passed:
            course.texts = texts
            del course.mends[number], course.edits[number]


def _without(bench: Bench, course: Course, number: int) -> dict[str, str] | None:
    """Return the texts without one edit; None if a later one changes the same part."""
    file, edit = course.edits[number]
    texts: dict[str, str] = {}
    moved = len(edit.text.encode()) - (edit.end - edit.start)
    end = edit.start + len(edit.text.encode())
    for at, (other, later) in enumerate(course.edits):
        if at == number:
            continue
        made = later
        if other == file and at > number:
            if later.start < end and later.end > edit.start:
                return None
            if later.start >= end:
                made = Edit(later.start - moved, later.end - moved, later.text)
        texts = bench.files.splice(texts, other, made)
    return texts


@with_arguments_of(make_pair)
def fix(torch_model: Any, paddle_model: Any, *given: Any, **named: Any) -> Mended:
    """Look for the edits of the Paddle model's source with which it is faithful, and prove them.

    paddle_model: the port, or a function without arguments that makes it: what its constructors say can
    be edited then.
    {arguments}

    No file is changed: the result holds a patch. Raises ReprodError as `align` does.
    """
    make = paddle_model if _makes_model(paddle_model) else lambda: paddle_model
    pair = make_pair(torch_model, make(), *given, **named)
    port = cast(LocalSide, pair.port)
    return mend_port(pair, lambda: port.with_model(make()))


def _makes_model(value: Any) -> bool:
    """Tell whether a value is a function or a class, not a model."""
    return inspect.isclass(value) or (callable(value) and not hasattr(value, "forward"))
