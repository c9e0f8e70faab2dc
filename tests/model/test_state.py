"""What models keep between calls, and that they forget it."""

from collections import deque
from typing import Any

from reprod_align.model.state import State
from reprod_align.pair.sides import paddle_side, torch_side
from reprod_align.randomness import KeyedDraws

import numpy as np
import paddle
import pytest
import torch


class Notes:
    """A user's own object."""

    def __init__(self) -> None:
        self.last: Any = None
        self.all: list[float] = []


def keep_all(model: Any, total: float) -> None:
    """Let a model keep a number in every way."""
    model.count += 1
    model.listed.append(total)
    model.named["nested"].append(total)
    model.ordered.append(total)
    model.unique.add(total)
    model.notes.last = total
    model.notes.all.append(total)
    model.buffer += 1  # in place
    model.loose[0] += 1
    model.added = total


def begin(model: Any) -> None:
    model.count, model.listed, model.named = 0, [], {"nested": []}
    model.ordered, model.unique, model.notes = deque([1]), {2}, Notes()


class OwnTorch(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.loose = torch.nn.Linear(2, 3), torch.zeros(2)
        self.register_buffer("buffer", torch.zeros(1))
        begin(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        keep_all(self, float(y.detach().sum()))
        return y * self.count + self.buffer + self.loose.sum() + len(self.listed)


class OwnPaddle(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.loose = paddle.nn.Linear(2, 3), paddle.zeros([2])
        self.register_buffer("buffer", paddle.zeros([1]))
        begin(self)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.fc(x)
        keep_all(self, float(y.detach().sum()))
        return y * self.count + self.buffer + self.loose.sum() + len(self.listed)


SIDES = pytest.mark.parametrize("make", [lambda: torch_side(OwnTorch()), lambda: paddle_side(OwnPaddle())],
                                ids=["torch", "paddle"])  # fmt: skip


def run(side: Any, **how: Any) -> np.ndarray:
    trace = side.run((np.ones((1, 2)),), False, KeyedDraws(0, {"": ""}), "ends", **how)
    return trace.outputs[""].array


def describe(model: Any) -> tuple:
    notes = model.notes
    return (
        model.count, list(model.listed), model.named["nested"][:], list(model.ordered),
        set(model.unique), notes.last, notes.all[:], float(model.buffer.sum()),
        float(model.loose.sum()), hasattr(model, "added"),
    )  # fmt: skip


@SIDES
def test_each_run_that_begins_anew_is_the_first_one(make: Any) -> None:
    side = make()
    side.loss = lambda output: output.sum()
    before = describe(side.model)
    with side.working("float64"):
        first, second, third = (run(side, anew=anew) for anew in (True, False, True))
        assert (first == third).all() and (first != second).any()
        run(side)
        side.load({})
        assert describe(side.model) == before
    assert describe(side.model) == before


@SIDES
def test_loaded_values_are_what_a_run_begins_with(make: Any) -> None:
    side = make()
    side.loss = lambda output: output.sum()
    with side.working("float64"):
        start = run(side, anew=True)
        side.load({"buffer": np.array([7.0])})
        first, again = run(side, anew=True), run(side, anew=True)
        assert (first == again).all() and np.allclose(first, start + 7)


@SIDES
def test_gradients_can_be_off(make: Any) -> None:
    side = make()
    side.loss = lambda output: output.sum()
    with side.working("float64"):
        args = (np.ones((1, 2)),), False, KeyedDraws(0, {"": ""}), "all"
        on, off = side.run(*args), side.run(*args, graded=False)
        assert on.gradients and not off.gradients
        assert off.outputs[""].differentiable  # as every float counts there


def test_modules_weights_and_hooks_are_left_alone() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(1, 1))
    from reprod_align.backends.torch import side as framework

    state = State(framework, [model, model[0]], [])
    handle = model.register_forward_hook(lambda *args: None)
    model.append(torch.nn.ReLU())
    state.restore()
    assert len(model) == 2 and len(model._forward_hooks) == 1
    handle.remove()
