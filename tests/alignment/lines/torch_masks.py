"""A PyTorch encoder with positions and a mask, whose lines the tests compare. `paddle_masks` is its port."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, d: int, h: int) -> None:
        super().__init__()
        self.h = h
        self.q_proj = nn.Linear(d, d)
        self.k_proj = nn.Linear(d, d)
        self.v_proj = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        b, n, d = x.shape
        split = [part(x).view(b, n, self.h, -1).transpose(1, 2)
                 for part in (self.q_proj, self.k_proj, self.v_proj)]  # fmt: skip
        y = F.scaled_dot_product_attention(*split, attn_mask=mask)
        return self.out_proj(y.transpose(1, 2).reshape(b, n, d))


class Encoder(nn.Module):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(30, d)
        self.places = nn.Embedding(12, d)
        self.attention = Attention(d, 2)
        self.norm = nn.LayerNorm(d)

    def forward(self, ids: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        length = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(1, length + 1)[None])
        shown = torch.ones(length, length, dtype=torch.bool).tril() & kept[:, None, None, :].bool()
        return self.norm(x + self.attention(x, shown))
