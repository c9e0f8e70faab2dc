"""Two cross-entropies of the same scores: the one respect in which they differ is named."""

import tracemalloc

from reprod_align.causes import explain_loss_sides
from reprod_align.causes.cross_entropy import explain_cross_entropy, fit_cross_entropy, modulate
from tests.causes.planted import LABELS, PLACES, SCORES, SEQUENCE, TARGETS, Loss, sides

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

WEIGHTS = torch.tensor([1.0, 2.0, 3.0, 0.5], dtype=torch.float64)
SOFT = torch.softmax(TARGETS, -1)


def plain(z: Tensor) -> Tensor:
    return F.cross_entropy(z, LABELS)


def focal(gamma: float) -> Loss:
    def loss(z: Tensor) -> Tensor:
        chosen = F.log_softmax(z, -1).gather(-1, LABELS[:, None])[:, 0]
        return (-((1 - chosen.exp()) ** gamma) * chosen).mean()

    return loss


def placed(labels: Tensor, **options: int) -> Loss:
    return lambda z: F.cross_entropy(z.reshape(-1, 4), labels.reshape(-1), **options)


def shifted(z: Tensor) -> Tensor:
    return F.cross_entropy(z[:, :-1].reshape(-1, 4), PLACES[:, 1:].reshape(-1))


PADDED = PLACES.clone()
PADDED[:, 5:] = -100

PLANTED: dict[str, tuple[Loss, Loss, str]] = {
    "axis": (plain, lambda z: F.nll_loss(F.log_softmax(z, 0), LABELS), "over axis 0 in Paddle"),
    "twice": (plain, lambda z: F.cross_entropy(z.softmax(-1), LABELS), "Paddle applies softmax before"),
    "twice in PyTorch": (lambda z: F.cross_entropy(z.softmax(-1), LABELS), plain, "PyTorch applies softmax"),
    "left out": (plain, lambda z: F.nll_loss(z, LABELS), "log_softmax is missing"),
    "smoothing": (plain, lambda z: F.cross_entropy(z, LABELS, label_smoothing=0.1),
                  "label smoothing is 0.1 in Paddle and 0 in PyTorch"),
    "other smoothing": (lambda z: F.cross_entropy(z, LABELS, label_smoothing=0.3),
                        lambda z: F.cross_entropy(z, LABELS, label_smoothing=0.1), "0.1 in Paddle and 0.3"),
    "weights": (lambda z: F.cross_entropy(z, LABELS, WEIGHTS), plain, "only PyTorch weights the classes"),
    "other weights": (lambda z: F.cross_entropy(z, LABELS, WEIGHTS),
                      lambda z: F.cross_entropy(z, LABELS, WEIGHTS.flip(0)), "weights of the classes differ"),
    "soft": (lambda z: F.cross_entropy(z, SOFT), lambda z: F.cross_entropy(z, SOFT.argmax(-1)),
             "distributions in PyTorch and labels in Paddle"),
    "gamma": (focal(2.0), focal(1.0), "focal gamma is 1 in Paddle and 2 in PyTorch"),
    "no gamma": (focal(2.0), plain, "focal gamma is 0 in Paddle"),
    "sum": (plain, lambda z: F.cross_entropy(z, LABELS, reduction="sum"), "summed (reduction='sum')"),
    "temperature": (lambda z: plain(z / 0.5), plain, "divided by 1 in Paddle and by 0.5 in PyTorch"),
    "softmax for its log": (plain, lambda z: F.nll_loss(z.softmax(-1), LABELS), "takes the softmax where"),
    "sigmoid": (plain, lambda z: F.nll_loss(F.logsigmoid(z), LABELS), "the logarithm of a sigmoid"),
    "greatest": (plain, lambda z: F.cross_entropy(z, LABELS, reduction="none").max(),
                 "Paddle takes the greatest loss of the rows"),
    "mean by count": (lambda z: F.cross_entropy(z, LABELS, WEIGHTS),
                      lambda z: F.cross_entropy(z, LABELS, WEIGHTS, reduction="none").mean(),
                      "the weighted rows is divided by"),
    "one row less": (plain, lambda z: F.cross_entropy(z[:7], LABELS[:7]), "row 7 of 8"),
    "rolled labels": (plain, lambda z: F.cross_entropy(z, LABELS.roll(1)), "they are shifted by one"),
    "labels": (plain, lambda z: F.cross_entropy(z, LABELS.flip(0)), "the labels differ in 6 of the 8 rows"),
}  # fmt: skip

