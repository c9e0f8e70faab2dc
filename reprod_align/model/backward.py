"""The graph that a backward pass takes, as a digest: passes of equal graphs do the same to a gradient.

A model that runs the same code in eval and in train mode has one graph in both, dropout aside: then
the gradients of one mode tell all that those of the other would. Multiplying by what takes no
gradient, as dropout does, is left out: the forward pass shows the factor.
"""

from collections.abc import Iterable
from graphlib import TopologicalSorter
from hashlib import blake2b
from types import ModuleType
from typing import Any

_PASSING = frozenset(
    ("mul", "multiply", "scale", "div", "divide", "dropout", "clone", "alias", "assign")
)
"""operators that hand a gradient on, times a constant at most, where one operand alone takes it"""
_BY_MODE = ("batch_norm", "batchnorm", "rrelu", "rnn")
"""in the names of operators whose backward pass hangs on the mode in which the forward pass ran"""


def digest_graph(
    framework: ModuleType, tensors: Iterable[Any], given: Iterable[Any] = ()
) -> str | None:
    """Return what only an equal graph behind `tensors` has too.

    given: leaves that count as constants. None: the graph does not tell what a backward pass does,
    since the user's own code, or the mode, takes part in it.
    """
    roots = [node for node in map(framework.gradient_node, tensors) if node is not None]
    constant = {framework.node_key(framework.gradient_node(tensor)) for tensor in given}
    nodes: dict[int, Any] = {}  # all are held: a node that is let go of may lend its key to another
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
    """Return a digest of all that hangs on each node; of those alone that lead to a leaf that counts."""
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
