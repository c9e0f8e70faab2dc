"""Activations and softmax."""

from typing import Any

from reprod_align.api.entry import Convention, Entry, numbers, paddle, torch

import numpy as np

CHINESE = "激活函数与 softmax"


class SoftmaxAxis(Entry):
    """dim is called axis; without it Paddle takes the last, PyTorch's module axis 0 of 1- and 3-D tensors."""

    chinese = "dim 在 Paddle 中叫 axis；不写时 Paddle 取最后一维，而 PyTorch 的模块对一维和三维张量取第 0 维。"
    apis = "torch.nn.Softmax", "paddle.nn.Softmax"
    sources = ("quick start 3.1 API table",)
    keywords = "dim axis log_softmax"
    conventions = {
        "dim": Convention("axis", None, "no fault where both are the same dimension of the tensor")
    }

    def torch_side(self) -> Any:
        return torch.nn.Softmax()(torch.tensor(numbers(2, 3, 4)))

    def paddle_side(self) -> Any:
        return paddle.nn.Softmax(axis=0)(paddle.to_tensor(numbers(2, 3, 4)))

    def plain(self) -> Any:
        return paddle.nn.Softmax()(paddle.to_tensor(numbers(2, 3, 4)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found.sum(-1), 1) and np.allclose(expected.sum(0), 1)


class SoftmaxFarBelow(Entry):
    """Paddle takes a score more than 64 below the largest as 64 below."""

    chinese = "比最大值低 64 以上的分数，Paddle 一律按低 64 处理。"
    apis = "torch.nn.functional.log_softmax", "paddle.nn.functional.log_softmax"
    keywords = "clip 64 log_softmax cross_entropy"

    def torch_side(self) -> Any:
        return torch.log_softmax(torch.tensor([0.0, -100.0]), -1)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([0.0, -100.0])
        return x - paddle.logsumexp(x, -1, keepdim=True)

    def plain(self) -> Any:
        return paddle.nn.functional.log_softmax(paddle.to_tensor([0.0, -100.0]), -1)

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, [0, -64])


class SoftmaxMinusInfinity(Entry):
    """A row of -inf alone is NaN in PyTorch; in Paddle it is NaN or uniform, by length and dtype."""

    chinese = "整行都是 -inf 时 PyTorch 得 NaN；Paddle 得 NaN 还是均匀分布取决于长度和数据类型。"
    apis = "torch.softmax", "paddle.nn.functional.softmax"
    keywords = "-inf nan masked row"

    def torch_side(self) -> Any:
        return torch.softmax(torch.full((16, 8), -torch.inf, dtype=torch.float32), -1)

    def paddle_side(self) -> Any:
        x = paddle.full([16, 8], -np.inf, dtype="float32")
        empty = paddle.isinf(x).all(-1, keepdim=True)
        return paddle.where(empty, paddle.full_like(x, np.nan), paddle.nn.functional.softmax(x))

    def plain(self) -> Any:
        lengths = range(1, 65)
        rows = [paddle.full([16, length], -np.inf, dtype="float32") for length in lengths]
        return [paddle.nn.functional.softmax(x) for x in rows]

    def as_described(self, expected: Any, found: Any) -> bool:
        uniform = [np.isfinite(row).all() for row in found]
        return any(uniform)


class Gelu(Entry):
    """The exact GELU is the default on both sides; the tanh form is approximate="tanh", in Paddle also True."""

    chinese = '两边默认都是精确 GELU；tanh 近似写作 approximate="tanh"，Paddle 中也可写 True。'
    apis = "torch.nn.functional.gelu", "paddle.nn.functional.gelu"
    keywords = "approximate tanh gelu_new"
    conventions = {"approximate": Convention("approximate", lambda name: name == "tanh")}

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(9))
        gelu = torch.nn.functional.gelu
        return gelu(x), gelu(x, approximate="tanh")

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(9))
        gelu = paddle.nn.functional.gelu
        return gelu(x), gelu(x, approximate=True)


