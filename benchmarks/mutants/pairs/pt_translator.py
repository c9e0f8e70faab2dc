"""Recurrent encoder and decoder with additive attention, decoded step by step."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def length_mask(lengths, size):
    return torch.arange(size)[None, :] < lengths[:, None]


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(2 * dim, dim)
        self.score = nn.Linear(dim, 1, bias=False)

    def forward(self, state, memory, mask):
        energy = torch.tanh(self.query(state).unsqueeze(1) + self.key(memory))
        scores = self.score(energy).squeeze(-1).masked_fill(~mask, -1e9)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1), weights


class Encoder(nn.Module):
    def __init__(self, words, dim):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * dim, dim)

    def forward(self, tokens):
        memory, last = self.rnn(self.embed(tokens))
        return memory, torch.tanh(self.bridge(torch.cat([last[0], last[1]], dim=-1)))


class Decoder(nn.Module):
    def __init__(self, words, dim, depth, dropout):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.attention = Attention(dim)
        self.cells = nn.ModuleList(
            [nn.GRUCell(3 * dim if n == 0 else dim, dim) for n in range(depth)]
        )
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(4 * dim, words)

    def step(self, token, states, memory, mask):
        word = self.embed(token)
        context, weights = self.attention(states[-1], memory, mask)
        value = torch.cat([word, context], dim=-1)
        following = []
        for cell, state in zip(self.cells, states):
            value = cell(value, state)
            following.append(value)
        logits = self.out(self.dropout(torch.cat([value, context, word], dim=-1)))
        return logits, weights, following

    def forward(self, tokens, first, memory, mask):
        states = [first * 0.5 for _ in self.cells]
        logits, seen = [], []
        for at in range(tokens.shape[1]):
            step, weights, states = self.step(tokens[:, at], states, memory, mask)
            logits.append(step)
            seen.append(weights)
        coverage = torch.stack(seen, dim=1).cumsum(dim=1)
        return torch.stack(logits, dim=1), coverage


class Translator(nn.Module):
    def __init__(self, words=23, dim=8, depth=2, dropout=0.2, penalty=0.3):
        super().__init__()
        self.encoder = Encoder(words, dim)
        self.decoder = Decoder(words, dim, depth, dropout)
        self.penalty = penalty

    def forward(self, source, target, lengths):
        mask = length_mask(lengths, source.shape[1])
        memory, first = self.encoder(source)
        logits, coverage = self.decoder(target, first, memory, mask)
        excess = torch.clamp(coverage - 1.0, min=0.0).sum(dim=-1, keepdim=True)
        return F.log_softmax(logits, dim=-1) - self.penalty * excess


def make():
    return Translator()


def inputs():
    drawn = np.random.default_rng(0)
    lengths = np.array([7, 5, 3])
    source = drawn.integers(1, 23, (3, 7)) * (np.arange(7) < lengths[:, None])
    return source, drawn.integers(1, 23, (3, 5)), lengths
