"""Attention over the edges of a graph, gated readout, and a virtual node."""

import paddle
import paddle.nn as nn
import paddle.nn.functional as F


def sum_at(values, index, count):
    return paddle.index_add(paddle.zeros([count, values.shape[-1]], values.dtype), index, 0, values)


def softmax_at(scores, index, count):
    scores = (scores - scores.max()).exp()
    return scores / (paddle.gather(sum_at(scores, index, count), index) + 1e-9)


class EdgeAttention(nn.Layer):
    def __init__(self, dim, heads, slope=0.2, concat=True):
        super().__init__()
        self.heads, self.slope, self.concat = heads, slope, concat
        self.lin = nn.Linear(dim, dim, bias_attr=False)
        self.edge = nn.Linear(4, dim)
        self.att = self.create_parameter([heads, dim // heads])
        self.bias = self.create_parameter([dim], is_bias=True)

    def forward(self, x, source, target, features):
        count, width = x.shape[0], self.att.shape[-1]
        x = self.lin(x)
        message = paddle.gather(x, source) + self.edge(features)
        joined = (message + paddle.gather(x, target)).reshape([-1, self.heads, width])
        scores = (F.leaky_relu(joined, self.slope) * self.att).sum(axis=-1)
        alpha = softmax_at(scores, target, count)
        message = message.reshape([-1, self.heads, width]) * alpha.unsqueeze(-1)
        return sum_at(message.flatten(1), target, count) + self.bias


class Block(nn.Layer):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.attention = EdgeAttention(dim, heads)
        self.norm = nn.LayerNorm(dim, epsilon=1e-6)
        self.mix = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ELU(), nn.Linear(2 * dim, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, source, target, features):
        x = x + self.dropout(self.attention(self.norm(x), source, target, features))
        return x + 0.5 * self.mix(x)


class GraphNet(nn.Layer):
    def __init__(self, inputs=5, dim=12, heads=3, depth=2, dropout=0.1, classes=4):
        super().__init__()
        self.lift = nn.Linear(inputs, dim)
        self.blocks = nn.LayerList([Block(dim, heads, dropout) for _ in range(depth)])
        self.virtual = nn.LayerList([nn.Linear(dim, dim) for _ in range(depth)])
        self.gate = nn.Linear(dim, 1)
        self.degree = nn.Embedding(8, dim)
        self.head = nn.Linear(3 * dim, classes)

    def forward(self, x, edges, features, graph):
        source, target = edges[0], edges[1]
        count = int(graph.max()) + 1
        degree = paddle.bincount(target, minlength=x.shape[0]).clip(max=7)
        x = F.relu(self.lift(x)) + self.degree(degree)
        everyone = sum_at(x, graph, count)
        for block, virtual in zip(self.blocks, self.virtual):
            x = block(x, source, target, features) + paddle.gather(everyone, graph) * 0.1
            everyone = everyone + paddle.tanh(virtual(sum_at(x, graph, count)))
        weight = softmax_at(self.gate(x), graph, count)
        sizes = paddle.bincount(graph, minlength=count).unsqueeze(1).astype(x.dtype)
        mean = sum_at(x, graph, count) / sizes
        return self.head(paddle.concat([sum_at(weight * x, graph, count), mean, everyone], axis=1))


def make():
    return GraphNet()
