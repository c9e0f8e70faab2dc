"""All kinds of faults, in the order in which a self-test lists them.

A new fault is a function with `@plantable` in one of the modules imported here.
"""

from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs
from reprod_align.selftest import functions, inputs, layers, plain, training, weights
from reprod_align.selftest.fault import Fault, find_faults
from reprod_align.selftest.view import observe

__all__ = ["functions", "inputs", "layers", "list_faults", "plain", "training", "weights"]


def list_faults(side: LocalSide, given: Inputs, steps: int) -> list[Fault]:
    """Return every kind of fault, planted nowhere yet. Call inside `working`, the weights loaded."""
    return find_faults(observe(side, given, steps))
