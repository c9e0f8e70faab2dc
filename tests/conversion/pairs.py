"""Pairs of small models with every kind of layer that has weights."""

from collections.abc import Callable
from typing import Any

from reprod_align.conversion.weight_map import ModelPair
from reprod_align.pair import paddle_side, torch_side

import numpy as np
import paddle
import torch
from paddle import nn as pd
from torch import nn as pt
from torch.nn.utils import parametrizations

Maker = Callable[[], Any]
IDS = np.arange(12).reshape(2, 6) % 11
VECTORS = np.random.default_rng(0).standard_normal((2, 6, 8))  # (B, L, C)
IMAGES = np.random.default_rng(1).standard_normal((2, 8, 5, 5))  # (B, C, H, W)


class TorchTied(pt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = pt.Embedding(11, 8)
        self.head = pt.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("positions", torch.arange(6))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(ids).cumsum(1))


class PaddleTied(pd.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = pd.Embedding(11, 8)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return paddle.matmul(self.embedding(ids).cumsum(1), self.embedding.weight, transpose_y=True)


class TorchFused(pt.Module):
    """One Linear for q, k and v."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv_proj = pt.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv_proj(x).chunk(3, -1)
        return (q @ k.mT).softmax(-1) @ v


class PaddleSplit(pd.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (pd.Linear(8, 8) for _ in range(3))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        scores = pd.functional.softmax(paddle.matmul(q, k, transpose_y=True), -1)
        return paddle.matmul(scores, v)


class TorchSplit(pt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (pt.Linear(8, 8) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.q_proj(x) @ self.k_proj(x).mT).softmax(-1) @ self.v_proj(x)


class PaddleFused(pd.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.qkv_proj = pd.Linear(8, 24)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        q, k, v = self.qkv_proj(x).chunk(3, -1)
        scores = pd.functional.softmax(paddle.matmul(q, k, transpose_y=True), -1)
        return paddle.matmul(scores, v)


class TorchAttention(pt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = pt.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class PaddleAttention(pd.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.attention = pd.MultiHeadAttention(8, 2)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.attention(x, x, x)


class TorchBuffers(pt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.arange(8.0))
        self.register_buffer("order", torch.tensor([3, 1, 0, 2, 5, 4, 7, 6]))
        self.register_buffer("mask", torch.tensor([True, False] * 4))
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.scale = pt.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.scale + self.shift)[..., self.order] * self.mask


class PaddleBuffers(pd.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", paddle.zeros([8]))
        self.register_buffer("order", paddle.to_tensor([3, 1, 0, 2, 5, 4, 7, 6]))
        self.register_buffer("mask", paddle.to_tensor([True, False] * 4))
        self.scale = self.create_parameter([8])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        moved = paddle.index_select(x * self.scale + self.shift, self.order, axis=-1)
        return moved * self.mask.astype(x.dtype)


class First(pt.Module):
    """The output of a recurrent network without its state."""

    def __init__(self, net: pt.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)[0]


class PaddleFirst(pd.Layer):
    def __init__(self, net: pd.Layer) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.net(x)[0]


KINDS: dict[str, tuple[Maker, Maker, Any]] = {
    "Linear": (lambda: pt.Sequential(pt.Linear(8, 8), pt.Linear(8, 3, bias=False)),
               lambda: pd.Sequential(pd.Linear(8, 8), pd.Linear(8, 3, bias_attr=False)), VECTORS),
    "Embedding": (lambda: pt.Embedding(11, 4), lambda: pd.Embedding(11, 4), IDS),
    "Conv": (lambda: pt.Sequential(pt.Conv2d(8, 8, 3), pt.Conv2d(8, 4, 1, groups=2)),
             lambda: pd.Sequential(pd.Conv2D(8, 8, 3), pd.Conv2D(8, 4, 1, groups=2)), IMAGES),
    "ConvTranspose": (lambda: pt.ConvTranspose2d(8, 8, 3), lambda: pd.Conv2DTranspose(8, 8, 3), IMAGES),
    "BatchNorm": (lambda: pt.Sequential(pt.BatchNorm2d(8), pt.PReLU(8)),
                  lambda: pd.Sequential(pd.BatchNorm2D(8), pd.PReLU(8)), IMAGES),
    "GroupNorm": (lambda: pt.Sequential(pt.GroupNorm(2, 8), pt.InstanceNorm2d(8, affine=True)),
                  lambda: pd.Sequential(pd.GroupNorm(2, 8), pd.InstanceNorm2D(8)), IMAGES),
    "LayerNorm": (lambda: pt.LayerNorm((6, 8)), lambda: pd.LayerNorm((6, 8)), VECTORS),
    "LSTM": (lambda: First(pt.LSTM(8, 6, 2, batch_first=True, bidirectional=True)),
             lambda: PaddleFirst(pd.LSTM(8, 6, 2, direction="bidirect")), VECTORS),
    "GRU": (lambda: First(pt.GRU(8, 6, batch_first=True)), lambda: PaddleFirst(pd.GRU(8, 6)), VECTORS),
    "packed attention": (TorchAttention, PaddleAttention, VECTORS),
    "qkv to three": (TorchFused, PaddleSplit, VECTORS),
    "three to qkv": (TorchSplit, PaddleFused, VECTORS),
    "buffers": (TorchBuffers, PaddleBuffers, VECTORS),
    "tied": (TorchTied, PaddleTied, IDS),
    "weight_norm": (lambda: parametrizations.weight_norm(pt.Linear(8, 8)),
                    lambda: pd.utils.weight_norm(pd.Linear(8, 8), dim=1), VECTORS),
    "weight_norm of a convolution": (lambda: parametrizations.weight_norm(pt.Conv2d(8, 4, 3)),
                                     lambda: pd.utils.weight_norm(pd.Conv2D(8, 4, 3), dim=0), IMAGES),
    "spectral_norm": (lambda: parametrizations.spectral_norm(pt.Linear(8, 6)),
                      lambda: pd.utils.spectral_norm(pd.Linear(8, 6)), VECTORS),
    "spectral_norm of a convolution": (lambda: parametrizations.spectral_norm(pt.Conv2d(8, 4, 3)),
                                       lambda: pd.utils.spectral_norm(pd.Conv2D(8, 4, 3)), IMAGES),
}  # fmt: skip


def make_pair(kind: str) -> ModelPair:
    """Return a pair of models with random weights; both are new."""
    torch.manual_seed(3)
    make_torch, make_paddle, inputs = KINDS[kind]
    return ModelPair(torch_side(make_torch()), paddle_side(make_paddle()), (inputs,))


def make_state(kind: str, dtype: torch.dtype, seed: int = 0) -> dict[str, torch.Tensor]:
    """Return a state dict of the PyTorch model: every float random, in `dtype`; counters 7."""
    torch.manual_seed(seed)
    model = KINDS[kind][0]()
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            tensor.data = torch.rand_like(tensor).add(0.1).to(dtype)
        elif tensor.ndim == 0:
            tensor.data = torch.full_like(tensor, 7)
    state: dict[str, torch.Tensor] = model.state_dict()
    return state
