"""One side of a pair, as it describes and runs a model of this process."""

from reprod_align.model.backward import Projection
from reprod_align.model.local import LocalSide
from reprod_align.model.side import ModelFailure
from reprod_align.pair import paddle_side, torch_side
from reprod_align.randomness import KeyedDraws

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
    np.random.seed(4)
    with side.working("float64"):
        side.load({name: array * 0 for name, array in before.items()})
        side.model.added = 1
        np.random.seed(3)
        drawn = np.random.rand()
    assert not hasattr(side.model, "added") and np.random.rand() != drawn
    for name, array in side.values().items():
        assert array.dtype == "float32" and np.array_equal(array, before[name])


def make_sides() -> list[LocalSide]:
    """Return a new side of each framework: these tests change the models."""
    return [torch_side(OwnTorch()), paddle_side(OwnPaddle())]


def test_tensors_are_described_and_loaded_by_name() -> None:
    for side, shape in zip(make_sides(), [(3, 2), (2, 3)], strict=True):
        assert isinstance(side, LocalSide)
        tensors = side.describe().tensors
        assert list(tensors) == ["fc.weight", "fc.bias"]
        weight = tensors["fc.weight"]
        assert (weight.owner, weight.role, weight.shape) == ("fc", "weight", shape)
        side.load({"fc.bias": np.array([1.0, 2.0, 3.0])})
        assert side.values()["fc.bias"].tolist() == [1, 2, 3]
        with pytest.raises(KeyError):
            side.load({"fc.gone": np.zeros(3)})


def test_training_takes_the_steps_of_the_optimizer() -> None:
    optimizers = [
        lambda model: torch.optim.SGD(model.parameters(), lr=0.5),
        lambda model: paddle.optimizer.SGD(0.5, model.parameters()),
    ]
    for side, optimizer in zip(make_sides(), optimizers, strict=True):
        side.optimizer = optimizer
        side.load({"fc.bias": np.zeros(3)})
        gradients = [{"fc.bias": np.array([2.0, 0.0, 4.0])}] * 2
        draws = [KeyedDraws(0, {"": ""})] * 2
        steps = side.train((np.ones((1, 2)),), 2, draws, gradients=gradients)
        assert [step.tensors["fc.bias"].tolist() for step in steps] == [[-1, 0, -2], [-2, 0, -4]]
        assert [step.rates for step in steps] == [[0.5], [0.5]]
        assert side.rates(3) == [[0.5]] * 3


@SIDES
def test_a_side_at_rest_holds_what_came_and_runs_as_before(
    side: LocalSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kind() -> str:
        return str(next(tensor for _, tensor in side.parameters()).dtype).rpartition(".")[2]

    def run() -> bytes:
        trace = side.run((np.ones((1, 2)),), False, KeyedDraws(0, {}), objective=Projection())
        return b"".join(
            array.tobytes() for array in (*trace.gradients.values(), trace.outputs[""].array)
        )

    with side.working("float64"):
        before, given = run(), dict(side.read_given())
        side.rest()
        assert kind() == "float64"  # so few elements are not worth it
        monkeypatch.setattr("reprod_align.model.local._WORTH_RESTING", 0)
        side.rest()
        assert kind() == "float32"
        with side.working("float32"):
            run()
        assert kind() == "float32" and run() == before and kind() == "float64"
        side.rest()
        assert side.values()["fc.weight"].dtype == np.float64
        side.rest()
        side.load({"fc.bias": given["fc.bias"] + 1e-12})
        assert (side.values()["fc.bias"] == given["fc.bias"] + 1e-12).all()
        side.load(given)
        side.rest()
    assert kind() == "float32"


@SIDES
def test_what_is_loaded_is_not_converted_before(
    side: LocalSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted, convert = [], side.fw.convert

    def note(data, dtype):
        converted.append(tuple(data.shape))
        return convert(data, dtype)

    monkeypatch.setattr(side.fw, "convert", note)
    came = side.values()["fc.weight"]
    with side.working("float64", at_rest=True):
        side.load({"fc.weight": came.astype(np.float64) + 1e-12})
        assert (side.values()["fc.weight"] == came.astype(np.float64) + 1e-12).all()
        side.run((np.ones((1, 2)),), False, KeyedDraws(0, {}), objective=Projection())
    assert converted == [(3,)]  # the bias alone, which nobody loaded
    assert np.array_equal(side.values()["fc.weight"], came)
