"""Both sides of a loss by autograd: the sides of a cause, and scores, labels and targets to plant in."""

from collections.abc import Callable

from reprod_align.causes import LossSides

import numpy as np
import torch
from torch import Tensor

Loss = Callable[[Tensor], Tensor]
RANDOM = np.random.default_rng(0)
SCORES = 2 * RANDOM.standard_normal((8, 4))
SEQUENCE = 2 * RANDOM.standard_normal((3, 7, 4))
LABELS = torch.tensor([0, 1, 2, 3, 1, 2, 0, 3])
PLACES = torch.tensor(RANDOM.integers(0, 4, (3, 7)))
MARKS = torch.tensor(RANDOM.integers(0, 2, (8, 4)), dtype=torch.float64)
TARGETS = torch.tensor(RANDOM.standard_normal((8, 4)))


def sides(ours: Loss, theirs: Loss, scores: np.ndarray = SCORES, alone: bool = True) -> LossSides:
    """Return what the two losses, both written in PyTorch, make of the scores."""
    found = []
    for loss in (ours, theirs):
        z = torch.tensor(scores, requires_grad=True)
        value = loss(z)
        value.backward()
        assert z.grad is not None
        found.append((float(value.detach()), z.grad.numpy()))
    (expected, first), (actual, second) = found
    return LossSides(scores, expected, actual, first, second, alone)
