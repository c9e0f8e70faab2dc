"""Gradients, modes, devices, state dicts and files."""

import tempfile
from pathlib import Path
from typing import Any

from reprod_align.api.entry import Entry, filled, numbers, paddle, torch

import numpy as np

CHINESE = "梯度、模式、设备、参数字典与文件"


class StopGradient(Entry):
    """stop_gradient is the opposite of requires_grad; a tensor needs no gradient by default, a parameter does."""

    chinese = (
        "stop_gradient 与 requires_grad 相反；普通张量默认不求梯度，参数默认求梯度，两边相同。"
    )
    apis = "torch.Tensor.requires_grad", "paddle.Tensor.stop_gradient"
    sources = ("FAQ: stop_gradient",)
    keywords = "requires_grad detach freeze"

    def torch_side(self) -> Any:
        return torch.ones(2).requires_grad, torch.nn.Linear(2, 2).weight.requires_grad

    def paddle_side(self) -> Any:
        return not paddle.ones([2]).stop_gradient, not paddle.nn.Linear(2, 2).weight.stop_gradient


class StopGradientScope(Entry):
    """Tensors computed before a stopped one get no gradient through it, but still get it by other paths."""

    chinese = "被截断的张量之前的部分不再从它得到梯度，但仍可从其他路径得到。"
    apis = "torch.Tensor.detach", "paddle.Tensor.detach"
    sources = ("FAQ: stop_gradient",)
    keywords = "detach stop_gradient scope"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3), requires_grad=True)
        h = x**2
        (h.detach() * 3 + x).sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3), stop_gradient=False)
        h = x**2
        h.stop_gradient = True
        (h * 3 + x).sum().backward()
        return x.grad


class NoGrad(Entry):
    """no_grad is a context and a decorator on both sides; tensors made in it have no graph."""

    chinese = "no_grad 两边都可作上下文或装饰器；其中的结果没有计算图。"
    apis = "torch.no_grad", "paddle.no_grad"
    sources = ("guide 4.4", "quick start 3.1 step 6")
    keywords = "inference evaluation"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3), requires_grad=True)
        with torch.no_grad():
            return (x * 2).requires_grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3), stop_gradient=False)
        with paddle.no_grad():
            return not (x * 2).stop_gradient


class InplaceGradient(Entry):
    """An in-place operation on a computed tensor passes the gradient on, on both sides."""

    chinese = "对非叶子张量做原地操作，梯度照常回传，两边相同。"
    apis = "torch.Tensor.add_", "paddle.Tensor.add_"
    sources = ("FAQ: inplace and the gradient",)
    keywords = "inplace add_ leaf"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3), requires_grad=True)
        y = x * 2
        y.add_(1.0)
        (y**2).sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3), stop_gradient=False)
        y = x * 2
        y.add_(paddle.to_tensor(1.0))
        (y**2).sum().backward()
        return x.grad


class RegisterHook(Entry):
    """Tensor.register_hook sees the gradient, and may return another, on both sides."""

    chinese = "Tensor.register_hook 能看到梯度，也可返回新的梯度，两边相同。"
    apis = "torch.Tensor.register_hook", "paddle.Tensor.register_hook"
    sources = ("guide 4.8", "guide 3.8")
    keywords = "hook gradient print"

    def torch_side(self) -> Any:
        seen: list[Any] = []
        x = torch.tensor(numbers(3), requires_grad=True)

        def doubled(gradient: Any) -> Any:
            seen.append(gradient)
            return 2 * gradient

        x.register_hook(doubled)
        (x * 4).sum().backward()
        return seen[0], x.grad

    def paddle_side(self) -> Any:
        seen: list[Any] = []
        x = paddle.to_tensor(numbers(3), stop_gradient=False)

        def doubled(gradient: Any) -> Any:
            seen.append(gradient)
            return 2 * gradient

        x.register_hook(doubled)
        (x * 4).sum().backward()
        return seen[0], x.grad


class BackwardOfVector(Entry):
    """backward of a vector is refused by PyTorch; Paddle takes the gradient of its sum."""

    chinese = "对向量调用 backward：PyTorch 报错，Paddle 求其和的梯度。"
    apis = "torch.Tensor.sum().backward", "paddle.Tensor.backward"
    sources = ("guide 4.8",)
    keywords = "scalar grad_tensor implicit"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3), requires_grad=True)
        try:
            (x**2).backward()
        except RuntimeError:
            (x**2).sum().backward()
            return x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3), stop_gradient=False)
        (x**2).backward()
        return x.grad


