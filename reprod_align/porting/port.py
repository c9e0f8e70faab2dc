"""Ports a file: the draft, the loop, the weights, the folder; or judges the source as it is on Paddle."""

import ast
import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from reprod_align.alignment import LAYER_ROUNDING, compare_pair
from reprod_align.base.console import tell
from reprod_align.base.files import require_new, whole_folder
from reprod_align.base.text import shorten, shorten_lines
from reprod_align.conversion import Conversion, convert
from reprod_align.conversion.weight_map import ModelPair
from reprod_align.errors import ReprodError
from reprod_align.explain.code import Code, dotted
from reprod_align.model.backward import Projection
from reprod_align.model.side import Inputs, ModelFailure, check_inputs
from reprod_align.pair import PairSpec, torch_side
from reprod_align.pair.file import PairFile, open_file
from reprod_align.pair.remote import RemoteSide
from reprod_align.porting.attempt import (
    Obstacle,
    Problem,
    attempt,
    note_attempt,
    open_pair,
    open_port,
)
from reprod_align.porting.calls.draft import Draft, rehearse, write_drafts
from reprod_align.porting.calls.names import Scope, find_object
from reprod_align.porting.calls.rewriting import write_names_in_full
from reprod_align.porting.calls.training import write_trainings
from reprod_align.porting.gathering.gather import NOT_PORTED, Gathered, bring_call, gather
from reprod_align.porting.gathering.modules import Module
from reprod_align.porting.gathering.reading import Executed, list_executed
from reprod_align.porting.loop import FAITHFUL, Attempt, Course, mend
from reprod_align.porting.nesting import flatten_inputs
from reprod_align.porting.paconvert import Style, find_converter, make_draft, write_plainly
from reprod_align.porting.remedies import REMEDIES
from reprod_align.porting.report import REPORT, PortResult
from reprod_align.porting.script import TorchScript, run_loop, watch_script
from reprod_align.porting.source import PAIR, WEIGHTS, Source, name_port, write_arranged, write_pair
from reprod_align.porting.spelling import spell_as_source
from reprod_align.randomness import KeyedDraws
from reprod_align.report import PORT_RUNS, Check, Finding, Report


def convert_weights(pair: ModelPair, folder: Path, proven: bool) -> str:
    """Write the port's weights to a folder; return what was done, or why not, in a sentence.

    proven: write the file only if the outputs agree, to float32 at least. The verdict was taken with its
    constant weights moved; with the weights that a model starts with, a kernel's rounding may show.
    """
    model = pair.torch.model  # type: ignore[attr-defined]  # a LocalSide
    state = model.state_dict()
    if not state:
        return "the model has no weights"
    with TemporaryDirectory(dir=folder) as passing:
        source = Path(passing, "weights.pth")
        import_module("torch").save(state, source)
        try:
            done = convert(Conversion(source, folder / WEIGHTS, check=proven), pair)
            apart = done.agreement.relative if done.agreement and done.written is None else math.inf
            if apart <= LAYER_ROUNDING:
                done = convert(Conversion(source, folder / WEIGHTS, check=False), pair)
        except ReprodError as error:
            return f"the weights were not converted: {error}"
    if done.written is None:
        faults = done.faults or [done.agreement.summary() if done.agreement else "not written"]
        return f"the weights were not converted: {'; '.join(faults[:4])}"
    agreed = f"; {done.agreement.summary()}" if done.agreement else ""
    if apart <= LAYER_ROUNDING:
        agreed = f"; with them the outputs agree to float32 only ({apart:.1e}, relative)"
    return f"{WEIGHTS}: {done.amount}{agreed}"


FLOAT32 = "agrees to float32"
_DATA: Final = (
    "the data pipeline is converted, not proven: the loop had PyTorch's batches on both sides"
)
_SHOWN = 20  # lines left to a person
_MOST_NEEDED = 5  # functions that the port calls and PyTorch's model does not


