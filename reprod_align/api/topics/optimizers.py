"""Optimizers, decay and clipping."""

from collections.abc import Callable
from typing import Any

from reprod_align.api.entry import Entry, numbers, paddle, torch

import numpy as np

CHINESE = "优化器、权重衰减与梯度裁剪"


def _torch_steps(make: Callable[[Any], Any], steps: int = 3) -> Any:
    """Return a parameter after steps on the sum of its cubes, the optimizer made of [parameter]."""
    weight = torch.nn.Parameter(torch.tensor(numbers(5)))
    optimizer = make([weight])
    for _ in range(steps):
        optimizer.zero_grad()
        (weight**3).sum().backward()
        optimizer.step()
    return weight


def _paddle_weight(**attributes: Any) -> Any:
    """Return a parameter of the same numbers."""
    start = paddle.nn.initializer.Assign(numbers(5))
    return paddle.create_parameter(
        [5], "float64", attr=paddle.ParamAttr(initializer=start, **attributes)
    )


def _paddle_steps(make: Callable[[Any], Any], steps: int = 3, **attributes: Any) -> Any:
    """Return the same in Paddle; attributes: of the parameter's ParamAttr."""
    weight = _paddle_weight(**attributes)
    optimizer = make([weight])
    for _ in range(steps):
        optimizer.clear_grad()
        (weight**3).sum().backward()
        optimizer.step()
    return weight


class Sgd(Entry):
    """lr is learning_rate, and Paddle takes the parameters by name; plain steps agree."""

    chinese = "lr 叫 learning_rate，参数要写 parameters=；普通 SGD 两边一致。"
    apis = "torch.optim.SGD", "paddle.optimizer.SGD"
    sources = ("quick start 5.3 API table", "guide 3.5")
    keywords = "learning_rate parameters"
    optimizer_arguments = {"lr": "learning_rate"}

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.SGD(held, lr=0.01))

    def paddle_side(self) -> Any:
        return _paddle_steps(lambda held: paddle.optimizer.SGD(learning_rate=0.01, parameters=held))


class SgdMomentum(Entry):
    """Paddle's SGD has no momentum: use Momentum, with use_nesterov for nesterov."""

    chinese = "Paddle 的 SGD 没有动量：用 Momentum，nesterov 写作 use_nesterov。"
    apis = "torch.optim.SGD(momentum=)", "paddle.optimizer.Momentum"
    sources = ("quick start 5.3 API table", "guide 3.5")
    optimizer_settings = ("momentum",)
    keywords = "momentum nesterov use_nesterov"
    optimizer_arguments = {"nesterov": "use_nesterov"}

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.SGD(held, 0.01, momentum=0.5, nesterov=True))

    def paddle_side(self) -> Any:
        make = paddle.optimizer.Momentum
        return _paddle_steps(lambda held: make(0.01, 0.5, held, use_nesterov=True))

    def plain(self) -> Any:
        return paddle.optimizer.SGD(0.01, momentum=0.5)

    raises = "TypeError: momentum"


class SgdDampening(Entry):
    """Paddle's Momentum has no dampening: the new gradient always counts whole."""

    chinese = "Paddle 的 Momentum 没有 dampening：新梯度总是全额计入。"
    apis = "torch.optim.SGD(dampening=)", "no argument in Paddle"
    sources = ("quick start 5.3 API table",)
    keywords = "momentum decay dampening"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.SGD(held, 0.01, momentum=0.5, dampening=0.25))

    def paddle_side(self) -> Any:
        weight, moved = _paddle_weight(), None
        for _ in range(3):
            gradient = 3 * weight.detach() ** 2
            moved = gradient if moved is None else 0.5 * moved + 0.75 * gradient
            weight = weight.detach() - 0.01 * moved
        return weight

    def plain(self) -> Any:
        return _paddle_steps(lambda held: paddle.optimizer.Momentum(0.01, 0.5, held))


