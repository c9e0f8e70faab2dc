"""A layer that a library's function runs: a number that the layer holds is named where it is made."""

from reprod_align import align
from tests.alignment.lines.paddle_run import run_block

import numpy as np
import paddle
import torch

ROWS = np.random.default_rng(9).standard_normal((5, 8))


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


class PaddleBlock(paddle.nn.Layer):
    forward = run_block

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 8)
        self.dropout = paddle.nn.Dropout(p=1)


def test_a_dropout_too_many_is_named_where_the_layer_is_made() -> None:
    first = align(TorchBlock(), PaddleBlock(), (ROWS,)).findings[0]
    assert "paddle.nn.Dropout(p=1)" in first.paddle_code, first
