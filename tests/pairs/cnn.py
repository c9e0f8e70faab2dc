"""Convolutional nets on images: convolutions, pooling, BatchNorm2D, upsampling, padding, flatten."""

from functools import partial

from tests.pairs.case import case
from tests.pairs.plant import (
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

X = {"x": np.random.default_rng(21).standard_normal((3, 3, 11, 9)).astype("float32")}


class TorchUnit(torch.nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = torch.nn.Conv2d(width, width, 3, padding=1, groups=2, bias=False)
        self.bn = torch.nn.BatchNorm2d(width)
        self.act = torch.nn.Hardswish()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.act(self.bn(self.conv(x)))


class PaddleUnit(paddle.nn.Layer):
    def __init__(self, width: int):
        super().__init__()
        self.conv = paddle.nn.Conv2D(width, width, 3, padding=1, groups=2, bias_attr=False)
        self.bn = paddle.nn.BatchNorm2D(width)
        self.act = paddle.nn.Hardswish()

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x + self.act(self.bn(self.conv(x)))


class TorchCnn(torch.nn.Module):
    def __init__(self, window: int = 2):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.stem_bn = torch.nn.BatchNorm2d(8)
        self.pool = torch.nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True)
        self.unit1 = TorchUnit(8)
        self.unit2 = TorchUnit(8)
        self.dilated = torch.nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.smooth = torch.nn.AvgPool2d(window, stride=1, padding=1)
        self.up = torch.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.deconv = torch.nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1)
        self.drop = torch.nn.Dropout(0.2)
        self.fc = torch.nn.Linear(6 * 5 * 2, 5)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.stem_bn(self.stem(x))))
        x = self.unit2(self.unit1(x))
        x = torch.nn.functional.relu6(self.dilated(x))
        return self.smooth(x)  # (B, 8, 5, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, 3, 11, 9) -> (B, 5)
        x = self.up(self.features(x))
        x = torch.relu(self.deconv(x))
        x = torch.nn.functional.adaptive_avg_pool2d(x, (5, 2))
        return self.fc(self.drop(torch.flatten(x, 1)))