class MomentumFloat32(Entry):
    """Paddle rounds momentum to float32: 0.9 differs in the eighth digit, 0.5 is exact."""

    chinese = "Paddle 把 momentum 舍入为 float32：0.9 在第八位有差别，0.5 则精确。"
    apis = "torch.optim.SGD(momentum=0.9)", "paddle.optimizer.Momentum(momentum=0.9)"
    keywords = "float32 rounding"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.SGD(held, 0.01, momentum=0.9))

    def paddle_side(self) -> Any:
        weight, moved = _paddle_weight().detach(), 0.0
        for _ in range(3):
            moved = 0.9 * moved + 3 * weight**2
            weight = weight - 0.01 * moved
        return weight

    def plain(self) -> Any:
        return _paddle_steps(lambda held: paddle.optimizer.Momentum(0.01, 0.9, held))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected, rtol=1e-6)


class AdamwEps(Entry):
    """eps is epsilon, 1e-8 by default on both sides; transformers' old AdamW had 1e-6: set it on both."""

    chinese = "eps 叫 epsilon，两边默认都是 1e-8；transformers 旧 AdamW 是 1e-6：两边都要显式设置。"
    apis = "torch.optim.AdamW", "paddle.optimizer.AdamW"
    sources = ("quick start 5.3", "guide 3.8", "guide 4.0")
    keywords = "epsilon eps Adam 1e-6"
    optimizer_arguments = {"eps": "epsilon"}

    def torch_side(self) -> Any:
        make = torch.optim.AdamW
        return _torch_steps(lambda held: make(held, 0.01, eps=1e-8, weight_decay=2**-7))

    def paddle_side(self) -> Any:
        make = paddle.optimizer.AdamW
        return _paddle_steps(lambda held: make(0.01, parameters=held, weight_decay=2**-7))

    def plain(self) -> Any:
        make = paddle.optimizer.AdamW
        return _paddle_steps(
            lambda held: make(0.01, epsilon=1e-6, parameters=held, weight_decay=2**-7)
        )


class AdamBetas(Entry):
    """betas is beta1 and beta2, two arguments; both sides default to 0.9 and 0.999."""

    chinese = "betas 在 Paddle 中是 beta1 和 beta2 两个参数；两边默认都是 0.9 和 0.999。"
    apis = "torch.optim.Adam(betas=)", "paddle.optimizer.Adam(beta1=, beta2=)"
    keywords = "Adam AdamW betas beta1 beta2 moment"
    optimizer_arguments = {"betas": "(beta1, beta2)"}

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.Adam(held, 0.01, betas=(0.8, 0.9)))

    def paddle_side(self) -> Any:
        make = paddle.optimizer.Adam
        return _paddle_steps(lambda held: make(0.01, beta1=0.8, beta2=0.9, parameters=held))

    def plain(self) -> Any:
        return _paddle_steps(lambda held: paddle.optimizer.Adam(0.01, parameters=held))


class AdamwWeightDecayFloat32(Entry):
    """Paddle keeps AdamW's weight_decay as a float32: 0.01 is rounded, 1/128 is exact."""

    chinese = "Paddle 用 float32 保存 AdamW 的 weight_decay：0.01 会被舍入，1/128 则精确。"
    apis = "torch.optim.AdamW(weight_decay=)", "paddle.optimizer.AdamW(weight_decay=)"
    keywords = "float32 decay rounding"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.AdamW(held, 0.1, weight_decay=0.3))

    def paddle_side(self) -> Any:
        weight = _paddle_weight()
        optimizer = paddle.optimizer.AdamW(0.1, parameters=[weight], weight_decay=0.0)
        for _ in range(3):
            optimizer.clear_grad()
            (weight**3).sum().backward()
            with paddle.no_grad():
                weight.set_value(weight * (1 - 0.1 * 0.3))
            optimizer.step()
        return weight

    def plain(self) -> Any:
        make = paddle.optimizer.AdamW
        return _paddle_steps(lambda held: make(0.1, parameters=held, weight_decay=0.3))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected, rtol=1e-6)


