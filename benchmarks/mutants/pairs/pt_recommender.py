"""Click prediction: embedded fields, their products, and attention of the history to the candidate."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn


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
    return {"prelu": nn.PReLU(width), "relu": nn.ReLU(), "gelu": nn.GELU()}[name]


class Dice(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, eps=1e-4, affine=False)
        self.alpha = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        gate = torch.sigmoid(self.norm(x))
        return gate * x + (1 - gate) * self.alpha * x


class Interest(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.temperature = config.temperature
        self.first = nn.Linear(4 * config.dim, 8)
        self.second = nn.Linear(8, 1)

    def forward(self, candidate, history, present):
        candidate = candidate.unsqueeze(1).expand_as(history)
        both = torch.cat([candidate, history, candidate - history, candidate * history], dim=-1)
        weights = self.second(torch.sigmoid(self.first(both))).squeeze(-1)
        weights = weights / self.temperature + (present - 1.0) * 1e4
        weights = torch.softmax(weights, dim=1)
        return (weights.unsqueeze(-1) * history).sum(dim=1)


class FactorMachine(nn.Module):
    def forward(self, x):
        total = x.sum(dim=1) ** 2
        squares = (x**2).sum(dim=1)
        return 0.5 * (total - squares).sum(dim=-1, keepdim=True)


class Cross(nn.Module):
    def __init__(self, width, depth=2):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(width)) for _ in range(depth)])
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(width)) for _ in range(depth)])

    def forward(self, x):
        out = x
        for weight, bias in zip(self.weights, self.biases):
            out = x * (out * weight).sum(dim=-1, keepdim=True) + bias + out
        return out


class Ranker(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tables = nn.ModuleList([nn.Embedding(size, config.dim) for size in config.fields])
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
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, fields, item, history):
        parts = [table(fields[:, at]) for at, table in enumerate(self.tables)]
        candidate, seen = self.items(item), self.items(history)
        present = (history != 0).to(seen.dtype)
        interest = self.interest(candidate, seen, present)
        stacked = torch.stack([*parts, candidate, interest], dim=1)
        flat = stacked.flatten(1)
        logit = self.out(torch.cat([self.tower(flat), self.cross(flat)], dim=-1))
        if self.machine is not None:
            logit = logit + self.scale * self.machine(stacked)
        return torch.sigmoid(logit).squeeze(-1)


def make():
    return Ranker(Config())


def inputs():
    drawn = np.random.default_rng(0)
    fields = np.stack([drawn.integers(0, size, 6) for size in (11, 7, 5)], axis=1)
    history = drawn.integers(1, 19, (6, 5))
    history[1, 3:] = history[4, 2:] = 0
    return fields, drawn.integers(1, 19, 6), history
