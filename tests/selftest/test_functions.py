"""Faults in functions: each changes what it should, and is not planted where it has no place."""

from typing import Any

from reprod_align.selftest import FAULTS, layers
from tests.selftest.observed import IMAGES, X, changes_output, observed

import numpy as np
import pytest
from paddle import nn


@pytest.mark.parametrize(("find", "layer", "inputs", "kind"), [
    (FAULTS["gelu: erf <-> tanh"], nn.GELU(), X, ""),
    (layers.swap_relu_gelu, nn.GELU(), X, "gelu -> relu"),
    (layers.swap_relu_gelu, nn.ReLU(), X, "relu -> gelu"),
    (layers.move_softmax_axis, nn.Softmax(), X, ""),
    (FAULTS["average pool: exclusive flag"], nn.AvgPool2D(3, 1, padding=1), IMAGES, ""),
    (layers.swap_pool, nn.MaxPool2D(2), IMAGES, "max_pool2d -> avg_pool2d"),
])  # fmt: skip
def test_a_function_is_changed(find: Any, layer: Any, inputs: np.ndarray, kind: str) -> None:
    with observed(nn.Sequential(layer), inputs) as view:
        fault = find(view)
        assert (fault.module, fault.kind) == ("0", kind)
        assert changes_output(view, fault)


@pytest.mark.parametrize(
    "find", [FAULTS["dropout rate halved"], FAULTS["dropout left out"], layers.stick_in_eval]
)
def test_a_dropout_is_changed_in_training_alone(find: Any) -> None:
    with observed(nn.Sequential(nn.Dropout(0.5)), np.ones((40, 40))) as view:
        assert changes_output(view, find(view), training=True)
        assert not changes_output(view, find(view))


@pytest.mark.parametrize(
    "find", [FAULTS["dropout rate halved"], FAULTS["dropout left out"], layers.stick_in_eval]
)
@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.SimpleRNN])
def test_the_dropout_inside_a_recurrent_layer_is_changed(find: Any, kind: Any) -> None:
    class Last(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = kind(4, 8, num_layers=2, dropout=0.5)

        def forward(self, x: Any) -> Any:
            return self.rnn(x)[0]

    with observed(Last(), np.ones((4, 6, 4))) as view:
        fault = find(view)
        assert fault.module == "rnn"
        assert changes_output(view, fault, training=True)
        assert not changes_output(view, fault)


@pytest.mark.parametrize(("find", "reason"), [
    (FAULTS["gelu: erf <-> tanh"], "no gelu"),
    (layers.swap_relu_gelu, "neither gelu nor relu"),
    (layers.move_softmax_axis, "no softmax"),
    (FAULTS["average pool: exclusive flag"], "no average pool with padding"),
    (layers.swap_pool, "no pool"),
    (FAULTS["dropout rate halved"], "no dropout with p > 0"),
    (FAULTS["dropout left out"], "no dropout with p > 0"),
    (layers.stick_in_eval, "no layer that differs between train and eval mode"),
])  # fmt: skip
def test_a_model_without_a_place_for_it(find: Any, reason: str) -> None:
    with observed(nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.0)), X) as view:
        assert find(view) == reason


def test_a_softmax_of_one_number_has_a_hint() -> None:
    with observed(nn.Sequential(nn.Softmax()), np.ones((1, 1))) as view:
        fault = layers.move_softmax_axis(view)
        assert "give longer sequences" in fault.hint
        assert not changes_output(view, fault)
