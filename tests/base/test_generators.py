"""Python's and numpy's generators, seeded alike."""

import random

from reprod_align.randomness import NUMPY, PYTHON, preserve_generators, seed_generators

import numpy as np


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
