"""A fault that no batch can reveal is told from one that the batch hides."""

from typing import Any

from reprod_align.selftest import NO_EFFECT, SelfTest, lacks_effect, may_lack_effect, selftest
from reprod_align.selftest.plant import DEAD, PlantedFault, fault_at, replace_forward
from tests.selftest.observed import observed

import numpy as np
import paddle
import pytest
import torch

X = np.random.default_rng(0).normal(size=(4, 6, 3))
SMALL_STEP = "Linear's weight off by 1e-6"


def plant(layer: Any, change: Any) -> PlantedFault:
    """Return a fault that changes a layer's output."""
    return fault_at(
        "",
        lambda: replace_forward(layer, lambda own, *args, **kwargs: change(own(*args, **kwargs))),
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda scores: scores + 0.5, True),
        (lambda scores: scores * 1.001, False),
        (lambda scores: scores.detach(), False),  # in the gradients alone
        (lambda scores: scores if scores.shape[0] > 1 else scores * 2, False),
        (lambda scores: scores if scores.shape[1] > 5 else scores * 2, False),
        (lambda scores: scores if paddle.is_grad_enabled() else scores * 2, False),
        (lambda scores: scores.reshape([4, 6, 2]), False),  # where the sound model runs, it raises
    ],
)
def test_a_constant_before_a_softmax_has_no_effect_anything_else_has(
    change: Any, expected: bool
) -> None:
    model = paddle.nn.Sequential(paddle.nn.Linear(3, 2), paddle.nn.LogSoftmax())
    with observed(model, X) as view:
        assert lacks_effect(view.side, plant(model[0], change), (X,)) is expected


def test_a_fault_in_train_mode_alone_has_an_effect() -> None:
    model = paddle.nn.Sequential(paddle.nn.Linear(3, 2), paddle.nn.LogSoftmax())
    with observed(model, X) as view:
        fault = plant(model[0], lambda scores: scores * 2 if model.training else scores)
        assert not lacks_effect(view.side, fault, (X,))


@pytest.mark.parametrize(
    ("fault", "inputs", "expected"),
    [
        (PlantedFault("fc", None), (X,), True),
        (PlantedFault("fc", None, DEAD), (X,), True),
        (PlantedFault("fc", None, "no label is ignored"), (X,), False),
        (PlantedFault("fc", None, in_steps=True), (X,), False),
        (PlantedFault("fc", None), (X[:1],), False),
        (PlantedFault("fc", None, DEAD), {"x": X, "ids": np.ones((4, 1))}, False),
    ],
)
def test_a_known_reason_or_an_axis_of_length_1_may_hide_a_fault(
    fault: PlantedFault, inputs: Any, expected: bool
) -> None:
    assert may_lack_effect(fault, inputs) is expected


def judge_classifier(last: tuple[Any, Any]) -> SelfTest:
    models = (
        framework.nn.Sequential(framework.nn.Linear(3, 2), activation)
        for framework, activation in zip((torch, paddle), last, strict=True)
    )
    return selftest(*models, (X,))


def test_what_no_batch_can_reveal_is_not_demanded() -> None:
    result = judge_classifier((torch.nn.LogSoftmax(-1), paddle.nn.LogSoftmax()))
    (outcome,) = (one for one in result.outcomes if one.kind == SMALL_STEP)
    assert outcome.without_effect and outcome.text == NO_EFFECT and outcome.revealed is None
    assert outcome not in result.planted and outcome not in result.invisible
    assert any("no effect" in line and SMALL_STEP in line for line in result.summary().splitlines())
    assert '"without_effect": true' in result.to_json()


def test_what_a_batch_can_reveal_is_revealed() -> None:
    result = judge_classifier((torch.nn.Tanh(), paddle.nn.Tanh()))
    (outcome,) = (one for one in result.outcomes if one.kind == SMALL_STEP)
    assert outcome.revealed and not outcome.without_effect
