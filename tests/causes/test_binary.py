"""Two binary cross-entropies of the same scores: pos_weight, gamma, alpha, a sigmoid too many."""

from reprod_align.causes.losses import explain_binary, fit_binary
from tests.causes.planted import LABELS, MARKS, TARGETS, Loss, sides

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

COLUMNS = torch.tensor([1.0, 2.0, 3.0, 0.5], dtype=torch.float64)
explain = np.errstate(all="ignore")(explain_binary)  # as its caller does


def plain(z: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(z, MARKS)


def weighted(weight: Tensor) -> Loss:
    return lambda z: F.binary_cross_entropy_with_logits(z, MARKS, pos_weight=weight)


def focal(gamma: float, alpha: float) -> Loss:
    def loss(z: Tensor) -> Tensor:
        p = z.sigmoid()
        right = p * MARKS + (1 - p) * (1 - MARKS)
        share = alpha * MARKS + (1 - alpha) * (1 - MARKS)
        return -(share * (1 - right) ** gamma * right.log()).mean()

    return loss


PLANTED: dict[str, tuple[Loss, Loss, str]] = {
    "pos_weight": (weighted(COLUMNS[2]), plain, "pos_weight is 1 in Paddle and 3 in PyTorch"),
    "pos_weight by column": (weighted(COLUMNS), plain, "column by column"),
    "weight of columns": (lambda z: F.binary_cross_entropy_with_logits(z, MARKS, COLUMNS), plain,
                          "weights of the columns differ"),
    "weight for pos_weight": (
        weighted(COLUMNS), lambda z: F.binary_cross_entropy_with_logits(z, MARKS, COLUMNS),
        "Paddle has weight= where PyTorch has pos_weight="),
    "gamma": (focal(2, 0.25), focal(1, 0.25), "gamma is 1 in Paddle and 2 in PyTorch"),
    "alpha": (focal(2, 0.25), focal(2, 0.75), "alpha is 0.75 in Paddle and 0.25 in PyTorch"),
    "sigmoid twice": (plain, lambda z: plain(z.sigmoid()), "Paddle applies sigmoid before"),
    "labels": (plain, lambda z: F.binary_cross_entropy_with_logits(z, MARKS.flip(0)), "the labels differ in"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name: str) -> None:
    ours, theirs, words = PLANTED[name]
    assert words in explain(sides(ours, theirs))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (plain, plain),
        (plain, lambda z: plain(z + 0.01 * z**2)),
        (lambda z: (z - TARGETS).square().mean(), plain),
        (lambda z: F.cross_entropy(z, LABELS), lambda z: F.cross_entropy(z, LABELS.flip(0))),
    ],
)
def test_other_losses_stay_unexplained(ours: Loss, theirs: Loss) -> None:
    assert explain(sides(ours, theirs)) == ""


def test_what_is_fitted_is_the_loss() -> None:
    planted = sides(focal(2, 0.25), plain)
    found = fit_binary(planted)
    assert found is not None and found.gamma == 2
    assert np.abs(found.replay(planted.scores)[1] - planted.ours).max() < 1e-9
