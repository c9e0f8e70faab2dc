"""Pairs weights of equal values by their gradients: outputs can't tell two norms of ones apart.

Where the outputs agree and gradients differ, each such weight is sought among the port's by its gradient.
If pairs were exchanged, every one is found; if the port has a fault, its gradient is nowhere.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from reprod_align.alignment.comparing import find_gradient
from reprod_align.alignment.findings import OUTPUTS_IN_EVAL, Findings
from reprod_align.alignment.noise import WHOLE_ROUNDING
from reprod_align.alignment.pair_models import pair_models
from reprod_align.alignment.runner import Runner
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.text import is_within, parent, similarity
from reprod_align.match import map_name
from reprod_align.model.side import ModelFailure
from reprod_align.pair import PairSpec
from reprod_align.report import Report

import numpy as np

_ALIKE = 1e-6
"""relative: float32 inside may round a gradient by this; those of two norms differ by far more"""
_ZERO = 1e-12
"""of the largest gradient: rounding where zero is due, as in the bias of a key"""


def may_be_exchanged(report: Report) -> bool:
    """Tell whether gradients differ although the outputs agree, float32's rounding aside."""
    small = {one.what for one in report.checks if one.relative <= WHOLE_ROUNDING}
    gradients = {one.what for one in report.checks if one.stage == "backward"}
    return OUTPUTS_IN_EVAL in small and not gradients <= small


def find_exchanged(pair: PairSpec) -> Mapping[str, str]:
    """Return new partners for weights of equal values, such that all gradients agree; {} if there are none.

    PyTorch's name -> Paddle's: of a module where all that it holds goes together, else of a weight.
    """
    try:
        with pair.reference.working("float64"), pair.port.working("float64", at_rest=True):
            runner = pair_models(
                pair.reference, pair.port, pair.inputs, "float64", pair.name_map,
                pair.copy_weights, Findings(), pair.modules,
            )  # fmt: skip
            named = dict(_pair_by_gradients(runner))
    except ModelFailure:
        return {}
    known = pair.name_map or {}
    if any(map_name(name, known) is not None for name in named):
        return {}  # the user has said what they stand for
    return _name_modules(runner, named)


def _pair_by_gradients(runner: Runner) -> list[tuple[str, str]]:
    """Return new pairs of names for all weights whose gradients differ; [] if one finds no single partner."""
    paddle, weights = runner.pairing.paddle, runner.weights
    ours, theirs = runner.expected, runner.run_port(False, "outputs").gradients
    differing = defaultdict[object, list[tuple[str, str]]](list)
    least = _ZERO * max(map(magnitude, theirs.values()), default=0.0)
    for one in runner.pairing.distinct:
        for other in one.paddle:
            if runner.pairing.may_train(one, other):
                due = find_gradient(runner.pairing, one, other, ours)
                actual = paddle.find(theirs, other)
                far = np.inf if actual is None else magnitude(due - actual)
                if not far <= max(_ALIKE * magnitude(due), least):
                    name = one.torch[0]
                    values = blake2b(
                        np.ascontiguousarray(weights[name]).data, digest_size=16
                    ).digest()
                    differing[due.shape, values].append((name, other))
    made = []
    for pairs in differing.values():
        if len(pairs) == 1:
            return []  # nothing of its values is there to be exchanged with: a fault
        for name, _ in pairs:
            found = [other for _, other in pairs
                     if _are_alike(ours.gradients.get(name), paddle.find(theirs, other))]  # fmt: skip
            if len(found) != 1:
                return []
            made.append((name, found[0]))
        if _rate_names(made[-len(pairs) :]) < _rate_names(pairs):
            return []  # norm1 with norm1: the port calls them in another order
    return made


def _rate_names(pairs: Iterable[tuple[str, str]]) -> float:
    """Return how alike the names are, 1 at most for each pair."""
    return sum(similarity(*names) for names in pairs)


def _are_alike(expected: Array | None, actual: Array | None) -> bool:
    if expected is None or actual is None or expected.shape != actual.shape:
        return False
    return magnitude(expected) > 0 and magnitude(expected - actual) <= _ALIKE * magnitude(expected)


def _name_modules(runner: Runner, named: Mapping[str, str]) -> Mapping[str, str]:
    """Return the pairs of names with a module's in place of its weights', where it holds no others."""
    made = dict[str, str]()
    for name, other in named.items():
        ours, theirs = parent(name), parent(other)
        held = [one for one, tensor in runner.pairing.torch.tensors.items()
                if is_within(one, ours) and tensor.is_parameter]  # fmt: skip
        whole = ours and all(parent(named.get(one, "")) == theirs for one in held)
        made.update({ours: theirs} if whole else {name: other})
    return made