class DecayFilter(Entry):
    """apply_decay_param_fun gets a parameter's own name (linear_0.w_0), not its name in the state dict."""

    chinese = (
        "apply_decay_param_fun 收到的是参数自身的名字（linear_0.w_0），不是 state_dict 里的名字。"
    )
    apis = (
        "torch.optim.AdamW([{params, weight_decay}])",
        "paddle.optimizer.AdamW(apply_decay_param_fun=)",
    )
    sources = ("quick start 5.3", "guide 3.8", "guide 4.5", "guide 4.7")
    optimizer_settings = ("weight_decay",)
    keywords = "no_decay LayerNorm bias norm weight decay group"

    def torch_side(self) -> Any:
        model = torch.nn.Linear(2, 2)
        return [name for name, _ in model.named_parameters() if "bias" not in name]

    def paddle_side(self) -> Any:
        model = paddle.nn.Linear(2, 2)
        decayed = {p.name for name, p in model.named_parameters() if "bias" not in name}
        return [name for name, p in model.named_parameters() if p.name in decayed]

    def plain(self) -> Any:
        model = paddle.nn.Linear(2, 2)
        return [name for name, p in model.named_parameters() if "bias" not in p.name]

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found == ["weight", "bias"])


class DecayFilterNames(Entry):
    """The sources' filter "norm" misses PyTorch-style names such as LayerNorm: compare in lower case."""

    chinese = '原文档的过滤词 "norm" 匹配不到 LayerNorm 这样的名字：应先转为小写再比较。'
    apis = 'no_decay = ["bias", "LayerNorm.weight"]', 'no_decay = ["bias", "norm"]'
    sources = ("quick start 5.3 and 5.5", "guide 3.8")
    keywords = "no_decay LayerNorm weight decay case"

    def torch_side(self) -> Any:
        names = ("dense.weight", "dense.bias", "LayerNorm.weight", "LayerNorm.bias")
        return [n for n in names if not any(word in n for word in ("bias", "LayerNorm.weight"))]

    def paddle_side(self) -> Any:
        names = ("dense.weight", "dense.bias", "LayerNorm.weight", "LayerNorm.bias")
        return [n for n in names if not any(word in n.lower() for word in ("bias", "norm"))]

    def plain(self) -> Any:
        names = ("dense.weight", "dense.bias", "LayerNorm.weight", "LayerNorm.bias")
        return [n for n in names if not any(word in n for word in ("bias", "norm"))]

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found == ["dense.weight", "LayerNorm.weight"])


class AdamL2(Entry):
    """Adam's weight_decay is added to the gradient on both sides; AdamW's is taken off the weight."""

    chinese = "Adam 的 weight_decay 两边都加到梯度上；AdamW 的则直接从权重中减去。"
    apis = "torch.optim.Adam(weight_decay=)", "paddle.optimizer.Adam(weight_decay=)"
    sources = ("guide 3.7",)
    optimizer_settings = ("decoupled",)
    keywords = "L2 decoupled AdamW"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.Adam(held, 0.1, weight_decay=0.25))

    def paddle_side(self) -> Any:
        make = paddle.optimizer.Adam
        return _paddle_steps(lambda held: make(0.1, parameters=held, weight_decay=0.25))

    def plain(self) -> Any:
        make = paddle.optimizer.AdamW
        return _paddle_steps(lambda held: make(0.1, parameters=held, weight_decay=0.25))


class L2Decay(Entry):
    """A number as weight_decay is an L2Decay in Paddle, which adds it times the weight to the gradient."""

    chinese = "Paddle 中 weight_decay 给一个数就是 L2Decay：把它乘以权重加到梯度上。"
    apis = "torch.optim.SGD(weight_decay=)", "paddle.regularizer.L2Decay"
    sources = ("guide 3.7", "quick start 1.2")
    keywords = "regularizer L2 weight_decay"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.SGD(held, 0.01, weight_decay=0.5))

    def paddle_side(self) -> Any:
        decay = paddle.regularizer.L2Decay(0.5)
        make = paddle.optimizer.SGD
        return _paddle_steps(lambda held: make(0.01, parameters=held, weight_decay=decay))


