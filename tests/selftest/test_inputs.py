"""Faults in inputs and outputs: each changes what it should, and has a place or says why not."""

import random
from collections.abc import Callable
from typing import Any

from reprod_align.selftest import inputs
from reprod_align.selftest.plant import PlantedFault, View
from tests.selftest.observed import X, changes_output, observed, run, tell_why_not

import numpy as np
import paddle
import pytest
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
        assert tell_why_not(inputs.change_padding_index, view) == "no embedding"
        assert tell_why_not(inputs.ignore_indices, view) == "no embedding"


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
        assert tell_why_not(inputs.stop_inputs, view) == "no input is of floats"


class Telling(nn.Layer):
    """Returns a tensor, and what is none."""

    def __init__(self, told: Any) -> None:
        super().__init__()
        self.fc, self.told = nn.Linear(4, 2), told

    def forward(self, x: paddle.Tensor) -> Any:
        return {"out": self.fc(x), "told": self.told}


class Double(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.fc(x), self.fc(x)


def told(view: View) -> Any:
    return view.side.model(paddle.to_tensor(view.inputs[0]))["told"]


def is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(np.all(np.asarray(one) == np.asarray(other)))


@pytest.mark.parametrize(
    "value",
    [3, 2.5, -1.0, 1e300, True, "cat", np.uint8(255), np.float32(2.0), np.bool_(True),
     np.arange(3), np.array([True, False]), np.array(["cat", "dog"])],
    ids=str,
)  # fmt: skip
def test_an_output_that_is_no_tensor_is_another_of_its_type(value: Any) -> None:
    with observed(Telling(value), X) as view:
        (fault,) = inputs.change_plain_output(view)
        assert (fault.module, fault.hint) == ("told", inputs._NOT_COMPARED)
        assert type(value).__name__ in fault.kind
        with fault.plant(view.side):
            other = told(view)
        assert type(other) is type(value) and not is_same(other, value)
        assert is_same(told(view), value)


def test_one_of_several_outputs_changes_and_containers_stay() -> None:
    with observed(Telling([1, {"word": "cat"}, (2.0, None)]), X) as view:
        faults = inputs.change_plain_output(view)
        assert [fault.module for fault in faults] == ["told[0]", "told[1].word", "told[2][0]"]
        with faults[1].plant(view.side):
            assert told(view) == [1, {"word": "cat?"}, (2.0, None)]


def test_a_state_is_written_in_train_mode_and_read_in_eval_mode() -> None:
    with observed(nn.Sequential(nn.Linear(4, 2), nn.Tanh()), X) as view:
        fault = inputs.keep_state(view)
        assert fault.module == "1" and "eval" in fault.hint
        before = run(view)
        trained = run(view, training=True)
        with fault.plant(view.side):
            np.testing.assert_array_equal(run(view), before)
            np.testing.assert_array_equal(run(view, training=True), trained)
            moved = run(view) - before
            assert (moved != 0).all() and np.ptp(moved / before) > 1e-6
        np.testing.assert_array_equal(run(view), before)
        assert inputs._STATE not in vars(view.layers["1"])


def fault_of(view: View, name: str) -> PlantedFault:
    (found,) = [fault for fault in inputs.draw_elsewhere(view) if name in fault.kind]
    return found


@pytest.mark.parametrize(
    ("name", "state"),
    [("Python's", random.getstate), ("numpy's", lambda: str(np.random.get_state()))],
)
def test_a_draw_moves_its_generator_in_train_mode_alone(
    name: str, state: Callable[[], Any]
) -> None:
    with observed(nn.Sequential(nn.Linear(4, 2), nn.Tanh()), X) as view:
        fault = fault_of(view, name)
        assert fault.noted == "random numbers" and fault.hint
        assert not changes_output(view, fault) and not changes_output(view, fault, training=True)
        start = state()
        with fault.plant(view.side):
            run(view)
            assert state() == start
            run(view, training=True)
            moved = state()
            assert moved != start
        run(view, training=True)
        assert state() == moved


def test_models_without_a_place() -> None:
    with observed(nn.Linear(4, 2), X) as view:
        assert tell_why_not(inputs.change_plain_output, view) == "all outputs are tensors"
    with observed(
        Telling({"none": None, "object": object(), "array": np.array([None])}), X
    ) as view:
        assert tell_why_not(inputs.change_plain_output, view) == "all outputs are tensors"
    with observed(nn.Linear(4, 2), X) as view:
        for find in (inputs.keep_state, inputs.draw_elsewhere):
            assert tell_why_not(find, view) == "no layer returns one tensor"
    with observed(Double(), X) as view:
        assert inputs.keep_state(view).module == "fc"
