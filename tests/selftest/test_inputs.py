"""Faults that inputs reveal, and the hints where these inputs cannot."""

from reprod_align.selftest import inputs
from tests.selftest.observed import X, changes_output, observed

import numpy as np
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
