"""Embeddings: tables, bags, positions, padding, tied outputs, scores of pairs."""

from functools import partial

from tests.pairs.case import case
from tests.pairs.plant import (
    both,
    forward,
    freeze,
    misconverter,
    planter,
    port,
    put,
    swap,
    tensor,
)

import numpy as np
import paddle
import torch
from paddle.nn import functional as F

_rng = np.random.default_rng(51)
IDS = {
    "ids": np.where(np.arange(5) < [[5], [3], [4]], _rng.integers(1, 11, (3, 5)), 0),  # 0: padding
    "kinds": _rng.integers(0, 2, (3, 5)),
}


class TorchText(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(11, 6, padding_idx=0)
        self.places = torch.nn.Embedding(8, 6)
        self.kinds = torch.nn.Embedding(8, 6)
        self.norm = torch.nn.LayerNorm(6, eps=1e-12)
        self.fc = torch.nn.Linear(6, 6)
        self.bias = torch.nn.Parameter(torch.zeros(11))

    def forward(self, ids: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:  # -> (B, L, 11)
        places = torch.arange(ids.shape[1])
        x = self.words(ids) * 6**0.5 + self.places(places + 2) + self.kinds(kinds)
        x = self.norm(x)
        live = (ids != 0).unsqueeze(-1).to(x.dtype)
        mean = (x * live).sum(1, keepdim=True) / live.sum(1, keepdim=True)
        x = torch.tanh(self.fc(x + mean))
        return x @ self.words.weight.T + self.bias


def _text(
    scale=6**0.5,
    offset=2,
    places=lambda count: paddle.arange(count),
    typed=lambda table, kinds: table(kinds),
    mean=lambda x, live: (x * live).sum(1, keepdim=True) / live.sum(1, keepdim=True),
    live=lambda ids: ids != 0,
    tied=lambda weight: weight.T,
    order=lambda norm, x: norm(x),
    act=paddle.tanh,
):
    """Return the forward of PaddleText with these steps in it."""

    def function(self, ids, kinds):
        x = self.words(ids) * scale + self.places(places(ids.shape[1]) + offset)
        x = order(self.norm, x + typed(self.kinds, kinds))
        kept = live(ids).unsqueeze(-1).astype(x.dtype)
        x = act(self.fc(x + mean(x, kept)))
        return x @ tied(self.words.weight) + self.bias

    return function


class PaddleText(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.words = paddle.nn.Embedding(11, 6, padding_idx=0)
        self.places = paddle.nn.Embedding(8, 6)
        self.kinds = paddle.nn.Embedding(8, 6)
        self.norm = paddle.nn.LayerNorm(6, epsilon=1e-12)
        self.fc = paddle.nn.Linear(6, 6)
        self.bias = self.create_parameter([11], is_bias=True)

    forward = _text()


def _untied(model):
    """Give the output layer a table of its own, with the same values."""
    model.out = paddle.nn.Linear(6, 11, bias_attr=False)
    model.out.weight.set_value(model.words.weight.T)
    forward("", lambda self, ids, kinds: _own(self, ids, kinds))(model)


def _own(self, ids, kinds):
    return _text(tied=lambda _: self.out.weight)(self, ids, kinds)


_bug = planter(TorchText, PaddleText, IDS)
_misconverted = misconverter(TorchText, PaddleText, IDS)


def _again(name, *culprits, stages=(), **steps):
    return _bug(name, forward("", _text(**steps)), "", *culprits, stages=stages)


BUGS = [
    _misconverted("text weights: tables of positions and kinds exchanged",
                  swap("places.weight", "kinds.weight"),
                  "places.weight", "kinds.weight", "places", "kinds"),
    _misconverted("text weights: square Linear not transposed",
                  tensor("fc.weight", lambda w: w.T), "fc.weight", "fc"),
    _misconverted("text weights: positions shifted by their offset",
                  tensor("places.weight", lambda w: w.roll(2, 0)), "places.weight", "places"),
    _misconverted("text weights: one row of the words zero", tensor(
        "words.weight", lambda w: w * (paddle.arange(11) != 10).astype(w.dtype).unsqueeze(-1)),
        "words.weight", "words"),
    _misconverted("text weights: output bias left at zero", tensor("bias", paddle.zeros_like),
                  "bias"),
    _misconverted("text weights: norm went through bfloat16", tensor(
        "norm.weight", lambda w: w.astype("bfloat16")), "norm.weight", "norm"),
    _bug("text: padding index missing", put("words", lambda: paddle.nn.Embedding(11, 6)),
         "words", "words.weight"),
    _bug("text: another padding index", put("words", lambda: paddle.nn.Embedding(
        11, 6, padding_idx=1)), "words", "words.weight"),
    _bug("text: padding index for positions", put("places", lambda: paddle.nn.Embedding(
        8, 6, padding_idx=2)), "places", "places.weight"),
    _bug("text: gradients by frequency", put("kinds", lambda: paddle.nn.Embedding(
        8, 6, scale_grad_by_freq=True)), "kinds", "kinds.weight", stages=("audit", "backward")),
    _bug("text: rows renormalised", put("places", lambda: paddle.nn.Embedding(
        8, 6, max_norm=1.0)), "places", "places.weight"),
    _bug("text: LayerNorm epsilon", put("norm", lambda: paddle.nn.LayerNorm(6, epsilon=1e-5)),
         "norm"),
    _bug("text: Linear bias missing", put("fc", lambda: paddle.nn.Linear(
        6, 6, bias_attr=False)), "fc", "fc.bias"),
    _again("text: scale left out", scale=1.0),
    _again("text: scale of another width", scale=11**0.5),
    _again("text: positions without their offset", offset=0),
    _again("text: positions from one", offset=3),
    _again("text: positions backwards", places=lambda n: paddle.arange(n - 1, -1, -1)),
    _again("text: kinds all zero", typed=lambda table, kinds: table(paddle.zeros_like(kinds))),
    _again("text: kinds left out", "kinds", typed=lambda table, kinds: 0.0),
    _again("text: kinds without gradient", "kinds", "kinds.weight",
           typed=lambda table, kinds: table(kinds).detach(), stages=("backward",)),
    _again("text: mean over padding too", mean=lambda x, live: x.mean(1, keepdim=True)),
    _again("text: mean divides by the length",
           mean=lambda x, live: (x * live).sum(1, keepdim=True) / live.shape[1]),
    _again("text: first token for the mean", mean=lambda x, live: x[:, :1]),
    _again("text: maximum for the mean", mean=lambda x, live: x.amax(1, keepdim=True)),
    _again("text: mean without gradient", mean=lambda x, live: (x * live).sum(
        1, keepdim=True).detach() / live.sum(1, keepdim=True), stages=("backward",)),
    _again("text: mask the wrong way round, NaN without padding", live=lambda ids: ids == 0),
    _again("text: mask by another id", live=lambda ids: ids != 1),
    _again("text: norm left out", "norm", order=lambda norm, x: x),
    _again("text: activation left out", act=lambda x: x),
    _again("text: table without gradient in the output", "words.weight",
           tied=lambda weight: weight.T.detach(), stages=("backward",)),
    _bug("text: output layer with its own weight", both(_untied), "", "words", "words.weight",
         "out", "out.weight"),
    _bug("text: frozen words", freeze("words.weight"), "words.weight", "words",
         stages=("audit", "backward")),
]  # fmt: skip


class TorchBag(torch.nn.Module):
    """A mean of embeddings, and a score per pair of users and items."""

    def __init__(self):
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(9, 5, mode="mean")
        self.item = torch.nn.Embedding(7, 5)
        self.item_bias = torch.nn.Embedding(7, 1)

    def forward(self, bag: torch.Tensor, item: torch.Tensor) -> torch.Tensor:  # (B, L), (B,) -> (B)
        user = self.bag(bag)
        return (user * self.item(item)).sum(-1) + self.item_bias(item).squeeze(-1)


class PaddleBag(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.bag = paddle.nn.Embedding(9, 5)
        self.item = paddle.nn.Embedding(7, 5)
        self.item_bias = paddle.nn.Embedding(7, 1)

    def forward(self, bag: paddle.Tensor, item: paddle.Tensor) -> paddle.Tensor:
        user = self.bag(bag).mean(1)
        return (user * self.item(item)).sum(-1) + self.item_bias(item).squeeze(-1)


class PaddleOneHot(PaddleBag):
    """The same with a free table, and one-hot products for look-ups."""

    def __init__(self):
        super().__init__()
        self.bag = None
        self.table = self.create_parameter([9, 5])

    def forward(self, bag: paddle.Tensor, item: paddle.Tensor) -> paddle.Tensor:
        hot = F.one_hot(bag, 9).astype(self.table.dtype)
        user = (hot @ self.table).mean(1)
        return (user * self.item(item)).sum(-1) + self.item_bias(item).squeeze(-1)


BAG = (_rng.integers(0, 9, (4, 3)), _rng.integers(0, 7, 4))
_bag_bug = planter(TorchBag, PaddleBag, BAG)


def _bag(name, function, *culprits, **about):
    return _bag_bug(name, forward("", function), "", *culprits, **about)


VARIANTS = [
    _bag("bag: sum for mean", lambda self, bag, item: (
        self.bag(bag).sum(1) * self.item(item)).sum(-1) + self.item_bias(item).squeeze(-1)),
    _bag("bag: bias left out", lambda self, bag, item: (
        self.bag(bag).mean(1) * self.item(item)).sum(-1)),
    _bag("bag: scores of all pairs, first of each", lambda self, bag, item: (
        self.bag(bag).mean(1) @ self.item(item).T)[:, 0] + self.item_bias(item).squeeze(-1)),
    _bag("bag: users without gradient", lambda self, bag, item: (
        self.bag(bag).mean(1).detach() * self.item(item)).sum(-1)
        + self.item_bias(item).squeeze(-1), "bag", "bag.weight", stages=("backward",)),
    _bag("bag: bias broadcast", lambda self, bag, item: (
        self.bag(bag).mean(1) * self.item(item)).sum(-1) + self.item_bias(item).mean()),
]  # fmt: skip

CORRECT = [
    case("text ok", partial(port, TorchText, PaddleText, IDS)),
    case("text ok: fresh", partial(port, TorchText, PaddleText, IDS, fresh=True)),
    case("text ok: positional inputs",
         partial(port, TorchText, PaddleText, (IDS["ids"], IDS["kinds"]))),
    case("text ok: its own right conversion",
         partial(port, TorchText, PaddleText, IDS, damage=lambda model: None)),
    case("bag ok: mean of an embedding for a bag", partial(port, TorchBag, PaddleBag, BAG)),
    case("bag ok: one-hot products with a free table", partial(
        port, TorchBag, PaddleOneHot, BAG, name_map={"bag.weight": "table"})),
]  # fmt: skip

CASES = [*BUGS, *VARIANTS, *CORRECT]
