"""Group, instance, layer, RMS and local response norms, and normalised vectors."""

from functools import partial

from tests.pairs.case import case
from tests.pairs.plant import forward, freeze, misconverter, planter, port, put, swap, tensor

import numpy as np
import paddle
import torch
from paddle.nn import functional as F

X = np.random.default_rng(41).standard_normal((3, 4, 6, 4)).astype("float32")


class TorchRms(torch.nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (..., width)
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class PaddleRms(paddle.nn.Layer):
    def __init__(self, width: int):
        super().__init__()
        self.weight = self.create_parameter(
            [width], default_initializer=paddle.nn.initializer.Constant(1.0)
        )

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (..., width)
        return self.weight * x * paddle.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class TorchNorms(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(4, 8, 3, padding=1)
        self.group = torch.nn.GroupNorm(4, 8)
        self.conv2 = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.instance = torch.nn.InstanceNorm2d(8, affine=True)
        self.plane = torch.nn.LayerNorm([6, 4])
        self.local = torch.nn.LocalResponseNorm(4, alpha=0.125, beta=0.5, k=1.0)
        self.rms = TorchRms(8)
        self.classes = torch.nn.Parameter(torch.randn(5, 8))

    def forward(self, x: torch.Tensor) -> tuple:  # (B, 4, 6, 4) -> (B, 5), (B, 8)
        x = torch.relu(self.group(self.conv1(x)))
        x = x + torch.nn.functional.gelu(self.instance(self.conv2(x)))
        x = self.local(self.plane(x))
        x = self.rms(x.square().mean((2, 3)) + x.amax((2, 3)))
        unit = torch.nn.functional.normalize(x, dim=-1)
        return 16.0 * unit @ torch.nn.functional.normalize(self.classes, dim=-1).T, x


def _norms(
    first=lambda self, x: F.relu(self.group(self.conv1(x))),
    second=lambda self, x: x + F.gelu(self.instance(self.conv2(x))),
    third=lambda self, x: self.local(self.plane(x)),
    unit=lambda x: F.normalize(x, axis=-1),
    cosine=lambda x, classes: 16.0 * x @ F.normalize(classes, axis=-1).T,
):
    """Return the forward of PaddleNorms with these steps in it."""

    def function(self, x):
        x = third(self, second(self, first(self, x)))
        x = self.rms(x.square().mean([2, 3]) + x.amax([2, 3]))
        return cosine(unit(x), self.classes), x

    return function


class PaddleNorms(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1 = paddle.nn.Conv2D(4, 8, 3, padding=1)
        self.group = paddle.nn.GroupNorm(4, 8)
        self.conv2 = paddle.nn.Conv2D(8, 8, 3, padding=1)
        self.instance = paddle.nn.InstanceNorm2D(8)
        self.plane = paddle.nn.LayerNorm([6, 4])
        self.local = paddle.nn.LocalResponseNorm(4, alpha=0.125, beta=0.5, k=1.0)
        self.rms = PaddleRms(8)
        self.classes = self.create_parameter([5, 8])

    forward = _norms()


_bug = planter(TorchNorms, PaddleNorms, (X,))
_misconverted = misconverter(TorchNorms, PaddleNorms, (X,))
INSTANCE = ("instance", "instance.weight", "instance.scale")


def _again(name, *culprits, stages=(), **steps):
    return _bug(name, forward("", _norms(**steps)), "", *culprits, stages=stages)


def _rms(name, function, **about):
    return _bug(name, forward("rms", function), "rms", **about)


BUGS = [
    _misconverted("norms weights: gamma of two norms exchanged",
                  swap("group.weight", "instance.scale"), "group.weight", "group", *INSTANCE),
    _misconverted("norms weights: gamma and beta exchanged", swap("group.weight", "group.bias"),
                  "group.weight", "group.bias", "group"),
    _misconverted("norms weights: instance norm's gamma left at one",
                  tensor("instance.scale", paddle.ones_like), *INSTANCE),
    _misconverted("norms weights: RMS weight less one", tensor("rms.weight", lambda w: w - 1.0),
                  "rms.weight", "rms"),
    _misconverted("norms weights: plane transposed", tensor(
        "plane.weight", lambda w: w.reshape([6, 4]).T.reshape(w.shape)), "plane.weight", "plane"),
    _bug("norms: half the groups", put("group", lambda: paddle.nn.GroupNorm(2, 8)), "group"),
    _bug("norms: channels per group for groups", put("group", lambda: paddle.nn.GroupNorm(8, 8)),
         "group"),
    _bug("norms: GroupNorm epsilon 1e-6", put("group", lambda: paddle.nn.GroupNorm(
        4, 8, epsilon=1e-6)), "group"),
    _bug("norms: GroupNorm epsilon 1e-3", put("group", lambda: paddle.nn.GroupNorm(
        4, 8, epsilon=1e-3)), "group"),
    _bug("norms: GroupNorm bias missing", put("group", lambda: paddle.nn.GroupNorm(
        4, 8, bias_attr=False)), "group", "group.bias"),
    _bug("norms: BatchNorm for GroupNorm", put("group", lambda: paddle.nn.BatchNorm2D(8)),
         "group"),
    _bug("norms: LayerNorm epsilon 1e-6", put("plane", lambda: paddle.nn.LayerNorm(
        [6, 4], epsilon=1e-6)), "plane"),
    _bug("norms: LayerNorm over one axis", put("plane", lambda: paddle.nn.LayerNorm(4)),
         "plane", "plane.weight", "plane.bias"),
    _bug("norms: InstanceNorm epsilon", put("instance", lambda: paddle.nn.InstanceNorm2D(
        8, epsilon=1e-3)), "instance"),
    _bug("norms: InstanceNorm epsilon 1e-6", put("instance", lambda: paddle.nn.InstanceNorm2D(
        8, epsilon=1e-6)), "instance"),
    _bug("norms: InstanceNorm without affine", put("instance", lambda: paddle.nn.InstanceNorm2D(
        8, weight_attr=False, bias_attr=False)), *INSTANCE, "instance.bias"),
    _bug("norms: BatchNorm for InstanceNorm", put("instance", lambda: paddle.nn.BatchNorm2D(8)),
         *INSTANCE),
    _bug("norms: local response over five", put("local", lambda: paddle.nn.LocalResponseNorm(
        5, alpha=0.125, beta=0.5)), "local"),
    _bug("norms: local response's alpha", put("local", lambda: paddle.nn.LocalResponseNorm(
        4, beta=0.5)), "local"),
    _bug("norms: local response's k", put("local", lambda: paddle.nn.LocalResponseNorm(
        4, alpha=0.125, beta=0.5, k=2.0)), "local"),
    _rms("norms: RMS epsilon outside the root", lambda self, x: self.weight * x / (
        x.square().mean(-1, keepdim=True).sqrt() + 1e-6)),
    _rms("norms: RMS epsilon 1e-5", lambda self, x: self.weight * x * paddle.rsqrt(
        x.square().mean(-1, keepdim=True) + 1e-5)),
    _rms("norms: RMS of the centred", lambda self, x: self.weight * x * paddle.rsqrt(
        (x - x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True) + 1e-6)),
    _rms("norms: sum for mean of squares", lambda self, x: self.weight * x * paddle.rsqrt(
        x.square().sum(-1, keepdim=True) + 1e-6)),
    _rms("norms: RMS weight plus one", lambda self, x: (1.0 + self.weight) * x * paddle.rsqrt(
        x.square().mean(-1, keepdim=True) + 1e-6)),
    _rms("norms: RMS without its gradient", lambda self, x: self.weight * x * paddle.rsqrt(
        x.square().mean(-1, keepdim=True) + 1e-6).detach(), stages=("backward",)),
    _again("norms: activation before the group norm", "group",
           first=lambda self, x: self.group(F.relu(self.conv1(x)))),
    _again("norms: group norm before its convolution", "instance", "conv2",
           second=lambda self, x: x + F.gelu(self.conv2(self.instance(x)))),
    _again("norms: GELU by tanh", second=lambda self, x: x + F.gelu(
        self.instance(self.conv2(x)), approximate=True)),
    _again("norms: residual without gradient", second=lambda self, x: x.detach() + F.gelu(
        self.instance(self.conv2(x))), stages=("backward",)),
    _again("norms: local response left out", "local", third=lambda self, x: self.plane(x)),
    _again("norms: local response before the plane", "local", "plane",
           third=lambda self, x: self.plane(self.local(x))),
    _again("norms: normalised over the batch", unit=lambda x: F.normalize(x, axis=0)),
    _again("norms: normalised by absolute values", unit=lambda x: F.normalize(x, p=1, axis=-1)),
    _again("norms: not normalised", unit=lambda x: x),
    _again("norms: norm without gradient", unit=lambda x: x / x.detach().norm(
        axis=-1, keepdim=True), stages=("backward",)),
    _again("norms: classes not normalised", cosine=lambda x, classes: 16.0 * x @ classes.T),
    _again("norms: classes without gradient", "classes", stages=("backward",),
           cosine=lambda x, classes: 16.0 * x @ F.normalize(classes.detach(), axis=-1).T),
    _again("norms: scale left out",
           cosine=lambda x, classes: x @ F.normalize(classes, axis=-1).T),
    _bug("norms: frozen classes", freeze("classes"), "classes", stages=("audit", "backward")),
]  # fmt: skip


class TorchPlain(torch.nn.Module):
    """Norms that have no weights of their own."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(4, 6, 3)
        self.norm = self.make_norm()

    def make_norm(self) -> torch.nn.Module:
        return torch.nn.GroupNorm(3, 6, affine=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, 4, H, W) -> (B, 6, H - 2, W - 2)
        return self.norm(self.conv(x))


class TorchPlainInstance(TorchPlain):
    def make_norm(self) -> torch.nn.Module:
        return torch.nn.InstanceNorm2d(6)


class TorchGroups(TorchPlain):
    def make_norm(self) -> torch.nn.Module:
        return torch.nn.GroupNorm(6, 6)


class TorchThreeGroups(TorchPlain):
    def make_norm(self) -> torch.nn.Module:
        return torch.nn.GroupNorm(3, 6)


class TorchOneGroup(TorchPlain):
    def make_norm(self) -> torch.nn.Module:
        return torch.nn.GroupNorm(1, 6)


class PaddlePlain(paddle.nn.Layer):
    def __init__(self, norm=lambda: paddle.nn.GroupNorm(3, 6, weight_attr=False, bias_attr=False)):
        super().__init__()
        self.conv = paddle.nn.Conv2D(4, 6, 3)
        self.norm = norm()

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, 4, H, W) -> (B, 6, H - 2, W - 2)
        return self.norm(self.conv(x))


class PaddleByHand(paddle.nn.Layer):
    """A norm over each image, written out."""

    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([6])
        self.bias = self.create_parameter([6], is_bias=True)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, 6, H, W)
        mean = x.mean([1, 2, 3], keepdim=True)
        variance = x.var([1, 2, 3], unbiased=self.unbiased, keepdim=True)
        x = (x - mean) / paddle.sqrt(variance + 1e-5)
        return x * self.weight.reshape([1, 6, 1, 1]) + self.bias.reshape([1, 6, 1, 1])

    unbiased = False


def _plain_instance():
    return paddle.nn.InstanceNorm2D(6, weight_attr=False, bias_attr=False)


def _pair_of(name, torch_class, norm, *culprits, inputs=(X,), **about):
    build = partial(port, torch_class, partial(PaddlePlain, norm), inputs, **about)
    return case(name, build, *culprits)


def _unbiased():
    norm = PaddleByHand()
    norm.unbiased = True
    return norm


VARIANTS = [
    # Paddle 3.3's CPU kernel has another gradient for the input where GroupNorm has no weight.
    case("norms: GroupNorm without weights", partial(port, TorchPlain, PaddlePlain, (X,)), "norm",
         stages=("backward",)),
    _pair_of("norms: unbiased variance", TorchOneGroup, _unbiased, "norm"),
    _pair_of("norms: instances for one group", TorchOneGroup,
             lambda: paddle.nn.InstanceNorm2D(6), "norm", "norm.weight", "norm.scale"),
]  # fmt: skip

CORRECT = [
    case("norms ok", partial(port, TorchNorms, PaddleNorms, (X,))),
    case("norms ok: fresh", partial(port, TorchNorms, PaddleNorms, (X,), fresh=True)),
    case("norms ok: by keyword", partial(port, TorchNorms, PaddleNorms, {"x": X})),
    _pair_of("norms ok: InstanceNorm without weights", TorchPlainInstance, _plain_instance),
    _pair_of("norms ok: InstanceNorm for single groups", TorchGroups,
             lambda: paddle.nn.InstanceNorm2D(6)),
    _pair_of("norms ok: one group written out", TorchOneGroup, PaddleByHand),
    _pair_of("norms ok: large images", TorchOneGroup, PaddleByHand, inputs=(X * 1e4,)),
    _pair_of("norms ok: tiny images", TorchThreeGroups, lambda: paddle.nn.GroupNorm(3, 6),
             inputs=(X * np.float32(1e-6),)),
]  # fmt: skip

CASES = [*BUGS, *VARIANTS, *CORRECT]