class PaddleCnn(paddle.nn.Layer):
    def __init__(self, window: int = 2):
        super().__init__()
        self.stem = paddle.nn.Conv2D(3, 8, 3, stride=2, padding=1)
        self.stem_bn = paddle.nn.BatchNorm2D(8)
        self.pool = paddle.nn.MaxPool2D(3, stride=2, padding=1, ceil_mode=True)
        self.unit1 = PaddleUnit(8)
        self.unit2 = PaddleUnit(8)
        self.dilated = paddle.nn.Conv2D(8, 8, 3, padding=2, dilation=2)
        self.smooth = paddle.nn.AvgPool2D(window, stride=1, padding=1, exclusive=False)
        self.up = paddle.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.deconv = paddle.nn.Conv2DTranspose(8, 6, 3, stride=2, padding=1, output_padding=1)
        self.drop = paddle.nn.Dropout(0.2)
        self.fc = paddle.nn.Linear(6 * 5 * 2, 5)

    def features(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.pool(F.relu(self.stem_bn(self.stem(x))))
        x = self.unit2(self.unit1(x))
        x = F.relu6(self.dilated(x))
        return self.smooth(x)  # (B, 8, 5, 4)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, 3, 11, 9) -> (B, 5)
        x = self.up(self.features(x))
        x = F.relu(self.deconv(x))
        x = F.adaptive_avg_pool2d(x, (5, 2))
        return self.fc(self.drop(paddle.flatten(x, 1)))


def _tail(
    pooled=lambda x: F.adaptive_avg_pool2d(x, (5, 2)), flat=lambda x: x.flatten(1), drop=True
):
    """Return a forward of the root whose last steps differ."""

    def function(self, x):
        x = F.relu(self.deconv(self.up(self.features(x))))
        x = flat(pooled(x))
        return self.fc(self.drop(x) if drop else x)

    return forward("", function)


def _head(stem=lambda self, x: F.relu(self.stem_bn(self.stem(x))), relu6=F.relu6, smooth=None):
    """Return a forward of the root whose first steps differ."""
    smooth = smooth or (lambda self, x: self.smooth(x))

    def function(self, x):
        x = self.pool(stem(self, x))
        x = relu6(self.dilated(self.unit2(self.unit1(x))))
        x = F.relu(self.deconv(self.up(smooth(self, x))))
        return self.fc(self.drop(F.adaptive_avg_pool2d(x, (5, 2)).flatten(1)))

    return forward("", function)


def _straight(self, x):
    normed = self.bn(self.conv(x))
    return x + normed + (self.act(normed) - normed).detach()


def _conv(**settings):
    return lambda: paddle.nn.Conv2D(8, 8, 3, **settings)


_bug = planter(TorchCnn, PaddleCnn, X)
_misconverted = misconverter(TorchCnn, PaddleCnn, X)

WEIGHTS = [
    _misconverted("cnn weights: kernel height and width exchanged",
                  tensor("dilated.weight", lambda w: w.transpose([0, 1, 3, 2])),
                  "dilated.weight", "dilated"),
    _misconverted("cnn weights: channels in and out exchanged",
                  tensor("dilated.weight", lambda w: w.transpose([1, 0, 2, 3])),
                  "dilated.weight", "dilated"),
    _misconverted("cnn weights: kernel flipped",
                  tensor("deconv.weight", lambda w: w.flip([2, 3])), "deconv.weight", "deconv"),
    _misconverted("cnn weights: input channels in BGR order",
                  tensor("stem.weight", lambda w: w.flip([1])), "stem.weight", "stem"),
    _misconverted("cnn weights: convolutions of the two units exchanged",
                  swap("unit1.conv.weight", "unit2.conv.weight"),
                  "unit1.conv.weight", "unit2.conv.weight", "unit1.conv", "unit2.conv"),
    _misconverted("cnn weights: batch norm gamma and beta exchanged",
                  swap("unit2.bn.weight", "unit2.bn.bias"),
                  "unit2.bn.weight", "unit2.bn.bias", "unit2.bn"),
    _misconverted("cnn weights: running variance of one norm left at one",
                  tensor("unit1.bn._variance", paddle.ones_like),
                  "unit1.bn.running_var", "unit1.bn._variance", "unit1.bn"),
    _misconverted("cnn weights: beta and running mean exchanged",
                  swap("stem_bn.bias", "stem_bn._mean"),
                  "stem_bn.bias", "stem_bn.running_mean", "stem_bn._mean", "stem_bn"),
    _misconverted("cnn weights: Linear rows in channel-last order",
                  tensor("fc.weight", lambda w: w.reshape([6, 5, 2, 5]).transpose([1, 2, 0, 3])
                         .reshape([60, 5])), "fc.weight", "fc"),
    _misconverted("cnn weights: one output channel zero",
                  tensor("dilated.weight", lambda w: w * (paddle.arange(8) != 5).astype(w.dtype)
                         .reshape([8, 1, 1, 1])), "dilated.weight", "dilated"),
]  # fmt: skip

SETTINGS = [
    _bug("cnn: padding", put("stem", lambda: paddle.nn.Conv2D(3, 8, 3, stride=2, padding=2)),
         "stem"),
    _bug("cnn: padding per axis", put("stem", lambda: paddle.nn.Conv2D(3, 8, 3, 2, padding=(0, 2))),
         "stem"),
    _bug("cnn: padding mode", put("unit1.conv", _conv(
        padding=1, groups=2, bias_attr=False, padding_mode="reflect")), "unit1.conv"),
    _bug("cnn: padding mode replicate", put("dilated", _conv(
        padding=2, dilation=2, padding_mode="replicate")), "dilated"),
    _bug("cnn: dilation", put("dilated", _conv(padding=1)), "dilated"),
    _bug("cnn: groups", put("unit2.conv", _conv(padding=1, groups=4, bias_attr=False)),
         "unit2.conv", "unit2.conv.weight"),
    _bug("cnn: bias missing", put("dilated", _conv(padding=2, dilation=2, bias_attr=False)),
         "dilated", "dilated.bias"),
    _bug("cnn: max pool floors its size", put("pool", lambda: paddle.nn.MaxPool2D(3, 2, 1)),
         "pool"),
    _bug("cnn: average for max pool", put("pool", lambda: paddle.nn.AvgPool2D(
        3, 2, 1, ceil_mode=True)), "pool"),
    _bug("cnn: max pool of size two", put("pool", lambda: paddle.nn.MaxPool2D(
        2, 2, ceil_mode=True)), "pool"),
    _bug("cnn: average pool at Paddle's default", put(
        "smooth", lambda: paddle.nn.AvgPool2D(2, 1, 1)), "smooth"),
    _bug("cnn: max for average pool", put("smooth", lambda: paddle.nn.MaxPool2D(2, 1, 1)),
         "smooth"),
    _bug("cnn: upsampling aligns corners", put("up", lambda: paddle.nn.Upsample(
        scale_factor=2, mode="bilinear", align_corners=True)), "up"),
    _bug("cnn: upsampling nearest", put("up", lambda: paddle.nn.Upsample(scale_factor=2)), "up"),
    _bug("cnn: upsampling bicubic", put("up", lambda: paddle.nn.Upsample(
        scale_factor=2, mode="bicubic")), "up"),
    _bug("cnn: upsampling in align mode 1", put("up", lambda: paddle.nn.Upsample(
        scale_factor=2, mode="bilinear", align_mode=1)), "up"),
    _bug("cnn: transposed convolution's output padding", put(
        "deconv", lambda: paddle.nn.Conv2DTranspose(8, 6, 3, stride=2, padding=1)), "deconv"),
    _bug("cnn: transposed convolution's padding", put(
        "deconv", lambda: paddle.nn.Conv2DTranspose(8, 6, 3, stride=2, output_padding=1)),
        "deconv"),
    _bug("cnn: batch norm epsilon", put("unit1.bn", lambda: paddle.nn.BatchNorm2D(
        8, epsilon=1e-3)), "unit1.bn"),
    _bug("cnn: batch norm epsilon 1e-6", put("unit2.bn", lambda: paddle.nn.BatchNorm2D(
        8, epsilon=1e-6)), "unit2.bn"),
    _bug("cnn: batch norm momentum", put("unit1.bn", lambda: paddle.nn.BatchNorm2D(
        8, momentum=0.1)), "unit1.bn"),
    _bug("cnn: instance norm for batch norm", put("unit2.bn", lambda: paddle.nn.InstanceNorm2D(
        8)), "unit2.bn"),
    _bug("cnn: batch norm without affine", put("unit2.bn", lambda: paddle.nn.BatchNorm2D(
        8, weight_attr=False, bias_attr=False)),
        "unit2.bn", "unit2.bn.weight", "unit2.bn.bias"),
    _bug("cnn: batch norm reads channel last", put("unit2.bn", lambda: paddle.nn.BatchNorm2D(
        3, data_format="NHWC")), "unit2.bn", "unit2.bn.weight", "unit2.bn.bias",
        "unit2.bn.running_mean", "unit2.bn._mean"),
    _bug("cnn: Swish for Hardswish", put("unit1.act", paddle.nn.Swish), "unit1.act"),
    _bug("cnn: Hardsigmoid for Hardswish", put("unit1.act", paddle.nn.Hardsigmoid), "unit1.act"),
    _bug("cnn: dropout of channels", put("drop", lambda: paddle.nn.Dropout(0.2, axis=1)), "drop"),
    _bug("cnn: dropout rate", put("drop", lambda: paddle.nn.Dropout(0.5)), "drop"),
]  # fmt: skip

FORWARD = [
    _bug("cnn: norm after ReLU", _head(lambda self, x: self.stem_bn(F.relu(self.stem(x)))), "",
         "stem_bn"),
    _bug("cnn: norm never called", _head(lambda self, x: F.relu(self.stem(x))), "", "stem_bn"),
    _bug("cnn: ReLU left out", _head(lambda self, x: self.stem_bn(self.stem(x))), ""),
    _bug("cnn: LeakyReLU for ReLU6", _head(relu6=F.leaky_relu), ""),
    _bug("cnn: smoothing never called", _head(smooth=lambda self, x: x), "", "smooth"),
    _bug("cnn: unit without its residual", forward("unit1", lambda self, x: self.act(
        self.bn(self.conv(x)))), "unit1"),
    _bug("cnn: unit's activation after the sum", forward("unit1", lambda self, x: self.act(
        x + self.bn(self.conv(x)))), "unit1", "unit1.act"),
    _bug("cnn: unit's norm before its convolution", forward("unit2", lambda self, x: x + self.act(
        self.conv(self.bn(x)))), "unit2", "unit2.bn", "unit2.conv"),
    _bug("cnn: unit's branch without gradient", forward("unit2", lambda self, x: x + self.act(
        self.bn(self.conv(x.detach())))), "unit2", stages=("backward",)),
    _bug("cnn: norm frozen in training", forward("unit2", lambda self, x: x + self.act(
        F.batch_norm(self.conv(x), self.bn._mean, self.bn._variance, self.bn.weight,
                     self.bn.bias, training=False))), "unit2", "unit2.bn"),
    _bug("cnn: activation passes its gradient straight", forward("unit1", _straight), "unit1",
         "unit1.act", stages=("backward",)),
    _bug("cnn: flatten in channel-last order", _tail(
        flat=lambda x: x.transpose([0, 2, 3, 1]).flatten(1)), ""),
    _bug("cnn: flatten with height and width exchanged", _tail(
        flat=lambda x: x.transpose([0, 1, 3, 2]).flatten(1)), ""),
    _bug("cnn: reshape from another axis order", _tail(
        flat=lambda x: x.transpose([1, 0, 2, 3]).reshape([x.shape[0], -1])), ""),
    _bug("cnn: adaptive max pool", _tail(lambda x: F.adaptive_max_pool2d(x, (5, 2))), ""),
    _bug("cnn: pooled size exchanged", _tail(lambda x: F.adaptive_avg_pool2d(x, (2, 5))), ""),
    _bug("cnn: interpolation for pooling", _tail(
        lambda x: F.interpolate(x, (5, 2), mode="nearest")), ""),
    _bug("cnn: dropout never called", _tail(drop=False), "", "drop"),
    _bug("cnn: features without gradient", _tail(pooled=lambda x: F.adaptive_avg_pool2d(
        x.detach(), (5, 2))), "", stages=("backward",)),
    _bug("cnn: frozen stem", freeze("stem.weight"), "stem.weight", "stem",
         stages=("audit", "backward")),
    _bug("cnn: frozen norm weight", freeze("unit1.bn.weight"), "unit1.bn.weight", "unit1.bn",
         "unit1.bn.bias",  # Paddle's batch norm then gives its bias no gradient either
         stages=("audit", "backward")),
]  # fmt: skip


class TorchPatch(torch.nn.Module):
    """Pads by hand, mixes channels by a 1x1 convolution, shuffles pixels, concatenates, averages."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.mix = torch.nn.Conv2d(8, 8, 1)
        self.norm = torch.nn.LayerNorm(8)
        self.fc = torch.nn.Linear(2 * 8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, 3, H, W) -> (B, 4)
        x = self.conv(torch.nn.functional.pad(x, (1, 2, 0, 1)))
        left, right = self.mix(x).chunk(2, dim=1)
        x = torch.cat([left * torch.sigmoid(right), left], dim=1)
        x = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = torch.cat([x.mean((2, 3)), x.amax((2, 3))], dim=1)
        return self.fc(x)


def _patch(
    pad=(1, 2, 0, 1),
    split=lambda x: x.chunk(2, axis=1),
    join=1,
    axes=(2, 3),
    normed=None,
    best=None,
):
    """Return the forward of PaddlePatch with these steps in it."""
    normed = normed or (lambda norm, x: norm(x.transpose([0, 2, 3, 1])).transpose([0, 3, 1, 2]))
    best = best or (lambda x: x.amax([2, 3]))

    def function(self, x):
        x = self.conv(F.pad(x, list(pad)))
        left, right = split(self.mix(x))
        x = paddle.concat([left * F.sigmoid(right), left][:: 1 if join == 1 else -1], axis=1)
        x = normed(self.norm, x)
        x = paddle.concat([x.mean([2, 3]), best(x)], axis=1)
        return self.fc(x)

    return function


class PaddlePatch(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv2D(3, 8, 3)
        self.mix = paddle.nn.Conv2D(8, 8, 1)
        self.norm = paddle.nn.LayerNorm(8, epsilon=1e-5)
        self.fc = paddle.nn.Linear(2 * 8, 4)

    forward = _patch()


class PaddlePatchLinear(PaddlePatch):
    """Stays in channel-last order, and mixes the channels by a Linear."""

    def __init__(self):
        super().__init__()
        self.mix = paddle.nn.Linear(8, 8)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, 3, H, W) -> (B, 4)
        x = self.conv(F.pad(x, [1, 2, 0, 1])).transpose([0, 2, 3, 1])
        left, right = self.mix(x).chunk(2, axis=-1)
        x = self.norm(paddle.concat([left * F.sigmoid(right), left], axis=-1))
        x = paddle.concat([x.mean([1, 2]), x.max([1, 2])], axis=-1)
        return self.fc(x)


class TorchSequence(torch.nn.Module):
    """A VGG: everything in one Sequential, in-place ReLU, Flatten as a module, pool with indices."""

    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3, padding=1),
            torch.nn.BatchNorm2d(6),
            torch.nn.ReLU(inplace=True),
            torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(6, 5, 3, padding=1),
            torch.nn.ReLU(inplace=True),
        )
        self.pool = torch.nn.MaxPool2d(2, return_indices=True)
        self.classifier = torch.nn.Sequential(
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(5, 4)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, where = self.pool(self.features(x))
        return self.classifier(x), where


class PaddleParts(paddle.nn.Layer):
    """The same VGG with attributes and functions; the mean does the adaptive pooling."""

    def __init__(self):
        super().__init__()
        self.conv1 = paddle.nn.Conv2D(3, 6, 3, padding=1)
        self.bn1 = paddle.nn.BatchNorm2D(6)
        self.conv2 = paddle.nn.Conv2D(6, 5, 3, padding=1)
        self.fc = paddle.nn.Linear(5, 4)

    def forward(self, x: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x, where = F.max_pool2d(F.relu(self.conv2(x)), 2, return_mask=True)
        return self.fc(x.mean([2, 3])), where


VGG = {
    "features.0": "conv1",
    "features.1": "bn1",
    "features.4": "conv2",
    "classifier.2": "fc",
}


class TorchSiamese(torch.nn.Module):
    """One tower for two images; batch norm's statistics move twice."""

    def __init__(self):
        super().__init__()
        self.tower = TorchUnit(4)

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return (self.tower(first) - self.tower(second)).square().mean((1, 2, 3))


class PaddleSiamese(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.tower = PaddleUnit(4)

    def forward(self, first: paddle.Tensor, second: paddle.Tensor) -> paddle.Tensor:
        return (self.tower(first) - self.tower(second)).square().mean([1, 2, 3])


TWO = tuple(
    np.random.default_rng(seed).standard_normal((3, 4, 5, 6)).astype("float32") for seed in (22, 23)
)
_patch_bug = planter(TorchPatch, PaddlePatch, X)
_vgg_bug = planter(TorchSequence, PaddleParts, X)
_twin_bug = planter(TorchSiamese, PaddleSiamese, TWO)


def _again(name, **steps):
    return _patch_bug(name, forward("", _patch(**steps)), "")


def _large(factor):
    return {"x": X["x"] * np.float32(factor)}


VARIANTS = [
    case("cnn: ReLU for ReLU6", partial(
        port, TorchCnn, PaddleCnn, _large(100), change=_head(relu6=F.relu)), ""),
    _again("patch: pad order", pad=(0, 1, 1, 2)),
    _again("patch: pad left and right exchanged", pad=(2, 1, 0, 1)),
    _again("patch: channels interleaved for halves",
           split=lambda x: (x[:, 0::2], x[:, 1::2])),
    _again("patch: halves exchanged", split=lambda x: x.chunk(2, axis=1)[::-1]),
    _again("patch: concatenated the other way round", join=-1),
    _again("patch: minimum for maximum", best=lambda x: x.amin([2, 3])),
    _again("patch: maximum over height alone", best=lambda x: x.amax(2)[:, :, 0]),
    _again("patch: reshape for the transposition back", normed=lambda norm, x: norm(
        x.transpose([0, 2, 3, 1])).reshape(x.shape)),
    _patch_bug("patch: LayerNorm epsilon", put("norm", lambda: paddle.nn.LayerNorm(
        [8], epsilon=1e-6)), "norm"),
    _vgg_bug("vgg: maximum for adaptive mean", forward("", lambda self, x: (
        self.fc(F.max_pool2d(F.relu(self.conv2(F.max_pool2d(F.relu(self.bn1(self.conv1(x))),
        2))), 2).amax([2, 3])), F.max_pool2d(F.relu(self.conv2(F.max_pool2d(F.relu(
        self.bn1(self.conv1(x))), 2))), 2, return_mask=True)[1])), "", name_map=VGG),
    _vgg_bug("vgg: bias missing", put("conv2", lambda: paddle.nn.Conv2D(
        6, 5, 3, padding=1, bias_attr=False)), "conv2", "features.4", "conv2.bias",
        "features.4.bias", name_map=VGG),
    _vgg_bug("vgg: batch norm epsilon", put("bn1", lambda: paddle.nn.BatchNorm2D(
        6, epsilon=1e-4)), "bn1", "features.1", name_map=VGG),
    _twin_bug("twins: second tower without gradient", forward("", lambda self, first, second: (
        self.tower(first) - self.tower(second).detach()).square().mean([1, 2, 3])), "",
        stages=("backward",)),
    _twin_bug("twins: inputs exchanged in the statistics", forward("", lambda self, first, second: (
        self.tower(paddle.concat([first, second]))[:3] - self.tower(paddle.concat(
            [first, second]))[3:]).square().mean([1, 2, 3])), "", "tower"),
    _twin_bug("twins: batch norm momentum", put("tower.bn", lambda: paddle.nn.BatchNorm2D(
        4, momentum=0.99)), "tower.bn"),
]  # fmt: skip


def _right(name, torch_class, paddle_class, inputs=X, **options):
    return case(name, partial(port, torch_class, paddle_class, inputs, **options))


CORRECT = [
    _right("cnn ok", TorchCnn, PaddleCnn),
    _right("cnn ok: averages over nine", partial(TorchCnn, 3), partial(PaddleCnn, 3)),
    _right("cnn ok: fresh", TorchCnn, PaddleCnn, fresh=True),
    _right("cnn ok: its own right conversion", TorchCnn, PaddleCnn, damage=lambda model: None),
    _right("cnn ok: large images", TorchCnn, PaddleCnn, _large(1e4)),
    _right("cnn ok: tiny images", TorchPatch, PaddlePatch, _large(1e-6)),
    _right("patch ok", TorchPatch, PaddlePatch),
    _right("patch ok: channel last, Linear for a 1x1 convolution", TorchPatch, PaddlePatchLinear),
    _right("vgg ok: attributes by a map", TorchSequence, PaddleParts, name_map=VGG),
    _right("vgg ok: attributes, map to be found", TorchSequence, PaddleParts),
    _right("twins ok: one tower called twice", TorchSiamese, PaddleSiamese, TWO),
]

NAMES = {"vgg ok: attributes, map to be found": VGG}
CASES = [*WEIGHTS, *SETTINGS, *FORWARD, *VARIANTS, *CORRECT]
