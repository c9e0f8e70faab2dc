"""Rounding that has grown on its way: proven by a run with PyTorch's numbers where it arises."""

from collections.abc import Callable
from typing import Any

from reprod_align import align
from reprod_align.alignment.locating import blame

import numpy as np
import paddle
import pytest
import torch


def judged() -> str:
    """Judge three batch norms with slopes that Paddle holds in float32."""
    torch.manual_seed(0)
    ours, theirs = [], []
    for _ in range(3):
        ours += [torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Hardsigmoid()]
        theirs += [paddle.nn.Linear(8, 8), paddle.nn.BatchNorm1D(8), paddle.nn.Hardsigmoid()]
    inputs = (np.random.default_rng(0).standard_normal((6, 8)).astype("float32"),)
    pair = torch.nn.Sequential(*ours), paddle.nn.Sequential(*theirs)
    return align(*pair, inputs).verdict


@pytest.mark.parametrize(
    ("keep", "verdict"),
    [
        (lambda places: places, "agrees to float32"),
        (lambda places: places[:1], "diverges"),
        (lambda places: [], "diverges"),
    ],
    ids=["all places", "one place", "none"],
)
def test_places_that_round_must_make_all_that_differs(
    keep: Callable[[list[Any]], list[Any]], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = blame._add_faults
    monkeypatch.setattr(
        blame, "_is_explained", lambda *_: False
    )  # as if it had grown beyond float32
    monkeypatch.setattr(blame, "note_rounding_as_a_whole", lambda *_: False)
    monkeypatch.setattr(blame, "_add_faults", lambda *args: keep(add(*args)))
    assert judged() == verdict