class L1Decay(Entry):
    """Paddle has L1Decay; in PyTorch the sign of the weight is added to the loss's gradient by hand."""

    chinese = "Paddle 有 L1Decay；PyTorch 需要自己把权重绝对值之和加进损失。"
    apis = "no argument in PyTorch", "paddle.regularizer.L1Decay"
    sources = ("guide 3.7",)
    keywords = "regularizer L1 lasso"

    def torch_side(self) -> Any:
        weight = torch.nn.Parameter(torch.tensor(numbers(5)))
        ((weight**3).sum() + 0.5 * weight.abs().sum()).backward()
        torch.optim.SGD([weight], 0.01).step()
        return weight

    def paddle_side(self) -> Any:
        decay = paddle.regularizer.L1Decay(0.5)
        make = paddle.optimizer.SGD
        return _paddle_steps(lambda held: make(0.01, parameters=held, weight_decay=decay), steps=1)


class ParameterRegularizer(Entry):
    """A ParamAttr's regularizer wins over the optimizer's weight_decay, for SGD and Adam alike."""

    chinese = "ParamAttr 中的 regularizer 优先于优化器的 weight_decay。"
    apis = "torch.optim.SGD([{weight_decay: 0}])", "paddle.ParamAttr(regularizer=L2Decay(0.0))"
    sources = ("guide 4.7",)
    keywords = "no decay regularizer ParamAttr"

    def torch_side(self) -> Any:
        groups = torch.optim.SGD
        return _torch_steps(
            lambda held: groups([{"params": held, "weight_decay": 0.0}], 0.01, weight_decay=0.5)
        )

    def paddle_side(self) -> Any:
        make, none = paddle.optimizer.SGD, paddle.regularizer.L2Decay(0.0)
        return _paddle_steps(
            lambda held: make(0.01, parameters=held, weight_decay=0.5), regularizer=none
        )

    def plain(self) -> Any:
        make = paddle.optimizer.SGD
        return _paddle_steps(lambda held: make(0.01, parameters=held, weight_decay=0.5))


class ParameterGroups(Entry):
    """A group's learning_rate is a factor on the optimizer's in Paddle, its own value in PyTorch."""

    chinese = "参数组里的 learning_rate：Paddle 是优化器学习率的倍数，PyTorch 是它本身的值。"
    apis = (
        "torch.optim.SGD([{params, lr}])",
        "paddle.optimizer.SGD(parameters=[{params, learning_rate}])",
    )
    sources = ("guide 3.7", "guide 4.5")
    keywords = "params_groups parameter group lr"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.SGD([{"params": held, "lr": 0.005}], lr=0.01))

    def paddle_side(self) -> Any:
        make = paddle.optimizer.SGD
        return _paddle_steps(
            lambda held: make(0.01, parameters=[{"params": held, "learning_rate": 0.5}])
        )

    def plain(self) -> Any:
        make = paddle.optimizer.SGD
        return _paddle_steps(
            lambda held: make(0.01, parameters=[{"params": held, "learning_rate": 0.005}])
        )


class ParameterLearningRate(Entry):
    """ParamAttr(learning_rate=) multiplies the optimizer's, also 0 to freeze: get_lr() does not show it."""

    chinese = "ParamAttr(learning_rate=) 与优化器学习率相乘（0 即冻结）：get_lr() 看不到它。"
    apis = "torch.optim.SGD([{params, lr}])", "paddle.ParamAttr(learning_rate=)"
    sources = ("guide 3.7", "guide 4.6", "FAQ: not training a layer")
    keywords = "freeze learning rate multiplier get_lr"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.SGD([{"params": held, "lr": 0.005}], lr=0.01))

    def paddle_side(self) -> Any:
        make = paddle.optimizer.SGD
        return _paddle_steps(lambda held: make(0.01, parameters=held), learning_rate=0.5)

    def plain(self) -> Any:
        make = paddle.optimizer.SGD
        return _paddle_steps(lambda held: make(0.01, parameters=held))