class Selu(Entry):
    """Paddle keeps scale and alpha in float32."""

    chinese = "Paddle 用 float32 保存 scale 和 alpha。"
    apis = "torch.nn.functional.selu", "paddle.nn.functional.selu"
    keywords = "float32 constants"

    def torch_side(self) -> Any:
        return torch.nn.functional.selu(torch.tensor(numbers(9)))

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(9))
        scale, alpha = 1.0507009873554805, 1.6732632423543772
        return scale * paddle.where(x > 0, x, alpha * paddle.expm1(x))

    def plain(self) -> Any:
        return paddle.nn.functional.selu(paddle.to_tensor(numbers(9)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected, rtol=1e-6)


class Hardsigmoid(Entry):
    """Paddle's slope is 0.1666667, PyTorch's 1/6."""

    chinese = "Paddle 的斜率是 0.1666667，PyTorch 是 1/6。"
    apis = "torch.nn.functional.hardsigmoid", "paddle.nn.functional.hardsigmoid"
    keywords = "slope"

    def torch_side(self) -> Any:
        return torch.nn.functional.hardsigmoid(torch.tensor(numbers(9)))

    def paddle_side(self) -> Any:
        return paddle.nn.functional.relu6(paddle.to_tensor(numbers(9)) + 3) / 6

    def plain(self) -> Any:
        return paddle.nn.functional.hardsigmoid(paddle.to_tensor(numbers(9)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, numbers(9) * np.float32(0.1666667) + 0.5, atol=1e-12)


class Hardswish(Entry):
    """The layers compute the same; Paddle's has no inplace argument: leave it out."""

    chinese = "两边结果相同；Paddle 的 nn.Hardswish 没有 inplace 参数，去掉即可。"
    apis = "torch.nn.Hardswish(inplace=)", "paddle.nn.Hardswish"
    sources = ("quick start 3.1 step 5",)
    keywords = "inplace"

    def torch_side(self) -> Any:
        return torch.nn.Hardswish(inplace=True)(torch.tensor(numbers(9)))

    def paddle_side(self) -> Any:
        return paddle.nn.Hardswish()(paddle.to_tensor(numbers(9)))

    def plain(self) -> Any:
        return paddle.nn.Hardswish(inplace=True)

    raises = "TypeError: inplace"


class LeakyReluAtZero(Entry):
    """At exactly 0 Paddle's slope is 1, PyTorch's negative_slope; elsewhere both agree."""

    chinese = "恰好在 0 处，Paddle 的斜率是 1，PyTorch 是 negative_slope；其他地方一致。"
    apis = "torch.nn.functional.leaky_relu", "paddle.nn.functional.leaky_relu"
    keywords = "LeakyReLU negative_slope gradient"

    def torch_side(self) -> Any:
        x = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
        torch.nn.functional.leaky_relu(x, 0.1).sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([-1.0, 0.0, 1.0], stop_gradient=False)
        paddle.where(x > 0, x, 0.1 * x).sum().backward()
        return x.grad

    def plain(self) -> Any:
        x = paddle.to_tensor([-1.0, 0.0, 1.0], stop_gradient=False)
        paddle.nn.functional.leaky_relu(x, 0.1).sum().backward()
        return x.grad

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found[1] == 1 and np.isclose(expected[1], 0.1))


class Silu(Entry):
    """Paddle's gradient is NaN for very negative inputs (-800), PyTorch's 0."""

    chinese = "输入非常负（如 -800）时 Paddle 的梯度是 NaN，PyTorch 是 0。"
    apis = "torch.nn.functional.silu", "paddle.nn.functional.silu"
    keywords = "swish nan gradient"

    def torch_side(self) -> Any:
        x = torch.tensor([-800.0, 1.0], requires_grad=True)
        torch.nn.functional.silu(x).sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([-800.0, 1.0], stop_gradient=False)
        (x * paddle.nn.functional.sigmoid(x)).sum().backward()
        return x.grad

    def plain(self) -> Any:
        x = paddle.to_tensor([-800.0, 1.0], stop_gradient=False)
        paddle.nn.functional.silu(x).sum().backward()
        return x.grad

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(np.isnan(found[0]) and expected[0] == 0)


class Rrelu(Entry):
    """In eval mode both use the mean slope; Paddle keeps the mean slope in float32."""

    chinese = "eval 模式下两边都用平均斜率；Paddle 用 float32 保存它。"
    apis = "torch.nn.functional.rrelu", "paddle.nn.functional.rrelu"
    keywords = "RReLU float32"

    def torch_side(self) -> Any:
        return torch.nn.functional.rrelu(torch.tensor(numbers(9)), 0.1, 0.3)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(9))
        return paddle.where(x >= 0, x, (0.1 + 0.3) / 2 * x)

    def plain(self) -> Any:
        return paddle.nn.functional.rrelu(paddle.to_tensor(numbers(9)), 0.1, 0.3, training=False)

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected, rtol=1e-6)


