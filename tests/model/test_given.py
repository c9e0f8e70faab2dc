"""A model's tensors as they came, while work goes on in copies of them."""

from reprod_align.model.store import OriginalValues, read_narrow
from reprod_align.pair.sides import paddle_side, torch_side

import numpy as np
import paddle
import pytest
import torch


@pytest.mark.parametrize(
    "side", [torch_side(torch.nn.Linear(3, 2)), paddle_side(paddle.nn.Linear(3, 2))]
)
def test_what_came_is_read_in_the_dtype_of_work_whatever_was_loaded_since(side) -> None:
    came = side.values()
    with side.working("float64"):
        given = side.read_given()
        side.load({name: array + 1 for name, array in came.items()})
        assert list(given) == list(came) and len(given) == 2 and "weight" in given
        for name, array in given.items():
            assert array.dtype == "float64" and np.array_equal(array, came[name]), name


def test_whole_numbers_stay_and_complex_ones_widen() -> None:
    arrays = {"ids": np.arange(3), "turns": np.ones(2, np.complex64), "w": np.ones(2, np.float32)}
    given = OriginalValues(np.asarray, arrays, "float64")
    assert [array.dtype.name for array in given.values()] == ["int64", "complex128", "float64"]
    assert OriginalValues(np.asarray, arrays, None)["w"].dtype == "float32"


def test_what_came_is_read_in_its_own_dtype_for_a_copy_that_widens_it() -> None:
    given = OriginalValues(np.asarray, {"w": np.ones(2, np.float32)}, "float64")
    assert read_narrow(given)["w"].dtype == "float32" and given["w"].dtype == "float64"
    plain = {"w": np.ones(2)}
    assert read_narrow(plain) is plain
