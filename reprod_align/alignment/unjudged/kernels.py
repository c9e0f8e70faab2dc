"""Tells whether PyTorch's kernels contradict themselves in a model, and says where they did."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from reprod_align.alignment.runner import SEED
from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.base.text import shorten
from reprod_align.model.projection import Projection
from reprod_align.model.side import Inputs, ModelFailure, Side
from reprod_align.report import NotJudged, Report

import numpy as np

_NAMED = 3  # places in one sentence


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
