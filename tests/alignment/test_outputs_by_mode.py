"""Models that return something else in train mode: auxiliary heads, raw predictions, a loss."""

from collections import namedtuple
from typing import Any

from reprod_align import align

import numpy as np
import paddle
import pytest
import torch

Heads = namedtuple("Heads", "logits second first")
"""as GoogLeNet's outputs in train mode"""


def give_lists(kind: Any, h: Any, r: Any, training: bool) -> Any:
    """Return raw predictions in train mode, as detectors do, and two named outputs in eval mode."""
    return [h, r] if training else {"scores": kind.softmax(r, -1), "boxes": r * 2}


def give_heads(kind: Any, h: Any, r: Any, training: bool) -> Any:
    """Return two heads of the same shape beside the output."""
    return Heads(r, h[:, :3], h[:, 3:]) if training else r


def add_head(kind: Any, h: Any, r: Any, training: bool) -> Any:
    """Return one output more under a name of its own."""
    return {"out": r, "aux": h} if training else {"out": r}


def give_loss_first(kind: Any, h: Any, r: Any, training: bool) -> Any:
    """Return a number before the output."""
    return (r.mean(), r) if training else r


def give_loss_alone(kind: Any, h: Any, r: Any, training: bool) -> Any:
    """Return a number in place of the output, under the same name."""
    return r.mean() if training else r


FORMS = (give_lists, give_heads, add_head, give_loss_first, give_loss_alone)


class Torch(torch.nn.Module):
    def __init__(self, give: Any) -> None:
        super().__init__()
        self.a, self.b, self.give = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3), give

    def forward(self, x: Any) -> Any:
        h = torch.tanh(self.a(x))
        return self.give(torch, h, self.b(h), self.training)


class Paddle(paddle.nn.Layer):
    def __init__(self, give: Any) -> None:
        super().__init__()
        self.a, self.b, self.give = paddle.nn.Linear(6, 6), paddle.nn.Linear(6, 3), give

    def forward(self, x: Any) -> Any:
        h = paddle.tanh(self.a(x))
        return self.give(paddle.nn.functional, h, self.b(h), self.training)


class CutPaddle(Paddle):
    """Half of a gradient stops, in train mode alone; no number shows it."""

    def forward(self, x: Any) -> Any:
        h = paddle.tanh(self.a(x))
        cut = h * 0.5 + h.detach() * 0.5 if self.training else h
        return self.give(paddle.nn.functional, cut, self.b(h), self.training)


def judge(port: Any, form: Any, theirs: Any = None) -> Any:
    numbers = (np.random.default_rng(0).standard_normal((4, 6)),)
    return align(
        Torch(form), port(theirs or form), numbers,
        torch_optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
        paddle_optimizer=lambda model: paddle.optimizer.SGD(0.1, parameters=model.parameters()),
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_faithful_port_stays_faithful(form: Any) -> None:
    report = judge(Paddle, form)
    assert report.verdict == "faithful", [one.message for one in report.findings]


@pytest.mark.parametrize("form", [give_lists, give_heads, add_head])
def test_the_gradient_of_an_output_of_train_mode_alone_counts(form: Any) -> None:
    report = judge(CutPaddle, form)
    assert report.verdict == "diverges"
    assert report.findings[0].stage == "backward"


@pytest.mark.parametrize(("form", "missing"), [(give_heads, "[1], [2]"), (add_head, "aux")])
def test_an_output_that_train_mode_lacks_is_named(form: Any, missing: str) -> None:
    def leave_out(kind: Any, h: Any, r: Any, training: bool) -> Any:
        return form(kind, h, r, False)

    report = judge(Paddle, form, leave_out)
    first = report.findings[0]
    assert (first.kind, missing in first.message) == ("output-missing", True), first.message


def test_heads_that_are_exchanged_in_train_mode_are_found() -> None:
    def exchange(kind: Any, h: Any, r: Any, training: bool) -> Any:
        return (r, h[:, 3:], h[:, :3]) if training else r

    report = judge(Paddle, give_heads, exchange)
    assert "exchanged" in report.findings[0].message