def port(source: Source, inputs: Any, target: Path, style: Style = "paddle") -> PortResult:
    """Port a PyTorch file to Paddle and write the result folder; return what was done.

    inputs: arrays by name or by position, also nested in dicts, lists and dataclasses. Raises ReprodError
    if the folder exists, PyTorch's model fails, or style "compat" finds no PaConvert.
    """
    require_new(target)
    inputs, arrange = flatten_inputs(inputs)
    check_inputs(inputs)
    source = replace(source, arrange=arrange)
    tell("gathering what runs")
    with suppress(Exception):  # it is said where it runs
        source.make_model()  # what is imported while a model is built is not part of it
    executed = list_executed(lambda: _run_reference(source, inputs))
    source, brought = bring_call(source, executed)
    needed: list[str] = []
    with TemporaryDirectory() as folder:
        while True:
            gathered = gather(
                source, executed, lambda text: rehearse(source, inputs, text), needed,
                lambda module: _watch_rewritten(source, inputs, module, executed), brought,
            )  # fmt: skip
            work = Path(folder, str(len(needed)))
            called, gathered = write_call(source, gathered)
            course, draft, bench = _make_course(called, inputs, gathered, style, work)
            found = _list_needed(course)
            if not found or len(needed) >= _MOST_NEEDED:
                break
            needed += found
        if style == "paddle" and draft.author == Draft.author:
            write_plainly(course, bench, bench.file)
        result = PortResult(source.path.name, source.call, bench.file, draft, course)
    result.left = _list_left(course.outcome, course.code)
    result.remarks = [
        *describe_gathered(gathered),
        *_describe_calls(draft, gathered.text, source.path),
    ]
    with whole_folder(target) as made:
        bench.fill(made, course.code)
        if course.outcome.report is not None:
            with open_pair(made, bench.module) as pair:
                exact = course.outcome.report.verdict != FLOAT32
                result.weights = convert_weights(pair, made, course.outcome.passed and exact)
        if source.script:
            tell("two steps of the training loop")
            with open_port(made, bench.module) as load:
                result.loop = run_loop(source.script, source.module, load)
            result.left += [] if result.loop.passed else [f"loop: {result.loop.lines()[0]}"]
            result.remarks.append(_DATA)
        attempts = rf"{re.escape(str(bench.folder))}/attempt\d+/"  # none of them is left
        text = re.sub(attempts, "", result.to_markdown())
        (made / REPORT).write_text(text, encoding="utf-8")
    return result


_MADE_BY: Final = "make_model"
_WORKING: Final = (ast.Lambda, ast.comprehension)
_CALL: Final = '''

def {name}():
    """Return the model that was ported."""
    return {call}
'''


def write_call(source: Source, gathered: Gathered) -> tuple[Source, Gathered]:
    """Make a function of a call that names PyTorch itself, at the end of the file, so that it is ported too.

    Model(activation=nn.GELU()) means nothing in a port that has no `nn`. So too of one that does something
    with the model, as a lambda.
    """
    made = source.made_by or source.call
    try:
        scope = Scope(Code(gathered.text).tree)
        nodes = [*ast.walk(ast.parse(made, mode="eval"))]
    except SyntaxError:
        return source, gathered
    names = any(scope.name(node) for node in nodes if isinstance(node, ast.Name))
    if not names and not any(isinstance(node, _WORKING) for node in nodes):
        return source, gathered
    name = _MADE_BY
    while name in gathered.text:
        name = f"{name}_"
    text = gathered.text.rstrip() + "\n" + _CALL.format(name=name, call=made)
    return replace(source, made_by=f"{name}()"), replace(gathered, text=text)


def _make_course(
    source: Source, inputs: Inputs, gathered: Gathered, style: Style, folder: Path
) -> tuple[Course, Draft, "Bench"]:
    """Return the way from the draft to the port: of the calls that were proven, else of PaConvert's draft.

    PaConvert's is asked for by `--style compat`, and tried where the other one does not end faithful.
    """
    found: list[tuple[Course, Draft, Bench]] = []
    if style == "paddle":
        tell("recording the calls")
        for draft in write_drafts(source, inputs, gathered.text):
            found.append(_mend(source, inputs, gathered, draft, folder / f"own{len(found)}"))
            report = found[-1][0].outcome.report
            if report is None or report.verdict == FAITHFUL:
                break
        best = max(found, key=lambda one: one[0].outcome.rank)
        if best[0].outcome.passed or _list_needed(best[0]):
            return best
    try:
        tell("PaConvert's draft")
        find_converter()
        text = write_names_in_full(gathered.text)
        draft = make_draft(f"{name_port(source)}.py", text, source.name.partition(".")[0])
        found.append(_mend(source, inputs, gathered, draft, folder / "paconvert"))
    except ReprodError:
        if not found:
            raise
    return max(found, key=lambda one: one[0].outcome.rank)  # the first of equals


def _list_needed(course: Course) -> list[str]:
    """Return the problems of a port that calls functions which were left out."""
    return [one.text for one in course.outcome.problems if NOT_PORTED in one.text]


