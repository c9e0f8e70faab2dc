"""The tensors of a model by name: those that several names share, their gradients and copies."""

from types import ModuleType
from typing import Any

from reprod_align.backends.paddle import side as paddle_backend
from reprod_align.backends.torch import side as torch_backend
from reprod_align.model.state import HeldTensors, choose_names

import numpy as np
import paddle
import pytest
import torch


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