PLACED: dict[str, tuple[Loss, Loss, str]] = {
    "ignored label": (
        placed(PLACES, ignore_index=0),
        placed(PLACES),
        "ignore_index=0 in PyTorch alone",
    ),
    "ignored in Paddle": (
        placed(PLACES),
        placed(PLACES, ignore_index=1),
        "ignore_index=1 in Paddle alone",
    ),
    "padding as a label": (
        placed(PADDED),
        placed(PADDED.clamp(min=0)),
        "with label 0 there: ignore_index",
    ),
    "ignored, but counted": (
        placed(PADDED),
        lambda z: placed(PADDED)(z) * 15 / 21,
        "averaged over all",
    ),
    "next label": (shifted, placed(PLACES), "PyTorch compares each place with the next label"),
    "own label": (placed(PLACES), shifted, "Paddle compares each place with the next label"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name: str) -> None:
    ours, theirs, words = PLANTED[name]
    assert words in explain_loss_sides(sides(ours, theirs)), name


@pytest.mark.parametrize("name", PLACED)
def test_planted_in_sequences(name: str) -> None:
    ours, theirs, words = PLACED[name]
    assert words in explain_cross_entropy(sides(ours, theirs, SEQUENCE))


def test_two_classes_show_their_smoothing() -> None:
    labels = LABELS % 2
    planted = sides(
        lambda z: F.cross_entropy(z, labels, label_smoothing=0.2),
        lambda z: F.cross_entropy(z, labels),
        SCORES[:, :2],
    )
    assert "0 in Paddle and 0.2 in PyTorch" in explain_cross_entropy(planted)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (plain, plain),
        (plain, lambda z: plain(z + 0.01 * z**2)),
        (plain, lambda z: plain(z) + 0.01 * z.square().square().sum()),
        (lambda z: plain(z) * 1.7, lambda z: plain(z) * 2.9),
        (lambda z: (z - TARGETS).square().mean(), lambda z: (z - TARGETS).pow(4).mean()),
    ],
)
def test_other_losses_stay_unexplained(ours: Loss, theirs: Loss) -> None:
    assert explain_loss_sides(sides(ours, theirs)) == ""


def test_two_faults_at_once_are_not_taken_for_one() -> None:
    planted = sides(plain, lambda z: 3 * F.cross_entropy(z**3 / 4, LABELS, label_smoothing=0.1))
    assert explain_cross_entropy(planted) == ""


def test_what_is_fitted_is_the_loss() -> None:
    planted = sides(lambda z: F.cross_entropy(z, LABELS, WEIGHTS, label_smoothing=0.0), plain)
    found = fit_cross_entropy(planted, 1)
    assert found is not None and np.array_equal(found.labels, LABELS.numpy())
    value, gradient = found.replay(planted.scores)
    assert abs(value - planted.expected) < 1e-9 and np.abs(gradient - planted.ours).max() < 1e-9
    assert fit_cross_entropy(sides(lambda z: z.square().mean(), plain), 1) is None
    assert (modulate(np.array([0.2, 0.9]), 0.0) == 1).all()


def test_many_classes_take_no_table_of_classes_by_classes() -> None:
    scores = np.random.default_rng(1).standard_normal((8, 10_000))
    planted = sides(plain, lambda z: F.cross_entropy(z, LABELS, label_smoothing=0.1), scores)
    tracemalloc.start()
    try:
        assert "label smoothing is 0.1 in Paddle and 0" in explain_cross_entropy(planted)
        assert tracemalloc.get_traced_memory()[1] < 50 * scores.nbytes  # such a table: 1250
    finally:
        tracemalloc.stop()
