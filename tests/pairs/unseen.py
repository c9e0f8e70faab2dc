"""Faults that the outputs and gradients of single runs do not show, each with its faithful twin.

They lie in what trains, in outputs that are no tensors, in inputs' gradients, in what is kept from
train to eval mode, in other generators' draws, and in a backward pass that looks at its gradient.
"""

import random
from functools import partial
from typing import Any

from tests.pairs import decoder
from tests.pairs.case import Case, Inputs
from tests.pairs.cnn import TWO, PaddlePatch, PaddleSiamese, TorchPatch, TorchSiamese
from tests.pairs.cnn import X as IMAGES
from tests.pairs.conv1d import VIDEO, PaddleClip, PaddleWave, TorchClip, TorchWave
from tests.pairs.conv1d import X as WAVE
from tests.pairs.decoder import D, PaddleLlama, TorchLlama
from tests.pairs.embedding import BAG, IDS, PaddleBag, PaddleText, TorchBag, TorchText
from tests.pairs.mlp import PaddleMlp, TorchMlp
from tests.pairs.mlp import X as ROWS
from tests.pairs.plant import port

import numpy as np
import paddle
import torch
from paddle import nn as pn
from torch import nn as tn

_rng = np.random.default_rng(97)
SERIES = {"series": _rng.standard_normal((3, 4, 5)).astype("float32")}
ACTED = {
    "state": _rng.standard_normal((4, 6)).astype("float32"),
    "action": _rng.standard_normal((4, 2)).astype("float32"),
}
IDS_AND_MASK = decoder.batch()


def _pair(
    name: str,
    sides: tuple[Any, Any],
    inputs: Inputs,
    fault: dict[str, Any],
    *culprits: str,
    noted: str = "",
    words: tuple[str, ...] = (),
    **options: Any,
) -> list[Case]:
    """Return the pair whose port is made with `fault`, and the one whose port is made without."""
    torch_class, paddle_class = sides
    broken = partial(port, torch_class, partial(paddle_class, **fault), inputs, **options)
    return [
        Case(name, broken, frozenset(culprits), words=words, noted=noted),
        _right(name.replace(":", " ok:", 1), torch_class, paddle_class, inputs, **options),
    ]


def _right(name: str, torch_class: Any, paddle_class: Any, inputs: Inputs, **options: Any) -> Case:
    return Case(name, partial(port, torch_class, paddle_class, inputs, **options))


def _add(layer: pn.Layer, name: str, value: paddle.Tensor, learned: bool) -> None:
    """Give the layer a tensor as a parameter, or as a buffer."""
    if not learned:
        layer.register_buffer(name, value)
        return
    start = pn.initializer.Assign(value)
    layer.add_parameter(name, layer.create_parameter(value.shape, default_initializer=start))


class TorchReader(tn.Module):
    """Reads a series by a cell, from a first state that is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = tn.GRUCell(5, 4), tn.Linear(4, 3)
        self.start = tn.Parameter(torch.full((4,), 0.5))

    def state(self, x: torch.Tensor) -> torch.Tensor:
        return self.start.expand(x.shape[0], 4)

    def read(self, x: torch.Tensor) -> torch.Tensor:  # (B, T, 5) -> (B, 4)
        state = self.state(x)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return state

    def forward(self, series: torch.Tensor) -> Any:  # (B, T, 5) -> (B, 3)
        return self.head(self.read(series))


class PaddleReader(pn.Layer):
    def __init__(self, learned: bool = True) -> None:
        super().__init__()
        self.cell, self.head = pn.GRUCell(5, 4), pn.Linear(4, 3)
        _add(self, "start", paddle.full([4], 0.5), learned)

    def state(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.start.expand([x.shape[0], 4])

    def read(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, T, 5) -> (B, 4)
        state = self.state(x)
        for step in range(x.shape[1]):
            _, state = self.cell(x[:, step], state)
        return state

    def forward(self, series: paddle.Tensor) -> Any:  # (B, T, 5) -> (B, 3)
        return self.head(self.read(series))


# ---------------------------------------------------------------------- what trains


class TorchScaled(TorchClip):
    """A factor for each channel, as ConvNeXt learns it."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = tn.Parameter(torch.full((3,), 0.5))

    def forward(self, video: torch.Tensor) -> torch.Tensor:
        return self.gamma * super().forward(video)


