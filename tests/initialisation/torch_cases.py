"""PyTorch's initialisers and its layers' own initialisation, by name. `paddle_cases` has Paddle's."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from torch import Tensor, nn

Build = Callable[[], nn.Module]

_SQRT5: Final = math.sqrt(5)

# fan_in and fan_out differ in each, so that one in the other's place is seen
LAYERS: Final[dict[str, Build]] = {
    "Linear": lambda: nn.Linear(96, 160, bias=False),
    "Conv2d": lambda: nn.Conv2d(24, 40, 3, bias=False),
    "ConvTranspose2d": lambda: nn.ConvTranspose2d(24, 40, 3, bias=False),
    "Embedding": lambda: nn.Embedding(120, 72),
}

INITIALISERS: Final[dict[str, Callable[[Tensor], object]]] = {
    "kaiming_normal_": nn.init.kaiming_normal_,
    "kaiming_normal_ fan_out": partial(nn.init.kaiming_normal_, mode="fan_out"),
    "kaiming_normal_ tanh": partial(nn.init.kaiming_normal_, nonlinearity="tanh"),
    "kaiming_normal_ selu": partial(nn.init.kaiming_normal_, nonlinearity="selu"),
    "kaiming_normal_ linear": partial(nn.init.kaiming_normal_, nonlinearity="linear"),
    "kaiming_uniform_": nn.init.kaiming_uniform_,
    "kaiming_uniform_ fan_out": partial(nn.init.kaiming_uniform_, mode="fan_out"),
    "kaiming_uniform_ a": partial(nn.init.kaiming_uniform_, a=_SQRT5),
    "kaiming_uniform_ a leaky_relu": partial(
        nn.init.kaiming_uniform_, a=_SQRT5, nonlinearity="leaky_relu"
    ),
    "xavier_normal_": nn.init.xavier_normal_,
    "xavier_normal_ gain": partial(nn.init.xavier_normal_, gain=2.0),
    "xavier_uniform_": nn.init.xavier_uniform_,
    "xavier_uniform_ gain": partial(nn.init.xavier_uniform_, gain=2.0),
    "normal_": nn.init.normal_,
    "normal_ 0.02": partial(nn.init.normal_, mean=0.0, std=0.02),
    "uniform_": nn.init.uniform_,
    "uniform_ 0.1": partial(nn.init.uniform_, a=-0.1, b=0.1),
    "constant_": partial(nn.init.constant_, val=0.3),
    "ones_": nn.init.ones_,
    "zeros_": nn.init.zeros_,
    "trunc_normal_": nn.init.trunc_normal_,
    "trunc_normal_ 0.02": partial(nn.init.trunc_normal_, std=0.02),
    "trunc_normal_ 0.02 cut": partial(nn.init.trunc_normal_, std=0.02, a=-0.04, b=0.04),
    "orthogonal_": nn.init.orthogonal_,
    "orthogonal_ gain": partial(nn.init.orthogonal_, gain=2.0),
}

DEFAULTS: Final[dict[str, Build]] = {
    "Linear": lambda: nn.Linear(96, 160),
    "Bilinear": lambda: nn.Bilinear(24, 32, 40, bias=False),
    "Conv1d": lambda: nn.Conv1d(24, 40, 3),
    "Conv2d": lambda: nn.Conv2d(24, 40, 3),
    "Conv2d groups=4": lambda: nn.Conv2d(24, 40, 3, groups=4),
    "Conv3d": lambda: nn.Conv3d(24, 40, 3),
    "ConvTranspose1d": lambda: nn.ConvTranspose1d(24, 40, 3),
    "ConvTranspose2d": lambda: nn.ConvTranspose2d(24, 40, 3),
    "ConvTranspose3d": lambda: nn.ConvTranspose3d(24, 40, 3),
    "Embedding": lambda: nn.Embedding(120, 72),
    "Embedding padding_idx=3": lambda: nn.Embedding(120, 72, padding_idx=3),
    "LayerNorm": lambda: nn.LayerNorm(72),
    "BatchNorm1d": lambda: nn.BatchNorm1d(72),
    "BatchNorm2d": lambda: nn.BatchNorm2d(72),
    "BatchNorm3d": lambda: nn.BatchNorm3d(72),
    "GroupNorm": lambda: nn.GroupNorm(8, 72),
    "InstanceNorm2d affine": lambda: nn.InstanceNorm2d(72, affine=True),
    "PReLU": lambda: nn.PReLU(72),
    "LSTM": lambda: nn.LSTM(96, 64),
    "GRU": lambda: nn.GRU(96, 64),
    "RNN": lambda: nn.RNN(96, 64),
    "LSTMCell": lambda: nn.LSTMCell(96, 64),
    "MultiheadAttention": lambda: _unpacked(nn.MultiheadAttention(96, 4)),
    "TransformerEncoder": lambda: _unpacked(
        nn.TransformerEncoder(nn.TransformerEncoderLayer(96, 4, 160), 2, enable_nested_tensor=False)
    ),
    "Transformer": lambda: _unpacked(nn.Transformer(96, 4, 1, 1, 160)),
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
    found["dirac_ on Conv2d"] = partial(_initialised, LAYERS["Conv2d"], nn.init.dirac_)
    return found


def _initialised(build: Build, initialise: Callable[[Tensor], object]) -> nn.Module:
    layer: Any = build()
    initialise(layer.weight)
    return nn.Sequential(layer)


def _wrapped(build: Build) -> nn.Module:
    return nn.Sequential(build())


def _unpacked(module: nn.Module) -> nn.Module:
    """Return the module with its attention's packed projections apart, as Paddle keeps them."""
    if isinstance(module, nn.MultiheadAttention):
        return _projections(module)
    for name, child in module.named_children():
        setattr(module, name, _unpacked(child))
    return module


def _projections(attention: nn.MultiheadAttention) -> nn.Module:
    size, apart = attention.embed_dim, nn.Module()
    weights = attention.in_proj_weight.detach().chunk(3)  # (3D, D)
    biases = attention.in_proj_bias.detach().chunk(3)  # (3D,)
    for name, weight, bias in zip("qkv", weights, biases, strict=True):
        linear = nn.Linear(size, size)
        linear.weight, linear.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
        apart.add_module(f"{name}_proj", linear)
    apart.add_module("out_proj", attention.out_proj)
    return apart
