"""torch.nn against paddle.nn: the layers that both have, each with the same positional arguments.

What an argument leaves open is each framework's own default.
"""

from collections.abc import Callable
from typing import Any

from examples.zoo.pair import Batch, Maker, Pair

import numpy as np


def numbers(*shape: int) -> np.ndarray:
    """Return float32 numbers of this shape."""
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


WORDS = np.random.default_rng(0).integers(0, 9, (2, 5))
# inputs: layers, PyTorch's name where it differs from Paddle's after a slash, with their arguments
LAYERS: tuple[tuple[tuple[np.ndarray, ...], str], ...] = (
    ((numbers(2, 5, 8),), """
        Linear(8,6) LayerNorm(8) LSTM(8,6)|batch_first GRU(8,6)|batch_first
        RNN/SimpleRNN(8,6)|batch_first TransformerEncoderLayer(8,2,16)|batch_first
        CELU() ELU() GELU() Hardshrink() Hardsigmoid() Hardswish() Hardtanh() Identity()
        LeakyReLU() LogSigmoid() Mish() PReLU() ReLU() ReLU6() RReLU() SELU() Sigmoid() SiLU()
        Softplus() Softshrink() Softsign() Tanh() Tanhshrink() GLU() Softmax(-1) LogSoftmax(-1)
        Dropout(0.3) AlphaDropout(0.3) Flatten() Unflatten(2,(2,4))"""),
    ((numbers(2, 6, 9),), """
        Conv1d/Conv1D(6,4,3) ConvTranspose1d/Conv1DTranspose(6,4,3) BatchNorm1d/BatchNorm1D(6)
        InstanceNorm1d/InstanceNorm1D(6) MaxPool1d/MaxPool1D(2) AvgPool1d/AvgPool1D(2)
        AdaptiveAvgPool1d/AdaptiveAvgPool1D(4) AdaptiveMaxPool1d/AdaptiveMaxPool1D(4)
        ZeroPad1d/ZeroPad1D(2) GroupNorm(2,6)"""),
    ((numbers(2, 6, 8, 8),), """
        Conv2d/Conv2D(6,4,3) ConvTranspose2d/Conv2DTranspose(6,4,3) BatchNorm2d/BatchNorm2D(6)
        InstanceNorm2d/InstanceNorm2D(6) LocalResponseNorm(3) MaxPool2d/MaxPool2D(2)
        AvgPool2d/AvgPool2D(3,2,1) LPPool2d/LPPool2D(2,2) AdaptiveAvgPool2d/AdaptiveAvgPool2D(3)
        AdaptiveMaxPool2d/AdaptiveMaxPool2D(3) ZeroPad2d/ZeroPad2D(1) ChannelShuffle(2)
        PixelUnshuffle(2) Upsample(None,2) Unfold(3) Dropout2d/Dropout2D(0.3)
        UpsamplingBilinear2d/UpsamplingBilinear2D(None,2)
        UpsamplingNearest2d/UpsamplingNearest2D(None,2) Softmax2d/Softmax2D()"""),
    ((numbers(2, 4, 5, 5, 5),), """
        Conv3d/Conv3D(4,3,2) ConvTranspose3d/Conv3DTranspose(4,3,2) BatchNorm3d/BatchNorm3D(4)
        InstanceNorm3d/InstanceNorm3D(4) MaxPool3d/MaxPool3D(2) AvgPool3d/AvgPool3D(2)
        AdaptiveAvgPool3d/AdaptiveAvgPool3D(2)"""),
    ((numbers(2, 8, 4, 4),), "PixelShuffle(2)"),
    ((numbers(2, 12, 9),), "Fold((4,4),2)"),
    ((WORDS,), "Embedding(9,4)"),
    ((numbers(3, 8), numbers(3, 8) + 1), "CosineSimilarity() PairwiseDistance() Bilinear(8,8,3)"),
    ((numbers(2, 5, 8),) * 3, "MultiheadAttention/MultiHeadAttention(8,2)|batch_first"),
    ((numbers(2, 5, 8), numbers(2, 4, 8)), "TransformerDecoderLayer(8,2,16)|batch_first"),
)  # fmt: skip


def _make(name: str, arguments: str, **settings: Any) -> Maker:
    values = eval(f"({arguments},)") if arguments else ()  # of the table above
    return lambda package: getattr(package, name)(*values, **settings)


def _pair(row: str, inputs: Batch) -> Pair:
    call, _, batch_first = row.partition("|")
    names, arguments = call.rstrip(")").split("(", 1)
    if arguments.count("(") > arguments.count(")"):
        arguments += ")"
    ours, _, theirs = names.partition("/")
    first = {"batch_first": True} if batch_first else {}
    batch: Callable[[], Batch] = lambda: inputs  # noqa: E731
    return Pair(ours, _make(ours, arguments, **first), _make(theirs or ours, arguments), batch)


PAIRS = tuple(_pair(row, inputs) for inputs, rows in LAYERS for row in rows.split())
