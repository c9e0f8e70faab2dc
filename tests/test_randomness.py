"""A draw depends on where it is asked for, not on how many came before; generators are given back."""

import random

from reprod_align.randomness import (
    NUMPY,
    PYTHON,
    CallKey,
    KeyedDraws,
    preserve_generators,
    seed_generators,
)

import numpy as np

NAMES = {"drop": "drop", "ln_1": "norm"}


def draws_at(*places: CallKey, **more: object) -> KeyedDraws:
    return KeyedDraws(7, NAMES, place=lambda: list(places), **more)  # type: ignore[arg-type]


def test_the_same_place_draws_the_same_numbers_whatever_came_before() -> None:
    first, second = draws_at(("", 0), ("drop", 1)), draws_at(("", 0))
    second.uniform((5,))
    second.place = lambda: [("", 0), ("drop", 1)]
    expected = first.uniform((2, 3))
    np.testing.assert_array_equal(second.uniform((2, 3)), expected)
    assert not np.array_equal(first.uniform((2, 3)), expected)  # its second draw
    assert expected.min() >= 0 and expected.max() < 1


def test_call_seed_and_module_make_other_numbers() -> None:
    made = [
        draws_at(("drop", 0)).normal((8,)),
        draws_at(("drop", 1)).normal((8,)),
        draws_at(("ln_1", 0)).normal((8,)),
        KeyedDraws(8, NAMES, place=lambda: [("drop", 0)]).normal((8,)),
    ]
    assert len({array.tobytes() for array in made}) == 4


def test_a_module_without_a_counterpart_draws_for_the_module_around_it() -> None:
    inner = draws_at(("", 0), ("drop", 0), ("drop.own", 3))
    np.testing.assert_array_equal(inner.uniform((4,)), draws_at(("drop", 0)).uniform((4,)))
    renamed = KeyedDraws(7, {"norm": "norm"}, place=lambda: [("norm", 0)])
    np.testing.assert_array_equal(draws_at(("ln_1", 0)).uniform((4,)), renamed.uniform((4,)))


def test_a_draw_in_another_layout_is_the_reference_draw_turned() -> None:
    reference = draws_at(("drop", 0))
    expected = reference.uniform((2, 3, 4))
    turned = draws_at(("drop", 0), asked=reference.drawn).uniform((2, 4, 3))
    np.testing.assert_array_equal(turned, expected.transpose(0, 2, 1))
    merged = draws_at(("drop", 0), asked=reference.drawn).uniform((6, 4))
    np.testing.assert_array_equal(merged, expected.reshape(6, 4))


def test_integers_and_permutations() -> None:
    assert set(draws_at(("drop", 0)).integers(2, 4, (100,)).tolist()) == {2, 3}
    assert sorted(draws_at(("drop", 0)).permutation(9).tolist()) == list(range(9))


def test_what_was_drawn_is_told_from_what_was_not() -> None:
    with preserve_generators():
        assert seed_generators(5)() == {}
        read = seed_generators(5)
        random.random()
        once = read()
        assert once.keys() == {PYTHON}
        read = seed_generators(5)
        np.random.normal()
        assert read().keys() == {NUMPY}
        read = seed_generators(5)
        random.random()
        assert read() == once
        random.random()
        read = seed_generators(5)
        random.random()
        random.random()
        assert read() != once


def test_the_users_states_come_back() -> None:
    before = random.getstate(), np.random.get_state()[1].tobytes()
    with preserve_generators():
        seed_generators(5)
        random.random()
    assert before == (random.getstate(), np.random.get_state()[1].tobytes())