class GradientAccumulation(Entry):
    """Gradients add up until they are cleared: zero_grad is clear_grad; divide the loss yourself."""

    chinese = "清零之前梯度会累加：zero_grad 对应 clear_grad；损失要自己除以累加步数。"
    apis = "torch.optim.Optimizer.zero_grad", "paddle.optimizer.Optimizer.clear_grad"
    sources = ("guide 4.5", "quick start 1.1")
    keywords = "accumulate accumulation clear_grad zero_grad clear_gradients"

    def torch_side(self) -> Any:
        weight = torch.nn.Parameter(torch.tensor(numbers(5)))
        for _ in range(2):
            ((weight**3).sum() / 2).backward()
        torch.optim.SGD([weight], 0.01).step()
        return weight

    def paddle_side(self) -> Any:
        weight = _paddle_weight()
        for _ in range(2):
            ((weight**3).sum() / 2).backward()
        paddle.optimizer.SGD(0.01, parameters=[weight]).step()
        return weight

    def plain(self) -> Any:
        weight = _paddle_weight()
        for _ in range(2):
            (weight**3).sum().backward()
        paddle.optimizer.SGD(0.01, parameters=[weight]).step()
        return weight


class ClearGradZeros(Entry):
    """After clearing, .grad is None in PyTorch and zeros in Paddle: momentum then still moves parameters without a gradient."""

    chinese = "清梯度之后 PyTorch 的 .grad 是 None，Paddle 是零：带动量时没有梯度的参数仍会被更新。"
    apis = "zero_grad(set_to_none=True)", "clear_grad(set_to_zero=False)"
    keywords = "None zeros set_to_none set_to_zero"

    def torch_side(self) -> Any:
        weight = torch.nn.Parameter(torch.tensor(numbers(5)))
        (weight**3).sum().backward()
        torch.optim.SGD([weight], 0.01).zero_grad()
        return weight.grad is None

    def paddle_side(self) -> Any:
        weight = _paddle_weight()
        (weight**3).sum().backward()
        paddle.optimizer.SGD(0.01, parameters=[weight]).clear_grad(set_to_zero=False)
        return weight.grad is None

    def plain(self) -> Any:
        weight = _paddle_weight()
        (weight**3).sum().backward()
        paddle.optimizer.SGD(0.01, parameters=[weight]).clear_grad()
        return weight.grad is None


class RmspropEps(Entry):
    """Paddle adds eps inside the square root, PyTorch outside it; alpha is rho, 0.99 against 0.95."""

    chinese = "Paddle 把 eps 加在根号内，PyTorch 加在根号外；alpha 叫 rho，默认 0.99 对 0.95。"
    apis = "torch.optim.RMSprop", "paddle.optimizer.RMSProp"
    keywords = "epsilon rho alpha root"
    optimizer_arguments = {"alpha": "rho"}

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.RMSprop(held, 0.01, alpha=0.5, eps=1e-2))

    def paddle_side(self) -> Any:
        weight, size = _paddle_weight().detach(), 0.0
        for _ in range(3):
            gradient = 3 * weight**2
            size = 0.5 * size + 0.5 * gradient**2
            weight = weight - 0.01 * gradient / (paddle.sqrt(size) + 1e-2)
        return weight

    def plain(self) -> Any:
        make = paddle.optimizer.RMSProp
        return _paddle_steps(lambda held: make(0.01, rho=0.5, epsilon=1e-2, parameters=held))


