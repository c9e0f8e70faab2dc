"""Two CTC losses of the same scores with different blanks."""

from reprod_align.causes.cross_entropy import explain_ctc
from tests.causes.planted import RANDOM, Loss, sides

import numpy as np
import pytest
import torch
import torch.nn.functional as F

SCORES = RANDOM.standard_normal((10, 3, 5))  # (T, N, C)
LABELS = torch.tensor([[1, 2, 3], [3, 1, 2], [2, 3, 1]])
LENGTHS = torch.tensor([10, 10, 9]), torch.tensor([3, 2, 3])
explain = np.errstate(all="ignore")(explain_ctc)  # as its caller does


def ctc(blank: int) -> Loss:
    return lambda z: F.ctc_loss(z.log_softmax(-1), LABELS, *LENGTHS, blank=blank)


def mixed(z: torch.Tensor) -> torch.Tensor:
    """Return a loss of targets that hold two classes each."""
    targets = torch.zeros(10, 3, 5, dtype=torch.float64)
    targets[..., 2] = targets[..., 3] = 0.5
    return -(targets * z.log_softmax(-1)).sum()


def test_another_blank_is_named() -> None:
    words = explain(sides(ctc(0), ctc(4), SCORES))
    assert "the blank is class 4 in Paddle and class 0 in PyTorch" in words


def test_the_batch_may_come_first() -> None:
    ours, theirs = (lambda z, b=b: ctc(b)(z.transpose(0, 1)) for b in (0, 4))
    assert "the blank is class 4" in explain(sides(ours, theirs, SCORES.swapaxes(0, 1).copy()))


@pytest.mark.parametrize(
    "theirs", [ctc(0), lambda z: 2 * ctc(0)(z), lambda z: z.square().mean(), mixed]
)
def test_other_differences_stay_unexplained(theirs: Loss) -> None:
    assert explain(sides(ctc(0), theirs, SCORES)) == ""
