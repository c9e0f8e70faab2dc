"""Finds the code that made a value, or that uses it, beyond modules that only pass it on."""

from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which
from reprod_align.model.trace import Call, Leaf

import numpy as np


def find_code_with(
    run: PinnedRun, calls: CallPair, ours: Leaf, theirs: Leaf, which: Which
) -> tuple[str, str]:
    """Return the modules whose code made a value that two calls take ("inputs"), or uses one they give.

    A module without a counterpart may pass a value on by itself. In a pair of modules both must pass
    it in; what a pair gives is used by its own code.
    """
    around = run.parents(calls)
    while around is not None:
        passed = _holds(around.ours, which, ours), _holds(around.theirs, which, theirs)
        enough = not run.are_counterparts(around) or (which == "inputs" and all(passed))
        if not any(passed) or not enough:
            break
        calls = CallPair(
            around.ours if passed[0] else calls.ours, around.theirs if passed[1] else calls.theirs
        )
        around = run.parents(calls)
    return run.code_around(calls)


def _holds(call: Call, which: Which, leaf: Leaf) -> bool:
    """Tell whether a call, not the model's own, has this value among its inputs or outputs."""
    return call.parent is not None and any(
        value.differentiable == leaf.differentiable and np.array_equal(value.array, leaf.array)
        for value in getattr(call, which).values()
    )