class AdamaxEps(Entry):
    """Paddle adds eps to the decayed norm, PyTorch to the gradient's size."""

    chinese = "Paddle 把 eps 加到衰减后的范数上，PyTorch 加到梯度的绝对值上。"
    apis = "torch.optim.Adamax", "paddle.optimizer.Adamax"
    keywords = "epsilon infinity norm"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.Adamax(held, 0.01, eps=1e-2))

    def paddle_side(self) -> Any:
        weight, mean, size = _paddle_weight().detach(), 0.0, paddle.zeros([5])
        for step in (1, 2, 3):
            gradient = 3 * weight**2
            mean = 0.9 * mean + 0.1 * gradient
            size = paddle.maximum(0.999 * size, gradient.abs() + 1e-2)
            weight = weight - 0.01 / (1 - 0.9**step) * mean / size
        return weight

    def plain(self) -> Any:
        return _paddle_steps(
            lambda held: paddle.optimizer.Adamax(0.01, epsilon=1e-2, parameters=held)
        )


class AdagradEps(Entry):
    """eps is 1e-06 by default in Paddle, 1e-10 in PyTorch."""

    chinese = "默认 eps：Paddle 是 1e-06，PyTorch 是 1e-10。"
    apis = "torch.optim.Adagrad", "paddle.optimizer.Adagrad"
    keywords = "epsilon default"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.Adagrad(held, 0.01))

    def paddle_side(self) -> Any:
        make = paddle.optimizer.Adagrad
        return _paddle_steps(lambda held: make(0.01, epsilon=1e-10, parameters=held))

    def plain(self) -> Any:
        return _paddle_steps(lambda held: paddle.optimizer.Adagrad(0.01, parameters=held))


class AdadeltaDefaults(Entry):
    """lr, rho are 0.001, 0.95 by default in Paddle, 1.0, 0.9 in PyTorch; Paddle keeps constants in float32."""

    chinese = "默认 lr、rho：Paddle 是 0.001、0.95，PyTorch 是 1.0、0.9；Paddle 的常数为 float32。"
    apis = "torch.optim.Adadelta", "paddle.optimizer.Adadelta"
    keywords = "rho default learning rate"
    tolerance = 1e-6
    because = "Paddle keeps rho and epsilon in float32"

    def torch_side(self) -> Any:
        return _torch_steps(lambda held: torch.optim.Adadelta(held))

    def paddle_side(self) -> Any:
        make = paddle.optimizer.Adadelta
        return _paddle_steps(lambda held: make(1.0, rho=0.9, parameters=held))

    def plain(self) -> Any:
        return _paddle_steps(lambda held: paddle.optimizer.Adadelta(parameters=held))


class FreezeParameter(Entry):
    """requires_grad=False is stop_gradient=True, or ParamAttr(trainable=False) when the layer is made."""

    chinese = "requires_grad=False 对应 stop_gradient=True，或建层时写 ParamAttr(trainable=False)。"
    apis = "torch.nn.Parameter.requires_grad", "paddle.ParamAttr(trainable=)"
    sources = ("FAQ: not training a layer",)
    keywords = "freeze frozen trainable stop_gradient"

    def torch_side(self) -> Any:
        layer = torch.nn.Linear(2, 2)
        layer.weight.requires_grad = False
        layer(torch.ones(1, 2)).sum().backward()
        return layer.weight.grad is None, layer.bias.grad

    def paddle_side(self) -> Any:
        layer = paddle.nn.Linear(2, 2, weight_attr=paddle.ParamAttr(trainable=False))
        layer(paddle.ones([1, 2])).sum().backward()
        return layer.weight.grad is None, layer.bias.grad


