"""Nets over sequences and volumes: 1-D and 3-D convolutions, pooling, gates, weight-free filters."""

from functools import partial

from tests.pairs.case import case
from tests.pairs.plant import forward, freeze, misconverter, planter, port, put, tensor

import numpy as np
import paddle
import torch
from paddle.nn import functional as F

X = {"wave": np.random.default_rng(31).standard_normal((3, 5, 18)).astype("float32")}


class TorchWave(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.front = torch.nn.Conv1d(5, 6, 5, stride=2, padding=2)
        self.depth = torch.nn.Conv1d(6, 6, 3, padding=1, groups=6, bias=False)
        self.point = torch.nn.Conv1d(6, 12, 1)
        self.causal = torch.nn.Conv1d(6, 6, 3, dilation=2)
        self.norm = torch.nn.BatchNorm1d(6)
        self.grow = torch.nn.ConvTranspose1d(6, 4, 4, stride=2, padding=1)
        self.pool = torch.nn.MaxPool1d(3, stride=3)
        self.fc = torch.nn.Linear(4, 3)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:  # (B, 5, T) -> (B, T // 3, 3)
        x = torch.nn.functional.elu(self.front(wave))
        value, gate = self.point(self.depth(x)).chunk(2, dim=1)
        x = x + value * torch.sigmoid(gate)
        x = self.causal(torch.nn.functional.pad(x, (4, 0)))
        x = torch.nn.functional.silu(self.norm(x))
        x = self.pool(self.grow(x))
        return self.fc(x.transpose(1, 2))


def _wave(
    elu=F.elu,
    pad=(4, 0),
    open_gate=lambda value, gate: value * F.sigmoid(gate),
    residual=lambda x: x,
    normed=lambda norm, x: F.silu(norm(x)),
    turned=lambda x: x.transpose([0, 2, 1]),
):
    """Return the forward of PaddleWave with these steps in it."""

    def function(self, wave):
        x = elu(self.front(wave))
        value, gate = self.point(self.depth(x)).chunk(2, axis=1)
        x = residual(x) + open_gate(value, gate)
        x = self.causal(F.pad(x, list(pad), data_format="NCL"))
        x = normed(self.norm, x)
        x = self.pool(self.grow(x))
        return self.fc(turned(x))

    return function


class PaddleWave(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.front = paddle.nn.Conv1D(5, 6, 5, stride=2, padding=2)
        self.depth = paddle.nn.Conv1D(6, 6, 3, padding=1, groups=6, bias_attr=False)
        self.point = paddle.nn.Conv1D(6, 12, 1)
        self.causal = paddle.nn.Conv1D(6, 6, 3, dilation=2)
        self.norm = paddle.nn.BatchNorm1D(6)
        self.grow = paddle.nn.Conv1DTranspose(6, 4, 4, stride=2, padding=1)
        self.pool = paddle.nn.MaxPool1D(3, stride=3)
        self.fc = paddle.nn.Linear(4, 3)

    forward = _wave()


class TorchClip(torch.nn.Module):
    """A small net over videos."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv3d(2, 4, (3, 3, 2), padding=(1, 1, 0))
        self.norm = torch.nn.BatchNorm3d(4)
        self.pool = torch.nn.MaxPool3d(2)
        self.fc = torch.nn.Linear(4, 3)

    def forward(self, video: torch.Tensor) -> torch.Tensor:  # (B, 2, D, H, W) -> (B, 3)
        x = self.pool(torch.relu(self.norm(self.conv(video))))
        return self.fc(x.mean((2, 3, 4)))


class PaddleClip(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv3D(2, 4, (3, 3, 2), padding=(1, 1, 0))
        self.norm = paddle.nn.BatchNorm3D(4)
        self.pool = paddle.nn.MaxPool3D(2)
        self.fc = paddle.nn.Linear(4, 3)

    def forward(self, video: paddle.Tensor) -> paddle.Tensor:  # (B, 2, D, H, W) -> (B, 3)
        x = self.pool(F.relu(self.norm(self.conv(video))))
        return self.fc(x.mean([2, 3, 4]))


class TorchSteep(torch.nn.Module):
    """A SiLU far from zero."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(5, 4, 3)
        self.act = torch.nn.SiLU()

    def forward(self, wave: torch.Tensor) -> torch.Tensor:  # (B, 5, T) -> (B, 4, T - 2)
        return self.act(4096.0 * self.conv(wave))


class PaddleSteep(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv1D(5, 4, 3)
        self.act = paddle.nn.Silu()

    def forward(self, wave: paddle.Tensor) -> paddle.Tensor:  # (B, 5, T) -> (B, 4, T - 2)
        return self.act(4096.0 * self.conv(wave))


class PaddleSteepProduct(PaddleSteep):
    """The same as a product, whose gradient stays finite."""

    def forward(self, wave: paddle.Tensor) -> paddle.Tensor:
        x = 4096.0 * self.conv(wave)
        return x * F.sigmoid(x)


class PaddleWaveLinear(PaddleWave):
    """Mixes the channels by a Linear in channel-last order."""

    def __init__(self):
        super().__init__()
        self.point = paddle.nn.Sequential(
            _Turn(), paddle.nn.Linear(6, 12), _Turn(), paddle.nn.Identity()
        )


class _Turn(paddle.nn.Layer):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, C, T) -> (B, T, C) and back
        return x.transpose([0, 2, 1])


VIDEO = {"video": np.random.default_rng(32).standard_normal((2, 2, 4, 5, 5)).astype("float32")}
_bug = planter(TorchWave, PaddleWave, X)
_misconverted = misconverter(TorchWave, PaddleWave, X)
_clip_bug = planter(TorchClip, PaddleClip, VIDEO)


def _quick(x):
    return x * F.sigmoid(1.702 * x)


def _again(name, *culprits, stages=(), **steps):
    return _bug(name, forward("", _wave(**steps)), "", *culprits, stages=stages)


BUGS = [
    _misconverted("wave weights: kernel reversed", tensor("causal.weight", lambda w: w.flip([2])),
                  "causal.weight", "causal"),
    _misconverted("wave weights: channels in and out exchanged", tensor(
        "causal.weight", lambda w: w.transpose([1, 0, 2])), "causal.weight", "causal"),
    _misconverted("wave weights: halves of a gate exchanged", tensor(
        "point.weight", lambda w: paddle.concat([w[6:], w[:6]])), "point.weight", "point"),
    _misconverted("wave weights: depthwise kernel left as it was drawn", tensor(
        "depth.weight", lambda w: paddle.randn(w.shape, w.dtype)), "depth.weight", "depth"),
    _bug("wave: stride", put("front", lambda: paddle.nn.Conv1D(5, 6, 5, stride=1, padding=2)),
         "front"),
    _bug("wave: padding mode", put("front", lambda: paddle.nn.Conv1D(
        5, 6, 5, stride=2, padding=2, padding_mode="circular")), "front"),
    _bug("wave: depthwise padding mode", put("depth", lambda: paddle.nn.Conv1D(
        6, 6, 3, padding=1, groups=6, bias_attr=False, padding_mode="replicate")), "depth"),
    _bug("wave: groups", put("depth", lambda: paddle.nn.Conv1D(
        6, 6, 3, padding=1, groups=3, bias_attr=False)), "depth", "depth.weight"),
    _bug("wave: bias where there is none", put("depth", lambda: paddle.nn.Conv1D(
        6, 6, 3, padding=1, groups=6)), "depth", "depth.bias"),
    _bug("wave: dilation", put("causal", lambda: paddle.nn.Conv1D(6, 6, 3, dilation=1)), "causal"),
    _bug("wave: transposed convolution's padding", put("grow", lambda: paddle.nn.Conv1DTranspose(
        6, 4, 4, stride=2, padding=0)), "grow"),
    _bug("wave: average for max pool", put("pool", lambda: paddle.nn.AvgPool1D(3, stride=3)),
         "pool"),
    _bug("wave: pool of size two", put("pool", lambda: paddle.nn.MaxPool1D(2, stride=3)), "pool"),
    _bug("wave: batch norm momentum", put("norm", lambda: paddle.nn.BatchNorm1D(
        6, momentum=0.1)), "norm"),
    _bug("wave: batch norm epsilon", put("norm", lambda: paddle.nn.BatchNorm1D(
        6, epsilon=1e-6)), "norm"),
    _again("wave: ELU's alpha", elu=lambda x: F.elu(x, 0.5)),
    _again("wave: ReLU for ELU", elu=F.relu),
    _again("wave: padded on the right", pad=(0, 4)),
    _again("wave: padded on both sides", pad=(2, 2)),
    _again("wave: gate by tanh", open_gate=lambda value, gate: value * paddle.tanh(gate)),
    _again("wave: gate and value exchanged",
           open_gate=lambda value, gate: gate * F.sigmoid(value)),
    _again("wave: gate without gradient",
           open_gate=lambda value, gate: value * F.sigmoid(gate).detach(),
           stages=("backward",)),
    _again("wave: residual left out", residual=lambda x: 0.0),
    _again("wave: residual without gradient", residual=lambda x: x.detach(),
           stages=("backward",)),
    _again("wave: norm after SiLU", "norm", normed=lambda norm, x: norm(F.silu(x))),
    _again("wave: norm after a wrong reshape", normed=lambda norm, x: F.silu(
        norm(x.transpose([0, 2, 1]).reshape(x.shape)))),
    _again("wave: SiLU with another slope", normed=lambda norm, x: _quick(norm(x))),
    _again("wave: reshape for transposition",
           turned=lambda x: x.reshape([x.shape[0], x.shape[2], x.shape[1]])),
    _again("wave: sequence reversed", turned=lambda x: x.transpose([0, 2, 1]).flip([1])),
    _bug("wave: frozen front", freeze("front.bias"), "front.bias", "front",
         stages=("audit", "backward")),
    _clip_bug("clip: padding of another axis", put("conv", lambda: paddle.nn.Conv3D(
        2, 4, (3, 3, 2), padding=(1, 1, 1))), "conv"),
    _clip_bug("clip: average for max pool", put("pool", lambda: paddle.nn.AvgPool3D(2)), "pool"),
    _clip_bug("clip: mean over height and width alone", forward("", lambda self, video: self.fc(
        self.pool(F.relu(self.norm(self.conv(video)))).mean([3, 4])[:, :, 0])), ""),
    _clip_bug("clip: depth and height exchanged", forward("conv", lambda self, x: F.conv3d(
        x.transpose([0, 1, 3, 2, 4]), self.weight, self.bias, padding=(1, 1, 0)).transpose(
            [0, 1, 3, 2, 4])), "conv", ""),
    # Paddle 3.3's CPU kernel: the gradient of SiLU is NaN where exp(-x) overflows
    case("steep: SiLU's gradient far below zero", partial(port, TorchSteep, PaddleSteep, X),
         "act", stages=("backward",)),
]  # fmt: skip


def _right(name, torch_class, paddle_class, inputs=X, **options):
    return case(name, partial(port, torch_class, paddle_class, inputs, **options))


CORRECT = [
    _right("wave ok", TorchWave, PaddleWave),
    _right("wave ok: its own right conversion", TorchWave, PaddleWave, damage=lambda model: None),
    _right("wave ok: Linear for a convolution of one", TorchWave, PaddleWaveLinear,
           name_map={"point": "point.1"}),
    _right("wave ok: large waves", TorchWave, PaddleWave, {"wave": X["wave"] * np.float32(100)}),
    _right("steep ok: SiLU as a product", TorchSteep, PaddleSteepProduct),
    _right("clip ok", TorchClip, PaddleClip, VIDEO),
]  # fmt: skip

CASES = [*BUGS, *CORRECT]
