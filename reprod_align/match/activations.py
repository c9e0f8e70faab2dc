"""Finds PyTorch's activations that Paddle's layers have built in: `BatchNorm(8, act="relu")`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reprod_align.base.naming import parent
from reprod_align.match.evidence import Evidence
from reprod_align.match.modules import leaves_without_tensors
from reprod_align.model.trace import Call, Trace

import numpy as np

_NAMES = {"swish": "silu"}
"""Paddle's name of an activation -> PyTorch's class, in lower case"""


def find_built_in(
    pairs: Mapping[str, str], torch: Evidence, paddle: Evidence, expected: Trace
) -> dict[str, str]:
    """Return PyTorch's layers to which Paddle's add an activation, each with the module that applies it.

    "" where a module's own code may do it; a layer whose output goes into another layer as it is has
    no activation. expected: PyTorch's run.
    """
    silent, found = leaves_without_tensors(torch.info), dict[str, str]()
    composites = {parent(path) for path in torch.info.modules}
    for call in expected.calls:
        known = paddle.info.modules.get(pairs.get(call.path, ""))
        if known is not None and known.kind and known.values.get("act") and not call.index:
            takers = [one for one in find_takers(expected, call) if one.path not in composites]
            applied = [one.path for one in takers if one.path in silent and _is_changed(one)]
            if applied or not takers:
                found[call.path] = applied[0] if applied else ""
    return found


def join_activation(call: Call, applied: str, run: Trace) -> Call:
    """Return a call that gives what the module `applied` makes of its output, if that takes it."""
    after = next((one for one in find_takers(run, call) if one.path == applied), call)
    return replace(call, outputs=after.outputs, finished=after.finished)


def is_same_activation(class_name: str, name: str) -> bool:
    """Tell whether PyTorch's class and Paddle's name mean the same: Hardswish and "hard_swish"."""
    return class_name.lower() == _NAMES.get(name, name.replace("_", ""))


def find_takers(run: Trace, call: Call) -> Iterator[Call]:
    """Yield the later calls that take what a call gave, if that is one tensor."""
    given = [leaf.array for leaf in call.outputs.values()]
    for later in run.calls:
        taken = [leaf.array for leaf in later.inputs.values()]
        if later.began > call.finished and len(given) == len(taken) == 1:
            if np.array_equal(given[0], taken[0]):
                yield later


def _is_changed(call: Call) -> bool:
    """Tell whether a call gives other numbers than it takes: dropout, in eval mode, gives the same."""
    (taken,), given = call.inputs.values(), [leaf.array for leaf in call.outputs.values()]
    same_shape = len(given) == 1 and given[0].shape == taken.array.shape
    return same_shape and not np.array_equal(given[0], taken.array)
