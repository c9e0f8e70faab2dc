"""A training's state goes from PyTorch to Paddle, and tensors come back."""

from reprod_align.curves.training import convert_to_paddle
from reprod_align.errors import ReprodError
from reprod_align.match import TensorPair

import numpy as np
import pytest

LINEAR = TensorPair(("a",), ("x",), (True,))


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
