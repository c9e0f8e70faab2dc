"""Two losses of the same outputs: what their ratio stands for."""

from reprod_align.causes import explain_loss

import numpy as np
import pytest

LOGITS = np.zeros((4, 6, 5))


@pytest.mark.parametrize(("ratio", "words"), [
    (-1, "opposite sign"),
    (4, "times 4 (the batch size): perhaps reduction='sum'"),
    (1 / 24, "PyTorch's loss is Paddle's times 24 (the number of rows)"),
    (120, "120 (the number of elements)"),
    (2, "factor 1/2"),
    (np.log(2), "logarithm to base 2"),
])  # fmt: skip
def test_a_known_ratio_is_named(ratio: float, words: str) -> None:
    assert words in explain_loss(0.7, 0.7 * ratio, [LOGITS])


@pytest.mark.parametrize("actual", [0.7, 0.7 * 4.0001, 0.0, np.nan, np.inf])
def test_other_ratios_have_no_cause(actual: float) -> None:
    assert explain_loss(0.7, actual, [LOGITS]) == ""


def test_scores_that_paddle_cuts_off() -> None:
    far = np.array([[0.0, 70.0], [1.0, 2.0]])
    assert "more than 64 below" in explain_loss(3.0, 2.9, [far])
    assert explain_loss(3.0, 2.9, [far / 2]) == ""
    assert explain_loss(2.9, 3.0, [far]) == ""  # a cut makes a loss smaller
