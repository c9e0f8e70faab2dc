"""Faults that one fixed batch does not show, and the faithful pairs beside them."""

from collections.abc import Callable
from typing import Any

from reprod_align import align
from reprod_align.alignment.batches import stage
from reprod_align.report import Report

import numpy as np
import paddle
import pytest
import torch

IDS = np.random.default_rng(0).integers(0, 11, (3, 6))


class Torch(torch.nn.Module):
    """Embeds ids, adds positions, mixes, and takes the mean over the sequence."""

    def __init__(self, between: Callable[..., Any]) -> None:
        super().__init__()
        self.words, self.positions = torch.nn.Embedding(11, 8), torch.nn.Embedding(40, 8)
        self.mix, self.head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)
        self.between, self.calls, self.kept = between, 0, []

    def forward(self, ids: torch.Tensor) -> torch.Tensor:  # (B, L) -> (B, 3)
        x = self.words(ids) + self.positions(torch.arange(ids.shape[1]))
        hidden = self.between(self, ids, torch.tanh(self.mix(x)))
        self.calls += 1
        return self.head(hidden.mean(1))


class Paddle(paddle.nn.Layer):
    def __init__(self, between: Callable[..., Any]) -> None:
        super().__init__()
        self.words, self.positions = paddle.nn.Embedding(11, 8), paddle.nn.Embedding(40, 8)
        self.mix, self.head = paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 3)
        self.between, self.calls, self.kept = between, 0, []

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:  # (B, L) -> (B, 3)
        x = self.words(ids) + self.positions(paddle.arange(ids.shape[1]))
        hidden = self.between(self, ids, paddle.tanh(self.mix(x)))
        self.calls += 1
        return self.head(hidden.mean(1))


def same(model: Any, ids: Any, x: Any) -> Any:
    return x


def count_calls(model: Any, ids: Any, x: Any) -> Any:
    return x * (1 + model.calls)


def keep_calls(model: Any, ids: Any, x: Any) -> Any:
    model.kept.append(x)
    return sum(one.mean() for one in model.kept) + x


def judge(theirs: Callable[..., Any], ours: Callable[..., Any] = same, ids: Any = IDS) -> Report:
    torch.manual_seed(0)
    return align(Torch(ours), Paddle(theirs), (ids,))


def squeeze_one(model: Any, ids: Any, x: Any) -> Any:
    return x if ids.shape[0] > 1 else x.squeeze().unsqueeze(1)


def reuse_first(model: Any, ids: Any, x: Any) -> Any:
    if not model.kept:
        model.kept.append(x.mean([0, 1]))
    return x - model.kept[0]


def subtract_mean(model: Any, ids: Any, x: Any) -> Any:
    return x - x.mean([0, 1])


FAULTS = {
    "with the first example alone": [squeeze_one],
    "with length 12 in place of 6": [lambda m, ids, x: x[:, :6]],
    "with length 3 in place of 6": [
        lambda m, ids, x: x * 6 / max(6, x.shape[1]) if x.shape[1] > 5 else -x
    ],
    "in a second call": [count_calls, keep_calls],
    "with the inputs": [lambda m, ids, x: x if int(ids[0, 0]) == int(IDS[0, 0]) else 2 * x],
    "with int32 in place of int64": [lambda m, ids, x: x if ids.dtype == paddle.int64 else 2 * x],
    "under no_grad": [lambda m, ids, x: x if paddle.is_grad_enabled() else 2 * x],
}


@pytest.mark.parametrize(
    ("words", "wrong"), [(w, one) for w, many in FAULTS.items() for one in many]
)
def test_a_fault_that_the_batch_does_not_show_is_found_and_said_where(
    words: str, wrong: Any
) -> None:
    report = judge(wrong)
    print(report)
    assert report.verdict == "diverges"
    assert words in report.findings[0].message
    assert report.checks[0].passed


@pytest.mark.parametrize("both", [count_calls, squeeze_one, keep_calls, reuse_first])
def test_a_faithful_pair_stays_faithful_whatever_it_keeps(both: Any) -> None:
    report = judge(both, both)
    print(report)
    assert report.passed and report.verdict == "faithful"


def test_stale():
    report = judge(reuse_first, subtract_mean)
    print(report)
    assert not report.passed
