"""Initialisation. Every case, measured, is in `reprod_align.initialisation.family`."""

from typing import Any

from reprod_align.api.entry import Entry, paddle, torch

import numpy as np

CHINESE = "参数初始化（全部实测见 docs/initialisation_cn.md）"

_DRAWN = "random numbers are compared: bound and standard deviation of 160000 of them"


def _spread(values: Any) -> list[float]:
    """Return the largest size and the standard deviation, each times sqrt(200), a fan that all here have."""
    array = np.asarray(values.detach().numpy()) * 200**0.5
    return [float(np.abs(array).max()), float(array.std())]


def _torch_drawn(initialise: Any) -> list[float]:
    """Return the spread of a Linear(200, 800)'s weight that was initialised in place."""
    weight = torch.empty(800, 200)
    initialise(weight)
    return _spread(weight)


def _paddle_drawn(initialiser: Any) -> list[float]:
    """Return the same of Paddle's Linear(200, 800), made with the initialiser."""
    layer = paddle.nn.Linear(200, 800, weight_attr=paddle.ParamAttr(initializer=initialiser))
    return _spread(layer.weight)


class KaimingNormal(Entry):
    """Both draw with a standard deviation of sqrt(2 / fan_in) by default."""

    chinese = "默认标准差两边都是 sqrt(2 / fan_in)。"
    apis = "torch.nn.init.kaiming_normal_", "paddle.nn.initializer.KaimingNormal"
    sources = ("guide 3.10",)
    keywords = "he msra fan_in"
    tolerance, because = 1e-2, _DRAWN

    def torch_side(self) -> Any:
        return _torch_drawn(torch.nn.init.kaiming_normal_)[1]

    def paddle_side(self) -> Any:
        return _paddle_drawn(paddle.nn.initializer.KaimingNormal())[1]


class KaimingUniformSlope(Entry):
    """KaimingUniform ignores negative_slope unless nonlinearity="leaky_relu" is given too."""

    chinese = 'KaimingUniform 不写 nonlinearity="leaky_relu" 时会忽略 negative_slope。'
    apis = (
        "torch.nn.init.kaiming_uniform_(a=)",
        "paddle.nn.initializer.KaimingUniform(negative_slope=)",
    )
    sources = ("guide 3.10",)
    keywords = "he msra leaky_relu gain a sqrt(5)"
    tolerance, because = 1e-2, _DRAWN

    def torch_side(self) -> Any:
        return _torch_drawn(lambda weight: torch.nn.init.kaiming_uniform_(weight, a=5**0.5))

    def paddle_side(self) -> Any:
        make = paddle.nn.initializer.KaimingUniform
        return _paddle_drawn(make(negative_slope=5**0.5, nonlinearity="leaky_relu"))

    def plain(self) -> Any:
        return _paddle_drawn(paddle.nn.initializer.KaimingUniform(negative_slope=5**0.5))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found[0], 6**0.5 * expected[0], rtol=1e-3)


class XavierNormal(Entry):
    """Both draw with a standard deviation of sqrt(2 / (fan_in + fan_out)); gain has the same name."""

    chinese = "标准差两边都是 sqrt(2 / (fan_in + fan_out))；gain 同名。"
    apis = "torch.nn.init.xavier_normal_", "paddle.nn.initializer.XavierNormal"
    sources = ("guide 3.10",)
    keywords = "glorot gain"
    tolerance, because = 1e-2, _DRAWN

    def torch_side(self) -> Any:
        return _torch_drawn(torch.nn.init.xavier_normal_)[1]

    def paddle_side(self) -> Any:
        return _paddle_drawn(paddle.nn.initializer.XavierNormal())[1]


class XavierUniform(Entry):
    """Both draw within sqrt(6 / (fan_in + fan_out)); gain has the same name."""

    chinese = "范围两边都是 ±sqrt(6 / (fan_in + fan_out))；gain 同名。"
    apis = "torch.nn.init.xavier_uniform_", "paddle.nn.initializer.XavierUniform"
    sources = ("guide 3.10",)
    keywords = "glorot gain"
    tolerance, because = 1e-2, _DRAWN

    def torch_side(self) -> Any:
        return _torch_drawn(torch.nn.init.xavier_uniform_)

    def paddle_side(self) -> Any:
        return _paddle_drawn(paddle.nn.initializer.XavierUniform())


class EmbeddingFans(Entry):
    """An Embedding's fan_in is its row size in PyTorch, its number of rows in Paddle: give Uniform or Normal the number."""

    chinese = "对 Embedding，PyTorch 的 fan_in 是维度，Paddle 的是行数：直接用 Uniform 或 Normal 给出数值。"
    apis = "torch.nn.init.kaiming_uniform_", "paddle.nn.initializer.KaimingUniform"
    sources = ("guide 3.10",)
    keywords = "fan_in fan_out embedding"
    tolerance, because = 1e-2, _DRAWN

    def torch_side(self) -> Any:
        layer = torch.nn.Embedding(800, 200)
        torch.nn.init.kaiming_uniform_(layer.weight)
        return _spread(layer.weight)

    def paddle_side(self) -> Any:
        bound = (6 / 200) ** 0.5
        start = paddle.nn.initializer.Uniform(-bound, bound)
        return _spread(
            paddle.nn.Embedding(800, 200, weight_attr=paddle.ParamAttr(initializer=start)).weight
        )

    def plain(self) -> Any:
        start = paddle.nn.initializer.KaimingUniform()
        return _spread(
            paddle.nn.Embedding(800, 200, weight_attr=paddle.ParamAttr(initializer=start)).weight
        )

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found[0], expected[0] / 2, rtol=1e-3)


