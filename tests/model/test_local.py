"""One side of a pair, as it describes and runs a model of this process."""

from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.model.projection import Projection
from reprod_align.model.side import ModelFailure
from reprod_align.pair.sides import paddle_side, torch_side

import numpy as np
import paddle
import pytest
import torch


class OwnTorch(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


class OwnPaddle(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc = paddle.nn.Linear(2, 3)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.fc(x)


SIDES = pytest.mark.parametrize(
    "side", [torch_side(OwnTorch()), paddle_side(OwnPaddle())], ids=["torch", "paddle"]
)


@SIDES
def test_the_frameworks_own_layers_are_told_from_the_users(side) -> None:
    assert side.describe().stock == {"fc"}


@SIDES
def test_what_a_model_raises_is_blamed_on_its_module(side) -> None:
    too_wide = (np.ones((1, 5)),)
    with side.working("float64"), pytest.raises(ModelFailure) as raised:
        side.run(too_wide, True, KeyedDraws(0, {"": ""}))
    assert (raised.value.framework, raised.value.path) == (side.name, "fc")


@SIDES
def test_a_loss_must_be_one_number(side) -> None:
    side.loss = lambda output: output
    with side.working("float64"), pytest.raises(ModelFailure, match=r"got shape \(1, 3\)"):
        side.run((np.ones((1, 2)),), True, KeyedDraws(0, {"": ""}))
    side.loss = None


@SIDES
def test_gradients_are_taken_or_stay_with_the_parameters(side) -> None:
    inputs = (np.ones((1, 2)),)
    with side.working("float64"):
        kept = side.run(
            inputs, True, KeyedDraws(0, {"": ""}), objective=Projection(), take_gradients=False
        )
        left = side.fw.gradient(side.model.fc.weight)
        taken = side.run(inputs, True, KeyedDraws(0, {"": ""}), objective=Projection())
        assert kept.gradients == {} and left is not None
        assert side.fw.gradient(side.model.fc.weight) is None
    assert np.array_equal(taken.gradients["fc.weight"], left)


@SIDES
def test_everything_is_given_back_after_working(side) -> None:
    before = side.values()
    with side.working("float64"):
        side.load({name: array * 0 for name, array in before.items()})
        side.model.added = 1
        np.random.seed(3)
        drawn = np.random.rand()
    assert not hasattr(side.model, "added") and np.random.rand() != drawn
    for name, array in side.values().items():
        assert array.dtype == "float32" and np.array_equal(array, before[name])
