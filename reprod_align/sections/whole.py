"""Runs both models once, section by section, and notes what crosses the sections' borders."""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from reprod_align.base.console import tell
from reprod_align.model.leaf import LeafPair
from reprod_align.model.projection import Projection, pair_outputs
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.model.trace import Trace
from reprod_align.sections.crossing import translate_all
from reprod_align.sections.models import SectionedPair, SectionedSide
from reprod_align.sections.stream import Crossings, Stream


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


def run_both(pair: SectionedPair, inputs: Inputs) -> WholeRuns:
    """Run both models in float64, eval mode. Raises ModelFailure if either fails."""
    reference, ours = _run(pair.reference, inputs)
    port, natural = _run(pair.port, inputs)
    pairs = pair_outputs(reference.outputs, port.outputs)
    _add_gradients(pair.reference, inputs, ours, frozenset(one.expected for one in pairs))
    theirs = {
        section.paddle: translate_all(ours.get(section.torch, ()), natural.get(section.paddle, ()))
        for section in pair.sections
    }
    return WholeRuns(reference, port, ours, theirs, pairs)


def run_outputs(pair: SectionedPair, inputs: Inputs) -> tuple[Trace, Trace]:
    """Run both models with float64 also where they ask for float32."""
    return _run(pair.reference, inputs, True)[0], _run(pair.port, inputs, True)[0]


@contextmanager
def at_work(side: SectionedSide, throughout: bool = False) -> Iterator[None]:
    """Work in float64 in the block, quietly."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of libraries about themselves
        stack.enter_context(side.side.working("float64", throughout))
        yield


def _run(side: SectionedSide, inputs: Inputs, throughout: bool = False) -> tuple[Trace, Crossings]:
    tell(f"{side.side.name}: the whole model, forward")
    try:
        with at_work(side, throughout):
            return Stream(side.side, side.shells).run(inputs)
    except ModelFailure:
        if throughout or not side.side.asked_float32:
            raise
    return _run(side, inputs, True)


def _add_gradients(
    side: SectionedSide, inputs: Inputs, crossings: Crossings, counted: frozenset[str]
) -> None:
    """Add the gradients of the outputs that count, where the model has a backward pass in eval mode."""
    tell(f"{side.side.name}: the whole model, backward")
    try:
        with at_work(side):
            Stream(side.side, side.shells).add_gradients(
                inputs, crossings, Projection(only=counted)
            )
    except ModelFailure as error:
        if error.what != "backward pass":
            raise
