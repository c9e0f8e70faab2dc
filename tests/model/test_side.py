"""A side's answers are plain data; what both sides can be given."""

from dataclasses import replace

from reprod_align.errors import ReprodError
from reprod_align.model.side import ModelInfo, check_inputs
from tests.match.made import linear, make_info

import numpy as np
import pytest
import torch


@pytest.fixture
def info() -> ModelInfo:
    info = make_info({"table": linear(4, 3), "head": linear(4, 3, bias=4)})
    head = replace(info.tensors["head.weight"], tie="table.weight")
    return replace(info, tensors={**info.tensors, "head.weight": head})


def test_every_name_of_a_tensor_is_known(info: ModelInfo) -> None:
    for name in ("table.weight", "head.weight"):
        assert list(info.other_names(name)) == ["table.weight", "head.weight"]
    assert list(info.other_names("head.bias")) == ["head.bias"]


def test_what_is_known_under_one_name_is_found_under_each(info: ModelInfo) -> None:
    assert info.find({"head.weight": 2.0}, "table.weight") == 2.0
    assert info.find({"head.weight": 0.0}, "head.weight") == 0.0
    assert info.find({"head.weight": 2.0}, "head.bias") is None
    assert info.spread({"head.weight": 2.0}) == {"table.weight": 2.0, "head.weight": 2.0}


X = np.ones((2, 3))


@pytest.mark.parametrize("inputs", [{"x": X}, (X, X > 0), [X], {"x": X, "empty": X[:0]}])
def test_arrays_by_name_or_position_are_taken(inputs: object) -> None:
    check_inputs(inputs)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (
            X,
            "inputs must be a dict of arrays (keywords) or a tuple of arrays (by position), not one "
            "numpy.ndarray of shape (2, 3): return a dict, {'the name of the argument': array}, or a "
            "tuple, (array,)",
        ),
        (torch.ones(1), "not one torch.Tensor of shape (1,): return a dict"),
        ("x", "not a str"),
        ({}, "inputs: expected at least one array, got none"),
        ({1: X}, "inputs: expected names of arguments as keys, got 1"),
        ({"x": [1.0]}, "inputs['x']: expected a numpy array, got a list"),
        (
            (torch.ones(1),),
            "inputs[0]: expected a numpy array, got a torch.Tensor: give its .numpy()",
        ),
        ((np.array(["a"]),), "inputs[0]: expected numbers, got an array of <U1"),
        ((X[:0],), "inputs: every array is empty, so nothing would be computed"),
    ],
)
def test_anything_else_is_refused(inputs: object, said: str) -> None:
    with pytest.raises(ReprodError) as raised:
        check_inputs(inputs)
    assert said in str(raised.value)
