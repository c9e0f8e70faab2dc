"""Causes that need more than the numbers: what a layer takes for a mask."""

from typing import Any

from reprod_align import align
from reprod_align.alignment.locating import explain
from reprod_align.pair import paddle_side

import numpy as np
import paddle
import pytest
import torch
from paddle.vision.models.alexnet import ConvPoolLayer

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


def test_a_model_of_paddle_vision_is_code_and_its_scaling_dropout_is_named() -> None:
    """Its lines are shown; layers of paddle.nn stay the framework's own."""

    class TorchHead(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolve = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.drop, self.out = torch.nn.Dropout(0.5), torch.nn.Linear(8 * 4 * 4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.nn.functional.max_pool2d(torch.relu(self.convolve(x)), 3, 2)
            return self.out(self.drop(torch.flatten(x, 1)))

    class PaddleHead(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.convolve = ConvPoolLayer(3, 8, 3, 1, 1, 0.1, act="relu")
            self._drop = paddle.nn.Dropout(0.5, mode="downscale_in_infer")
            self.out = paddle.nn.Linear(8 * 4 * 4, 2)

        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            return self.out(self._drop(paddle.flatten(self.convolve(x), 1)))

    port = PaddleHead()
    assert paddle_side(port).describe().stock == {
        "convolve.relu", "convolve._conv", "convolve._pool", "_drop", "out",
    }  # fmt: skip
    images = np.random.default_rng(0).normal(size=(2, 3, 10, 10))
    first = align(TorchHead(), port, (images,)).findings[0]
    assert "mode='downscale_in_infer' multiplies by 1 - p in eval mode" in first.message
    assert "self._drop" in first.paddle_code