class RetainGrads(Entry):
    """The gradient of a computed tensor is kept by retain_grad, retain_grads in Paddle."""

    chinese = "保留中间张量的梯度：PyTorch 用 retain_grad，Paddle 用 retain_grads。"
    apis = "torch.Tensor.retain_grad", "paddle.Tensor.retain_grads"
    sources = ("guide 3.8",)
    keywords = "intermediate gradient leaf"

    def torch_side(self) -> Any:
        h = torch.tensor(numbers(3), requires_grad=True) * 2
        h.retain_grad()
        (h**2).sum().backward()
        return h.grad

    def paddle_side(self) -> Any:
        h = paddle.to_tensor(numbers(3), stop_gradient=False) * 2
        h.retain_grads()
        (h**2).sum().backward()
        return h.grad


class SecondGradient(Entry):
    """torch.autograd.grad(create_graph=True) is paddle.grad; both also take unused inputs if allowed."""

    chinese = "torch.autograd.grad(create_graph=True) 对应 paddle.grad。"
    apis = "torch.autograd.grad", "paddle.grad"
    sources = ("guide 4.4",)
    keywords = "double gradient penalty create_graph allow_unused"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3), requires_grad=True)
        (first,) = torch.autograd.grad((x**4).sum(), x, create_graph=True)
        return torch.autograd.grad((first**2).sum(), x)[0]

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3), stop_gradient=False)
        (first,) = paddle.grad((x**4).sum(), x, create_graph=True)
        return paddle.grad((first**2).sum(), x)[0]


class EvalMode(Entry):
    """eval() turns dropout off and makes batch norm use its statistics, on both sides; it returns the layer."""

    chinese = "eval() 关闭 dropout 并让 BatchNorm 使用滑动统计，两边相同；返回层自身。"
    apis = "torch.nn.Module.eval", "paddle.nn.Layer.eval"
    sources = ("guide 3.1.3", "guide 3.4", "guide 3.8")
    keywords = "eval train mode chain"

    def torch_side(self) -> Any:
        return torch.nn.Dropout(0.5).eval()(torch.ones(3))

    def paddle_side(self) -> Any:
        return paddle.nn.Dropout(0.5).eval()(paddle.ones([3]))


class Device(Entry):
    """set_device holds for everything made afterwards; PyTorch moves each model and tensor with to."""

    chinese = "Paddle 的 set_device 对之后创建的一切生效；PyTorch 用 to 逐个移动模型和张量。"
    apis = "torch.nn.Module.to(device)", "paddle.set_device"
    sources = ("guide 4.0", "quick start 3.3")
    keywords = "cpu gpu cuda device global"

    def torch_side(self) -> Any:
        layer = torch.nn.Linear(2, 2).to("cpu")
        return layer.weight.device.type

    def paddle_side(self) -> Any:
        paddle.set_device("cpu")
        layer = paddle.nn.Linear(2, 2)
        return str(layer.weight.place).removeprefix("Place(").removesuffix(")")


class LoadStateDict(Entry):
    """set_state_dict never raises: it returns the missing and the unexpected names, where load_state_dict raises."""

    chinese = "set_state_dict 从不报错，只返回缺少和多余的名字；load_state_dict 会报错。"
    apis = "torch.nn.Module.load_state_dict", "paddle.nn.Layer.set_state_dict"
    sources = ("quick start 3.3", "guide 4.1.2", "FAQ: BatchNorm's checkpoint")
    keywords = "load_dict set_dict strict missing unexpected shape"

    def torch_side(self) -> Any:
        try:
            torch.nn.Linear(2, 3).load_state_dict({"weight": torch.ones(2, 3)})
        except RuntimeError:
            return "refused"

    def paddle_side(self) -> Any:
        layer = paddle.nn.Linear(2, 3)
        missing, unexpected = layer.set_state_dict({"weight": np.ones((3, 2)), "other": np.ones(2)})
        return "refused" if missing or unexpected else "loaded"

    def plain(self) -> Any:
        paddle.nn.Linear(2, 3).set_state_dict({"weight": np.ones((3, 2))})
        return "loaded"  # nothing was raised, and nothing was loaded


class LoadDict(Entry):
    """load_dict and set_dict are other names of set_state_dict."""

    chinese = "load_dict、set_dict 是 set_state_dict 的别名。"
    apis = "torch.nn.Module.load_state_dict", "paddle.nn.Layer.load_dict"
    sources = ("quick start 3.3 and 5.5", "guide 3.8")
    keywords = "load_dict set_dict alias"

    def torch_side(self) -> Any:
        layer = torch.nn.LayerNorm(3)
        layer.load_state_dict({"weight": torch.tensor(numbers(3)), "bias": torch.zeros(3)})
        return layer.weight

    def paddle_side(self) -> Any:
        layer = paddle.nn.LayerNorm(3)
        layer.load_dict({"weight": numbers(3), "bias": np.zeros(3)})
        return layer.weight


