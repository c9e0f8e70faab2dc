"""Tests of weights of equal values that are paired by their gradients."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from reprod_align import align
from reprod_align.match import Match, exchange

import numpy as np
import paddle
import pytest
import torch

ROWS = (np.random.default_rng(0).standard_normal((3, 6)),)


class Ours(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attn = torch.nn.LayerNorm(6), torch.nn.Linear(6, 6)
        self.norm2, self.ffn = torch.nn.LayerNorm(6), torch.nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + torch.relu(self.ffn(self.norm2(x)))


class Named(paddle.nn.Layer):
    """Has PyTorch's names; may take the second norm first."""

    def __init__(self, crosses: bool) -> None:
        super().__init__()
        self.norm1, self.attn = paddle.nn.LayerNorm(6), paddle.nn.Linear(6, 6)
        self.norm2, self.ffn = paddle.nn.LayerNorm(6), paddle.nn.Linear(6, 6)
        self.crosses = crosses

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        first, second = (self.norm2, self.norm1) if self.crosses else (self.norm1, self.norm2)
        x = x + self.attn(first(x))
        return x + paddle.nn.functional.relu(self.ffn(second(x)))


class Theirs(paddle.nn.Layer):
    """Has names of its own; `times` is a fault that the gradients of one norm alone show."""

    def __init__(self, times: float = 1.0) -> None:
        super().__init__()
        self.before, self.attn = paddle.nn.LayerNorm(6), paddle.nn.Linear(6, 6)
        self.after, self.ffn = paddle.nn.LayerNorm(6), paddle.nn.Linear(6, 6)
        self.times = times

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        normed = self.before(x)
        normed = normed * self.times + normed.detach() * (1 - self.times)
        x = x + self.attn(normed)
        return x + paddle.nn.functional.relu(self.ffn(self.after(x)))


@pytest.fixture
def pairs_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the matcher exchange the two norms unless a map says otherwise."""
    pair_models = import_module("reprod_align.alignment.pair_models")
    own: Callable[..., Match] = pair_models.match_models

    def match_models(torch_side, paddle_side, name_map=None) -> Match:
        found = own(torch_side, paddle_side, name_map)
        return found if name_map else exchange(found, [["norm1", "norm2"]], [1, 0])

    monkeypatch.setattr(pair_models, "match_models", match_models)


def test_norms_of_ones_that_were_exchanged_are_paired_by_their_gradients(pairs_wrongly) -> None:
    report = align(Ours(), Theirs(), ROWS)
    assert report.verdict == "faithful", report.findings
    assert report.pairs["norm1"] == "before" and report.pairs["norm2"] == "after"
    assert any("paired by comparing gradients" in one for one in report.remarks)


def test_a_fault_in_a_gradient_stays_a_fault(pairs_wrongly) -> None:
    report = align(Ours(), Theirs(times=0.5), ROWS)
    assert report.verdict == "diverges"
    assert not any("paired by comparing gradients" in one for one in report.remarks)


def test_norms_of_the_same_names_that_the_port_takes_in_another_order_are_a_fault() -> None:
    assert align(Ours(), Named(crosses=False), ROWS).verdict == "faithful"
    assert align(Ours(), Named(crosses=True), ROWS).verdict == "diverges"


def test_a_pairing_that_the_user_gives_is_kept() -> None:
    names = {"norm1": "after", "norm2": "before"}
    assert align(Ours(), Theirs(), ROWS, name_map=names).verdict == "diverges"


class OursInside(torch.nn.Module):
    """Holds a layer beside its own weight."""

    def __init__(self) -> None:
        super().__init__()
        self.gain, self.mix = torch.nn.Parameter(torch.ones(6)), torch.nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.mix(x * self.gain))


class TheirsInside(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        constant = paddle.nn.initializer.Constant(1.0)
        self.scale = self.create_parameter([6], default_initializer=constant)
        self.dense = paddle.nn.Linear(6, 6)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.tanh(self.dense(x * self.scale))


def test_a_weight_is_paired_anew_without_the_layers_beside_it(monkeypatch) -> None:
    pair_models = import_module("reprod_align.alignment.pair_models")
    own: Callable[..., Match] = pair_models.match_models

    def match_models(torch_side, paddle_side, name_map=None) -> Match:
        found = own(torch_side, paddle_side, name_map)
        if name_map:
            return found
        names = {pair.torch[0]: pair.paddle for pair in found.pairs}
        other = {"0.gain": names["1.gain"], "1.gain": names["0.gain"]}
        found.pairs = [
            replace(one, paddle=other.get(one.torch[0], one.paddle)) for one in found.pairs
        ]
        return found

    monkeypatch.setattr(pair_models, "match_models", match_models)
    ours = torch.nn.Sequential(OursInside(), OursInside())
    report = align(ours, paddle.nn.Sequential(TheirsInside(), TheirsInside()), ROWS)
    assert report.verdict == "faithful", report.findings
    assert any("0.gain with 0.scale, 1.gain with 1.scale" in one for one in report.remarks)
