"""The shape of a schedule and its numbers, fitted to its rates."""

from reprod_align.alignment.training.schedules import agree, find_turns, fit_shape

import numpy as np

TIMES = np.arange(50)


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