class Prelu(Entry):
    """The learned slope is num_parameters and init in both; Paddle initialises it to 0.25 too."""

    chinese = "可学习斜率的参数名 num_parameters、init 相同；初值也同为 0.25。"
    apis = "torch.nn.PReLU", "paddle.nn.PReLU"

    def torch_side(self) -> Any:
        return torch.nn.PReLU(num_parameters=3)(torch.tensor(numbers(2, 3, 4)))

    def paddle_side(self) -> Any:
        return paddle.nn.PReLU(num_parameters=3)(paddle.to_tensor(numbers(2, 3, 4)))


class Hardtanh(Entry):
    """min_val and max_val are min and max in Paddle, which rounds them to float32."""

    chinese = "min_val、max_val 在 Paddle 中是 min、max，并被舍入为 float32。"
    apis = "torch.nn.Hardtanh", "paddle.nn.Hardtanh"
    keywords = "relu6 clamp"
    conventions = {"min_val": Convention("min"), "max_val": Convention("max")}

    def torch_side(self) -> Any:
        return torch.nn.Hardtanh(min_val=-0.5, max_val=0.2)(torch.tensor(numbers(9)))

    def paddle_side(self) -> Any:
        return paddle.clip(paddle.to_tensor(numbers(9)), min=-0.5, max=0.2)

    def plain(self) -> Any:
        return paddle.nn.Hardtanh(min=-0.5, max=0.2)(paddle.to_tensor(numbers(9)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, np.clip(numbers(9), -0.5, np.float32(0.2)), atol=1e-12)


class Shrink(Entry):
    """lambd is threshold in Paddle's Softshrink and Hardshrink; both default to 0.5."""

    chinese = "Softshrink、Hardshrink 的 lambd 在 Paddle 中叫 threshold；默认都是 0.5。"
    apis = "torch.nn.Softshrink, Hardshrink", "paddle.nn.Softshrink, Hardshrink"
    conventions = {"lambd": Convention("threshold")}

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(9))
        return torch.nn.Softshrink(lambd=0.25)(x), torch.nn.Hardshrink()(x)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(9))
        return paddle.nn.Softshrink(threshold=0.25)(x), paddle.nn.Hardshrink()(x)


class ThresholdedRelu(Entry):
    """nn.Threshold is ThresholdedReLU in Paddle, with the same threshold and value."""

    chinese = "nn.Threshold 在 Paddle 中是 ThresholdedReLU，threshold 与 value 含义相同。"
    apis = "torch.nn.Threshold", "paddle.nn.ThresholdedReLU"

    def torch_side(self) -> Any:
        return torch.nn.Threshold(0.2, -7.0)(torch.tensor(numbers(9)))

    def paddle_side(self) -> Any:
        return paddle.nn.ThresholdedReLU(0.2, -7.0)(paddle.to_tensor(numbers(9)))


class Softplus(Entry):
    """Both turn linear where beta * x is above the threshold of 20."""

    chinese = "beta * x 超过阈值 20 后，两边都变为线性。"
    apis = "torch.nn.functional.softplus", "paddle.nn.functional.softplus"

    def torch_side(self) -> Any:
        x = torch.tensor([-40.0, -1.0, 0.5, 9.0, 11.0, 30.0])
        return torch.nn.functional.softplus(x, beta=2.0)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([-40.0, -1.0, 0.5, 9.0, 11.0, 30.0])
        return paddle.nn.functional.softplus(x, beta=2.0)


class Glu(Entry):
    """Both gate the first half by the sigmoid of the second, along the last axis by default."""

    chinese = "两边都用后一半的 sigmoid 门控前一半，默认沿最后一维。"
    apis = "torch.nn.functional.glu", "paddle.nn.functional.glu"
    keywords = "gate dim axis"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 4))
        return torch.nn.functional.glu(x), torch.nn.functional.glu(x, dim=0)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 4))
        return paddle.nn.functional.glu(x), paddle.nn.functional.glu(x, axis=0)


class ActivationInplace(Entry):
    """Paddle's activations do not take inplace=True: call relu_, and pass the result on."""

    chinese = "Paddle 的激活层没有 inplace 参数：需要原地时用 relu_ 等函数。"
    apis = "torch.nn.ReLU(inplace=True)", "paddle.nn.functional.relu_"
    sources = ("quick start 3.1 step 5", "FAQ: inplace and the gradient")
    keywords = "inplace relu_ elu_"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(9), requires_grad=True)
        torch.nn.ReLU(inplace=True)(x * 2).sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(9), stop_gradient=False)
        paddle.nn.functional.relu_(x * 2).sum().backward()
        return x.grad

    def plain(self) -> Any:
        return paddle.nn.ReLU(inplace=True)

    raises = "TypeError: inplace"
