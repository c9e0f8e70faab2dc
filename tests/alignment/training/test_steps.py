"""Training steps of a small pair: updates compared, and the setting that makes them differ named."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from reprod_align.alignment.audit import OptimizerDifference
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.training import compare_rates, compare_training, leave_to_schedule
from reprod_align.alignment.training.effects import Effects, UpdateComparer, all_agree, updates_of
from reprod_align.model.settings import OptimizerSettings
from tests.alignment.small import PaddleNet, TorchNet, at_work, mean_square, messages

import numpy as np
import paddle
import pytest
import torch

LOSSES = mean_square, mean_square


def torch_adam(model: Any) -> Any:
    return torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-4, weight_decay=0.1)


def paddle_adam(**settings: Any) -> Any:
    known = {"learning_rate": 0.01, "epsilon": 1e-4, "weight_decay": 0.1}
    return lambda model: paddle.optimizer.AdamW(parameters=model.parameters(), **known | settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, ""),
        ({"epsilon": 1e-3}, "eps: 0.0001 in PyTorch, 0.001 in Paddle"),
        ({"weight_decay": 0.2}, "weight_decay: 0.1 in PyTorch, 0.2 in Paddle"),
        ({"beta1": 0.8}, "betas: (0.9, 0.999) in PyTorch, (0.8, 0.999) in Paddle"),
        ({"learning_rate": 0.02}, "learning rate at step 0: 0.01 in PyTorch, 0.02 in Paddle"),
    ],
)
def test_the_setting_that_differs_is_named(settings: Any, words: str) -> None:
    optimizers = torch_adam, paddle_adam(**settings)
    with at_work(TorchNet(), PaddleNet(), LOSSES, optimizers) as (runner, findings):
        compare_training(runner, findings, 2)
    assert [words in text for text in messages(findings)] == [True] * bool(words)
    assert findings.report.checks[-1].passed == (not words)


def test_a_setting_without_an_effect_is_a_remark() -> None:
    def clipping(model: Any) -> Any:
        clip = paddle.nn.ClipGradByGlobalNorm(1e6)
        return paddle.optimizer.SGD(0.1, parameters=model.parameters(), grad_clip=clip)

    def plain(model: Any) -> Any:
        return torch.optim.SGD(model.parameters(), lr=0.1)

    with at_work(TorchNet(), PaddleNet(), LOSSES, (plain, clipping)) as (runner, findings):
        compare_training(runner, findings, 2)
    assert messages(findings) == []
    assert any(
        "settings differ without an effect seen here: clip" in t for t in findings.report.remarks
    )


def test_updates_are_compared_with_noise_and_without_rounded_gradients() -> None:
    optimizers = torch_adam, paddle_adam(epsilon=1e-3)
    with at_work(TorchNet(), PaddleNet(), LOSSES, optimizers) as (runner, _):
        taken, natural = runner.train_reference(2), runner.train_port(2)
        comparer = UpdateComparer(runner, taken)
        gaps = comparer.compare(natural)
        assert len(gaps) == 2 and gaps[0].keys() == runner.pairing.loaded_names
        assert not all_agree(gaps) and not all_agree(comparer.leave_out_rounded(gaps, natural))
        assert comparer.noise[0]["first.weight"] < 1e-9  # on some CPUs 0: the rounding cancels out
        assert any(size > 0 for step in comparer.noise for size in step.values())
        first = updates_of(taken, 0, runner.weights)
        moved = taken[0].tensors["first.bias"] - runner.weights["first.bias"]
        assert np.array_equal(first["first.bias"], moved) and len(first) == 4
        with pytest.raises(KeyError):
            first["nowhere"]


def test_effects_are_worked_out_where_pytorchs_own_steps_come_out() -> None:
    from reprod_align.alignment.audit import compare_optimizers

    optimizers = torch_adam, paddle_adam(epsilon=1e-3)
    with at_work(TorchNet(), PaddleNet(), LOSSES, optimizers) as (runner, _):
        taken = runner.train_reference(2)
        sides = runner.reference.optimizer_settings(), runner.port.optimizer_settings()
        (difference,) = compare_optimizers(*sides, {n: n for n in runner.weights})
        effects = Effects(runner.weights, taken, *sides)
        in_step, at_most = effects.of(difference, 0)
    assert difference.setting == "eps" and effects.clips_alike
    assert 1e-6 < in_step <= at_most < 1


def steps(*rates: Sequence[float]) -> Any:
    return [SimpleNamespace(rates=list(step)) for step in rates]


def runner(ours: Any = None, theirs: Any = None) -> Any:
    sides = [
        SimpleNamespace(scheduler=given, rates=lambda _, given=given: given)
        for given in (ours, theirs)
    ]
    return SimpleNamespace(reference=sides[0], port=sides[1])


@pytest.mark.parametrize(
    ("theirs", "words"),
    [(steps([0.1], [0.05]), ""), (steps([0.1], [0.06]), "step 1: 0.05 in PyTorch, 0.06 in Paddle")],
)
def test_rates_of_the_steps(theirs: Any, words: str) -> None:
    findings = Findings()
    assert compare_rates(runner(), findings, steps([0.1], [0.05]), theirs, set()) == (not words)
    assert [words in text for text in messages(findings)] == [True] * bool(words)
    assert findings.report.checks[0].what == "learning rate, 2 steps"


def test_schedules_are_compared_far_beyond_the_steps_that_were_taken() -> None:
    findings = Findings()
    known = runner([[0.1]] * 10, [[0.1]] * 9 + [[0.2]])
    assert not compare_rates(known, findings, steps([0.1]), steps([0.1]), set())
    assert findings.report.findings[0].stage == "schedule"
    assert "step 9" in messages(findings)[0]


def test_a_group_of_paddles_is_a_factor_of_its_rate() -> None:
    findings = Findings()
    taken, natural = steps([0.1, 0.01], [0.2, 0.02]), steps([1.0], [2.0])
    assert compare_rates(runner(), findings, taken, natural, {0.1, 0.01})


def test_a_rate_that_differs_by_one_factor_everywhere_is_left_to_the_schedule() -> None:
    whole = OptimizerDifference("lr", 0.1, 0.2, ("a", "b"), ("a", "b"), "lr: 0.1 and 0.2")
    part = OptimizerDifference("lr", 0.1, 0.2, ("a",), ("a",), "lr: 0.1 and 0.2")
    eps = OptimizerDifference("eps", 1e-8, 1e-6, ("a",), ("a",), "eps")
    held = {name: {"frozen": False, "lr": 0.1} for name in "ab"}
    settings = OptimizerSettings("SGD", "SGD", held, None)
    assert leave_to_schedule([whole, eps], settings) == [eps]
    assert leave_to_schedule([part, eps], settings) == [part, eps]
