"""A summand that is left out, where the call that uses the sum could stand for either addition."""

from reprod_align import align

import numpy as np
import paddle
import torch

ROWS = np.random.default_rng(9).standard_normal((2, 5, 8))


class TorchBiased(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.out = torch.nn.Linear(8, 5), torch.nn.Linear(5, 8)
        self.table = torch.nn.Embedding(5, 5)

    def forward(self, x):
        scores = self.query(x)
        bias = self.table(torch.arange(5)).unsqueeze(0)
        mask = (x[:, :, :5] > 0).to(x.dtype) * -3.0
        bias = bias + mask
        scores = scores + bias
        return self.out(torch.softmax(scores, -1))


class PaddleBiased(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.out = paddle.nn.Linear(8, 5), paddle.nn.Linear(5, 8)
        self.table = paddle.nn.Embedding(5, 5)

    def forward(self, x):
        scores = self.query(x)
        bias = self.table(paddle.arange(5)).unsqueeze(0)
        bias = bias
        scores = scores + bias
        return self.out(paddle.nn.functional.softmax(scores, -1))


def test_the_call_that_is_left_out_is_told_from_the_one_that_uses_its_result() -> None:
    (first, *_) = align(TorchBiased(), PaddleBiased(), (ROWS,)).findings
    assert first.paddle_code == "bias = bias", first
    assert "bias + mask" in first.cause and "scores + bias" not in first.cause, first
