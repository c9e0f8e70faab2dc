"""Runs both models as a whole, the weights of one section in memory at a time.

What crosses the sections' borders is noted.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from reprod_align.base.console import tell
from reprod_align.base.tree import replace
from reprod_align.model import (
    Inputs,
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

_NO_DRAWS = 0


class Stream:
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
        return replace(output, fw.is_tensor, self._cut)

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

    def _cut(self, at: str, tensor: Any) -> Any:
        fw = self.side.fw
        return fw.make_differentiable(tensor) if fw.carries_gradient(tensor) else tensor

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
            if any(leaf.differentiable for call in known for leaf in call.inputs.values()):
                self._run_back(inputs, path, known, stand_ins, objective)

    def _run_back(
        self,
        inputs: Inputs,
        path: str,
        known: Sequence[Crossing],
        stand_ins: Mapping[str, StandIn],
        objective: Projection,
    ) -> None:
        for other, stand_in in stand_ins.items():
            stand_in.begin()
            self.shells[other].hide(stand_in.answer)
        calls = iter(known)
        with self._at_work(self.shells[path]):
            hook = self.side.fw.before_call(
                self.shells[path].module, lambda args, kwargs: self._hear(next(calls), args, kwargs)
            )
            try:
                draws = KeyedDraws(_NO_DRAWS, {})
                self.side.run(inputs, False, draws, "none", objective, take_gradients=False)
            finally:
                hook.remove()
                self.side.set_gradients({})

    def _hear(self, call: Crossing, args: Any, kwargs: Any) -> Any:
        """Return the arguments; their gradients are noted as they arrive."""

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
    asked_float32: bool
    """whether either model asks for float32 inside"""


def run_side(side: SectionedSide, inputs: Inputs, throughout: bool = False) -> SideRun:
    """Run a model forward in float64, eval mode; throughout: also where it asks for float32.

    Raises ModelFailure if it fails.
    """
    tell(f"{side.side.name}: the whole model, forward")
    try:
        with at_work(side, throughout):
            trace, crossings = Stream(side.side, side.shells).run(inputs)
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
            Stream(side.side, side.shells).add_gradients(
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
    asked = reference.asked_float32 or port.asked_float32
    pairs = _pair(reference, port)
    return WholeRuns(reference.trace, port.trace, ours, theirs, pairs, asked)


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
