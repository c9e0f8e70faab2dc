"""Runs both models as a whole, the weights of one section in memory at a time.

What crosses the sections' borders is noted, and kept in a file with the outputs: with it any piece can be
judged in any process. Each array is kept once, by the digest of its bytes: what one section returns the
next one takes. What holds the tensors is spelled as JSON; nothing that is read is run.
"""

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final, cast

from reprod_align.base.blocks import Array
from reprod_align.base.console import tell
from reprod_align.base.files import parse_json, write_tensors
from reprod_align.base.tasks import digest
from reprod_align.base.tree import IsTensor, replace
from reprod_align.model import (
    Call,
    Inputs,
    Leaf,
    LeafPair,
    LocalSide,
    ModelFailure,
    Projection,
    Trace,
    Watch,
    keep_copy,
    pair_outputs,
)
from reprod_align.randomness import KeyedDraws
from reprod_align.sections.crossing import (
    Crossing,
    Crossings,
    StandIn,
    note_inputs,
    note_outputs,
    translate_all,
)
from reprod_align.sections.models import SectionedPair, SectionedSide, Shell
from reprod_align.weights import open_checkpoint

import numpy as np

_NO_DRAWS = 0


class StreamedSide:
    """A side whose sections are filled as they are called."""

    def __init__(self, side: LocalSide, shells: Mapping[str, Shell]) -> None:
        """Take the side and its sections, which are hidden."""
        self.side, self.shells = side, shells
        self._failed = ""
        """the innermost module that raised"""

    def run(self, inputs: Inputs) -> tuple[Trace, dict[str, list[Crossing]]]:
        """Run the model forward in eval mode; return its outputs and what crossed each section.

        No gradient flows from one section to the next. The side must be at work.
        """
        crossings: dict[str, list[Crossing]] = {}
        for path, shell in self.shells.items():
            shell.hide(partial(self._pass_through, path, crossings))
        nothing, draws = Projection(only=frozenset()), KeyedDraws(_NO_DRAWS, {})
        try:
            trace = self.side.run(inputs, False, draws, "ends", nothing, anew=True)
        except ModelFailure as error:
            error.path = self._failed or error.path
            raise
        return trace, crossings

    def _pass_through(
        self, path: str, crossings: dict[str, list[Crossing]], *args: Any, **kwargs: Any
    ) -> Any:
        fw, shell = self.side.fw, self.shells[path]
        call = note_inputs(fw, (args, kwargs))
        crossings.setdefault(path, []).append(call)
        with self._at_work(shell), self._note_place(shell):
            output = shell.module.forward(*args, **kwargs)
            note_outputs(fw, call, output)
        return replace(
            output,
            fw.is_tensor,
            lambda _, one: fw.make_differentiable(one) if fw.carries_gradient(one) else one,
        )

    @contextmanager
    def _note_place(self, shell: Shell) -> Iterator[None]:
        """Note which module of the section raises what the block raises."""
        fw = self.side.fw
        watch = Watch(fw, "none")
        with watch.on([(path, one) for path, one in fw.modules(shell.module) if path]):
            try:
                yield
            except Exception:
                self._failed = self._failed or f"{shell.path}.{watch.inside()}".rstrip(".")
                raise

    @contextmanager
    def _at_work(self, shell: Shell) -> Iterator[None]:
        """Show the section in the block, in the precision that is at work."""
        side = self.side
        with ExitStack() as stack:
            stack.enter_context(shell.filled())
            inner = LocalSide(side.fw, side.settings, side.shared_random, shell.module)
            stack.enter_context(inner.working(side.dtype, side.throughout))
            yield

    # ------------------------------------------------------------------ backward

    def add_gradients(self, inputs: Inputs, crossings: Crossings, objective: Projection) -> None:
        """Add to the sections' inputs the gradients of `objective`, the last section's first.

        Where sections call each other in turns, a section whose gradient is not known yet passes its
        output's gradient on to its inputs.
        """
        stand_ins = {path: StandIn(self.side, known) for path, known in crossings.items()}
        for path, known in reversed(list(crossings.items())):
            if not any(leaf.differentiable for call in known for leaf in call.inputs.values()):
                continue
            for other, stand_in in stand_ins.items():
                stand_in.begin()
                self.shells[other].hide(stand_in.answer)
            with self._at_work(self.shells[path]):
                hear = partial(self._hear, iter(known))
                hook = self.side.fw.before_call(self.shells[path].module, hear)
                try:
                    draws = KeyedDraws(_NO_DRAWS, {})
                    self.side.run(inputs, False, draws, "none", objective, take_gradients=False)
                finally:
                    hook.remove()
                    self.side.set_gradients({})

    def _hear(self, calls: Iterator[Crossing], args: Any, kwargs: Any) -> Any:
        """Return the next call's arguments; their gradients are noted as they arrive."""
        call = next(calls)

        def listen(at: str, tensor: Any) -> Any:
            if not self.side.fw.carries_gradient(tensor):
                return tensor
            heard = tensor.clone()

            def note(gradient: Any) -> None:
                call.inputs[at].gradient = keep_copy(self.side.fw.view(gradient))

            self.side.fw.on_gradient(heard, note)
            return heard

        return replace((args, kwargs), self.side.fw.is_tensor, listen)


