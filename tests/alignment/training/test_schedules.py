"""Two schedules of learning rates: what makes them differ is read off the rates."""

import math
from collections.abc import Callable

from reprod_align.alignment.training.schedules import agree, explain_rates, find_turns, fit_shape

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler as schedules

Make = Callable[[torch.optim.Optimizer], schedules.LRScheduler]
TIMES = np.arange(50)


def rates_of(make: Make, steps: int = 300) -> np.ndarray:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler, rates = make(optimizer), []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(rates)


def by(function: Callable[[int], float]) -> Make:
    return lambda optimizer: schedules.LambdaLR(optimizer, function)


def steps(length: int, gamma: float = 0.5) -> Make:
    return lambda optimizer: schedules.StepLR(optimizer, length, gamma)


def milestones(*at: int) -> Make:
    return lambda optimizer: schedules.MultiStepLR(optimizer, list(at), 0.1)


def cosine(length: int, low: float = 0.0) -> Make:
    return lambda optimizer: schedules.CosineAnnealingLR(optimizer, length, low)


def restarts(length: int, growth: int = 1) -> Make:
    return lambda optimizer: schedules.CosineAnnealingWarmRestarts(optimizer, length, growth)


def polynomial(power: float) -> Make:
    return lambda optimizer: schedules.PolynomialLR(optimizer, 8, power)


def warm_up(length: int, total: int, start: float = 0.0) -> Make:
    return by(
        lambda t: (
            start + (1 - start) * t / length
            if t < length
            else max(0.0, (total - t) / (total - length))
        )
    )


def hard_restarts(cycles: int) -> Make:
    def share(t: int) -> float:
        done = (t - 6) / 54
        if t < 6:
            return t / 6
        return 0.0 if done >= 1 else 0.5 * (1 + math.cos(math.pi * (cycles * done % 1)))

    return by(share)


def one_cycle(rising: float) -> Make:
    return lambda o: schedules.OneCycleLR(o, 0.1, total_steps=301, pct_start=rising)


PLANTED: dict[str, tuple[Make, Make, str]] = {
    "step length": (steps(30), steps(20), "step length: 30 in PyTorch, 20 in Paddle"),
    "gamma of the steps": (steps(2), steps(2, 0.1), "gamma: 0.5 in PyTorch, 0.1 in Paddle"),
    "milestones": (milestones(2, 4), milestones(2, 5), "(2, 4) in PyTorch, (2, 5) in Paddle"),
    "gamma": (by(lambda t: 0.9**t), by(lambda t: 0.91**t), "gamma: 0.9 in PyTorch, 0.91 in Paddle"),
    "inverse": (by(lambda t: 0.9**t), by(lambda t: 1 / (1 + 0.1 * t)), "Paddle's an inverse decay"),
    "cosine's length": (cosine(80), cosine(60), "length: 80 in PyTorch, 60 in Paddle"),
    "cosine beyond": (cosine(5000), cosine(4000), "length: 5000 in PyTorch, 4000 in Paddle"),
    "eta_min": (cosine(8, 1e-3), cosine(8), "lowest rate: 0.001 in PyTorch, 0 in Paddle"),
    "linear": (cosine(8), polynomial(1.0), "Paddle's a polynomial decay"),
    "power": (polynomial(2.0), polynomial(1.0), "power: 2 in PyTorch, 1 in Paddle"),
    "restarts": (restarts(4), cosine(4), "restarts in PyTorch, rises again in Paddle"),
    "growth": (restarts(4, 2), restarts(4), "each cycle 2 times as long in PyTorch"),
    "cycles": (hard_restarts(3), hard_restarts(2), "restarts, 3 cycles in PyTorch"),
    "warm-up": (warm_up(3, 12), warm_up(4, 12), "length of the warm-up: 3 in PyTorch, 4 in Paddle"),
    "warm-up's start": (warm_up(3, 12), warm_up(3, 12, 0.1), "first rate: 0 in PyTorch, 0.01"),
    "total": (warm_up(3, 12), warm_up(3, 13), "last step of the decay: 12 in PyTorch, 13 in Paddle"),
    "no warm-up": (warm_up(3, 12), by(lambda t: min(1.0, max(0.0, (12 - t) / 9))),
                   "agree from step 3 on; before it PyTorch's rise (a warm-up) and Paddle's stay"),
    "early": (steps(2), by(lambda t: 0.5 ** ((t + 1) // 2)), "one step early"),
    "late": (steps(2), by(lambda t: 0.5 ** (max(t - 1, 0) // 2)), "one step late"),
    "twice": (steps(4), steps(2), "runs 2 times as fast"),
    "never": (steps(2), by(lambda t: 1.0), "never changes"),
    "first rate": (cosine(80), lambda o: schedules.CosineAnnealingLR(scaled(o), 80), "times 1.5"),
    "one cycle": (one_cycle(0.3), one_cycle(0.2), "turn first at step 89, Paddle's at step 59"),
}  # fmt: skip


def scaled(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    for group in optimizer.param_groups:
        group["lr"] *= 1.5
    return optimizer


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name: str) -> None:
    ours, theirs, words = PLANTED[name]
    assert words in explain_rates(rates_of(ours), rates_of(theirs))


@pytest.mark.parametrize("name", PLANTED)
def test_equal_schedules_and_unrelated_ones_have_no_cause(name: str) -> None:
    rates = rates_of(PLANTED[name][0])
    assert explain_rates(rates, rates) == ""
    noise = np.random.default_rng(0).uniform(0.9, 1.0, rates.shape)
    assert explain_rates(rates, np.cumprod(noise)) == ""


def test_few_steps_prove_nothing() -> None:
    assert explain_rates(np.array([0.1, 0.05, 0.02]), np.array([0.1, 0.06, 0.02])) == ""


def test_a_shape_gives_all_rates_or_is_not_taken() -> None:
    decay = 0.2 * 0.9**TIMES
    found = fit_shape(decay)
    assert found is not None and found.numbers == {"first rate": 0.2, "gamma": 0.9}
    spoilt = decay.copy()
    spoilt[30] *= 1.001
    assert fit_shape(spoilt) is None


def test_a_constant_is_the_simplest_shape() -> None:
    found = fit_shape(np.full(50, 0.1))
    assert found is not None and found.name == "a constant rate"


def test_a_step_decay_that_ends_is_one_with_milestones() -> None:
    found = fit_shape(np.where(TIMES < 5, 1.0, np.where(TIMES < 10, 0.1, 0.01)))
    assert found is not None and found.numbers["milestones"] == (5, 10)


def test_numbers_that_tell_nothing_have_no_shape() -> None:
    assert fit_shape(np.zeros(50)) is None
    assert fit_shape(np.full(50, np.nan)) is None
    assert fit_shape(np.random.default_rng(0).uniform(size=50)) is None


def test_turns_are_where_a_rise_ends() -> None:
    assert find_turns(np.minimum(TIMES, 20 - TIMES).astype(float)) == (10,)
    assert find_turns(0.9**TIMES) == ()
    assert agree(np.ones(3), np.ones(3)) and not agree(np.ones(3), np.ones(3) * 1.001)
