"""Recurrent encoder and decoder with additive attention, decoded step by step."""

import paddle
from paddle import nn
from paddle.nn import functional as F


def length_mask(lengths, size):
    return paddle.arange(size).unsqueeze(0) < lengths.unsqueeze(1)


class Attention(nn.Layer):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Linear(dim, dim, bias_attr=False)
        self.key = nn.Linear(2 * dim, dim)
        self.score = nn.Linear(dim, 1, bias_attr=False)

    def forward(self, state, memory, mask):
        query = self.query(state).unsqueeze(1)
        scores = self.score(paddle.tanh(query + self.key(memory))).squeeze(-1)
        scores = paddle.where(mask, scores, paddle.full_like(scores, -1e9))
        weights = F.softmax(scores, axis=-1)
        context = paddle.matmul(weights.unsqueeze(1), memory)
        return context.squeeze(1), weights


class Encoder(nn.Layer):
    def __init__(self, words, dim):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.rnn = nn.GRU(dim, dim, direction="bidirect")
        self.bridge = nn.Linear(2 * dim, dim)

    def forward(self, tokens):
        memory, last = self.rnn(self.embed(tokens))
        both = paddle.concat([last[0], last[1]], axis=-1)
        return memory, paddle.tanh(self.bridge(both))


class Decoder(nn.Layer):
    def __init__(self, words, dim, depth, dropout):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.attention = Attention(dim)
        self.cells = nn.LayerList()
        for n in range(depth):
            self.cells.append(nn.GRUCell(3 * dim if n == 0 else dim, dim))
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(4 * dim, words)

    def step(self, token, states, memory, mask):
        word = self.embed(token)
        context, weights = self.attention(states[-1], memory, mask)
        value = paddle.concat([word, context], axis=-1)
        following = []
        for cell, state in zip(self.cells, states):
            value, _ = cell(value, state)
            following.append(value)
        joined = paddle.concat([value, context, word], axis=-1)
        return self.out(self.dropout(joined)), weights, following

    def forward(self, tokens, first, memory, mask):
        states = [first * 0.5 for _ in self.cells]
        logits, seen = [], []
        for at in range(tokens.shape[1]):
            step, weights, states = self.step(tokens[:, at], states, memory, mask)
            logits.append(step)
            seen.append(weights)
        coverage = paddle.cumsum(paddle.stack(seen, axis=1), axis=1)
        return paddle.stack(logits, axis=1), coverage


class Translator(nn.Layer):
    def __init__(self, words=23, dim=8, depth=2, dropout=0.2, penalty=0.3):
        super().__init__()
        self.encoder = Encoder(words, dim)
        self.decoder = Decoder(words, dim, depth, dropout)
        self.penalty = penalty

    def forward(self, source, target, lengths):
        mask = length_mask(lengths, source.shape[1])
        memory, first = self.encoder(source)
        logits, coverage = self.decoder(target, first, memory, mask)
        excess = paddle.clip(coverage - 1.0, min=0.0).sum(axis=-1, keepdim=True)
        return F.log_softmax(logits, axis=-1) - self.penalty * excess


def make():
    return Translator()
