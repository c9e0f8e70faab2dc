"""What passes between the two sides of a step."""

import pipeline  # noqa: F401  (quietens what follows)
from reprod_align.backends.torch import side
from reprod_align.curves.report import PARTS
from reprod_align.curves.swap import PADDLE, TORCH, WeightedOutputs, _draw_direction

import numpy as np
import torch


def test_either_framework_does_every_part() -> None:
    assert list(TORCH) == list(PADDLE) == list(PARTS)


def test_given_gradients_are_those_of_a_backward_pass() -> None:
    values = torch.arange(6.0, dtype=torch.float64, requires_grad=True)
    weights = np.linspace(-1, 1, 6)
    scalar = WeightedOutputs(weights={"out": weights, "elsewhere": weights})(
        side, {"out": 3 * values}
    )
    scalar.backward()
    np.testing.assert_array_equal(values.grad.numpy(), 3 * weights)
    assert WeightedOutputs(weights={"out": weights})(side, {"out": values.detach()}) is None


def test_a_direction_is_small_beside_the_weight() -> None:
    moved = _draw_direction(np.full((50, 40), 20.0), np.random.default_rng(0))
    assert moved.shape == (50, 40) and 1e-4 < np.abs(moved).mean() < 3e-4
    assert np.abs(_draw_direction(np.zeros(9), np.random.default_rng(0))).max() > 0
