"""A planted fault is registered in one place, and a model is as it was after each way of planting."""

from types import SimpleNamespace

from reprod_align.selftest import fault as module
from reprod_align.selftest import plant
from reprod_align.selftest.fault import Fault, fault_at, find_faults, plantable
from reprod_align.selftest.faults import list_faults
from reprod_align.selftest.view import middle, size

import numpy as np
import paddle
import pytest
from paddle.nn import functional


@pytest.fixture
def empty_list(monkeypatch):
    monkeypatch.setattr(module, "_FINDERS", [])


def test_a_function_adds_its_fault_to_the_list(empty_list):
    made = fault_at("fc", lambda: pytest.raises(ZeroDivisionError), "a hint")
    plantable("one")(lambda view: made)
    plantable("none")(lambda view: "no place here")
    plantable("several")(lambda view: [made, Fault("", None, kind="its own kind")])
    found = find_faults(SimpleNamespace())
    kinds = [(fault.kind, fault.module) for fault in found]
    assert kinds == [("one", "fc"), ("none", ""), ("several", "fc"), ("its own kind", "")]
    assert found[1].plant is None and found[1].hint == "no place here"
    with found[0].plant("the side") as side:
        assert side == "the side"
        raise ZeroDivisionError


def test_every_module_of_faults_is_listed():
    assert callable(list_faults)
    registered = {find.__module__.rpartition(".")[2] for _, find in module._FINDERS}
    assert registered == {"functions", "layers", "weights", "inputs", "plain", "training"}
    kinds = [kind for kind, _ in module._FINDERS]
    assert len(kinds) == len(set(kinds)) >= 35


def test_a_replaced_function_sees_its_arguments_by_name_and_comes_back():
    own, seen = functional.softmax, []

    def change(function, arguments):
        seen.append(arguments)
        return function(**arguments)

    with plant.replace_function("softmax", change):
        functional.softmax(paddle.ones([2]), dim=0)
    assert functional.softmax is own and seen[0]["axis"] == 0


def test_parameters_and_attributes_come_back():
    layer = paddle.nn.Linear(2, 2)
    weight, x = layer.weight, paddle.ones([1, 2])
    expected = layer(x).numpy()
    with plant.replace_parameters(layer, {"weight": lambda: weight * 0}):
        assert not layer(x).numpy().any()
    with plant.set_attributes(layer, {"training": False}):
        assert not layer.training
    assert layer.training and layer.weight is weight and "forward" not in vars(layer)
    np.testing.assert_array_equal(layer(x).numpy(), expected)


def test_small_helpers():
    assert middle([1, 2, 3]) == 2 and middle([]) is None
    assert size(np.array([-3.0, 2.0])) == 3.0 and size(np.zeros(0)) == 0.0
