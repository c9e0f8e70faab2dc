"""What crosses a section, and what returns it in its place."""

from reprod_align.model.trace import Leaf
from reprod_align.pair import paddle_side, torch_side
from reprod_align.sections.crossing import (
    Crossing,
    ShownSettings,
    StandIn,
    note_inputs,
    note_outputs,
    translate,
    translate_all,
)

import numpy as np
import paddle
import pytest
import torch


def test_inputs_are_kept_as_they_were_before_the_call() -> None:
    fw = torch_side(torch.nn.Linear(1, 1)).fw
    given = torch.ones(2)
    call = note_inputs(fw, ((given,), {}))
    given += 1
    note_outputs(fw, call, (given, None))
    assert call.inputs["[0][0]"].array.tolist() == [1, 1]
    assert call.outputs["[0]"].array.tolist() == [2, 2]
    assert call.returned[1] is None and call.returned[0].shape == ()


def test_the_port_gets_the_reference_s_values_and_keeps_its_own_masks() -> None:
    hidden, mask = np.arange(6.0).reshape(2, 3), np.array([True, False])
    ours = Crossing({"x": Leaf(hidden, True, -hidden), "m": Leaf(mask, False)}, {}, None)
    other = np.array([0.0, -1e9])
    theirs = Crossing({"h": Leaf(hidden + 1, True), "bias": Leaf(other, False)}, {}, None)
    given = translate(ours, theirs).inputs
    assert np.array_equal(given["h"].array, hidden) and given["h"].differentiable
    assert np.array_equal(given["h"].gradient, -hidden)
    assert np.array_equal(given["bias"].array, other) and not given["bias"].differentiable


def test_a_call_of_the_port_alone_keeps_its_values() -> None:
    call = Crossing({"h": Leaf(np.ones(2), True)}, {}, None)
    (alone,) = translate_all([], [call])
    assert not alone.inputs["h"].differentiable
    assert translate_all([call], []) == []


X, Y, G = np.arange(3.0), np.full(3, 7.0), np.array([5.0, 6.0, 7.0])
TORCH = torch_side(torch.nn.Linear(1, 1)), torch.tensor
PADDLE = paddle_side(paddle.nn.Linear(1, 1)), paddle.to_tensor
BOTH = pytest.mark.parametrize(("side", "make"), [TORCH, PADDLE], ids=["torch", "paddle"])


def crossing(side) -> Crossing:  # type: ignore[no-untyped-def]
    given = {"[0][0]": Leaf(X, True, G), "[0][1]": Leaf(np.array([-np.inf] * 3), False)}
    return Crossing(given, {"": Leaf(Y, True)}, side.fw.constant(np.zeros(())))


@BOTH
def test_it_returns_the_output_moved_as_its_input(side, make) -> None:  # type: ignore[no-untyped-def]
    mask = make(np.array([-np.inf] * 3))
    for move in (0.0, 2.5):
        output = StandIn(side, [crossing(side)]).answer(make(X + move), mask)
        assert np.array_equal(output.detach().numpy(), Y + move)


@BOTH
def test_an_output_of_another_shape_moves_by_the_largest_move(side, make) -> None:  # type: ignore[no-untyped-def]
    known = crossing(side)
    known.outputs = {"": Leaf(np.full((2, 2), 7.0), True)}
    moved = side.fw.make_differentiable(make(X + np.array([1e-3, -1e-3, 2e-3])))
    output = StandIn(side, [known]).answer(moved)
    np.testing.assert_allclose(output.detach().numpy(), np.full((2, 2), 7.002))
    output.sum().backward()
    assert np.array_equal(moved.grad.numpy(), G)


@BOTH
def test_its_input_gets_the_section_s_gradient(side, make) -> None:  # type: ignore[no-untyped-def]
    given = side.fw.make_differentiable(make(X))
    StandIn(side, [crossing(side)]).answer(given).sum().backward()
    assert np.array_equal(given.grad.numpy(), G)


@BOTH
def test_one_call_too_many_is_refused_until_it_begins_again(side, make) -> None:  # type: ignore[no-untyped-def]
    stand_in = StandIn(side, [crossing(side)])
    stand_in.answer(make(X))
    with pytest.raises(RuntimeError, match="called more often than in the first run"):
        stand_in.answer(make(X))
    stand_in.begin()
    stand_in.answer(make(X))


def test_a_stand_in_has_no_settings() -> None:
    side, _ = TORCH
    layer, settings = torch.nn.Linear(1, 1), ShownSettings(side.settings)
    assert settings.module_settings(layer).kind == "Linear"
    layer.__dict__["forward"] = StandIn(side, ()).answer
    assert settings.module_settings(layer).kind == ""
