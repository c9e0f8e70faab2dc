"""One side of a pair, as it describes and runs a model of this process."""

from reprod_align.pair.sides import paddle_side, torch_side

import paddle
import pytest
import torch


class OwnTorch(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 3)


class OwnPaddle(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc = paddle.nn.Linear(2, 3)


SIDES = pytest.mark.parametrize(
    "side", [torch_side(OwnTorch()), paddle_side(OwnPaddle())], ids=["torch", "paddle"]
)


@SIDES
def test_the_frameworks_own_layers_are_told_from_the_users(side) -> None:
    assert side.describe().stock == {"fc"}
