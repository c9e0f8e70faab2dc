"""Linear, Embedding, Dropout and containers."""

from typing import Any

from reprod_align.api.entry import Convention, Entry, filled, numbers, paddle, torch

import numpy as np

CHINESE = "线性层、词嵌入、Dropout 与容器"


class LinearWeight(Entry):
    """Paddle keeps the weight as (in, out), PyTorch as (out, in): transpose it, also where it is square."""

    chinese = "Paddle 的权重形状是 (in, out)，PyTorch 是 (out, in)：转换时要转置，方阵也一样。"
    apis = "torch.nn.Linear", "paddle.nn.Linear"
    sources = ("quick start 3.2", "guide 3.1.2, 4.1.1, 4.1.2", "Informer log 3.1.2")
    keywords = "fully connected transpose convert fc"

    def torch_side(self) -> Any:
        layer = torch.nn.Linear(4, 4)
        layer.weight.data = torch.tensor(numbers(4, 4))
        layer.bias.data = torch.tensor(numbers(4))
        return layer(torch.tensor(numbers(2, 4)))

    def paddle_side(self) -> Any:
        layer = paddle.nn.Linear(4, 4)
        layer.weight.set_value(numbers(4, 4).T)
        layer.bias.set_value(numbers(4))
        return layer(paddle.to_tensor(numbers(2, 4)))

    def plain(self) -> Any:
        layer = paddle.nn.Linear(4, 4)
        layer.weight.set_value(numbers(4, 4))
        layer.bias.set_value(numbers(4))
        return layer(paddle.to_tensor(numbers(2, 4)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, numbers(2, 4) @ numbers(4, 4) + numbers(4))


class LinearBias(Entry):
    """The bias is left out by bias=False in PyTorch, by bias_attr=False in Paddle; both have one by default."""

    chinese = "去掉偏置：PyTorch 用 bias=False，Paddle 用 bias_attr=False；两边默认都有偏置。"
    apis = "torch.nn.Linear(bias=)", "paddle.nn.Linear(bias_attr=)"
    sources = ("quick start 3.1, step 3 and API table",)
    keywords = "ParamAttr weight_attr"
    conventions = {"bias": Convention("bias_attr", lambda present: None if present else False)}

    def torch_side(self) -> Any:
        with_bias, without = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2, bias=False)
        return with_bias.bias is not None, without.bias is not None

    def paddle_side(self) -> Any:
        with_bias, without = paddle.nn.Linear(3, 2), paddle.nn.Linear(3, 2, bias_attr=False)
        return with_bias.bias is not None, without.bias is not None

    def plain(self) -> Any:
        return paddle.nn.Linear(3, 2, bias=False)

    raises = "TypeError: compat.nn.Linear"


class EmbeddingWeight(Entry):
    """An embedding's weight is (number, size) on both sides: it is not transposed."""

    chinese = "词嵌入的权重两边都是 (词数, 维度)：不转置。"
    apis = "torch.nn.Embedding", "paddle.nn.Embedding"
    sources = ("quick start 3.1 API table, 3.2",)

    def torch_side(self) -> Any:
        return filled(torch.nn.Embedding(5, 3))(torch.tensor([[1, 4], [0, 1]]))

    def paddle_side(self) -> Any:
        return filled(paddle.nn.Embedding(5, 3))(paddle.to_tensor([[1, 4], [0, 1]]))


class EmbeddingPaddingIdx(Entry):
    """Paddle always returns zeros for padding_idx, PyTorch the row of the table."""

    chinese = "Paddle 对 padding_idx 总是返回零，不管那一行存的是什么；PyTorch 返回那一行。"
    apis = "torch.nn.Embedding(padding_idx=)", "paddle.nn.Embedding(padding_idx=)"
    sources = ("quick start 3.1, initialisation code",)
    keywords = "pad row zero"
    conventions = {"padding_idx": Convention("padding_idx")}
    convention_kinds = ("Embedding",)

    def torch_side(self) -> Any:
        return filled(torch.nn.Embedding(5, 3, padding_idx=0))(torch.tensor([0, 2]))

    def paddle_side(self) -> Any:
        return filled(paddle.nn.Embedding(5, 3))(paddle.to_tensor([0, 2]))

    def plain(self) -> Any:
        return filled(paddle.nn.Embedding(5, 3, padding_idx=0))(paddle.to_tensor([0, 2]))

    def as_described(self, expected: Any, found: Any) -> bool:
        return not found[0].any() and np.array_equal(found[1], expected[1])


