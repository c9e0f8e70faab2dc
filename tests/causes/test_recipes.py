"""What a cross-entropy would give with one setting changed."""

from reprod_align.causes.cross_entropy import vary_cross_entropy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, nll_loss

SCORES = torch.from_numpy(np.random.default_rng(0).normal(size=(7, 4)))
LABELS = torch.tensor([0, 1, 2, 3, 0, 1, 2])


@pytest.mark.parametrize(
    ("given", "due", "words"),
    [
        (cross_entropy(SCORES, LABELS, reduction="sum"), cross_entropy(SCORES, LABELS),
         "reduction='mean' in place of reduction='sum'"),
        (cross_entropy(SCORES, LABELS), cross_entropy(SCORES, LABELS, ignore_index=2),
         "ignore_index=2 in place of ignore_index=-100"),
        (cross_entropy(SCORES, LABELS, label_smoothing=0.3), cross_entropy(SCORES, LABELS),
         "label_smoothing=0 in place of label_smoothing=0.3"),
        (nll_loss(SCORES, LABELS, reduction="none"), cross_entropy(SCORES, LABELS, reduction="none"),
         "the first argument taken as scores in place of the first argument taken as log-probabilities"),
        (cross_entropy(SCORES.softmax(1), LABELS), cross_entropy(SCORES, LABELS),
         "the first argument taken as scores in place of "
         "the first argument taken as scores to which softmax is applied twice"),
    ],
)  # fmt: skip
def test_a_change_gives_the_other_loss(given: torch.Tensor, due: torch.Tensor, words: str) -> None:
    inputs = [SCORES.numpy(), LABELS.numpy()]
    found = [told for told, value in vary_cross_entropy(inputs, given.numpy(), [0.3])
             if value.shape == due.shape and np.allclose(value, due, atol=0, rtol=1e-12)]  # fmt: skip
    assert found[0] == words


def test_another_loss_is_not_varied() -> None:
    weights = torch.tensor([1.0, 2, 3, 4], dtype=torch.float64)
    given = cross_entropy(SCORES, LABELS, weights).numpy()
    assert not list(vary_cross_entropy([SCORES.numpy(), LABELS.numpy()], given, []))
    assert not list(vary_cross_entropy([SCORES.numpy()], given, []))
    many = np.zeros((50_000, 11)), np.zeros(50_000, np.int64)  # too many to be tried
    assert not list(vary_cross_entropy(many, np.log(11.0), []))
