"""Models without memory: built, filled, cleared, in both frameworks by the same functions."""

from types import ModuleType
from typing import Any

from reprod_align.backends import paddle as paddle_unfilled
from reprod_align.backends import torch as torch_unfilled
from reprod_align.backends.paddle import side as paddle_side
from reprod_align.backends.torch import side as torch_side

import numpy as np
import paddle
import pytest
import torch


class TorchTied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("table", torch.arange(4.0))


class PaddleTied(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(3, 3), paddle.nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("table", paddle.arange(4.0))
        self.apply(self._init_weights)

    def _init_weights(self, layer: Any) -> None:
        if isinstance(layer, paddle.nn.Linear):
            layer.weight.set_value(paddle.normal(shape=layer.weight.shape))


@pytest.mark.parametrize(
    ("unfilled", "side", "make"),
    [(torch_unfilled, torch_side, TorchTied), (paddle_unfilled, paddle_side, PaddleTied)],
    ids=["torch", "paddle"],
)
def test_a_model_without_memory_is_filled_and_cleared(
    unfilled: ModuleType, side: ModuleType, make: Any
) -> None:
    with unfilled.build_unfilled():
        model = make()
    unfilled.prepare_unfilled(model)
    weight = model.first.weight
    assert weight is model.second.weight  # ties hold
    assert not side.has_values(weight) and tuple(weight.shape) == (3, 3)
    assert side.array(model.table).tolist() == [0, 1, 2, 3]  # buffers are made
    unfilled.fill(weight, np.eye(3, dtype=np.float64))
    assert side.has_values(weight) and (side.array(weight) == np.eye(3)).all()
    unfilled.clear(weight)
    assert not side.has_values(weight) and tuple(weight.shape) == (3, 3)
    unfilled.fill_as_made(weight)
    assert side.array(weight).shape == (3, 3)


@pytest.mark.parametrize(
    ("unfilled", "make"),
    [
        (torch_unfilled, lambda: torch.nn.Linear(2, 2).weight.detach()),
        (paddle_unfilled, lambda: paddle.nn.Linear(2, 2).weight),
    ],
    ids=["torch", "paddle"],
)
def test_after_the_block_models_are_made_as_before(unfilled: ModuleType, make: Any) -> None:
    with unfilled.build_unfilled():
        pass
    assert make().numpy().any()
