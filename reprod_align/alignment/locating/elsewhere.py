"""Shows a fault on another batch: a change that fits the given one by chance mends nothing there."""

from dataclasses import replace
from itertools import islice

from reprod_align.alignment.batches.derive import list_others
from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.locating.counterparts import PinnedRun
from reprod_align.alignment.locating.pinning import run_pinned
from reprod_align.alignment.runner import Runner
from reprod_align.model.side import Inputs, ModelFailure

import numpy as np

_TRIED = 6  # batches, until both sides run on one


def run_elsewhere(runner: Runner, training: bool) -> tuple[Runner, PinnedRun] | None:
    """Return what runs both sides on another batch, and the port's run there on the reference's numbers.

    None if there is no other batch on which both run and the reference gives finite numbers.
    """
    for inputs in islice(list_others(runner.inputs), _TRIED):
        try:
            found = _run_on(runner, training, inputs)
        except ModelFailure:
            continue
        if found is not None:
            return found
    return None


def _run_on(runner: Runner, training: bool, inputs: Inputs) -> tuple[Runner, PinnedRun] | None:
    other = replace(runner, inputs=inputs, _drawn={}, made={})
    other = replace(other, expected=other.run_reference(False))
    reference = other.run_reference(True, of_inputs=True) if training else other.expected
    if not all(np.isfinite(leaf.array).all() for leaf in reference.outputs.values()):
        return None
    done = compare_pass(other, reference, training, until_one_differs=True)
    return other, run_pinned(other, done)[0]
