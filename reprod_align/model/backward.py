"""Where a backward pass starts, and a digest of the graph that it follows.

`Projection` is a scalar of all outputs, to start from where there is no loss, or not yet. The graph
behind it is known by a digest: passes of equal graphs do the same to a gradient. A model that runs the
same code in eval and in train mode has one graph in both, dropout aside: then the gradients of one mode
tell all that those of the other would. Multiplying by what takes no gradient, as dropout does, is left
out of the digest: the forward pass shows the factor.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from hashlib import blake2b
from types import ModuleType
from typing import Any

from reprod_align.base.blocks import Array
from reprod_align.model.trace import Leaf, LeafPair, pair_leaves

import numpy as np

_PASSING = frozenset(
    ("mul", "multiply", "scale", "div", "divide", "dropout", "clone", "alias", "assign")
)
"""operators that pass a gradient on as it is or times a constant, if only one operand takes a gradient"""
_BY_MODE = ("batch_norm", "batchnorm", "rrelu", "rnn")
"""parts of the names of operators whose backward pass depends on the mode of the forward pass"""


def digest_graph(
    framework: ModuleType, tensors: Iterable[Any], given: Iterable[Any] = ()
) -> str | None:
    """Return a digest of the graph behind `tensors`: only equal graphs have the same.

    given: leaves that count as constants. None where the graph does not tell what a backward pass
    does: the user's own code takes part in it, or the mode.
    """
    roots = [node for node in map(framework.gradient_node, tensors) if node is not None]
    constant = {framework.node_key(framework.gradient_node(tensor)) for tensor in given}
    nodes: dict[int, Any] = {}  # all are held: the key of a freed node may be given to another
    below: dict[int, list[tuple[int, int]]] = {}
    left = list(roots)
    while left:
        node = left.pop()
        key, name = framework.node_key(node), framework.node_name(node)
        if key in nodes or key in constant:
            continue
        if not name or any(part in name for part in _BY_MODE):
            return None
        nodes[key] = node
        parents = framework.node_parents(node)
        below[key] = [(framework.node_key(parent), at) for parent, at in parents]
        left += [parent for parent, _ in parents]
    digests = _digest_nodes(framework, nodes, below)
    made = [digests.get(framework.node_key(root)) for root in roots]
    return blake2b(repr(made).encode(), digest_size=16).hexdigest()


def _digest_nodes(
    framework: ModuleType, nodes: dict[int, Any], below: dict[int, list[tuple[int, int]]]
) -> dict[int, str]:
    """Return, for each node that leads to a leaf that counts, a digest of the graph behind it."""
    digests: dict[int, str] = {}
    order = TopologicalSorter({key: [one for one, _ in some] for key, some in below.items()})
    for key in order.static_order():
        if key not in nodes:
            continue
        name = framework.node_name(nodes[key])
        parents = [(digests[one], at) for one, at in below[key] if one in digests]
        if name in _PASSING and len(parents) == 1:
            digests[key] = parents[0][0]
        elif parents or framework.is_leaf(nodes[key]):
            told = (name, key) if framework.is_leaf(nodes[key]) else (name, parents)
            digests[key] = blake2b(repr(told).encode(), digest_size=16).hexdigest()
    return digests


_SEED = 20212


@dataclass(frozen=True)
class Projection:
    """The sum of every float output element times a fixed random weight."""

    expected: Mapping[str, Leaf] = field(default_factory=dict)
    """the reference's outputs, so that the same weight meets the same element; empty: its own"""
    only: frozenset[str] | None = None
    """the reference's outputs that count; None: all"""
    without: frozenset[str] = frozenset()
    """those that do not"""
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
            counts = counts and pair.expected not in self.without
            if counts and leaf.array.dtype.kind == "f" and outputs[pair.actual].differentiable:
                weights[pair.actual] = _lay_weights(leaf, pair, places.index(pair.expected))
        return weights


def pair_outputs(
    expected: Mapping[str, Leaf], actual: Mapping[str, Leaf], known: Sequence[LeafPair] = ()
) -> list[LeafPair]:
    """Pair the models' own outputs: as known before, by name or order where shapes allow, or by value.

    Where one side returns more, fields of one name still are one output: an exchanged pair of them would
    agree by value. Outputs that there are in one mode alone, as a loss in train mode, are paired by name
    beside those known.
    """
    if known and all(pair.expected in expected and pair.actual in actual for pair in known):
        taken = {pair.expected for pair in known} | {pair.actual for pair in known}
        further = (name for name in expected if name in actual and name not in taken)
        return [
            *known,
            *(
                LeafPair(name, name, None)
                for name in further
                if expected[name].array.shape == actual[name].array.shape
            ),
        ]
    if expected.keys() == actual.keys():
        pairs = [(name, name) for name in expected]
    elif len(expected) == len(actual):
        pairs = list(zip(expected, actual, strict=True))
    else:
        pairs = []
    if pairs and all(expected[a].array.shape == actual[b].array.shape for a, b in pairs):
        return [LeafPair(a, b, None) for a, b in pairs]
    fields = {
        name: LeafPair(name, name, None)
        for name in expected
        if "[" not in name
        and name in actual
        and expected[name].array.shape == actual[name].array.shape
    }
    left, over = (
        {name: leaf for name, leaf in side.items() if name not in fields}
        for side in (expected, actual)
    )
    fields |= {pair.expected: pair for pair in pair_leaves(left, over)}
    return [fields[name] for name in expected if name in fields]


def _lay_weights(leaf: Leaf, pair: LeafPair, number: int) -> Array:
    source = np.random.Generator(np.random.Philox(np.random.SeedSequence((_SEED, number))))
    weights = source.standard_normal(leaf.array.shape)
    return pair.to_port(weights)
