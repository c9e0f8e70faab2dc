"""Squared distances on one side, others to the same targets on the other."""

from reprod_align.causes.losses import explain_distance
from tests.causes.planted import LABELS, TARGETS, Loss, sides

import numpy as np
import pytest
import torch.nn.functional as F
from torch import Tensor

explain = np.errstate(all="ignore")(explain_distance)  # as its caller does


def squared(z: Tensor) -> Tensor:
    return F.mse_loss(z, TARGETS)


PLANTED: dict[str, tuple[Loss, Loss, str]] = {
    "L1": (squared, lambda z: F.l1_loss(z, TARGETS), "Paddle takes absolute distances (L1)"),
    "smooth L1": (lambda z: F.smooth_l1_loss(z, TARGETS, beta=0.5), squared, "with beta 0.5"),
    "Huber": (squared, lambda z: F.huber_loss(z, TARGETS, delta=2.0), "with beta 2"),
    "beta": (
        lambda z: F.smooth_l1_loss(z, TARGETS, beta=0.8),
        lambda z: F.smooth_l1_loss(z, TARGETS, beta=1.2),
        "whose beta (delta) in Paddle is 1.5 times PyTorch's",
    ),
    "delta": (
        lambda z: F.smooth_l1_loss(z, TARGETS, beta=0.3),
        lambda z: F.huber_loss(z, TARGETS, delta=0.3),
        "PyTorch's times 0.3: its smooth_l1_loss",
    ),
    "targets": (
        squared,
        lambda z: F.mse_loss(z, TARGETS.flip(0)),
        "to other targets in 32 of 32 places",
    ),
    "half": (lambda z: squared(z) / 2, lambda z: F.l1_loss(z, TARGETS), "PyTorch half the squared"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name: str) -> None:
    ours, theirs, words = PLANTED[name]
    assert words in explain(sides(ours, theirs))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (squared, squared),
        (squared, lambda z: F.l1_loss(z, TARGETS.flip(0))),
        (lambda z: F.cross_entropy(z, LABELS), squared),
    ],
)
def test_other_losses_stay_unexplained(ours: Loss, theirs: Loss) -> None:
    assert explain(sides(ours, theirs)) == ""


def test_a_loss_of_several_outputs_has_no_value_to_prove_it() -> None:
    assert explain(sides(squared, lambda z: F.l1_loss(z, TARGETS), alone=False)) == ""
