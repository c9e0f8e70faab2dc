"""Attention over the edges of a graph, gated readout, and a virtual node."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def sum_at(values, index, count):
    return torch.zeros(count, values.shape[-1], dtype=values.dtype).index_add(0, index, values)


def softmax_at(scores, index, count):
    scores = (scores - scores.max()).exp()
    return scores / (sum_at(scores, index, count)[index] + 1e-9)


class EdgeAttention(nn.Module):
    def __init__(self, dim, heads, slope=0.2, concat=True):
        super().__init__()
        self.heads, self.slope, self.concat = heads, slope, concat
        self.lin = nn.Linear(dim, dim, bias=False)
        self.edge = nn.Linear(4, dim)
        self.att = nn.Parameter(torch.randn(heads, dim // heads))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x, source, target, features):
        count = x.shape[0]
        message = self.lin(x)[source] + self.edge(features)
        joined = (message + self.lin(x)[target]).view(-1, self.heads, self.att.shape[-1])
        scores = (F.leaky_relu(joined, self.slope) * self.att).sum(dim=-1)
        alpha = softmax_at(scores, target, count)
        message = message.view(-1, self.heads, self.att.shape[-1]) * alpha.unsqueeze(-1)
        return sum_at(message.flatten(1), target, count) + self.bias


class Block(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.attention = EdgeAttention(dim, heads)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.mix = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ELU(), nn.Linear(2 * dim, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, source, target, features):
        x = x + self.dropout(self.attention(self.norm(x), source, target, features))
        return x + 0.5 * self.mix(x)


class GraphNet(nn.Module):
    def __init__(self, inputs=5, dim=12, heads=3, depth=2, dropout=0.1, classes=4):
        super().__init__()
        self.lift = nn.Linear(inputs, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, dropout) for _ in range(depth))
        self.virtual = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.gate = nn.Linear(dim, 1)
        self.degree = nn.Embedding(8, dim)
        self.head = nn.Linear(3 * dim, classes)

    def forward(self, x, edges, features, graph):
        source, target = edges[0], edges[1]
        count = int(graph.max()) + 1
        degree = torch.bincount(target, minlength=x.shape[0]).clamp(max=7)
        x = F.relu(self.lift(x)) + self.degree(degree)
        everyone = sum_at(x, graph, count)
        for block, virtual in zip(self.blocks, self.virtual):
            x = block(x, source, target, features) + everyone[graph] * 0.1
            everyone = everyone + torch.tanh(virtual(sum_at(x, graph, count)))
        weight = softmax_at(self.gate(x), graph, count)
        sizes = torch.bincount(graph, minlength=count).unsqueeze(1)
        mean = sum_at(x, graph, count) / sizes
        return self.head(torch.cat([sum_at(weight * x, graph, count), mean, everyone], dim=1))


def make():
    return GraphNet()


def inputs():
    drawn = np.random.default_rng(0)
    graph = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    edges = np.array([[0, 1, 2, 3, 0, 4, 5, 6, 7, 8, 4], [1, 2, 3, 0, 2, 5, 6, 4, 8, 7, 6]])
    nodes = drawn.standard_normal((9, 5)).astype("float32")
    return nodes, edges, drawn.standard_normal((11, 4)).astype("float32"), graph
