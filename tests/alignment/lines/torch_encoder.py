"""An encoder around PyTorch's own attention, with a bias that is handed through its layers."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.out = nn.Linear(d, d)
        self.factor = 0.5

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], x.shape[1], 2, -1).permute(0, 2, 1, 3)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor, position_bias: torch.Tensor
    ) -> torch.Tensor:
        query, key, value = (
            self.split(self.query(x)),
            self.split(self.key(x)),
            self.split(self.value(x)),
        )
        y = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask + position_bias, scale=self.factor
        )
        return self.out(y.permute(0, 2, 1, 3).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.attention, self.norm = Attention(d), nn.LayerNorm(d)
        self.dense = nn.Linear(d // 2, d // 2)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor, position_bias: torch.Tensor
    ) -> torch.Tensor:
        x = self.norm(x + self.attention(x, mask, position_bias))
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first, self.dense(second)), dim=-1)


class Gate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x)


class Waves(nn.Module):
    def __init__(self, rows: int, d: int) -> None:
        super().__init__()
        places, waves = torch.arange(rows)[:, None], torch.zeros(rows, d)
        factors = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        waves[:, : d // 2], waves[:, d // 2 :] = (places * factors).sin(), (places * factors).cos()
        self.register_buffer("weight", waves)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.weight[: x.shape[1]]


class Model(nn.Module):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.words, self.places, self.kinds = (
            nn.Embedding(20, d),
            nn.Embedding(9, d),
            nn.Embedding(2, d),
        )
        self.layers = nn.ModuleList(Layer(d) for _ in range(2))
        self.bias, self.gate = nn.Embedding(9, 2), Gate()
        self.waves = Waves(12, d)
        self.register_buffer("slopes", (torch.arange(72.0) / 64).reshape(9, 8), persistent=False)
        self.register_buffer("place_ids", torch.arange(9).expand(1, -1), persistent=False)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kinds = torch.zeros_like(ids)
        x = self.words(ids) + self.places(self.place_ids[:, : ids.shape[1]]) + self.kinds(kinds)
        x = self.waves(x + self.slopes[: ids.shape[1]])
        hidden = (1.0 - mask[:, None, None].to(x.dtype)) * -1e4
        steps = self.place_ids[:, : ids.shape[1]]
        position_bias = self.bias((steps.mT - steps).abs()).permute(2, 0, 1)[None]
        for layer in self.layers:
            x = layer(x, hidden, position_bias)
        return self.gate(x)
