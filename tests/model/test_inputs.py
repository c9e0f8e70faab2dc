"""The batch that both models are given."""

from reprod_align.errors import ReprodError
from reprod_align.model.side import check_inputs

import numpy as np
import pytest
import torch

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