class EmbeddingMaxNorm(Entry):
    """Both renormalise rows longer than max_norm; the sources' "Paddle cannot" no longer holds."""

    chinese = "两边都会把超过 max_norm 的行重新归一化；原文档“飞桨不支持”的说法已过时。"
    apis = "torch.nn.Embedding(max_norm=)", "paddle.nn.Embedding(max_norm=)"
    sources = ("quick start 3.1 API table",)
    keywords = "norm_type renorm"
    tolerance = 1e-6
    because = "PyTorch divides by the norm plus 1e-7, Paddle by the norm"

    def torch_side(self) -> Any:
        return filled(torch.nn.Embedding(5, 3, max_norm=0.5))(torch.tensor([0, 2, 4]))

    def paddle_side(self) -> Any:
        return filled(paddle.nn.Embedding(5, 3, max_norm=0.5))(paddle.to_tensor([0, 2, 4]))


class EmbeddingScaleGradByFreq(Entry):
    """Both divide a row's gradient by how often it occurs; the sources' "Paddle cannot" no longer holds."""

    chinese = "两边都会按词频缩放梯度；原文档“飞桨无此功能”的说法已过时。"
    apis = (
        "torch.nn.Embedding(scale_grad_by_freq=)",
        "paddle.nn.Embedding(scale_grad_by_freq=)",
    )
    sources = ("quick start 3.1 API table",)

    def torch_side(self) -> Any:
        layer = filled(torch.nn.Embedding(5, 3, scale_grad_by_freq=True))
        layer(torch.tensor([1, 1, 4])).sum().backward()
        return layer.weight.grad

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.Embedding(5, 3, scale_grad_by_freq=True))
        layer(paddle.to_tensor([1, 1, 4])).sum().backward()
        return layer.weight.grad


class DropoutScale(Entry):
    """Both divide the kept elements by 1 - p while training and do nothing in eval mode."""

    chinese = "训练时两边都把保留的元素除以 1 - p，eval 模式下都不做任何事。"
    apis = "torch.nn.Dropout", "paddle.nn.Dropout"
    sources = ("quick start 3.1 API table", "guide 3.1.3")
    keywords = "mode upscale_in_train downscale_in_infer"
    conventions = {"p": Convention("p"), "mode": Convention("mode")}
    convention_kinds = ("Dropout",)

    def torch_side(self) -> Any:
        dropout = torch.nn.Dropout(0.25)
        largest = dropout(torch.ones(1000)).max()
        return largest, dropout.eval()(torch.ones(3))

    def paddle_side(self) -> Any:
        dropout = paddle.nn.Dropout(0.25)
        largest = dropout(paddle.ones([1000])).max()
        dropout.eval()
        return largest, dropout(paddle.ones([3]))

    def plain(self) -> Any:
        dropout = paddle.nn.Dropout(0.25, mode="downscale_in_infer")
        largest = dropout(paddle.ones([10, 100])).max()
        dropout.eval()
        return largest, dropout(paddle.ones([1, 3]))[0]

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found[0] == 1 and np.allclose(found[1], 0.75))


class DropoutInplace(Entry):
    """Both take inplace=; the sources' "Paddle has no such argument" no longer holds."""

    chinese = "两边都有 inplace 参数；原文档“飞桨无此参数”的说法已过时。"
    apis = "torch.nn.Dropout(inplace=)", "paddle.nn.Dropout(inplace=)"
    sources = ("quick start 3.1 step 5 and API table",)

    def torch_side(self) -> Any:
        x = torch.ones(3)
        torch.nn.Dropout(1.0, inplace=True)(x)
        return x

    def paddle_side(self) -> Any:
        x = paddle.ones([3])
        paddle.nn.Dropout(1.0, inplace=True)(x)
        return x


class DropoutFunctional(Entry):
    """The function drops by default on both sides, model.eval() or not: pass training=self.training."""

    chinese = "函数形式默认就会丢弃，与 model.eval() 无关：两边都要写 training=self.training。"
    apis = "torch.nn.functional.dropout", "paddle.nn.functional.dropout"
    keywords = "training eval"

    def torch_side(self) -> Any:
        return torch.nn.functional.dropout(torch.ones(1000), 0.5, training=False)

    def paddle_side(self) -> Any:
        return paddle.nn.functional.dropout(paddle.ones([1000]), 0.5, training=False)

    def plain(self) -> Any:
        return paddle.nn.functional.dropout(paddle.ones([1000]), 0.5)

    def as_described(self, expected: Any, found: Any) -> bool:
        return set(found) == {0.0, 2.0}


