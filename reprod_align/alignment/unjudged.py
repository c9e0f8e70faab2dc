"""What agreement does not show: what the runs leave unjudged, and comparisons that passed and show little.

The runs do not show by themselves kernels at odds, lines and rows that are unread, other generators. A
comparison shows little where nothing was computed, or nothing could differ.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from reprod_align.alignment.comparing import Pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.lines.graph import ROUGH, are_equal
from reprod_align.alignment.runner import SEED, Runner
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.text import count, parent, shorten
from reprod_align.model.backward import Projection
from reprod_align.model.side import Inputs, ModelFailure, ModelInfo, Side
from reprod_align.model.source import SourceLine
from reprod_align.model.source.coverage import IdleLines
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
    sides = (str(REFERENCE), reference), (str(PORT), port)
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
    sides = (str(REFERENCE), reference.generators), (str(PORT), port.generators)
    for name in dict.fromkeys([*reference.generators, *port.generators]):
        drawing = [side for side, drawn in sides if name in drawn]
        if len(drawing) == 1:
            (other,) = {str(REFERENCE), str(PORT)} - {*drawing}
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


def note_made_tables(runner: Runner, findings: Findings) -> None:
    """Remark on tables that the port makes otherwise than PyTorch's: the weights that are loaded hide it.

    One that holds one number throughout is made to be loaded. A framework's own layer keeps statistics.
    """
    pairing, found = runner.pairing, []
    for pair in pairing.loaded:
        tensors = [
            *map(pairing.torch.tensors.get, pair.torch),
            *map(pairing.paddle.tensors.get, pair.paddle),
        ]
        if len(tensors) != 2 or any(one is None or one.is_parameter for one in tensors):
            continue
        name, other = pair.torch[0], pair.paddle[0]
        held, due = runner.held.get(other), runner.weights.get(name)
        if held is None or due is None or pairing.paddle.modules[parent(other)].kind:
            continue
        if not are_equal(due, held, ROUGH) and np.unique(held).size > 1:
            found.append(other)
    if found:
        text = f"{PORT}'s model makes other values than {REFERENCE}'s holds"
        hidden = "the loaded weights hide it, and a port trained from scratch would keep them"
        findings.remark(f"{shorten(found, _NAMED)}: {text}; {hidden}")


def _find_rows(runner: Runner, path: str) -> Array:
    """Return the rows that the calls of an embedding read, each once, in order."""
    calls = [call for call in runner.expected.calls if call.path == path]
    given = [leaf.array.reshape(-1) for call in calls for leaf in call.inputs.values()]
    whole = [array for array in given if array.dtype.kind in "iu"]
    return np.unique(np.concatenate(whole)) if whole else np.zeros(0)


_DEEP = 8
"""called modules with weights above which two frameworks never round alike throughout"""
_NAMED_MODULES = 6  # names in one remark


def doubts(done: Pass, inputs: Inputs, info: ModelInfo) -> Iterator[str]:
    """Yield a remark for everything that makes the agreement in a pass mean less than it seems.

    info: of the PyTorch model.
    """
    if _is_identical(done, info):
        yield (
            "the outputs are bit for bit the same, which is rare for two frameworks: "
            "check that both models really compute"
        )
    yield from _constant_inputs(inputs)
    yield from _constant_outputs(done)
    yield from _list_nan_outputs(done)
    yield from _list_uncalled(done, info)


def nothing_finite(done: Pass) -> bool:
    """Tell whether no compared output holds a single finite number."""
    floats = [done.reference.outputs[pair.expected].array for pair in done.pairs]
    floats = [array for array in floats if array.dtype.kind == "f" and array.size]
    return bool(floats) and not any(np.isfinite(array).any() for array in floats)


def _is_identical(done: Pass, info: ModelInfo) -> bool:
    """Tell whether the outputs of a deep model are bit for bit those of another framework's."""
    owners = {tensor.owner for tensor in info.tensors.values() if tensor.is_parameter}
    if sum(call.path in owners for call in done.reference.calls) < _DEEP:
        return False
    ours, theirs = done.reference.outputs, done.natural.outputs
    floats = [
        np.array_equal(pair.to_port(ours[pair.expected].array), theirs[pair.actual].array)
        for pair in done.pairs
        if magnitude(ours[pair.expected].array)
    ]
    return bool(floats) and all(floats)


def _constant_inputs(inputs: Inputs) -> Iterator[str]:
    """Yield a remark for each input that is one number throughout."""
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    for name, array in named:
        if array.size < 2 or (array != array.flat[0]).any():
            continue
        value = array.flat[0].item()
        if "mask" not in str(name):
            yield f"every element of the input {name} is {value:g}: most mistakes need input that varies"
        elif value:
            yield (
                f"the input {name} hides nothing (all {value:g}): the port's masking is tested on a "
                "derived batch at most, without gradients"
            )
        else:
            yield f"the input {name} hides everything (all 0): nothing is left to compare behind it"


def _constant_outputs(done: Pass) -> Iterator[str]:
    """Yield a remark for each compared output that is one number throughout."""
    for pair in done.pairs:
        array = done.reference.outputs[pair.expected].array
        if array.size > 1 and array.dtype.kind == "f" and not (array != array.flat[0]).any():
            name = pair.expected or "the output"
            yield f"{name} is {array.flat[0]:g} everywhere: its agreement shows little"


def _list_nan_outputs(done: Pass) -> Iterator[str]:
    """Yield a remark for each compared output that is NaN in places: on both sides, since they agree."""
    for pair in done.pairs:
        array = done.reference.outputs[pair.expected].array
        count = int(np.isnan(array).sum()) if array.dtype.kind in "fc" else 0
        if count:
            name = pair.expected or "the output"
            yield f"{name} is NaN on both sides in {count} of {array.size} places: they show nothing"


def doubt_gradients(done: Pass, info: ModelInfo) -> Iterator[str]:
    """Yield a remark on the reference's parameters whose gradient is zero or missing."""
    names = [name for name, t in info.tensors.items() if t.is_trainable and t.tie == name]
    silent = [name for name in names if not magnitude(info.find(done.reference.gradients, name))]
    if not any(leaf.differentiable for leaf in done.reference.outputs.values()):
        return
    if names and len(silent) == len(names):
        yield "no parameter gets a gradient: the backward pass is not tested"
    elif silent:
        yield f"zero gradient on this batch, so not tested: {shorten(silent, _NAMED_MODULES)}"


def _list_uncalled(done: Pass, info: ModelInfo) -> Iterator[str]:
    """Yield a remark on modules with parameters of their own that no call passed through."""
    called = {call.path for call in done.reference.calls}
    owners = dict.fromkeys(t.owner for t in info.tensors.values() if t.is_parameter)
    missed = [owner or "the model" for owner in owners if owner not in called]
    if missed:
        yield f"never called as a module (unused, or used from outside): {shorten(missed, _NAMED_MODULES)}"
