"""A training's state goes from PyTorch to Paddle, and tensors come back."""

from reprod_align.curves.state import convert_to_paddle, convert_to_torch
from reprod_align.errors import ReprodError
from reprod_align.model.tensor_pair import Lay, TensorPair

import numpy as np
import pytest

LINEAR = TensorPair(("a",), ("x",), (Lay(True, (3, 6)),))


def test_a_tensor_and_its_way_back() -> None:
    """What is cut, transposed or joined for Paddle comes back as it was."""
    draw = np.random.default_rng(0)
    linear = TensorPair(("a",), ("x",), (Lay(True, (3, 6)),))
    fused = TensorPair(("a",), ("x", "y"), (Lay(True, (3, 2)), Lay(False, (4, 3))), (2, 4))
    heads = TensorPair(("a", "b"), ("x",), (Lay(False, (12, 3)),), (6, 6), groups=2)
    for pair in (linear, fused, heads):
        given = {name: draw.standard_normal((6, 3)) for name in pair.torch}
        back = convert_to_torch(pair, pair.to_paddle(given), given)
        assert {name: array.tolist() for name, array in back.items()} == {
            name: array.tolist() for name, array in given.items()
        }


def test_adams_averages_and_its_count_are_carried() -> None:
    average = np.arange(18.0).reshape(6, 3)
    kept = {"exp_avg": {"a": average}, "step": {"a": np.array(4.0)}}
    fresh = {kind: {"x": np.ones(1)} for kind in ("moment1", "beta1_pow_acc", "beta2_pow_acc")}
    found = convert_to_paddle(kept, [LINEAR], fresh, (0.5, 0.25))
    np.testing.assert_array_equal(found["moment1"]["x"], average.T)
    assert found["beta1_pow_acc"]["x"].tolist() == [0.5**5]  # of the next step
    assert found["beta2_pow_acc"]["x"].tolist() == [0.25**5]


def test_a_kind_of_unknown_meaning_is_refused() -> None:
    with pytest.raises(
        ReprodError, match=r"the optimizers' state \(mu_product\) cannot be carried"
    ):
        convert_to_paddle({"mu_product": {"a": np.ones(1)}}, [LINEAR], {}, None)
    assert convert_to_paddle({}, [LINEAR], {"mu_product": {"x": np.ones(1)}}, None) == {}
