"""Python's `random` and numpy's global generator in a forward pass."""

import random
from collections.abc import Callable
from typing import Any

from reprod_align import align
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.unjudged import note_generators
from reprod_align.model.trace import Trace
from tests.alignment.small import PaddleNet, TorchNet, X

import numpy as np
import pytest

Draw = Callable[[], float]
DRAWS: dict[str, Draw] = {
    "Python's random": random.random,
    "numpy's global generator": lambda: float(np.random.normal()),
}


def scale(draw: Draw, times: float = 1.0):
    return lambda x: x * (1 + times * draw())


@pytest.mark.parametrize("name", DRAWS)
def test_both_sides_get_the_same_draws(name: str) -> None:
    random.seed(3)
    np.random.seed(3)
    before = random.getstate(), np.random.get_state()[1].tobytes()
    report = align(TorchNet(scale(DRAWS[name])), PaddleNet(scale(DRAWS[name])), (X,))
    assert report.passed, report.summary()
    assert not any(one.kind == "random numbers" for one in report.not_judged)
    assert before == (random.getstate(), np.random.get_state()[1].tobytes())
    assert not align(TorchNet(scale(DRAWS[name])), PaddleNet(scale(DRAWS[name], 1.1)), (X,)).passed


@pytest.mark.parametrize("name", DRAWS)
def test_a_side_that_alone_draws_is_named(name: str) -> None:
    def draw_unseen(x):
        DRAWS[name]()
        return x

    report = align(TorchNet(draw_unseen), PaddleNet(), (X,))
    assert report.passed
    first, *_ = [one.what for one in report.not_judged if one.kind == "random numbers"]
    assert first.startswith(
        f"in eval mode PyTorch's model draws from {name}, and Paddle's does not"
    )


def test_more_draws_on_one_side_are_named() -> None:
    def draw_twice(x):
        return x + 0 * (random.random() + random.random())

    report = align(TorchNet(lambda x: x + 0 * random.random()), PaddleNet(draw_twice), (X,))
    assert any("but not the same draws" in one.what for one in report.not_judged)


class Holds:
    """Scales what it is given by a number that its own generator draws."""

    def __init__(self, generator: Any, name: str) -> None:
        self.generator, self.name = generator, name

    def __call__(self, x: Any) -> Any:
        return x * (1 + abs(getattr(self.generator, self.name)()))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (np.random.default_rng, "normal"),
        (np.random.RandomState, "normal"),
        (random.Random, "random"),
    ],
)
def test_a_generator_that_a_module_holds_begins_anew_in_each_run(
    make: Callable[[int], Any], name: str
) -> None:
    ours, theirs = Holds(make(5), name), Holds(make(5), name)
    report = align(TorchNet(ours), PaddleNet(theirs), (X,))
    assert report.passed, report.summary()
    for held in (ours, theirs):
        assert getattr(held.generator, name)() == getattr(make(5), name)()


def test_equal_draws_need_no_word() -> None:
    findings = Findings()
    drawn = Trace(generators={"Python's random": 0.25})
    note_generators(findings, drawn, Trace(generators={"Python's random": 0.25}), "eval")
    assert findings.report.not_judged == []
    note_generators(findings, drawn, Trace(generators={"Python's random": 0.5}), "eval")
    assert len(findings.report.not_judged) == 1