class UniformDefaults(Entry):
    """uniform_ draws from 0 to 1 by default, Paddle's Uniform from -1 to 1."""

    chinese = "默认范围：uniform_ 是 0 到 1，Paddle 的 Uniform 是 -1 到 1。"
    apis = "torch.nn.init.uniform_", "paddle.nn.initializer.Uniform"
    keywords = "low high default"
    tolerance, because = 1e-2, _DRAWN

    def torch_side(self) -> Any:
        return _torch_drawn(torch.nn.init.uniform_)

    def paddle_side(self) -> Any:
        return _paddle_drawn(paddle.nn.initializer.Uniform(0.0, 1.0))

    def plain(self) -> Any:
        return _paddle_drawn(paddle.nn.initializer.Uniform())

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found[1], 2 * expected[1], rtol=1e-2)


class LinearInitialisation(Entry):
    """A Linear's weight starts within 1 / sqrt(fan_in) in PyTorch, by Xavier in Paddle; Paddle's bias is zero."""

    chinese = (
        "Linear 的默认初始化：PyTorch 是 ±1/sqrt(fan_in)，Paddle 是 Xavier；Paddle 的偏置为零。"
    )
    apis = "torch.nn.Linear", "paddle.nn.Linear"
    sources = ("guide 4.10",)
    keywords = "default initialisation bias zero"
    tolerance, because = 1e-2, _DRAWN

    def torch_side(self) -> Any:
        layer = torch.nn.Linear(200, 800)
        return _spread(layer.weight), _spread(layer.bias)[0]

    def paddle_side(self) -> Any:
        bound = 200**-0.5
        start = paddle.ParamAttr(initializer=paddle.nn.initializer.Uniform(-bound, bound))
        layer = paddle.nn.Linear(200, 800, weight_attr=start, bias_attr=start)
        return _spread(layer.weight), _spread(layer.bias)[0]

    def plain(self) -> Any:
        layer = paddle.nn.Linear(200, 800)
        return _spread(layer.weight), _spread(layer.bias)[0]

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(np.isclose(found[0][0], (6 * 200 / 1000) ** 0.5, rtol=1e-3) and found[1] == 0)


class EmbeddingInitialisation(Entry):
    """An Embedding starts with a standard deviation of 1 in PyTorch, by Xavier in Paddle."""

    chinese = "Embedding 的默认初始化：PyTorch 标准差为 1，Paddle 是 Xavier。"
    apis = "torch.nn.Embedding", "paddle.nn.Embedding"
    sources = ("guide 4.10", "quick start 3.1, initialisation code")
    keywords = "default initialisation normal"
    tolerance, because = 1e-2, _DRAWN

    def torch_side(self) -> Any:
        return _spread(torch.nn.Embedding(800, 200).weight)[1]

    def paddle_side(self) -> Any:
        start = paddle.ParamAttr(initializer=paddle.nn.initializer.Normal(0.0, 1.0))
        return _spread(paddle.nn.Embedding(800, 200, weight_attr=start).weight)[1]

    def plain(self) -> Any:
        return _spread(paddle.nn.Embedding(800, 200).weight)[1]


class InitialiserCall(Entry):
    """weight.data.normal_(0, std) after building is initializer.Normal(0, std)(weight), or weight_attr before."""

    chinese = "建好后 weight.data.normal_(0, std) 对应 initializer.Normal(0, std)(weight)，也可在建层时用 weight_attr。"
    apis = "torch.Tensor.normal_", "paddle.nn.initializer.Normal()(weight)"
    sources = ("quick start 3.1 step 6",)
    keywords = "_init_weights constant zero_ fill_ padding_idx initializer_range"
    tolerance, because = 1e-2, _DRAWN

    def torch_side(self) -> Any:
        layer = torch.nn.Linear(200, 800)
        layer.weight.data.normal_(mean=0.0, std=0.05)
        layer.bias.data.zero_()
        return _spread(layer.weight)[1], layer.bias

    def paddle_side(self) -> Any:
        layer = paddle.nn.Linear(200, 800)
        paddle.nn.initializer.Normal(mean=0.0, std=0.05)(layer.weight)
        paddle.nn.initializer.Constant(0.0)(layer.bias)
        return _spread(layer.weight)[1], layer.bias


class NormInitialisation(Entry):
    """The norms' weights start at one and their biases at zero on both sides."""

    chinese = "归一化层的权重初值两边都是 1，偏置都是 0。"
    apis = "torch.nn.LayerNorm", "paddle.nn.LayerNorm"
    sources = ("quick start 3.1 step 6",)
    keywords = "ones zeros BatchNorm running"

    def torch_side(self) -> Any:
        layer, norm = torch.nn.LayerNorm(3), torch.nn.BatchNorm1d(3)
        return layer.weight, layer.bias, norm.weight, norm.running_mean, norm.running_var

    def paddle_side(self) -> Any:
        layer, norm = paddle.nn.LayerNorm(3), paddle.nn.BatchNorm1D(3)
        return layer.weight, layer.bias, norm.weight, norm._mean, norm._variance
