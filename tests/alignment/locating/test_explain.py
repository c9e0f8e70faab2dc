"""Causes that need more than the numbers: what a layer takes for a mask."""

from typing import Any

from reprod_align import align
from reprod_align.alignment.locating import explain

import numpy as np
import paddle
import pytest
import torch

KEEP = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
X = np.random.default_rng(0).standard_normal((2, 5, 8)).astype("float32")


class TorchNet(torch.nn.Module):
    """Attends to what is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return self.attention(x, x, x, key_padding_mask=keep == 0)[0]


class PaddleNet(paddle.nn.Layer):
    """The same; `shown`: from the mask to what is True where it is shown."""

    def __init__(self, shown: Any) -> None:
        super().__init__()
        self.first = paddle.nn.Linear(8, 8)
        self.attention = paddle.nn.MultiHeadAttention(8, 2)
        self.shown = shown

    def forward(self, x: paddle.Tensor, keep: paddle.Tensor) -> paddle.Tensor:
        x = self.first(x)
        return self.attention(x, x, x, attn_mask=self.shown(keep).unsqueeze([1, 2]))


@pytest.mark.parametrize("inverted", [False, True])
def test_a_boolean_mask_means_the_opposite_in_paddle(inverted: bool) -> None:
    shown = (lambda keep: keep == 0) if inverted else (lambda keep: keep != 0)
    report = align(TorchNet(), PaddleNet(shown), {"x": X, "keep": KEEP})
    found = [finding.message for finding in report.findings]
    assert any("True hides a place in PyTorch's layer" in text for text in found) == inverted, found
    assert explain.find_cause