@dataclass(frozen=True)
class SideRun:
    """What one model did as a whole."""

    trace: Trace
    crossings: Crossings
    asked_float32: bool
    """whether it asks for float32 inside"""


@dataclass(frozen=True)
class WholeRuns:
    """What both models did as a whole."""

    reference: Trace
    port: Trace
    ours: Crossings
    theirs: Crossings
    """the port's, with PyTorch's values"""
    pairs: list[LeafPair]
    """of the outputs"""


def run_side(side: SectionedSide, inputs: Inputs, throughout: bool = False) -> SideRun:
    """Run a model forward in float64, eval mode; throughout: also where it asks for float32.

    Raises ModelFailure if it fails.
    """
    tell(f"{side.side.name}: the whole model, forward")
    try:
        with at_work(side, throughout):
            trace, crossings = StreamedSide(side.side, side.shells).run(inputs)
            return SideRun(trace, crossings, side.side.asked_float32)
    except ModelFailure:
        if throughout or not side.side.asked_float32:
            raise
    return run_side(side, inputs, True)


def add_gradients(pair: SectionedPair, reference: SideRun, port: SideRun) -> SideRun:
    """Return the reference's run with gradients, where it has a backward pass in eval mode.

    They are those of the outputs that the port has too.
    """
    side = pair.reference
    counted = frozenset(one.expected for one in _pair(reference, port))
    tell(f"{side.side.name}: the whole model, backward")
    try:
        with at_work(side):
            StreamedSide(side.side, side.shells).add_gradients(
                pair.spec.inputs, reference.crossings, Projection(only=counted)
            )
    except ModelFailure as error:
        if error.what != "backward pass":
            raise
    return reference


def join_runs(pair: SectionedPair, reference: SideRun, port: SideRun) -> WholeRuns:
    """Return both runs as the pieces need them; reference: with its gradients."""
    ours, natural = reference.crossings, port.crossings
    theirs = {
        section.paddle: translate_all(ours.get(section.torch, ()), natural.get(section.paddle, ()))
        for section in pair.sections
    }
    return WholeRuns(reference.trace, port.trace, ours, theirs, _pair(reference, port))


def _pair(reference: SideRun, port: SideRun) -> list[LeafPair]:
    return pair_outputs(reference.trace.outputs, port.trace.outputs)


