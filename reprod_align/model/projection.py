"""A scalar of all outputs, to run a backward pass from where there is no loss, or not yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from reprod_align.model.leaf import LeafPair, pair_leaves
from reprod_align.model.trace import Array, Leaf

import numpy as np

_SEED = 20212


@dataclass(frozen=True)
class Projection:
    """The sum of every float output element times a fixed random weight."""

    expected: Mapping[str, Leaf] = field(default_factory=dict)
    """the reference's outputs, so that the same weight meets the same element; empty: its own"""
    only: frozenset[str] | None = None
    """the reference's outputs that count; None: all"""
    pairs: tuple[LeafPair, ...] = ()
    """which output stands for which, where that is known already"""

    def __call__(self, framework: ModuleType, outputs: Mapping[str, Any]) -> Any:
        """Return the scalar tensor; None if no gradient can flow from any output."""
        arrays = {
            at: Leaf(framework.view(tensor), bool(framework.carries_gradient(tensor)))
            for at, tensor in outputs.items()
        }
        weights = self.weigh(arrays)
        tensors = [outputs[at] for at in weights]
        return framework.weighted_sum(tensors, weights.values()) if tensors else None

    def weigh(self, outputs: Mapping[str, Leaf]) -> dict[str, Array]:
        """Return the weights of the elements of each output that counts."""
        expected = self.expected or outputs
        places, weights = list(expected), {}
        for pair in pair_outputs(expected, outputs, self.pairs):
            leaf = expected[pair.expected]
            counts = self.only is None or pair.expected in self.only
            if counts and leaf.array.dtype.kind == "f" and outputs[pair.actual].differentiable:
                weights[pair.actual] = _weights(leaf, pair, places.index(pair.expected))
        return weights


def pair_outputs(
    expected: Mapping[str, Leaf], actual: Mapping[str, Leaf], known: Sequence[LeafPair] = ()
) -> list[LeafPair]:
    """Pair the models' own outputs: as known before, by name or order where shapes allow, or by value."""
    if known and all(pair.expected in expected and pair.actual in actual for pair in known):
        return list(known)
    if expected.keys() == actual.keys():
        pairs = [(name, name) for name in expected]
    elif len(expected) == len(actual):
        pairs = list(zip(expected, actual, strict=True))
    else:
        pairs = []
    if pairs and all(expected[a].array.shape == actual[b].array.shape for a, b in pairs):
        return [LeafPair(a, b, None) for a, b in pairs]
    return pair_leaves(expected, actual)


def _weights(leaf: Leaf, pair: LeafPair, number: int) -> Array:
    source = np.random.Generator(np.random.Philox(np.random.SeedSequence((_SEED, number))))
    weights = source.standard_normal(leaf.array.shape)
    return pair.to_port(weights)