class CastLayer(Entry):
    """layer.to(dtype) casts integer buffers too in Paddle: cast floats alone, or set the default dtype before."""

    chinese = "Paddle 的 layer.to(dtype) 连整数缓冲区也转换：应只转换浮点，或先设默认类型再建模。"
    apis = "torch.nn.Module.to(dtype)", "paddle.nn.Layer.to(dtype)"
    keywords = "double float64 astype buffer position_ids integer"

    def torch_side(self) -> Any:
        module = torch.nn.Module()
        module.register_buffer("position_ids", torch.arange(3))
        return module.double().position_ids

    def paddle_side(self) -> Any:
        layer = paddle.nn.Layer()
        layer.register_buffer("position_ids", paddle.arange(3))
        for _, buffer in layer.named_buffers():
            if buffer.is_floating_point():
                buffer.set_value(buffer.astype("float64"))
        return layer.position_ids

    def plain(self) -> Any:
        layer = paddle.nn.Layer()
        layer.register_buffer("position_ids", paddle.arange(3))
        layer.to(dtype="float64")
        return layer.position_ids

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.dtype == np.float64)


class SaveLoad(Entry):
    """torch.load takes weights_only=True today; paddle.load unpickles the whole file: only load files that you trust."""

    chinese = "torch.load 默认 weights_only=True；paddle.load 会反序列化任意对象：只加载可信文件。"
    apis = "torch.save, torch.load", "paddle.save, paddle.load"
    sources = ("quick start 3.2, 3.3", "guide 3.1.2")
    keywords = "pickle checkpoint pdparams weights_only"

    def torch_side(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.bin"
            torch.save(filled(torch.nn.LayerNorm(3)).state_dict(), path)
            return torch.load(path, weights_only=True)["weight"]

    def paddle_side(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.pdparams")
            paddle.save(filled(paddle.nn.LayerNorm(3)).state_dict(), path)
            return paddle.load(path)["weight"]


class OptimizerCheckpoint(Entry):
    """Paddle's optimizer state goes by parameter names (linear_0.w_0_moment1_0), PyTorch's by position."""

    chinese = "Paddle 的优化器状态按参数名保存（linear_0.w_0_moment1_0），PyTorch 按位置。"
    apis = "torch.optim.Optimizer.state_dict", "paddle.optimizer.Optimizer.state_dict"
    sources = ("FAQ: BatchNorm's checkpoint",)
    keywords = "moment resume state_dict name"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.LayerNorm(3))
        optimizer = torch.optim.Adam(layer.parameters(), 0.1)
        layer(torch.tensor(numbers(2, 3))).pow(2).sum().backward()
        optimizer.step()
        return optimizer.state_dict()["state"][0]["exp_avg"]

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.LayerNorm(3))
        optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
        layer(paddle.to_tensor(numbers(2, 3))).pow(2).sum().backward()
        optimizer.step()
        return optimizer.state_dict()[f"{layer.weight.name}_moment1_0"]


class SharedWeights(Entry):
    """A weight that two layers share stands in the state dict under both names, on both sides."""

    chinese = "两层共享的权重在 state_dict 中以两个名字出现，两边相同。"
    apis = "torch.nn.Module.state_dict", "paddle.nn.Layer.state_dict"
    sources = ("quick start 3.2",)
    keywords = "tied tie decoder embedding predictions.decoder"

    def torch_side(self) -> Any:
        first, second = torch.nn.Embedding(4, 3), torch.nn.Embedding(4, 3)
        second.weight = first.weight
        return list(torch.nn.Sequential(first, second).state_dict())

    def paddle_side(self) -> Any:
        first, second = paddle.nn.Embedding(4, 3), paddle.nn.Embedding(4, 3)
        second.weight = first.weight
        return list(paddle.nn.Sequential(first, second).state_dict())


class WorldSize(Entry):
    """get_world_size is 1 without a launcher in Paddle; PyTorch wants a process group first."""

    chinese = "未用启动器时 Paddle 的 get_world_size 为 1；PyTorch 要先建立进程组。"
    apis = "torch.distributed.get_world_size", "paddle.distributed.get_world_size"
    sources = ("guide 3.12.2",)
    keywords = "DataParallel init_parallel_env launch multi gpu rank"

    def torch_side(self) -> Any:
        return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1

    def paddle_side(self) -> Any:
        return paddle.distributed.get_world_size()
