"""One part of a fused tensor in another's place: named at its index, not where it is used."""

from reprod_align import align

import numpy as np
import paddle
import torch

ROWS = np.random.default_rng(9).standard_normal((2, 5, 8))


class TorchFused(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fused, self.dense = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)

    def forward(self, x):
        parts = self.fused(x).reshape(2, 5, 2, 3, 4)
        query, key = (parts[..., at, :].transpose(1, 2).reshape(4, 5, 4) for at in (0, 1))
        value = parts[..., 2, :].transpose(1, 2).reshape(4, 5, 4)
        weights = torch.softmax(query @ key.transpose(1, 2), -1)
        return self.dense((weights @ value).reshape(2, 2, 5, 4).transpose(1, 2).reshape(2, 5, 8))


class PaddleFused(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fused, self.dense = paddle.nn.Linear(8, 24), paddle.nn.Linear(8, 8)

    def split(self, fused):
        parts = fused.reshape([2, 5, 2, 3, 4])
        return parts[..., 0, :], parts[..., 1, :], parts[..., 1, :]

    def forward(self, x):
        query, key, value = self.split(self.fused(x))
        query = query.transpose([0, 2, 1, 3]).reshape([4, 5, 4])
        key = key.transpose([0, 2, 1, 3]).reshape([4, 5, 4])
        value = value.transpose([0, 2, 1, 3]).reshape([4, 5, 4])
        weights = paddle.nn.functional.softmax(query @ key.transpose([0, 2, 1]), -1)
        made = (weights @ value).reshape([2, 2, 5, 4]).transpose([0, 2, 1, 3])
        return self.dense(made.reshape([2, 5, 8]))


def test_a_part_in_the_place_of_another_is_named_at_its_index() -> None:
    (finding,) = align(TorchFused(), PaddleFused(), (ROWS,)).findings
    assert "parts[..., 1, :]" in finding.paddle_code, finding
    assert finding.paddle_code.startswith("return") and "parts[..., 2, :]" in finding.torch_code
