"""How two values, or two gradients, of a call are compared to find a fault."""

from reprod_align.alignment.locating.fault import FLOOR, compare, compare_gradients, rounding_of
from reprod_align.model.leaf import LeafPair
from reprod_align.model.trace import Call, Leaf

import numpy as np

ALIKE = LeafPair("[0]", "[0]", None)
TURNED = LeafPair("[0]", "[0]", (1, 0))
X = np.arange(6.0).reshape(2, 3)


def test_values_are_compared_in_the_ports_layout() -> None:
    assert compare(TURNED, X, X.T, 0.0).ok
    assert not compare(ALIKE, X, X + np.eye(2, 3) * 1e-6, 0.0).ok
    assert not compare(ALIKE, X, X * np.nan, 0.0).ok


def test_a_floor_covers_rounding_around_zero() -> None:
    zeros = np.zeros(3)
    assert compare(ALIKE, zeros, zeros + 1e-14, 1e-13).ok
    assert not compare(ALIKE, zeros, zeros + 1e-12, 1e-13).ok


def test_a_gradient_that_never_arrived_is_zero() -> None:
    assert compare_gradients(ALIKE, None, None, 0.0).ok
    assert compare_gradients(TURNED, X * 0, None, 0.0).ok
    assert not compare_gradients(TURNED, X, None, 0.0).ok
    assert not compare_gradients(ALIKE, None, X, 0.0).ok
    assert compare_gradients(TURNED, X, X.T, 0.0).ok


def test_rounding_grows_with_what_a_call_meets() -> None:
    call = Call("fc", 0, None, {"x": Leaf(X, True)}, {"": Leaf(X * -100, True)})
    assert rounding_of(call) == FLOOR * 500
    ids = Call("fc", 0, None, {"ids": Leaf(np.array([10**9]), False)})
    assert rounding_of(ids) == 0.0
