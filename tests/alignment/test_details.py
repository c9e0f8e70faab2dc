"""What a report of `align` shows beside its findings: layers, a picture, curves, weights, settings."""

import json
import math

from reprod_align import align
from reprod_align.alignment.details import (
    describe_inputs,
    draw_tensor,
    measure_apart,
    measure_figures,
    shrink,
)
from reprod_align.base.files import from_plain, to_plain
from reprod_align.report import Report

import numpy as np
import paddle
import pytest
import torch

BATCH = {"input": np.random.default_rng(0).normal(size=(4, 6)).astype("float32")}


def judge(epsilon: float = 1e-5) -> Report:
    torch.manual_seed(0)
    ours = torch.nn.Sequential(
        torch.nn.Linear(6, 6), torch.nn.LayerNorm(6), torch.nn.Tanh(), torch.nn.Linear(6, 3)
    )
    theirs = paddle.nn.Sequential(
        paddle.nn.Linear(6, 6),
        paddle.nn.LayerNorm(6, epsilon),
        paddle.nn.Tanh(),
        paddle.nn.Linear(6, 3),
    )
    return align(
        ours, theirs, BATCH,
        torch_loss=lambda out: (out**2).mean(), paddle_loss=lambda out: (out**2).mean(),
        torch_optimizer=lambda m: torch.optim.SGD(m.parameters(), 0.1),
        paddle_optimizer=lambda m: paddle.optimizer.SGD(0.1, parameters=m.parameters()), steps=2,
    )  # fmt: skip


@pytest.fixture(scope="module")
def faithful() -> Report:
    return judge()


@pytest.fixture(scope="module")
def diverging() -> Report:
    return judge(9e-4)


def test_every_layer_has_its_figures_in_call_order(faithful: Report) -> None:
    found = faithful.details.layers
    assert [layer.torch_name for layer in found] == ["", "0", "1", "2", "3"]
    assert [layer.kind for layer in found[1:]] == ["Linear", "LayerNorm", "Tanh", "Linear"]
    for layer in found:
        assert layer.forward is not None and layer.forward.relative < 1e-10
        assert layer.rounded is not None and 0 < layer.rounded.most < 1e-4
        assert layer.floor is not None and layer.floor < 1e-14
    assert [layer.backward is None for layer in found] == [True, False, False, True, False]


def test_a_fault_shows_in_its_layer_and_after(diverging: Report) -> None:
    found = {layer.torch_name: layer for layer in diverging.details.layers}
    apart = {name: layer.forward.relative for name, layer in found.items() if layer.forward}
    assert apart["0"] < 1e-10 < 1e-6 < min(apart["1"], apart["2"], apart["3"])
    assert all(layer.floor is not None and layer.floor < 1e-14 for layer in found.values())
    assert found["1"].rounded is None


def test_the_picture_is_of_the_first_module_at_fault(diverging: Report, faithful: Report) -> None:
    drawn = diverging.details.picture
    assert drawn is not None and drawn.name == "1" and drawn.shape == (4, 6)
    assert np.shape(drawn.grid) == (4, 6) and sum(drawn.expected) == sum(drawn.actual) == 24
    assert faithful.details.picture is not None


def test_curves_weights_settings_and_inputs(diverging: Report) -> None:
    details = diverging.details
    assert [curve.name for curve in details.curves] == ["loss", "learning rate"]
    assert [len(curve.actual) for curve in details.curves] == [2, 2]
    how = {weight.torch_name: weight.how for weight in details.weights}
    assert how["0.weight"] == "transposed" and how["0.bias"] == ""
    (setting,) = details.settings
    assert (setting.torch_name, setting.setting, setting.paddle_value) == ("1", "eps", "0.0009")
    assert details.inputs == [("input", "float32", (4, 6))]


def test_what_has_no_counterpart_is_listed() -> None:
    ours, theirs = torch.nn.Linear(3, 2), paddle.nn.Linear(3, 2, bias_attr=False)
    report = align(ours, theirs, (np.ones((2, 3), "float32"),))
    assert [one.torch_name for one in report.details.weights if one.how == "not paired"] == ["bias"]


def test_a_report_goes_through_json_and_back(diverging: Report) -> None:
    plain = json.loads(json.dumps(to_plain(diverging)))
    again = from_plain(Report, plain)
    assert again.findings == diverging.findings and again.shares == diverging.shares
    assert repr(again.details.layers) == repr(diverging.details.layers)


def test_gradients_have_a_mean_and_a_largest_difference(faithful: Report) -> None:
    figures = [layer.backward for layer in faithful.details.layers if layer.backward is not None]
    figures += [
        layer.backward
        for layer in judge(epsilon=1e-3).details.layers
        if layer.backward is not None and layer.backward.most > 1e-6
    ]
    assert len(figures) > 4
    assert all(0 <= one.mean <= one.most for one in figures)
    assert any(0 < one.mean < one.most for one in figures)


def test_figures_of_what_cannot_be_compared_and_of_infinities() -> None:
    assert measure_figures(np.ones(3), np.ones(2)).relative == math.inf
    same = np.array([1.0, -np.inf])
    assert measure_figures(same, same.copy()) == (0.0, 0.0, 0.0)
    assert measure_figures(np.ones(2), np.array([1.0, np.nan])).relative == math.inf


def test_pictures_of_odd_tensors() -> None:
    for array in (np.zeros(()), np.zeros(300), np.full((2, 3), np.nan), np.full((200, 300), 1e308)):
        drawn = draw_tensor("x", array, array.copy())
        assert np.nanmax(drawn.grid) == 0 and len(drawn.expected) == len(drawn.edges) - 1
        assert len(drawn.grid) <= 64 and len(drawn.grid[0]) <= 64


def test_one_wrong_element_of_many_is_in_the_picture() -> None:
    array = np.zeros((500, 700))
    array[333, 444] = 1.0
    assert shrink(array).sum() == 1.0
    assert measure_apart(array, np.full_like(array, np.nan)).min() == np.inf


def test_inputs_by_position() -> None:
    assert describe_inputs((np.zeros(2, "int64"),)) == [("0", "int64", (2,))]


def test_images_are_drawn_by_space() -> None:
    expected = np.zeros((2, 3, 5, 7))
    actual = expected.copy()
    actual[1, 2, 4, 6] = 0.5
    drawn = draw_tensor("x", expected, actual)
    grid = np.array(drawn.grid)
    assert drawn.spatial and grid.shape == (5, 7) and grid[4, 6] == 0.5 == grid.sum()
    assert not draw_tensor("x", expected[0], actual[0]).spatial
