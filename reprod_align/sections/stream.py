"""Runs a whole model with the weights of one section in memory at a time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from reprod_align.base.tree import replace
from reprod_align.model.local import LocalSide
from reprod_align.model.projection import Projection
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.model.store import keep_copy
from reprod_align.model.trace import Trace
from reprod_align.model.watch import Watch
from reprod_align.randomness import KeyedDraws
from reprod_align.sections.crossing import Crossing, note_inputs, note_outputs
from reprod_align.sections.shell import Shell
from reprod_align.sections.stand_in import StandIn

_NO_DRAWS = 0
Crossings = Mapping[str, Sequence[Crossing]]
"""section -> its calls, in the order in which the sections are first called"""


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

        Where sections are called by turns, one whose gradient is still missing hands on what it gets.
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
