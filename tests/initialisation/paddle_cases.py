"""Paddle's initialisers and its layers' own initialisation, by name. `torch_cases` has PyTorch's."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import paddle
from paddle import Tensor, nn

Build = Callable[[], nn.Layer]

_SQRT5: Final = math.sqrt(5)

# fan_in and fan_out differ in each, so that one in the other's place is seen
LAYERS: Final[dict[str, Build]] = {
    "Linear": lambda: nn.Linear(96, 160, bias_attr=False),
    "Conv2d": lambda: nn.Conv2D(24, 40, 3, bias_attr=False),
    "ConvTranspose2d": lambda: nn.Conv2DTranspose(24, 40, 3, bias_attr=False),
    "Embedding": lambda: nn.Embedding(120, 72),
}

INITIALISERS: Final[dict[str, Callable[[Tensor], object]]] = {
    "kaiming_normal_": nn.initializer.KaimingNormal(),
    "kaiming_normal_ fan_out": nn.initializer.KaimingNormal(mode="fan_out"),
    "kaiming_normal_ tanh": nn.initializer.KaimingNormal(nonlinearity="tanh"),
    "kaiming_normal_ selu": nn.initializer.KaimingNormal(nonlinearity="selu"),
    "kaiming_normal_ linear": nn.initializer.KaimingNormal(nonlinearity="linear"),
    "kaiming_uniform_": nn.initializer.KaimingUniform(),
    "kaiming_uniform_ fan_out": nn.initializer.KaimingUniform(mode="fan_out"),
    "kaiming_uniform_ a": nn.initializer.KaimingUniform(negative_slope=_SQRT5),
    "kaiming_uniform_ a leaky_relu": nn.initializer.KaimingUniform(
        negative_slope=_SQRT5, nonlinearity="leaky_relu"
    ),
    "xavier_normal_": nn.initializer.XavierNormal(),
    "xavier_normal_ gain": nn.initializer.XavierNormal(gain=2.0),
    "xavier_uniform_": nn.initializer.XavierUniform(),
    "xavier_uniform_ gain": nn.initializer.XavierUniform(gain=2.0),
    "normal_": nn.initializer.Normal(),
    "normal_ 0.02": nn.initializer.Normal(mean=0.0, std=0.02),
    "uniform_": nn.initializer.Uniform(),
    "uniform_ 0.1": nn.initializer.Uniform(low=-0.1, high=0.1),
    "constant_": nn.initializer.Constant(value=0.3),
    "ones_": nn.initializer.Constant(1.0),
    "zeros_": nn.initializer.Constant(),
    "trunc_normal_": nn.initializer.TruncatedNormal(),
    "trunc_normal_ 0.02": nn.initializer.TruncatedNormal(std=0.02),
    "trunc_normal_ 0.02 cut": nn.initializer.TruncatedNormal(std=0.02, a=-0.04, b=0.04),
    "orthogonal_": nn.initializer.Orthogonal(),
    "orthogonal_ gain": nn.initializer.Orthogonal(gain=2.0),
}

DEFAULTS: Final[dict[str, Build]] = {
    "Linear": lambda: nn.Linear(96, 160),
    "Bilinear": lambda: nn.Bilinear(24, 32, 40, bias_attr=False),
    "Conv1d": lambda: nn.Conv1D(24, 40, 3),
    "Conv2d": lambda: nn.Conv2D(24, 40, 3),
    "Conv2d groups=4": lambda: nn.Conv2D(24, 40, 3, groups=4),
    "Conv3d": lambda: nn.Conv3D(24, 40, 3),
    "ConvTranspose1d": lambda: nn.Conv1DTranspose(24, 40, 3),
    "ConvTranspose2d": lambda: nn.Conv2DTranspose(24, 40, 3),
    "ConvTranspose3d": lambda: nn.Conv3DTranspose(24, 40, 3),
    "Embedding": lambda: nn.Embedding(120, 72),
    "Embedding padding_idx=3": lambda: nn.Embedding(120, 72, padding_idx=3),
    "LayerNorm": lambda: nn.LayerNorm(72),
    "BatchNorm1d": lambda: nn.BatchNorm1D(72),
    "BatchNorm2d": lambda: nn.BatchNorm2D(72),
    "BatchNorm3d": lambda: nn.BatchNorm3D(72),
    "GroupNorm": lambda: nn.GroupNorm(8, 72),
    "InstanceNorm2d affine": lambda: nn.InstanceNorm2D(72),
    "PReLU": lambda: nn.PReLU(72),
    "LSTM": lambda: nn.LSTM(96, 64),
    "GRU": lambda: nn.GRU(96, 64),
    "RNN": lambda: nn.SimpleRNN(96, 64),
    "LSTMCell": lambda: nn.LSTMCell(96, 64),
    "MultiheadAttention": lambda: nn.MultiHeadAttention(96, 4),
    "TransformerEncoder": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(96, 4, 160), 2),
    "Transformer": lambda: nn.Transformer(96, 4, 1, 1, 160),
}


def cases() -> dict[str, Build]:
    """Return every case by its name: an initialiser on a layer, or a layer's own initialisation."""
    found: dict[str, Build] = {
        f"{name} by default": partial(_wrapped, build) for name, build in DEFAULTS.items()
    }
    for name, initialise in INITIALISERS.items():
        for layer, build in LAYERS.items():
            found[f"{name} on {layer}"] = partial(_initialised, build, initialise)
    found["eye_ on Linear"] = partial(_initialised, LAYERS["Linear"], nn.init.eye_)
    found["dirac_ on Conv2d"] = partial(_initialised, LAYERS["Conv2d"], nn.initializer.Dirac())
    return found


def _initialised(build: Build, initialise: Callable[[Tensor], object]) -> nn.Layer:
    layer: Any = build()
    with paddle.no_grad():
        initialise(layer.weight)
    return nn.Sequential(layer)


def _wrapped(build: Build) -> nn.Layer:
    return nn.Sequential(build())
