"""Click prediction: embedded fields, their products, and attention of the history to the candidate."""

from dataclasses import dataclass, field

import paddle
from paddle import nn


@dataclass
class Config:
    fields: list = field(default_factory=lambda: [11, 7, 5])
    items: int = 19
    dim: int = 6
    hidden: tuple = (16, 8)
    dropout: float = 0.1
    use_fm: bool = True
    temperature: float = 2.0
    activation: str = "prelu"


def activation(name, width):
    if name == "prelu":
        return nn.PReLU(width)
    return nn.ReLU() if name == "relu" else nn.GELU()


class Dice(nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1D(width, epsilon=1e-4, weight_attr=False, bias_attr=False)
        self.alpha = self.create_parameter(
            [width], default_initializer=nn.initializer.Constant(0.0)
        )

    def forward(self, x):
        gate = nn.functional.sigmoid(self.norm(x))
        return gate * x + (1 - gate) * self.alpha * x


class Interest(nn.Layer):
    def __init__(self, config):
        super().__init__()
        self.temperature = config.temperature
        self.first = nn.Linear(4 * config.dim, 8)
        self.second = nn.Linear(8, 1)

    def forward(self, candidate, history, present):
        candidate = paddle.expand_as(candidate.unsqueeze(1), history)
        both = paddle.concat(
            [candidate, history, candidate - history, candidate * history], axis=-1
        )
        weights = self.second(nn.functional.sigmoid(self.first(both))).squeeze(-1)
        weights = weights / self.temperature + (present - 1.0) * 1e4
        weights = nn.functional.softmax(weights, axis=1)
        return (weights.unsqueeze(-1) * history).sum(axis=1)


class FactorMachine(nn.Layer):
    def forward(self, x):
        total = paddle.square(x.sum(axis=1))
        squares = paddle.square(x).sum(axis=1)
        return 0.5 * (total - squares).sum(axis=-1, keepdim=True)


class Cross(nn.Layer):
    def __init__(self, width, depth=2):
        super().__init__()
        self.weights = nn.ParameterList([self.create_parameter([width]) for _ in range(depth)])
        self.biases = nn.ParameterList(
            [self.create_parameter([width], is_bias=True) for _ in range(depth)]
        )

    def forward(self, x):
        out = x
        for weight, bias in zip(self.weights, self.biases):
            out = x * (out * weight).sum(axis=-1, keepdim=True) + bias + out
        return out


class Ranker(nn.Layer):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tables = nn.LayerList([nn.Embedding(size, config.dim) for size in config.fields])
        self.items = nn.Embedding(config.items, config.dim, padding_idx=0)
        self.interest = Interest(config)
        self.machine = FactorMachine() if config.use_fm else None
        width = (len(config.fields) + 2) * config.dim
        self.cross = Cross(width)
        layers, last = [], width
        for size in config.hidden:
            layers += [nn.Linear(last, size), activation(config.activation, size), Dice(size)]
            layers += [nn.Dropout(config.dropout)]
            last = size
        self.tower = nn.Sequential(*layers)
        self.out = nn.Linear(last + width, 1)
        self.scale = self.create_parameter([1])

    def forward(self, fields, item, history):
        parts = [table(fields[:, at]) for at, table in enumerate(self.tables)]
        candidate, seen = self.items(item), self.items(history)
        present = (history != 0).astype(seen.dtype)
        interest = self.interest(candidate, seen, present)
        stacked = paddle.stack([*parts, candidate, interest], axis=1)
        flat = paddle.flatten(stacked, start_axis=1)
        logit = self.out(paddle.concat([self.tower(flat), self.cross(flat)], axis=-1))
        if self.machine is not None:
            logit = logit + self.scale * self.machine(stacked)
        return nn.functional.sigmoid(logit).squeeze(-1)


def make():
    return Ranker(Config())
