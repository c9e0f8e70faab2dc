"""Tells a fault that the inputs hide from one that changes nothing a model computes.

A constant added to all logits before a softmax changes no output and no gradient, on any batch. To
ask for inputs that reveal it would be to ask for the impossible.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, product

from reprod_align.alignment.batches.derive import Batch, derive_batches
from reprod_align.base.blocks import magnitude
from reprod_align.base.difference import gap
from reprod_align.model.local import LocalSide
from reprod_align.model.projection import Projection
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.model.trace import Array, Trace
from reprod_align.randomness import KeyedDraws
from reprod_align.selftest.fault import Fault
from reprod_align.selftest.view import DEAD

import numpy as np

_SEED = 20215
_ROUNDING = 1e-12  # relative: what rounding alone may change
NO_EFFECT = "it changes no output and no gradient, on these inputs or on others derived from them"


def may_lack_effect(fault: Fault, inputs: Inputs) -> bool:
    """Tell whether a fault that was not revealed may be one that no inputs reveal.

    It is not if a reason to hide is known, or if an axis has length 1: longer inputs may reveal it.
    """
    arrays = inputs.values() if isinstance(inputs, Mapping) else inputs
    single = any(size == 1 for array in arrays for size in array.shape)
    return not (single or fault.in_steps) and fault.hint in ("", DEAD)


def lacks_effect(side: LocalSide, fault: Fault, inputs: Inputs) -> bool:
    """Tell whether the fault changes nothing beyond rounding, on the inputs and on derived ones.

    Call inside `working`, the weights loaded.
    """
    if fault.plant is None:
        return False
    try:
        batches = list(_derive(side, inputs))
        sound = [list(_run(side, batch)) for batch in batches]
        with fault.plant(side) as broken, broken.working(side.dtype):
            changed = [list(_run(broken, batch)) for batch in batches]
    except ModelFailure:
        return False
    runs = zip(chain(*sound), chain(*changed), strict=True)
    return all(_is_same(one, other) for one, other in runs)


def _derive(side: LocalSide, inputs: Inputs) -> Iterator[Batch]:
    """Yield the inputs, and further batches that the model accepts."""

    def accepts(batch: Batch) -> bool:
        try:
            list(_run(side, batch))
        except ModelFailure:
            return False
        return True

    yield Batch("", inputs)
    yield from (batch for batch in derive_batches(inputs, accepts) if not batch.before)


def _run(side: LocalSide, batch: Batch) -> Iterator[Trace]:
    """Yield the model's runs in eval and in train mode, from a projection; from the loss if it fits."""
    kept, objectives = side.values(), [Projection(), None]
    if side.loss is None or batch.words:
        objectives.pop()
    for training, objective in product((False, True), objectives):
        draws = KeyedDraws(_SEED, {"": ""})
        yield side.run(
            batch.inputs, training, draws, "ends", objective, anew=True, graded=batch.graded
        )
        side.load(kept)


def _as_array(loss: float | None) -> Array:
    return np.array([] if loss is None else [loss])


def _is_same(sound: Trace, changed: Trace) -> bool:
    outputs = {at: leaf.array for at, leaf in sound.outputs.items()}
    others = {at: leaf.array for at, leaf in changed.outputs.items()}
    losses = [{"loss": _as_array(trace.loss)} for trace in (sound, changed)]
    return (
        _are_near(outputs, others)
        and _are_near(sound.gradients, changed.gradients)
        and _are_near(sound.buffers, changed.buffers)
        and _are_near(*losses)
    )


def _are_near(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> bool:
    floor = _ROUNDING * max(map(magnitude, ours.values()), default=0.0)
    same_names = ours.keys() == theirs.keys()
    return same_names and all(gap(ours[at], theirs[at], 0.0, floor).ok for at in ours)