@contextmanager
def at_work(side: SectionedSide, throughout: bool = False) -> Iterator[None]:
    """Work in float64 in the block, quietly."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of libraries about themselves
        stack.enter_context(side.side.working("float64", throughout))
        yield


_KEY: Final = "run"
KeepArray = Callable[[Array | None], str | None]
FindArray = Callable[[str | None], Any]


def keep_run(path: Path, run: SideRun, is_tensor: IsTensor) -> None:
    """Write a run. Raises TypeError if a section returned what cannot be spelled."""
    arrays: dict[str, Array] = {}

    def note(array: Array | None) -> str | None:
        if array is None:
            return None
        if array.dtype.kind not in "buif":
            raise TypeError(f"an array of {array.dtype}")
        dense = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        name = digest(f"{array.dtype} {array.shape}", dense.tobytes())
        arrays[name] = array
        return name

    def spell_call(call: Crossing) -> list[Any]:
        inputs, outputs = _spell_leaves(call.inputs, note), _spell_leaves(call.outputs, note)
        return [inputs, outputs, spell(call.returned, is_tensor)]

    plain = {
        "outputs": _spell_leaves(run.trace.outputs, note),
        "crossings": {path: list(map(spell_call, calls)) for path, calls in run.crossings.items()},
        "asked_float32": run.asked_float32,
    }
    write_tensors(path, arrays, {_KEY: json.dumps(plain)})


def read_run(path: Path, nothing: Any) -> SideRun:
    """Return what `keep_run` wrote; its arrays stay in the file, mapped.

    nothing: a tensor without content, which stands in what the sections return. Raises WeightsError, or
    an error that damaged JSON leads to.
    """
    file = open_checkpoint(path)
    held = parse_json(file.metadata[_KEY])
    tensors = file.tensors

    def find(name: str | None) -> Any:
        return None if name is None else tensors[name].map()

    def read_call(inputs: Any, outputs: Any, returned: Any) -> Crossing:
        leaves = _read_leaves(inputs, find), _read_leaves(outputs, find)
        return Crossing(*leaves, build(returned, nothing))

    trace = Trace([Call("", 0, None, outputs=_read_leaves(held["outputs"], find))])
    crossings = {path: [read_call(*call) for call in calls]
                 for path, calls in held["crossings"].items()}  # fmt: skip
    return SideRun(trace, crossings, bool(held["asked_float32"]))


def _spell_leaves(leaves: Mapping[str, Leaf], note: KeepArray) -> dict[str, Any]:
    return {
        at: [note(leaf.array), leaf.differentiable, note(leaf.gradient)]
        for at, leaf in leaves.items()
    }


def _read_leaves(plain: Mapping[str, Any], find: FindArray) -> dict[str, Leaf]:
    return {
        at: Leaf(find(array), bool(differentiable), find(gradient))
        for at, (array, differentiable, gradient) in plain.items()
    }


# ---------------------------------------------------------------------- what holds the tensors


def spell(value: Any, is_tensor: IsTensor) -> Any:
    """Return a value of tensors, plain values and containers as JSON can hold it; TypeError for others."""
    if is_tensor(value):
        return {"tensor": True}
    if value is None or type(value) in (bool, int, float, str):
        return {"value": value}
    kind = f"{type(value).__module__}:{type(value).__qualname__}"
    if _find_class(kind) is not type(value):
        raise TypeError(f"a value of {kind}")
    if isinstance(value, Mapping):
        if not all(type(key) is str for key in value):
            raise TypeError(f"a {kind} with keys that are no texts")
        parts = [[key, spell(part, is_tensor)] for key, part in value.items()]
    elif isinstance(value, (tuple, list)):
        parts = [["", spell(part, is_tensor)] for part in value]
    else:
        names = [one.name for one in fields(cast(Any, value))]
        parts = [[name, spell(getattr(value, name), is_tensor)] for name in names]
    return {"class": kind, "parts": parts}


def build(plain: Mapping[str, Any], nothing: Any) -> Any:
    """Undo `spell`; `nothing` stands for each tensor. Raises TypeError or ValueError for another text."""
    if "tensor" in plain:
        return nothing
    if "value" in plain:
        return plain["value"]
    kind = _find_class(plain["class"])
    named = [(name, build(part, nothing)) for name, part in plain["parts"]]
    if issubclass(kind, (tuple, list)):
        parts = [part for _, part in named]
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    if issubclass(kind, Mapping):
        return kind(**dict(named)) if is_dataclass(kind) else kind(named)  # type: ignore[call-arg]
    made = object.__new__(kind)
    for name, part in named:
        object.__setattr__(made, name, part)
    return made


def _find_class(kind: str) -> type:
    """Return a container's class among those that are imported. Raises TypeError if it is none."""
    module, _, name = kind.partition(":")
    try:
        found = reduce(getattr, name.split("."), sys.modules[module])
    except (KeyError, AttributeError):
        found = None
    if isinstance(found, type) and (
        issubclass(found, (tuple, list, Mapping)) or is_dataclass(found)
    ):
        return found
    raise TypeError(f"a value of {kind}")