def _mend(
    source: Source, inputs: Inputs, gathered: Gathered, draft: Draft, folder: Path
) -> tuple[Course, Draft, "Bench"]:
    folder.mkdir(parents=True)
    bench = Bench(source, inputs, draft, folder)
    try:
        code = Code(spell_as_source(draft.text, gathered.text, source.path))
    except SyntaxError as error:
        line = draft.text.splitlines()[(error.lineno or 1) - 1].strip()
        outcome = Attempt(
            None, [Problem("import", f"SyntaxError: {error.msg}", error.lineno, line)]
        )
        return Course(Unparsed(draft.text), outcome, outcome), draft, bench
    return mend(code, bench, REMEDIES, bench.file), draft, bench


class Unparsed(Code):
    """A draft that is no Python: its text alone."""

    def __init__(self, text: str) -> None:
        """Keep the text."""
        super().__init__("")
        self.text = text


def _describe_calls(draft: Draft, gathered: str, path: Path) -> list[str]:
    """Return what is known of the calls that were not proven, in sentences with the source's lines."""
    texts = {
        "proven to float32's precision, in which Paddle holds a constant": draft.rounded,
        "never ran, tried on values of their own": draft.rehearsed,
        "ran, and not proven by itself": draft.unproven,
        "never ran: converted, not proven": draft.unseen,
    }
    remarks = [
        f"{text}: {shorten(tuple(find_lines(labels, gathered, path)), _SHOWN)}"
        for text, labels in texts.items()
        if labels
    ]
    if draft.failure:
        remarks.append(f"the gathered file does not run by itself: {draft.failure}")
    return remarks


def find_lines(labels: Iterable[str], gathered: str, path: Path) -> Iterator[str]:
    """Yield "net.py:12: torch.cat" for "line 15: torch.cat", a line of the file that was gathered from it.

    A line that came from another file has no number: its text is shown.
    """
    lines, own = gathered.splitlines(), path.read_text(encoding="utf-8").splitlines()
    for label in labels:
        number, _, name = label.removeprefix("line ").partition(": ")
        line, before = lines[int(number) - 1], lines[: int(number) - 1]
        places = [at for at, one in enumerate(own, 1) if one == line]
        if len(places) == lines.count(line):
            yield f"{path.name}:{places[before.count(line)]}: {name}"
        else:
            yield f"{name} in `{line.strip()}`"


def _watch_rewritten(source: Source, inputs: Inputs, module: Module, before: Executed) -> Executed:
    """Return what PyTorch's model calls in a file with classes in place of factories; before: with them."""
    try:
        sys.modules[source.name] = module.execute()
        return list_executed(lambda: _run_reference(source, inputs))
    except (Exception, SystemExit):  # the class is not made as it was written
        return before
    finally:
        sys.modules[source.name] = source.module


def _run_reference(source: Source, inputs: Inputs) -> None:
    """Build PyTorch's model and run it in both modes, and back: custom functions have code for that."""
    side = torch_side(source.make_model())
    with warnings.catch_warnings(), side.working("float64", throughout=True):
        warnings.simplefilter("ignore")
        side.run(inputs, False, KeyedDraws(0, {}))
        try:
            side.run(inputs, True, KeyedDraws(0, {}), objective=Projection())
        except ModelFailure:  # nothing to differentiate
            side.run(inputs, True, KeyedDraws(0, {}))
    if source.script:
        with suppress(Exception):  # it is said where the loop is compared
            watch_script(source.script, source.module, TorchScript())


@dataclass
class Bench:
    """Where drafts are attempted: each has a folder of its own, so that nothing is kept of the last."""

    source: Source
    inputs: Inputs
    draft: Draft
    folder: Path
    _attempts: int = field(default=0, init=False)

    @property
    def module(self) -> str:
        """The name of the port's module."""
        return name_port(self.source)

    @property
    def file(self) -> str:
        """The name of the port's file."""
        return f"{self.module}.py"

    def __call__(self, code: Code) -> Attempt:
        """Return what comes of a draft."""
        known = note_attempt(code.text, self.file)
        if known is not None:
            return Attempt(None, [known])
        self._attempts += 1
        folder = self.folder / f"attempt{self._attempts}"
        folder.mkdir()
        self.fill(folder, code)
        try:
            report = attempt(folder, self.module)
        except Obstacle as found:
            return Attempt(None, [found.problem])
        path = folder / self.file
        return Attempt(report, [_find_problem(finding, path) for finding in report.findings])

    def fill(self, folder: Path, code: Code) -> None:
        """Write the port and its pair file to an empty folder."""
        (folder / self.file).write_text(code.text, encoding="utf-8")
        if self.draft.helpers:
            (folder / "paddle_utils.py").write_text(self.draft.helpers, encoding="utf-8")
        training = write_trainings(self.draft.trainings, self.module)
        write_pair(self.source, self.inputs, folder, training)


