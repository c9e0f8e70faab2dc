"""A planted fault is registered in one place, and a model is as it was after each way of planting."""

from types import SimpleNamespace

from reprod_align.selftest import FAULTS, inputs, layers, plant, training
from reprod_align.selftest.plant import PlantedFault, fault_at, find_faults, take_middle

import numpy as np
import paddle
import pytest
from paddle.nn import functional


def test_a_table_gives_its_faults_by_kind():
    made = fault_at("fc", lambda: pytest.raises(ZeroDivisionError), "a hint")
    table = {
        "one": lambda view: made,
        "none": lambda view: take_middle([], "no place here"),
        "several": lambda view: [made, PlantedFault("", None, kind="its own kind")],
    }
    found = find_faults(table, SimpleNamespace())
    kinds = [(fault.kind, fault.module) for fault in found]
    assert kinds == [("one", "fc"), ("none", ""), ("several", "fc"), ("its own kind", "")]
    assert found[1].plant is None and found[1].hint == "no place here"
    with found[0].plant("the side") as side:
        assert side == "the side"
        raise ZeroDivisionError


def test_every_table_is_in_force_and_no_kind_stands_in_two():
    tables = [module.FAULTS for module in (layers, inputs, training)]
    assert len(FAULTS) == sum(map(len, tables)) >= 35


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


def test_the_middle_one_is_taken():
    assert take_middle([1, 2, 3], "none") == 2
