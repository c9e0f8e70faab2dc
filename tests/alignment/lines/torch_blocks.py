"""PyTorch model of layers that are made with many settings. `paddle_blocks` is its faithful port."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, d: int, h: int, p: float) -> None:
        super().__init__()
        self.h, self.p = h, p
        self.q_proj = nn.Linear(d, d)
        self.k_proj = nn.Linear(d, d)
        self.v_proj = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], self.h, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(x)), self.split(self.v_proj(x))
        probs = F.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
        probs = F.dropout(probs, self.p, training=self.training)
        return self.out_proj((probs @ v).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d)
        self.self_attn = Attention(d, 2, 0.2)
        self.dropout1 = nn.Dropout(0.1)
        self.norm2 = nn.LayerNorm(d)
        self.linear1 = nn.Linear(d, 2 * d)
        self.linear2 = nn.Linear(2 * d, d)
        self.dropout2 = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout1(self.self_attn(self.norm1(x)))
        y = self.linear2(F.gelu(self.linear1(self.norm2(x))))
        return x + self.dropout2(y)


class Gate(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d, d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(self.gate(x))


class Head(nn.Module):
    def __init__(self, d: int, classes: int, eps: float, p: float) -> None:
        super().__init__()
        self.mix = Gate(d)
        self.norm = nn.LayerNorm(d, eps=eps)
        self.dropout = nn.Dropout(p)
        self.dense = nn.Linear(d, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(self.dropout(F.gelu(self.norm(self.mix(x)))))


class Model(nn.Module):
    def __init__(self, d: int = 8, classes: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block(d) for _ in range(2)])
        self.qkv = nn.Linear(d, 3 * d)
        self.head = Head(d, classes, 1e-6, 0.3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        for layer in self.layers:
            x = layer(x)
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        y = self.head(q * torch.sigmoid(k) + torch.tanh(v)).mean(1)
        return y @ y.t(), y.t() @ y
