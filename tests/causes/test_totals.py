"""One loss as a function of the other: a constant, a root, a further term."""

from reprod_align.causes.losses import explain_total
from tests.causes.planted import LABELS, TARGETS, Loss, sides

import pytest
import torch.nn.functional as F
from torch import Tensor


def plain(z: Tensor) -> Tensor:
    return F.cross_entropy(z, LABELS)


def squared(z: Tensor) -> Tensor:
    return F.mse_loss(z, TARGETS)


PLANTED: dict[str, tuple[Loss, Loss, str]] = {
    "constant": (plain, lambda z: plain(z) + 0.125, "plus the constant 0.125"),
    "root": (squared, lambda z: squared(z).sqrt(), "Paddle's loss is the square root of PyTorch's"),
    "root in PyTorch": (lambda z: squared(z).sqrt(), squared, "PyTorch's loss is the square root"),
    "a term less": (lambda z: plain(z) + 0.01 * z.square().sum(), plain, "PyTorch adds 0.01 times"),
    "a term more": (plain, lambda z: plain(z) + 0.3 * z.abs().sum(), "the sum of the magnitudes"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name: str) -> None:
    ours, theirs, words = PLANTED[name]
    assert words in explain_total(sides(ours, theirs))


@pytest.mark.parametrize("theirs", [plain, squared, lambda z: plain(z) + z.pow(3).sum()])
def test_other_losses_stay_unexplained(theirs: Loss) -> None:
    assert explain_total(sides(plain, theirs)) == ""


def test_a_loss_of_several_outputs_shows_no_constant() -> None:
    assert explain_total(sides(plain, lambda z: plain(z) + 1, alone=False)) == ""
