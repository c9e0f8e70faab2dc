"""Faults that inputs reveal, and the hints where these inputs cannot."""

from reprod_align.selftest import inputs
from tests.selftest.observed import X, changes_output, observed

import numpy as np
import paddle
from paddle import nn

IDS = np.array([[0, 1, 2], [2, 3, 0]])


def test_an_index_for_padding() -> None:
    with observed(nn.Sequential(nn.Embedding(5, 4)), IDS) as view:
        fault = inputs.change_padding_index(view)
        assert fault.kind == "padding_idx=0 given"
        assert changes_output(view, fault)
    with observed(nn.Sequential(nn.Embedding(5, 4)), IDS + 1) as view:
        fault = inputs.change_padding_index(view)
        assert "no index is 0: give a padded batch" in fault.hint
        assert not changes_output(view, fault)


def test_indices_that_are_not_looked_at() -> None:
    with observed(nn.Sequential(nn.Embedding(5, 4)), IDS) as view:
        (fault,) = inputs.ignore_indices(view)
        assert changes_output(view, fault)
    with observed(nn.Sequential(nn.Embedding(5, 4)), IDS * 0) as view:
        (fault,) = inputs.ignore_indices(view)
        assert "its indices all are 0" in fault.hint
        assert not changes_output(view, fault)


def test_an_input_that_is_not_looked_at() -> None:
    with observed(nn.Sequential(nn.Linear(4, 2)), X) as view:
        (fault,) = inputs.ignore_inputs(view)
        assert (fault.module, fault.hint) == ("0", "")
        assert changes_output(view, fault)
    with observed(nn.Sequential(nn.Linear(4, 2)), np.ones((3, 4))) as view:
        (fault,) = inputs.ignore_inputs(view)
        assert "0 holds 1.0 alone" in fault.hint
        assert not changes_output(view, fault)


def test_the_first_example_used_for_all() -> None:
    with observed(nn.Sequential(nn.Linear(4, 2)), X) as view:
        fault = inputs.repeat_first_example(view)
        assert fault.hint == ""
        assert changes_output(view, fault)
    with observed(nn.Sequential(nn.Linear(4, 2)), X[:1]) as view:
        fault = inputs.repeat_first_example(view)
        assert fault.hint == "the batch holds one example: give several"
        assert not changes_output(view, fault)


def test_a_model_without_an_embedding() -> None:
    with observed(nn.Sequential(nn.Linear(4, 2)), X) as view:
        assert inputs.change_padding_index(view) == "no embedding"
        assert inputs.ignore_indices(view) == "no embedding"


class Pair(nn.Layer):
    """Takes floats by position and by name, and indices."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.table = nn.Linear(4, 2), nn.Embedding(5, 2)

    def forward(self, x: paddle.Tensor, ids: paddle.Tensor) -> paddle.Tensor:
        return self.fc(x) + self.table(ids)


def test_no_gradient_reaches_a_float_input() -> None:
    with observed(Pair(), X, np.array([0, 1, 2])) as view:
        (fault,) = inputs.stop_inputs(view)
        assert (fault.module, fault.hint) == ("0", "")
        assert not changes_output(view, fault)

        def reaches() -> bool:
            x, ids = map(paddle.to_tensor, view.inputs)
            x.stop_gradient = False
            view.side.model(x, ids).sum().backward()
            return x.grad is not None and bool((x.grad != 0).any())

        with fault.plant(view.side):
            assert not reaches()
            assert view.side.model.fc.weight.grad is not None  # of the layer, it is as before
        assert reaches()
    with observed(nn.Sequential(nn.Embedding(5, 4)), IDS) as view:
        assert inputs.stop_inputs(view) == "no input is of floats"