class PaddleScaled(PaddleClip):
    def __init__(self, learned: bool = True) -> None:
        super().__init__()
        _add(self, "gamma", paddle.full([3], 0.5), learned)

    def forward(self, video: paddle.Tensor) -> paddle.Tensor:
        return self.gamma * super().forward(video)


class TorchPlaced(TorchLlama):
    """Learned positions."""

    def __init__(self, learned: bool = True) -> None:
        super().__init__()
        self.places = tn.Parameter(torch.zeros(8, D), requires_grad=learned)

    def forward(self, ids: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        x, mask = self.embed_tokens(ids) + self.places[: ids.shape[1]], self.mask(keep)
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


class PaddlePlaced(PaddleLlama):
    """differentiable: a buffer gets a gradient, which no optimizer looks for there."""

    def __init__(self, learned: bool = True, differentiable: bool = False) -> None:
        super().__init__()
        _add(self, "places", paddle.zeros([8, D]), learned)
        self.places.stop_gradient = not (learned or differentiable)

    def forward(self, ids: paddle.Tensor, keep: paddle.Tensor) -> paddle.Tensor:
        x, mask = self.embed_tokens(ids) + self.places[: ids.shape[1]], self.mask(keep)
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


class TorchHeated(TorchSiamese):
    """Distances at a temperature that stays as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("heat", torch.full((1,), 2.0))

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return self.heat * super().forward(first, second)


class PaddleHeated(PaddleSiamese):
    def __init__(self, learned: bool = False, frozen: bool = False) -> None:
        super().__init__()
        _add(self, "heat", paddle.full([1], 2.0), learned or frozen)
        self.heat.stop_gradient = not learned

    def forward(self, first: paddle.Tensor, second: paddle.Tensor) -> paddle.Tensor:
        return self.heat * super().forward(first, second)


TRAINED = [
    *_pair("trained: layer scale is a buffer", (TorchScaled, PaddleScaled), VIDEO,
           {"learned": False}, "gamma"),
    *_pair("trained: first state is a buffer", (TorchReader, PaddleReader), SERIES,
           {"learned": False}, "start"),
    *_pair("trained: positions are a buffer with a gradient", (TorchPlaced, PaddlePlaced),
           IDS_AND_MASK, {"learned": False, "differentiable": True}, "places"),
    *_pair("trained: a fixed temperature is learned", (TorchHeated, PaddleHeated), TWO,
           {"learned": True}, "heat"),
    _right("trained ok: frozen parameter, buffer", partial(TorchPlaced, learned=False),
           partial(PaddlePlaced, learned=False), IDS_AND_MASK),
    _right("trained ok: buffer, frozen parameter", TorchHeated,
           partial(PaddleHeated, frozen=True), TWO),
]  # fmt: skip


# ---------------------------------------------------------------------- outputs that are no tensors


class TorchSized(TorchClip):
    """Tells the size of what it was given."""

    def forward(self, video: torch.Tensor) -> Any:
        return {"logits": super().forward(video), "size": tuple(video.shape[2:])}


class PaddleSized(PaddleClip):
    def __init__(self, turned: bool = False) -> None:
        super().__init__()
        self.turn = -1 if turned else 1

    def forward(self, video: paddle.Tensor) -> Any:
        size = tuple(video.shape[2:])[:: self.turn]
        return {"logits": super().forward(video), "size": size}


class TorchTold(TorchReader):
    """Says its classes in words."""

    def forward(self, series: torch.Tensor) -> Any:
        scores = super().forward(series)
        words = [("down", "flat", "up")[best] for best in scores.argmax(1).tolist()]
        return scores, words


class PaddleTold(PaddleReader):
    def __init__(self, words: tuple[str, ...] = ("down", "flat", "up")) -> None:
        super().__init__()
        self.words = words

    def forward(self, series: paddle.Tensor) -> Any:
        scores = super().forward(series)
        return scores, [self.words[best] for best in scores.argmax(1).tolist()]


class TorchSpread(TorchMlp):
    """Returns how far its outputs are spread, as a number."""

    def forward(self, x: torch.Tensor) -> Any:
        out = super().forward(x)
        return {"out": out, "spread": float(out.detach().std(unbiased=False))}


class PaddleSpread(PaddleMlp):
    def __init__(self, unbiased: bool = False) -> None:
        super().__init__()
        self.unbiased = unbiased

    def forward(self, x: paddle.Tensor) -> Any:
        out = super().forward(x)
        return {"out": out, "spread": float(out.detach().std(unbiased=self.unbiased))}


class TorchCounted(TorchText):
    """Returns the lengths of its sentences, as numpy counts them."""

    def forward(self, ids: torch.Tensor, kinds: torch.Tensor) -> Any:
        return super().forward(ids, kinds), (ids.numpy() != 0).sum(1)


class PaddleCounted(PaddleText):
    def __init__(self, padding: int = 0) -> None:
        super().__init__()
        self.padding = padding

    def forward(self, ids: paddle.Tensor, kinds: paddle.Tensor) -> Any:
        return super().forward(ids, kinds), (ids.numpy() != self.padding).sum(1)


OUTPUTS = [
    *_pair("output: size turned round", (TorchSized, PaddleSized), VIDEO, {"turned": True}, ""),
    *_pair("output: words of the classes in another order", (TorchTold, PaddleTold), SERIES,
           {"words": ("up", "down", "flat")}, ""),
    *_pair("output: a number by n - 1", (TorchSpread, PaddleSpread), ROWS,
           {"unbiased": True}, ""),
    *_pair("output: lengths count padding", (TorchCounted, PaddleCounted), IDS,
           {"padding": -1}, ""),
]  # fmt: skip


# ---------------------------------------------------------------------- inputs' gradients


class TorchStandard(TorchWave):
    """Standardises each wave."""

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        mean, std = wave.mean((1, 2), keepdim=True), wave.std((1, 2), keepdim=True)
        return super().forward((wave - mean) / (std + 1e-5))


class PaddleStandard(PaddleWave):
    def __init__(self, stopped: bool = False) -> None:
        super().__init__()
        self.stopped = stopped

    def forward(self, wave: paddle.Tensor) -> paddle.Tensor:
        mean, std = wave.mean([1, 2], keepdim=True), wave.std([1, 2], keepdim=True)
        x = (wave - mean) / (std + 1e-5)
        return super().forward(x.detach() if self.stopped else x)


class TorchBounded(TorchPatch):
    """Bounds its pixels: no gradient beyond the bounds."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.clamp(-1, 1))


class PaddleBounded(PaddlePatch):
    def __init__(self, straight: bool = False) -> None:
        super().__init__()
        self.straight = straight

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        bounded = x.clip(-1, 1)
        return super().forward(x + (bounded - x).detach() if self.straight else bounded)


class TorchCritic(tn.Module):
    """Rates an action, which an actor would be trained through."""

    def __init__(self, stopped: bool = False) -> None:
        super().__init__()
        self.first, self.second, self.stopped = tn.Linear(8, 6), tn.Linear(6, 1), stopped

    def forward(self, state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        action = action.detach() if self.stopped else action
        return self.second(torch.tanh(self.first(torch.cat([state, action], 1))))


class PaddleCritic(pn.Layer):
    def __init__(self, stopped: bool = False) -> None:
        super().__init__()
        self.first, self.second, self.stopped = pn.Linear(8, 6), pn.Linear(6, 1), stopped

    def forward(self, state: paddle.Tensor, action: paddle.Tensor) -> paddle.Tensor:
        if self.stopped:
            with paddle.no_grad():
                action = action * 1.0
        return self.second(paddle.tanh(self.first(paddle.concat([state, action], 1))))


class PaddleOneSided(PaddleSiamese):
    def __init__(self, stopped: bool = False) -> None:
        super().__init__()
        self.stopped = stopped

    def forward(self, first: paddle.Tensor, second: paddle.Tensor) -> paddle.Tensor:
        return super().forward(first, second.detach() if self.stopped else second)


INPUTS = [
    *_pair("input: standardised without gradient", (TorchStandard, PaddleStandard), WAVE,
           {"stopped": True}, "", "wave"),
    *_pair("input: gradient straight through the bounds", (TorchBounded, PaddleBounded), IMAGES,
           {"straight": True}, "", "x"),
    *_pair("input: action without gradient", (TorchCritic, PaddleCritic), ACTED,
           {"stopped": True}, "", "action"),
    *_pair("input: second image without gradient", (TorchSiamese, PaddleOneSided), TWO,
           {"stopped": True}, "", "1"),
    _right("input ok: action without gradient on both sides", partial(TorchCritic, stopped=True),
           partial(PaddleCritic, stopped=True), ACTED),
]  # fmt: skip


# ---------------------------------------------------------------------- kept from train to eval mode


class TorchCentred(TorchMlp):
    """Follows the mean of its outputs in train mode, as DINO does, and takes it off in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.center: Any = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = super().forward(x)
        if not self.training:
            return out - self.center
        self.center = 0.9 * self.center + 0.1 * out.detach().mean(0)
        return out


class PaddleCentred(PaddleMlp):
    def __init__(self, kept: float = 0.9) -> None:
        super().__init__()
        self.center: Any = 0.0
        self.kept = kept

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        out = super().forward(x)
        if not self.training:
            return out - self.center
        self.center = self.kept * self.center + (1 - self.kept) * out.detach().mean(0)
        return out


class TorchRemembering(TorchReader):
    """Starts in eval mode where it ended in train mode."""

    memory: Any = None

    def state(self, x: torch.Tensor) -> torch.Tensor:
        begin = super().state(x)
        return begin if self.training or self.memory is None else self.memory

    def read(self, x: torch.Tensor) -> torch.Tensor:
        state = super().read(x)
        if self.training:
            self.memory = state.detach()
        return state


class PaddleRemembering(PaddleReader):
    def __init__(self) -> None:
        super().__init__()
        self.memory: Any = None

    def state(self, x: paddle.Tensor) -> paddle.Tensor:
        begin = super().state(x)
        return begin if self.training or self.memory is None else self.memory

    def read(self, x: paddle.Tensor) -> paddle.Tensor:
        state = super().read(x)
        if self.training:
            self.memory = state.detach()
        return state


class PaddleForgetting(PaddleRemembering):
    """Paddle keeps a tensor that is assigned among the buffers, where the class's attribute hides it."""

    memory: Any = None

    def __init__(self) -> None:
        PaddleReader.__init__(self)


def _remembering(hidden: bool = False) -> PaddleRemembering:
    return PaddleForgetting() if hidden else PaddleRemembering()


class TorchCooling(TorchLlama):
    """Its temperature in eval mode falls with each batch of training."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def forward(self, ids: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        logits = super().forward(ids, keep)
        if not self.training:
            return logits * (1 + 0.1 * self.seen)
        self.seen += 1
        return logits


class PaddleCooling(PaddleLlama):
    def __init__(self, by_example: bool = False) -> None:
        super().__init__()
        self.seen, self.by_example = 0, by_example

    def forward(self, ids: paddle.Tensor, keep: paddle.Tensor) -> paddle.Tensor:
        logits = super().forward(ids, keep)
        if not self.training:
            return logits * (1 + 0.1 * self.seen)
        self.seen += ids.shape[0] if self.by_example else 1
        return logits


class TorchKnown(TorchBag):
    """Halves, in eval mode, the scores of items that it never saw in train mode."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[int] = set()

    def forward(self, bag: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        scores, items = super().forward(bag, item), item.tolist()
        if self.training:
            self.known.update(items)
            return scores
        return scores * torch.tensor([1.0 if one in self.known else 0.5 for one in items])


class PaddleKnown(PaddleBag):
    def __init__(self, first_alone: bool = False) -> None:
        super().__init__()
        self.known: set[int] = set()
        self.first_alone = first_alone

    def forward(self, bag: paddle.Tensor, item: paddle.Tensor) -> paddle.Tensor:
        scores, items = super().forward(bag, item), item.tolist()
        if self.training:
            self.known.update(items[:1] if self.first_alone else items)
            return scores
        known = [1.0 if one in self.known else 0.5 for one in items]
        return scores * paddle.to_tensor(known, dtype=scores.dtype)


KEPT = [
    *_pair("kept: center with another momentum", (TorchCentred, PaddleCentred), ROWS,
           {"kept": 0.99}, ""),
    *_pair("kept: a center that PyTorch lacks", (TorchMlp, partial(PaddleCentred, kept=1.0)), ROWS,
           {"kept": 0.9}, ""),
    *_pair("kept: memory hidden by the class's attribute", (TorchRemembering, _remembering), SERIES,
           {"hidden": True}, "", "cell"),
    *_pair("kept: count by examples for batches", (TorchCooling, PaddleCooling), IDS_AND_MASK,
           {"by_example": True}, ""),
    *_pair("kept: set of the first items alone", (TorchKnown, PaddleKnown), BAG,
           {"first_alone": True}, ""),
]  # fmt: skip


# ---------------------------------------------------------------------- other generators


class TorchDropping(TorchLlama):
    """Leaves whole layers out in train mode, as Python's generator tells it."""

    def forward(self, ids: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        x, mask = self.embed_tokens(ids), self.mask(keep)
        for layer in self.layers:
            if not self.training or random.random() >= 1e-4:
                x = layer(x, mask)
        return self.lm_head(self.norm(x))


class PaddleDropping(PaddleLlama):
    def __init__(self, by_numpy: bool = False) -> None:
        super().__init__()
        self.by_numpy = by_numpy

    def forward(self, ids: paddle.Tensor, keep: paddle.Tensor) -> paddle.Tensor:
        x, mask = self.embed_tokens(ids), self.mask(keep)
        for layer in self.layers:
            drawn = np.random.random if self.by_numpy else random.random
            if not self.training or drawn() >= 1e-4:
                x = layer(x, mask)
        return self.lm_head(self.norm(x))


class TorchFlipping(TorchClip):
    """Flips some of the videos in train mode."""

    def forward(self, video: torch.Tensor) -> torch.Tensor:
        if self.training:
            flipped = torch.tensor(np.random.rand(len(video)) < 0.5)
            video = torch.where(flipped[:, None, None, None, None], video.flip(-1), video)
        return super().forward(video)


class PaddleFlipping(PaddleClip):
    def __init__(self, together: bool = False) -> None:
        super().__init__()
        self.together = together

    def forward(self, video: paddle.Tensor) -> paddle.Tensor:
        if self.training:
            drawn = np.random.rand(1 if self.together else len(video)) < 0.5
            flipped = paddle.to_tensor(np.resize(drawn, len(video)))
            chosen = flipped.reshape([-1, 1, 1, 1, 1])
            video = paddle.where(chosen, video.flip([-1]), video)
        return super().forward(video)


class TorchMasking(TorchText):
    """Masks some of the words in train mode."""

    def forward(self, ids: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        if self.training:
            kept = np.random.rand(*ids.shape) >= 0.3
            ids = ids * torch.from_numpy(kept | (np.arange(ids.shape[1]) == 0))
        return super().forward(ids, kinds)


class PaddleMasking(PaddleText):
    def __init__(self, draw: Any = np.random.rand) -> None:
        super().__init__()
        self.draw = draw

    def forward(self, ids: paddle.Tensor, kinds: paddle.Tensor) -> paddle.Tensor:
        if self.training:
            kept = self.draw(*ids.shape) >= 0.3
            kept = paddle.to_tensor(kept | (np.arange(ids.shape[1]) == 0))
            ids = ids * kept.astype(ids.dtype)
        return super().forward(ids, kinds)


class TorchNoisy(TorchMlp):
    """Moves each row by noise from Python's generator in train mode."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            x = x + torch.tensor([[random.gauss(0, 0.1)] for _ in x], dtype=x.dtype)
        return super().forward(x)


class PaddleNoisy(PaddleMlp):
    def __init__(self, draw: Any = random.gauss) -> None:
        super().__init__()
        self.draw = draw

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        if self.training:
            x = x + paddle.to_tensor([[self.draw(0, 0.1)] for _ in x], dtype=x.dtype)
        return super().forward(x)


DRAWN = [
    *_pair("drawn: layers dropped by numpy for Python", (TorchDropping, PaddleDropping),
           IDS_AND_MASK, {"by_numpy": True}, "", noted="random numbers"),
    *_pair("drawn: one flip for all videos", (TorchFlipping, PaddleFlipping), VIDEO,
           {"together": True}, "", noted="random numbers"),
    *_pair("drawn: words masked by another distribution", (TorchMasking, PaddleMasking), IDS,
           {"draw": np.random.randn}, "", noted="random numbers"),
    *_pair("drawn: noise from numpy for Python", (TorchNoisy, PaddleNoisy), ROWS,
           {"draw": np.random.normal}, "", noted="random numbers"),
]  # fmt: skip


# ---------------------------------------------------------------------- backward by the gradient's size


def _losses(factor: float) -> dict[str, Any]:
    def loss(output: Any) -> Any:
        return factor * (output**2).mean()

    return {"torch_loss": loss, "paddle_loss": loss}


class TorchClipped(TorchReader):
    """Bounds the gradient of its state, against explosion through time."""

    def read(self, x: torch.Tensor) -> torch.Tensor:
        state = super().read(x)
        if state.requires_grad:
            state.register_hook(lambda gradient: gradient.clamp(-500, 500))
        return state


class PaddleClipped(PaddleReader):
    def __init__(self, bound: float = 500) -> None:
        super().__init__()
        self.bound = bound

    def read(self, x: paddle.Tensor) -> paddle.Tensor:
        state = super().read(x)
        if not state.stop_gradient:
            state.register_hook(lambda gradient: gradient.clip(-self.bound, self.bound))
        return state


class _TorchSkip(torch.autograd.Function):
    """The identity; a gradient too small to count becomes zero."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * (gradient.abs().max() > 1e-12)


class _PaddleSkip(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: paddle.Tensor, least: float) -> paddle.Tensor:
        ctx.least = least
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: paddle.Tensor) -> paddle.Tensor:
        return gradient * (gradient.abs().max() > ctx.least).astype(gradient.dtype)


class TorchSkipping(TorchWave):
    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        return _TorchSkip.apply(super().forward(wave))


class PaddleSkipping(PaddleWave):
    def __init__(self, least: float = 1e-12) -> None:
        super().__init__()
        self.least = least

    def forward(self, wave: paddle.Tensor) -> paddle.Tensor:
        return _PaddleSkip.apply(super().forward(wave), self.least)


class TorchLimited(TorchMlp):
    """Limits the norm of its output's gradient."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = super().forward(x)
        if out.requires_grad:
            out.register_hook(lambda gradient: gradient / (gradient.norm() / 100).clamp(1))
        return out


class PaddleLimited(PaddleMlp):
    def __init__(self, limit: float = 100.0) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        out = super().forward(x)
        if not out.stop_gradient:
            out.register_hook(lambda gradient: gradient / (gradient.norm() / self.limit).clip(1))
        return out


class TorchScores(TorchBag):
    """Lets a gradient through however large it is."""


class PaddleScores(PaddleBag):
    def __init__(self, most: float = float("inf")) -> None:
        super().__init__()
        self.most = most

    def forward(self, bag: paddle.Tensor, item: paddle.Tensor) -> paddle.Tensor:
        scores = super().forward(bag, item)
        if not scores.stop_gradient:
            scores.register_hook(self._skip_explosion)
        return scores

    def _skip_explosion(self, gradient: paddle.Tensor) -> paddle.Tensor:
        return gradient * (gradient.abs().max() <= self.most).astype(gradient.dtype)


# of the parameters behind it, the first is named
_BY_SIZE = ("depends on the size of the gradient",)
BACKWARD = [
    *_pair("backward: gradient of the state unbounded", (TorchClipped, PaddleClipped), SERIES,
           {"bound": 1e9}, "cell.bias_hh", words=_BY_SIZE, **_losses(1e5)),
    *_pair("backward: small gradients skipped", (TorchSkipping, PaddleSkipping), WAVE,
           {"least": 1e-3}, "fc.bias", words=_BY_SIZE, **_losses(1e-5)),
    *_pair("backward: norm limited elsewhere", (TorchLimited, PaddleLimited), ROWS,
           {"limit": 1000.0}, "head.bias", words=_BY_SIZE, **_losses(1e6)),
    *_pair("backward: large gradients skipped", (TorchScores, PaddleScores), BAG,
           {"most": 100.0}, "item_bias.weight", words=_BY_SIZE, **_losses(1e4)),
]  # fmt: skip

CASES = [*TRAINED, *OUTPUTS, *INPUTS, *KEPT, *DRAWN, *BACKWARD]
