"""A mask that is one number throughout: such numbers are everywhere, so the call that makes it is sought."""

from reprod_align import align

import numpy as np
import paddle
import torch

ROWS = np.random.default_rng(8).standard_normal((2, 5, 5))


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(5, 5)

    def forward(self, x, mask):
        return torch.softmax(self.dense(x) * mask, -1)


class TorchMasked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block, self.last = TorchBlock(), torch.nn.Linear(5, 3)

    def forward(self, x):
        unused = torch.zeros(5, 5)
        mask = torch.nn.functional.pad(torch.ones(4, 4), (1, 0, 1, 0))
        return self.last(self.block(x, mask.to(x.dtype)) + unused)


class PaddleBlock(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.dense = paddle.nn.Linear(5, 5)

    def forward(self, x, mask):
        return paddle.nn.functional.softmax(self.dense(x) * mask, -1)


class PaddleMasked(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.block, self.last = PaddleBlock(), paddle.nn.Linear(5, 3)

    def forward(self, x):
        unused = paddle.zeros([5, 5])
        mask = paddle.nn.functional.pad(paddle.zeros([4, 4]), [1, 0, 1, 0])
        wide = mask.astype(x.dtype)
        return self.last(self.block(x, wide) + unused)


def test_a_mask_of_zeros_is_named_where_it_is_made() -> None:
    first = align(TorchMasked(), PaddleMasked(), (ROWS,)).findings[0]
    assert "paddle.zeros([4, 4])" in first.paddle_code, first
