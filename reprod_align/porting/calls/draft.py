"""The draft of a port, from a run of the reference."""

import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reprod_align.backends import replace_attribute
from reprod_align.explain.code import Code
from reprod_align.model.backward import Projection
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.model.trace import Trace
from reprod_align.pair import torch_side
from reprod_align.porting.attempt import stir_weights
from reprod_align.porting.calls.parts import set_parts
from reprod_align.porting.calls.record import CallRecorder, load_noted, number_nodes
from reprod_align.porting.calls.training import Training
from reprod_align.porting.calls.trial import find_inplace, note_runs
from reprod_align.porting.calls.write import write_paddle
from reprod_align.porting.gathering.modules import describe_foreign, list_foreign
from reprod_align.porting.script import TorchScript, watch_script
from reprod_align.porting.source import Source
from reprod_align.randomness import KeyedDraws

_numbers = count()


@dataclass(frozen=True)
class Draft:
    """A source file, converted."""

    text: str
    helpers: str = ""
    """the content of paddle_utils.py, which the draft imports; "" without it"""
    calls: int = 0
    """PyTorch calls that were found"""
    left: tuple[str, ...] = ()
    """the lines that are not converted"""
    proven: int = 0
    """calls that gave what was recorded, run on Paddle by themselves"""
    unproven: tuple[str, ...] = ()
    """calls that ran, and of which no candidate gave what was recorded"""
    unseen: tuple[str, ...] = ()
    """calls that never ran"""
    failure: str = ""
    """the error of the gathered file, "" if it runs"""
    author: str = "PaConvert"
    rounded: tuple[str, ...] = ()
    """calls among the proven ones that gave what was recorded to float32's precision"""
    rehearsed: tuple[str, ...] = ()
    """calls that never ran, and were tried on values of their own"""
    trainings: tuple[Training, ...] = ()
    """the optimizers and schedules that the file makes, as far as their steps are proven"""


def _name_module() -> str:
    """Return a name that no run had before: what a run registers stays in PyTorch's tables."""
    return f"reprod_align_gathered{next(_numbers)}"


def write_draft(source: Source, inputs: Inputs, text: str) -> Draft:
    """Return the Paddle text of a gathered file, each call proven on what it was given in a run."""
    return next(write_drafts(source, inputs, text))


def write_drafts(source: Source, inputs: Inputs, text: str) -> Iterator[Draft]:
    """Yield the draft, and one whose norms compute in their input's dtype, if it has any.

    Paddle's round epsilon to float32, which shows where a variance is small: of all the layers that a place
    makes the first few alone are tried there.
    """
    code = Code(text)
    number_nodes(code.tree)
    recorder, failure = _record(code, source, inputs)
    if recorder.parts and (with_parts_set := set_parts(code, recorder.parts)) != text:
        code = Code(with_parts_set)
        number_nodes(code.tree)
        recorder, failure = _record(code, source, inputs)
    texts: list[str] = []
    for exact in (False, True):
        written = write_paddle(code, recorder.facts, recorder.functions, exact)
        calls = written.proven + len(written.unproven) + len(written.unseen) + len(written.unknown)
        if written.text not in texts:
            yield Draft(
                written.text, "", calls, tuple(written.unknown), written.proven, tuple(written.unproven),
                tuple(written.unseen), failure, "proven calls", tuple(written.rounded),
                tuple(written.rehearsed), tuple(written.trainings),
            )  # fmt: skip
        texts.append(written.text)


def rehearse(source: Source, inputs: Inputs, text: str) -> str:
    """Import a gathered file, build its model and run it; return the error, "" without one.

    A layer whose class is neither in the file nor PyTorch's is one: the port would hold it as it is.
    """

    def load(name: str, path: Path) -> None:
        module = types.ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module
        exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
        names.append(name)

    def note(model: Any) -> None:
        foreign.extend(map(describe_foreign, list_foreign(model, names[-1])))

    names: list[str] = []
    foreign: list[str] = []
    error = _run(load, text, source, inputs, note)
    return error or next(iter(foreign), "")


def _record(code: Code, source: Source, inputs: Inputs) -> tuple[CallRecorder, str]:
    """Return what noted a run of the gathered file, and the error that ended it, "" without one."""
    recorder = CallRecorder()

    def load(name: str, path: Path) -> None:
        load_noted(code, name, path, recorder)

    def note_inplace(run: Callable[[], dict[str, Any]]) -> None:
        for site in find_inplace(recorder.inplace, run):
            recorder.facts[site].inplace = True
        recorder.notes_layers = False

    def note_widening(widened: bool) -> None:
        recorder.widened = widened

    with note_runs(recorder.layers):
        failure = _run(
            load, code.text, source, inputs, recorder.note_shared, note_inplace, note_widening
        )
    return recorder, failure


def _run_unscripted() -> AbstractContextManager[None]:
    """Leave functions and classes as they are written, which a port does too: scripted ones are not noted."""
    torch = sys.modules["torch"]
    return replace_attribute(torch.jit, "script", lambda held, *_, **__: held)


def _read_outputs(trace: Trace) -> dict[str, Any]:
    return {name: leaf.array for name, leaf in trace.calls[0].outputs.items()}


def _run(
    load: Callable[[str, Path], object],
    text: str,
    source: Source,
    inputs: Inputs,
    note: Callable[[Any], object] = lambda model: None,
    ask: Callable[[Callable[[], dict[str, Any]]], object] = lambda run: None,
    widen: Callable[[bool], object] | None = None,
) -> str:
    """Run a gathered file in both modes; return the error that ended it, "" without one.

    note: gets the model; ask: gets at the end what runs it once more, in eval mode, and gives its outputs.
    widen: is told before a run whether float64 is given where the model asks for float32. There is one
    in which it is not, if the model asks: then the two meet in one call.
    """
    name = _name_module()
    with TemporaryDirectory() as folder:
        path = Path(folder, "gathered.py")
        path.write_text(text, encoding="utf-8")
        try:
            with _run_unscripted():
                load(name, path)
                model = source.make_model(name)
            note(model)
            side = torch_side(model)
            stir_weights(side)  # a norm's ones would hide what it does with its weight
            with warnings.catch_warnings(), side.working("float64", throughout=True):
                warnings.simplefilter("ignore")
                side.run(inputs, False, KeyedDraws(0, {}), of_inputs=True)
                try:  # with what custom functions do on the way back
                    side.run(inputs, True, KeyedDraws(0, {}), objective=Projection())
                except ModelFailure:
                    side.run(inputs, True, KeyedDraws(0, {}))
                if widen is not None and side.asked_float32:
                    widen(False)
                    with suppress(ModelFailure), side.working("float64"):
                        side.run(inputs, True, KeyedDraws(0, {}), objective=Projection())
                    widen(True)
                ask(lambda: _read_outputs(side.run(inputs, False, KeyedDraws(0, {}), "ends")))
            if source.script:
                with suppress(Exception):  # it is said where the loop is compared
                    watch_script(source.script, sys.modules[name], TorchScript())
        except (Exception, SystemExit) as error:
            cause = error.__cause__ or error
            last = traceback.extract_tb(cause.__traceback__)
            own = [one for one in last if one.filename == str(path)]
            line = f" (line {own[-1].lineno}: {own[-1].line})" if own else ""
            return f"{type(cause).__name__}: {cause}{line}"
        finally:
            sys.modules.pop(name, None)
    return ""
