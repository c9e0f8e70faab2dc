"""Faults in what layers are set to: epsilons, convolutions, batch norms."""

from typing import Any

from reprod_align.selftest import FAULTS, layers
from tests.selftest.observed import IMAGES, X, changes_output, observed

import numpy as np
import pytest
from paddle import nn

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track global mean")


@pytest.mark.parametrize(("find", "layer", "inputs", "kind"), [
    (layers.change_epsilon, nn.LayerNorm(4), X, "norm epsilon 1e-05 -> 1e-12"),
    (FAULTS["convolution dilated"], nn.Conv2D(3, 2, 3, padding=1), IMAGES, ""),
    (FAULTS["convolution padding"], nn.Conv2D(3, 2, 3, padding=1), IMAGES,
     "convolution padded on the wrong side"),
    (FAULTS["convolution stride"], nn.Conv2D(3, 2, 3, stride=2), IMAGES, "convolution stride 1"),
])  # fmt: skip
def test_a_setting_is_changed(find: Any, layer: Any, inputs: np.ndarray, kind: str) -> None:
    with observed(nn.Sequential(layer), inputs) as view:
        fault = find(view)
        assert (fault.module, fault.kind) == ("0", kind)
        assert changes_output(view, fault)


@pytest.mark.parametrize(("find", "reason"), [
    (layers.change_epsilon, "no layer with an epsilon"),
    (FAULTS["convolution dilated"], "no convolution of an odd size above 1 with padding"),
    (FAULTS["convolution padding"], "no convolution with padding"),
    (FAULTS["convolution stride"], "no convolution with a stride above 1"),
    (layers.forget_statistics, "no batch norm"),
    (FAULTS["batch norm's momentum not inverted"], "no batch norm"),
])  # fmt: skip
def test_a_model_without_a_place_for_it(find: Any, reason: str) -> None:
    with observed(nn.Sequential(nn.Conv2D(3, 2, 1)), IMAGES) as view:
        assert find(view) == reason


def test_running_statistics() -> None:
    norm = nn.BatchNorm2D(3)
    with observed(nn.Sequential(norm), IMAGES) as view:
        fault = layers.forget_statistics(view)
        assert "give trained weights" in fault.hint  # a new norm has the statistics 0 and 1
        norm._mean.set_value(norm._mean + 1)
        fault = layers.forget_statistics(view)
        assert fault.hint == ""
        assert changes_output(view, fault)


def test_the_momentum_comes_back() -> None:
    norm = nn.BatchNorm2D(3, momentum=0.75)
    with observed(nn.Sequential(norm), IMAGES) as view:
        fault = FAULTS["batch norm's momentum not inverted"](view)
        assert fault.plant is not None
        with fault.plant(view.side):
            assert norm._momentum == 0.25
        assert norm._momentum == 0.75