def _find_problem(finding: Finding, path: Path) -> Problem:
    """Return a finding of `align` as a problem of the draft."""
    name, _, line = (finding.paddle_line or "").rpartition(":")
    own = Path(name).name == path.name and line.isdigit()
    return Problem("align", str(finding), int(line) if own else None, finding.paddle_code, finding)


def _list_left(outcome: Attempt, code: Code) -> list[str]:
    """Return what is left for a person: problems, and calls of PyTorch that nothing ran."""
    left = [_describe(problem) for problem in outcome.problems]
    named: dict[int, str] = {}
    for node in code.nodes:
        name = dotted(node) if isinstance(node, ast.Attribute) else ""
        if name.startswith("torch."):
            named.setdefault(node.lineno, name)  # type: ignore[attr-defined]
    left += [f"line {line}: {name} is not converted" for line, name in sorted(named.items())]
    left += list_missing(code)
    return shorten_lines(left, _SHOWN)


def list_missing(code: Code) -> list[str]:
    """Return the names of Paddle's in a file that do not exist, each with its line."""
    scope, missing = Scope(code.tree), {}
    for node in code.nodes:
        if isinstance(node, ast.Attribute):
            name = scope.name(node, "paddle")
            if (
                name
                and find_object(name) is None
                and name.partition(".")[2].partition(".")[0] != "Tensor"
            ):
                if find_object(name.rpartition(".")[0]) is not None:
                    missing[node.lineno, name] = f"line {node.lineno}: {name} does not exist"
    return [missing[key] for key in sorted(missing)]


def describe_gathered(gathered: Gathered) -> list[str]:
    """Return what was taken from neighbours and what was left out, in sentences."""
    remarks = []
    if gathered.neighbours:
        remarks.append(f"taken along from {', '.join(gathered.neighbours)}")
    if gathered.chosen:
        named = shorten(gathered.chosen, _SHOWN)
        remarks.append(f"written as the class that these arguments chose: {named}")
    if gathered.left_out:
        names = shorten(gathered.left_out, _SHOWN)
        remarks.append(f"not ported, since the model ran without: {names}")
    return remarks


def _describe(problem: Problem) -> str:
    code = f" `{problem.code}`" if problem.code else ""
    return f"{problem}{code}"


_MODEL = '''

def paddle_model():
    """Return the same source's model, its torch being Paddle."""
    import paddle

    paddle.enable_compat()
    from reprod_align.pair.file import call_named

    try:
        return {made}
    except Exception as error:
        from reprod_align.pair.file import locate_error

        raise locate_error(error, SOURCE) from error
'''


def judge_source(source: Source, inputs: Any) -> Report:
    """Compare the model of the source on PyTorch with that of the same source on Paddle.

    Paddle's is made and run in a process of its own. If it cannot be made, the report has that finding.
    inputs: as `port` takes them.
    """
    inputs, arrange = flatten_inputs(inputs)
    check_inputs(inputs)
    source = replace(source, arrange=arrange)
    with TemporaryDirectory() as folder:
        write_pair(source, inputs, Path(folder))
        path = Path(folder, PAIR)
        made = _MODEL.format(made=write_arranged(source, "call_named(TORCH)"))
        further = f"SOURCE = Path({str(source.path)!r})\n" + made
        path.write_text(path.read_text(encoding="utf-8") + further, encoding="utf-8")
        with RemoteSide(sys.executable, path, "paddle") as port, open_file(path, PairFile) as file:
            tell("the source on Paddle")
            try:
                port.hello  # noqa: B018  (the model is made before this is answered)
            except ReprodError as error:
                return _refuse(
                    str(error).partition(f"{PAIR}, line ")[2].partition(": ")[2] or str(error)
                )
            return compare_pair(PairSpec(file.side("torch"), port, file.inputs()))


def _refuse(text: str) -> Report:
    """Return the report on a source whose model cannot be made on Paddle."""
    what = f"the model cannot be made on Paddle: {text}"
    finding = Finding("forward", "", "", what, math.inf, 0.0, kind="port-raises")
    return Report("diverges", [finding], checks=[Check("forward", PORT_RUNS, math.inf, False)])
