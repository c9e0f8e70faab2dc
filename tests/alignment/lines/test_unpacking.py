"""Outputs that are exchanged: at the line that unpacks them where the names say so, else at the return."""

from reprod_align import align

import numpy as np
import paddle
import pytest
import torch

ROWS = np.random.default_rng(8).standard_normal((3, 6))


class TorchEnds(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(6, 8)

    def forward(self, x):
        begin, end = self.dense(x).split(4, dim=-1)
        return {"begin": begin, "end": end}


class PaddleUnpacked(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.dense = paddle.nn.Linear(6, 8)

    def forward(self, x):
        end, begin = paddle.split(self.dense(x), 2, axis=-1)
        return {"begin": begin, "end": end}


class PaddleReturned(PaddleUnpacked):
    def forward(self, x):
        begin, end = paddle.split(self.dense(x), 2, axis=-1)
        return {"begin": end, "end": begin}


@pytest.mark.parametrize(
    "port, code", [(PaddleUnpacked, "paddle.split("), (PaddleReturned, "return {")]
)
def test_exchanged_outputs_are_named_where_they_are_exchanged(port, code) -> None:
    (finding,) = align(TorchEnds(), port(), (ROWS,)).findings
    assert finding.kind == "outputs-exchanged" and code in finding.paddle_code, finding