class ClipGlobalNorm(Entry):
    """clip_grad_norm_ divides by the norm plus 1e-6; Paddle's ClipGradByGlobalNorm by the norm, in the optimizer."""

    chinese = (
        "clip_grad_norm_ 除以范数加 1e-6；Paddle 的 ClipGradByGlobalNorm 除以范数，并写在优化器里。"
    )
    apis = "torch.nn.utils.clip_grad_norm_", "paddle.nn.ClipGradByGlobalNorm"
    sources = ("FAQ: gradient clipping", "guide 3.5", "quick start 5.3 API table")
    optimizer_settings = ("clip",)
    keywords = "grad_clip clip_grad_norm 1e-6"

    def torch_side(self) -> Any:
        weight = torch.nn.Parameter(torch.tensor(numbers(5)))
        (weight**3).sum().backward()
        torch.nn.utils.clip_grad_norm_([weight], 0.5)
        torch.optim.SGD([weight], 1.0).step()
        return weight

    def paddle_side(self) -> Any:
        weight = _paddle_weight()
        (weight**3).sum().backward()
        norm = paddle.linalg.norm(weight.grad)
        weight.grad.set_value(weight.grad * paddle.clip(0.5 / (norm + 1e-6), max=1.0))
        paddle.optimizer.SGD(1.0, parameters=[weight]).step()
        return weight

    def plain(self) -> Any:
        clip = paddle.nn.ClipGradByGlobalNorm(0.5)
        make = paddle.optimizer.SGD
        return _paddle_steps(lambda held: make(1.0, parameters=held, grad_clip=clip), steps=1)

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected, rtol=1e-5)


class ClipFunction(Entry):
    """paddle.nn.utils.clip_grad_norm_ exists too, is called as PyTorch's, and adds the same 1e-6."""

    chinese = "Paddle 也有 nn.utils.clip_grad_norm_，用法与 PyTorch 相同，也加 1e-6。"
    apis = "torch.nn.utils.clip_grad_norm_", "paddle.nn.utils.clip_grad_norm_"
    sources = ("FAQ: gradient clipping",)
    keywords = "clip_grad_norm gradient"

    def torch_side(self) -> Any:
        weight = torch.nn.Parameter(torch.tensor(numbers(5)))
        (weight**3).sum().backward()
        total = torch.nn.utils.clip_grad_norm_([weight], 0.5)
        return total, weight.grad

    def paddle_side(self) -> Any:
        weight = _paddle_weight()
        (weight**3).sum().backward()
        total = paddle.nn.utils.clip_grad_norm_([weight], 0.5)
        return total, weight.grad


class ClipByNorm(Entry):
    """ClipGradByNorm clips each parameter by itself, and has no float64 kernel on a CPU."""

    chinese = "ClipGradByNorm 对每个参数单独裁剪，且 CPU 上没有 float64 实现。"
    apis = "torch.nn.utils.clip_grad_norm_([p]) for each p", "paddle.nn.ClipGradByNorm"
    keywords = "grad_clip per parameter float64"

    def torch_side(self) -> Any:
        return torch.tensor(numbers(5)) * 0.5 / torch.tensor(numbers(5)).norm()

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(5))
        return x * 0.5 / paddle.linalg.norm(x)

    def plain(self) -> Any:
        make, clip = paddle.optimizer.SGD, paddle.nn.ClipGradByNorm(0.5)
        return _paddle_steps(lambda held: make(1.0, parameters=held, grad_clip=clip), steps=1)

    raises = "RuntimeError: Backend::CPU"


class ClipByValue(Entry):
    """clip_grad_value_ is ClipGradByValue, given to the optimizer as grad_clip."""

    chinese = "clip_grad_value_ 对应 ClipGradByValue，作为 grad_clip 传给优化器。"
    apis = "torch.nn.utils.clip_grad_value_", "paddle.nn.ClipGradByValue"
    sources = ("FAQ: gradient clipping", "guide 3.5")
    keywords = "grad_clip value"

    def torch_side(self) -> Any:
        weight = torch.nn.Parameter(torch.tensor(numbers(5)))
        (weight**3).sum().backward()
        torch.nn.utils.clip_grad_value_([weight], 0.5)
        torch.optim.SGD([weight], 1.0).step()
        return weight

    def paddle_side(self) -> Any:
        make, clip = paddle.optimizer.SGD, paddle.nn.ClipGradByValue(0.5)
        return _paddle_steps(lambda held: make(1.0, parameters=held, grad_clip=clip), steps=1)