class Dropout1dExamples(Entry):
    """Paddle's dropout1d drops a channel of the whole batch, PyTorch one of each example."""

    chinese = "Paddle 的 dropout1d 丢弃整个批次的同一通道，PyTorch 对每个样本分别丢弃。"
    apis = "torch.nn.functional.dropout1d", "paddle.nn.functional.dropout1d"
    keywords = "Dropout1d channel"

    def torch_side(self) -> Any:
        kept = torch.nn.functional.dropout1d(torch.ones(64, 8, 2), 0.5)[:, :, 0] > 0
        return bool((kept != kept[0]).any())

    def paddle_side(self) -> Any:
        x = paddle.ones([64, 8, 2])
        kept = paddle.nn.functional.dropout(x, 0.5, axis=[0, 1])[:, :, 0] > 0
        return bool((kept != kept[0]).any())

    def plain(self) -> Any:
        kept = paddle.nn.functional.dropout1d(paddle.ones([64, 8, 2]), 0.5)[:, :, 0] > 0
        return bool((kept != kept[0]).any())


class Containers(Entry):
    """Module, ModuleList and ModuleDict are Layer, LayerList and LayerDict; state-dict names are the same."""

    chinese = "Module、ModuleList、ModuleDict 对应 Layer、LayerList、LayerDict；参数名相同。"
    apis = "torch.nn.Module", "paddle.nn.Layer"
    sources = ("quick start 3.1", "quick start 3.1 steps 1, 2 and 5")
    keywords = "ModuleList LayerList ModuleDict LayerDict Sequential base class"

    def torch_side(self) -> Any:
        class Model(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
                self.heads = torch.nn.ModuleDict({"a": torch.nn.LayerNorm(2)})

            def forward(self, x: Any) -> Any:
                return self.heads["a"](self.blocks[0](x))

        return list(Model().state_dict())

    def paddle_side(self) -> Any:
        class Model(paddle.nn.Layer):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.blocks = paddle.nn.LayerList([paddle.nn.Linear(2, 2)])
                self.heads = paddle.nn.LayerDict({"a": paddle.nn.LayerNorm(2)})

            def forward(self, x: Any) -> Any:
                return self.heads["a"](self.blocks[0](x))

        return list(Model().state_dict())


class Buffers(Entry):
    """register_buffer's persistent= is persistable= in Paddle; only such buffers are in the state dict."""

    chinese = (
        "register_buffer 的 persistent 在 Paddle 中叫 persistable；只有这类缓冲区进入 state_dict。"
    )
    apis = "torch.nn.Module.register_buffer", "paddle.nn.Layer.register_buffer"
    keywords = "persistent persistable state_dict"

    def torch_side(self) -> Any:
        module = torch.nn.Module()
        module.register_buffer("kept", torch.ones(2))
        module.register_buffer("left_out", torch.ones(2), persistent=False)
        return list(module.state_dict())

    def paddle_side(self) -> Any:
        layer = paddle.nn.Layer()
        layer.register_buffer("kept", paddle.ones([2]))
        layer.register_buffer("left_out", paddle.ones([2]), persistable=False)
        return list(layer.state_dict())


class Parameters(Entry):
    """A tensor becomes a parameter by torch.nn.Parameter, and by create_parameter in Paddle."""

    chinese = "把张量变成参数：PyTorch 用 torch.nn.Parameter，Paddle 用 create_parameter。"
    apis = "torch.nn.Parameter", "paddle.nn.Layer.create_parameter"
    keywords = "add_parameter trainable Assign"

    def torch_side(self) -> Any:
        module = torch.nn.Module()
        module.scale = torch.nn.Parameter(torch.tensor(numbers(3)))
        return [list(module.state_dict()), module.scale, module.scale.requires_grad]

    def paddle_side(self) -> Any:
        layer = paddle.nn.Layer()
        start = paddle.nn.initializer.Assign(numbers(3))
        layer.scale = layer.create_parameter([3], default_initializer=start)
        return [list(layer.state_dict()), layer.scale, not layer.scale.stop_gradient]


class Flatten(Entry):
    """Flatten's start_dim and end_dim are start_axis and stop_axis; both layers start at 1."""

    chinese = (
        "Flatten 的 start_dim、end_dim 在 Paddle 中是 start_axis、stop_axis；层的默认起点都是 1。"
    )
    apis = "torch.nn.Flatten", "paddle.nn.Flatten"
    keywords = "start_axis stop_axis"
    conventions = {
        "start_dim": Convention("start_axis", None, "no fault where both are the same dimension of the tensor"),
        "end_dim": Convention("stop_axis", None, "no fault where both are the same dimension of the tensor"),
        "unflattened_size": Convention("shape"),
    }  # fmt: skip

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 3, 4))
        return torch.nn.Flatten(0, 1)(x), torch.nn.Flatten()(x)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 3, 4))
        return paddle.nn.Flatten(start_axis=0, stop_axis=1)(x), paddle.nn.Flatten()(x)
