"""What the runs do not show by themselves: kernels at odds, lines and rows unread, other generators."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from reprod_align.alignment.findings import Findings
from reprod_align.alignment.runner import SEED, Runner
from reprod_align.base.blocks import Array
from reprod_align.base.text import count, shorten
from reprod_align.model.backward import Projection
from reprod_align.model.side import Inputs, ModelFailure, Side
from reprod_align.model.source.coverage import IdleLines
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.trace import Trace
from reprod_align.randomness import KeyedDraws
from reprod_align.report import NotJudged, Report

import numpy as np

_NAMED = 3  # modules or tables in one sentence


def contradicts_itself(side: Side, inputs: Inputs, further: bool = True) -> bool:
    """Run PyTorch's model forward in both modes, with each of its kernels held against itself.

    further: integers come as they are given, and as int32, which a further batch may have.
    """
    side.mend_kernels(True)
    try:
        for dtype in ("float64", "float32"):
            with suppress(ModelFailure), side.working(dtype):
                for varied in _vary(inputs) if further else [inputs]:
                    for training in (False, True):
                        draws, nothing = KeyedDraws(SEED, {}), Projection(only=frozenset())
                        side.run(varied, training, draws, "none", nothing, anew=True)
                break
    finally:
        noted = side.mend_kernels(False)
    return bool(noted)


def _vary(inputs: Inputs) -> Iterator[Inputs]:
    """Yield the inputs, and with int32 in place of int64, if they hold any."""
    yield inputs
    named = inputs if isinstance(inputs, Mapping) else dict(enumerate(inputs))
    if any(np.asarray(array).dtype == np.int64 for array in named.values()):
        made = {
            name: np.asarray(array).astype(np.int32)
            if np.asarray(array).dtype == np.int64
            else array
            for name, array in named.items()
        }
        yield (
            {str(name): one for name, one in made.items()}
            if isinstance(inputs, Mapping)
            else (tuple(made.values()))
        )


def note_kernels(report: Report, noted: Sequence[str]) -> None:
    """Note kernels of PyTorch's that gave other numbers in another type."""
    if noted:
        text = (f"PyTorch contradicts itself: {shorten(list(noted), _NAMED)}; the port is held against "
                "the wider type's numbers")  # fmt: skip
        report.not_judged.append(NotJudged("precision", text))


_NAMED_PLACES = 4  # places in one sentence


@contextmanager
def watch_lines(reference: Side, port: Side) -> Iterator[Callable[[Report], None]]:
    """Note in the block which lines run on either side; yield what adds the others to a report."""
    sides = ("PyTorch", reference), ("Paddle", port)
    for _, side in sides:
        side.watch_lines()

    def note_idle(report: Report) -> None:
        for name, side in sides:
            text = _describe(name, side.find_idle_lines())
            if text:
                report.not_judged.append(NotJudged("lines", text))

    try:
        yield note_idle
    finally:
        for _, side in sides:
            side.find_idle_lines()


def _describe(side: str, idle: IdleLines) -> str:
    """Return the lines that never ran in one sentence; "" if all did."""
    lines = sum(number for *_, number in idle.own)
    parts = (
        [f"{count(lines, 'line')} never ran: {shorten(_name(idle), _NAMED_PLACES)}"]
        if lines
        else []
    )
    parts += [f"{never} of {total} statements that it reaches in {package} never ran"
              for package, (never, total) in idle.installed.items()]  # fmt: skip
    if idle.unknown:
        files = shorten(list(idle.unknown), _NAMED_PLACES)
        parts.append(f"which lines of {files} ran is not known: changed since it was imported")
    return f"{side}: {'; '.join(parts)}" if parts else ""


def _name(idle: IdleLines) -> list[str]:
    """Return the places as "file.py:12-14"."""
    return [
        f"{SourceLine(file, first)}" + (f"-{last}" if last > first else "")
        for file, first, last, _ in idle.own
    ]


def note_generators(findings: Findings, reference: Trace, port: Trace, mode: str) -> None:
    """Note each generator outside the frameworks from which the two sides draw unequally.

    Both start from one seed, so that equal draws give equal numbers.
    """
    sides = ("PyTorch", reference.generators), ("Paddle", port.generators)
    for name in dict.fromkeys([*reference.generators, *port.generators]):
        drawing = [side for side, drawn in sides if name in drawn]
        if len(drawing) == 1:
            (other,) = {"PyTorch", "Paddle"} - {*drawing}
            text = f"in {mode} mode {drawing[0]}'s model draws from {name}, and {other}'s does not"
        elif reference.generators[name] != port.generators[name]:
            text = f"in {mode} mode both models draw from {name}, but not the same draws"
        else:
            continue
        findings.leave_unjudged(
            "random numbers", f"{text}: whether the draws mean the same is not known"
        )


_FEWEST = 2  # rows that are a range


def note_unread_rows(runner: Runner, findings: Findings) -> None:
    """Note the tables of which the batch reads a range of rows and not all.

    Words are no range: of a vocabulary some are missing in every batch.
    """
    torch, found = runner.pairing.torch, []
    for path, module in torch.modules.items():
        table = torch.tensors.get(f"{path}.weight")
        if module.kind == "Embedding" and table is not None:
            read = _find_rows(runner, path)
            first, last = (int(read[0]), int(read[-1])) if read.size else (0, 0)
            whole = last - first + 1
            if _FEWEST <= read.size == whole < table.shape[0]:
                found.append(f"rows {first} to {last} of {table.shape[0]} of {path}")
    if found:
        findings.leave_unjudged("batches", f"the given batch reads {shorten(found, _NAMED)} only")


def _find_rows(runner: Runner, path: str) -> Array:
    """Return the rows that the calls of an embedding read, each once, in order."""
    calls = [call for call in runner.expected.calls if call.path == path]
    given = [leaf.array.reshape(-1) for call in calls for leaf in call.inputs.values()]
    whole = [array for array in given if array.dtype.kind in "iu"]
    return np.unique(np.concatenate(whole)) if whole else np.zeros(0)
