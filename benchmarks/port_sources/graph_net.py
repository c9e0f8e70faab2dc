"""Message passing by index_add and scatter, attention by a softmax over edges."""

from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def scatter_softmax(src: Tensor, index: Tensor, n: int) -> Tensor:
    top = torch.full((n, src.size(1)), -1e9, dtype=src.dtype, device=src.device)
    top.scatter_reduce_(0, index[:, None].expand_as(src), src, reduce="amax", include_self=True)
    out = (src - top[index]).exp_()
    total = src.new_zeros((n, src.size(1))).index_add_(0, index, out)
    return out / total[index].clamp_min(1e-12)


class GATLayer(nn.Module):
    def __init__(self, d_in, d_out, heads, norm_layer=partial(nn.LayerNorm, eps=1e-6), act=nn.ELU):
        super().__init__()
        self.w = nn.Linear(d_in, d_out * heads, False)
        self.a = nn.Parameter(torch.empty(2, heads, d_out))
        self.norm = norm_layer(d_out * heads)
        self.act = act(inplace=True)
        self.heads = heads
        nn.init.xavier_uniform_(self.a, gain=nn.init.calculate_gain("relu"))

    def forward(self, x, edge_index):
        src, dst = edge_index
        h = self.w(x).unflatten(-1, (self.heads, -1))
        logits = (h * self.a[0]).sum(-1)[src] + (h * self.a[1]).sum(-1)[dst]
        alpha = scatter_softmax(F.leaky_relu(logits, 0.2), dst, x.shape[0])
        out = torch.zeros_like(h)
        out.index_add_(0, dst, alpha.unsqueeze(-1) * h[src])
        return self.act(self.norm(out.flatten(1)))


class GraphNet(nn.Module):
    def __init__(self, d_in=5, d=8, heads=2, n_class=3, n_layers=2):
        super().__init__()
        dims = [d_in] + [d * heads] * n_layers
        self.layers = nn.ModuleList([GATLayer(a, d, heads) for a in dims[:-1]])
        self.gru = nn.GRUCell(d * heads, d * heads, bias=True)
        self.out = nn.Sequential(*[nn.Linear(dims[-1], d), nn.PReLU(), nn.Linear(d, n_class)])

    def forward(self, x, edge_index, batch):
        for i, layer in enumerate(self.layers):
            y = layer(x, edge_index)
            x = self.gru(y, x) if i else y
        count = torch.bincount(batch).clamp(min=1)
        n = int(batch.max()) + 1
        pooled = torch.zeros(n, x.size(-1), dtype=x.dtype).scatter_add(
            0, batch.view(-1, 1).repeat(1, x.size(-1)), x
        )
        return self.out(pooled / count[:, None]), x.norm(dim=-1, p=2).mean()
