"""What a model's modules hold, by name, and what they keep between calls."""

from collections import deque
from types import ModuleType
from typing import Any

from reprod_align.backends.paddle import side as paddle_backend
from reprod_align.backends.torch import side as torch_backend
from reprod_align.model.state import HeldTensors, State, choose_names
from reprod_align.pair import paddle_side, torch_side
from reprod_align.randomness import KeyedDraws

import numpy as np
import paddle
import pytest
import torch


class Notes:
    """A user's own object."""

    def __init__(self) -> None:
        self.last: Any = None
        self.all: list[float] = []


def keep_all(model: Any, total: float) -> None:
    """Let a model keep a number in every way."""
    model.count += 1
    model.listed.append(total)
    model.named["nested"].append(total)
    model.ordered.append(total)
    model.unique.add(total)
    model.notes.last = total
    model.notes.all.append(total)
    model.buffer += 1  # in place
    model.loose[0] += 1
    model.added = total


def begin(model: Any) -> None:
    model.count, model.listed, model.named = 0, [], {"nested": []}
    model.ordered, model.unique, model.notes = deque([1]), {2}, Notes()


class OwnTorch(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.loose = torch.nn.Linear(2, 3), torch.zeros(2)
        self.register_buffer("buffer", torch.zeros(1))
        begin(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        keep_all(self, float(y.detach().sum()))
        return y * self.count + self.buffer + self.loose.sum() + len(self.listed)


class OwnPaddle(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.loose = paddle.nn.Linear(2, 3), paddle.zeros([2])
        self.register_buffer("buffer", paddle.zeros([1]))
        begin(self)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.fc(x)
        keep_all(self, float(y.detach().sum()))
        return y * self.count + self.buffer + self.loose.sum() + len(self.listed)


SIDES = pytest.mark.parametrize("make", [lambda: torch_side(OwnTorch()), lambda: paddle_side(OwnPaddle())],
                                ids=["torch", "paddle"])  # fmt: skip


def run(side: Any, **how: Any) -> np.ndarray:
    trace = side.run((np.ones((1, 2)),), False, KeyedDraws(0, {"": ""}), "ends", **how)
    return trace.outputs[""].array


def describe(model: Any) -> tuple:
    notes = model.notes
    return (
        model.count, list(model.listed), model.named["nested"][:], list(model.ordered),
        set(model.unique), notes.last, notes.all[:], float(model.buffer.sum()),
        float(model.loose.sum()), hasattr(model, "added"),
    )  # fmt: skip


@SIDES
def test_each_run_that_begins_anew_is_the_first_one(make: Any) -> None:
    side = make()
    side.loss = lambda output: output.sum()
    before = describe(side.model)
    with side.working("float64"):
        first, second, third = (run(side, anew=anew) for anew in (True, False, True))
        assert (first == third).all() and (first != second).any()
        run(side)
        side.load({})
        assert describe(side.model) == before
    assert describe(side.model) == before


@SIDES
def test_loaded_values_are_what_a_run_begins_with(make: Any) -> None:
    side = make()
    side.loss = lambda output: output.sum()
    with side.working("float64"):
        start = run(side, anew=True)
        side.load({"buffer": np.array([7.0])})
        first, again = run(side, anew=True), run(side, anew=True)
        assert (first == again).all() and np.allclose(first, start + 7)


@SIDES
def test_gradients_can_be_off(make: Any) -> None:
    side = make()
    side.loss = lambda output: output.sum()
    with side.working("float64"):
        args = (np.ones((1, 2)),), False, KeyedDraws(0, {"": ""}), "all"
        on, off = side.run(*args), side.run(*args, graded=False)
        assert on.gradients and not off.gradients
        assert off.outputs[""].differentiable  # as every float counts there


def test_modules_weights_and_hooks_are_left_alone() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(1, 1))
    from reprod_align.backends.torch import side as framework

    state = State(framework, [model, model[0]], [])
    handle = model.register_forward_hook(lambda *args: None)
    model.append(torch.nn.ReLU())
    state.restore()
    assert len(model) == 2 and len(model._forward_hooks) == 1
    handle.remove()


def make_torch() -> torch.nn.Module:
    """Return a linear layer and a batch norm; a second linear layer shares the first one's weight."""
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3)
    )
    model[2].weight = model[0].weight
    return model


def make_paddle() -> paddle.nn.Layer:
    """Return the twin of `make_torch`."""
    model = paddle.nn.Sequential(
        paddle.nn.Linear(3, 3), paddle.nn.BatchNorm1D(3), paddle.nn.Linear(3, 3)
    )
    model[2].weight = model[0].weight
    return model


BOTH = pytest.mark.parametrize(
    ("backend", "make"),
    [(torch_backend, make_torch), (paddle_backend, make_paddle)],
    ids=["torch", "paddle"],
)


@BOTH
def test_a_tensor_with_two_names_is_known_by_its_first(backend: ModuleType, make: Any) -> None:
    held = HeldTensors(backend, make())
    names = choose_names(held, {"0", "2"})
    described = held.describe(names)
    assert described["2.weight"].tie == "0.weight" and described["2.bias"].tie == "2.bias"
    parameters = [name for name, _ in held.parameters()]
    assert parameters == ["0.weight", "0.bias", "1.weight", "1.bias", "2.bias"]


@BOTH
def test_the_name_in_a_layer_stands_before_a_bare_one(backend: ModuleType, make: Any) -> None:
    held = HeldTensors(backend, make())
    assert set(choose_names(held, {"2"}).values()) >= {"2.weight", "0.bias"}
    assert "0.weight" not in choose_names(held, {"2"}).values()


@BOTH
def test_buffers_are_copies_and_parameters_are_left_out(backend: ModuleType, make: Any) -> None:
    held = HeldTensors(backend, make())
    buffers = held.copy_buffers()
    assert len(buffers) >= 2 and all(name.startswith("1.") for name in buffers)
    assert set(held.copy_values()) == {*buffers, *(one.name for one in held if one.is_parameter)}
    first = next(iter(buffers))
    buffers[first] += 1
    assert not np.array_equal(buffers[first], held.copy_buffers()[first])


@BOTH
def test_gradients_are_set_by_name_copied_and_taken(backend: ModuleType, make: Any) -> None:
    held = HeldTensors(backend, make())
    given = {"0.bias": np.array([1.0, 2.0, 3.0], dtype="float32")}
    held.set_gradients(given)
    assert {name: array.tolist() for name, array in held.copy_gradients().items()} == {
        "0.bias": [1, 2, 3]
    }
    assert held.take_gradients()["0.bias"].tolist() == [1, 2, 3]
    assert held.copy_gradients() == {}
    held.set_gradients(given)
    held.set_gradients({})
    assert held.copy_gradients() == {}
