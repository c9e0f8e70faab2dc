"""Convolution, pooling, padding and resampling."""

from typing import Any

from reprod_align.api.entry import Convention, Entry, filled, numbers, paddle, torch

import numpy as np

CHINESE = "卷积、池化、填充与重采样"


class ConvWeight(Entry):
    """A convolution's weight is (out, in / groups, *kernel) on both sides: it is not transposed."""

    chinese = "卷积权重两边都是 (out, in / groups, *kernel)：不转置。"
    apis = "torch.nn.Conv2d", "paddle.nn.Conv2D"
    sources = ("guide 4.1.2",)
    keywords = "transpose convert bias_attr groups"
    conventions = {
        "data_format": Convention("data_format", None, "no fault where the model transposes its tensors to match")
    }  # fmt: skip

    def torch_side(self) -> Any:
        layer = filled(torch.nn.Conv2d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2))
        return layer(torch.tensor(numbers(2, 4, 7, 7)))

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.Conv2D(4, 6, 3, stride=2, padding=1, dilation=2, groups=2))
        return layer(paddle.to_tensor(numbers(2, 4, 7, 7)))


class ConvPaddingMode(Entry):
    """zeros, circular, reflect and replicate have the same names, as Informer's circular Conv1d."""

    chinese = (
        "padding_mode 的 zeros、circular、reflect、replicate 同名，如 Informer 的环形 Conv1d。"
    )
    apis = "torch.nn.Conv1d(padding_mode=)", "paddle.nn.Conv1D(padding_mode=)"
    sources = ("Informer log 3.1.1",)
    keywords = "circular reflect replicate token embedding"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.Conv1d(3, 2, 3, padding=1, padding_mode="circular"))
        return layer(torch.tensor(numbers(2, 3, 5)))

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.Conv1D(3, 2, 3, padding=1, padding_mode="circular"))
        return layer(paddle.to_tensor(numbers(2, 3, 5)))


class ConvPaddingSame(Entry):
    """padding="same" means the same; with a stride PyTorch refuses it, Paddle divides the size by the stride."""

    chinese = 'padding="same" 含义相同；带步长时 PyTorch 拒绝，Paddle 接受并把尺寸除以步长。'
    apis = 'torch.nn.Conv1d(padding="same")', 'paddle.nn.Conv1D(padding="same")'
    keywords = "same valid stride"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.Conv1d(1, 1, 4, padding="same"))
        return layer(torch.tensor(numbers(1, 1, 6)))

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.Conv1D(1, 1, 4, padding="same"))
        return layer(paddle.to_tensor(numbers(1, 1, 6)))

    def plain(self) -> Any:
        layer = filled(paddle.nn.Conv1D(1, 1, 4, padding="same", stride=2))
        return layer(paddle.to_tensor(numbers(1, 1, 6)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape == (1, 1, 3))


class ConvTransposeOrder(Entry):
    """Conv2DTranspose's sixth positional arguments go output_padding, dilation, groups; PyTorch's groups, bias."""

    chinese = "Conv2DTranspose 的位置参数依次是 output_padding、dilation、groups；PyTorch 是 output_padding、groups、bias、dilation：请写参数名。"
    apis = "torch.nn.ConvTranspose2d", "paddle.nn.Conv2DTranspose"
    keywords = "deconvolution positional arguments groups dilation"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.ConvTranspose2d(4, 4, 3, 2, 1, 1, 2))
        return layer(torch.tensor(numbers(1, 4, 3, 3)))

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.Conv2DTranspose(4, 4, 3, 2, 1, output_padding=1, groups=2))
        return layer(paddle.to_tensor(numbers(1, 4, 3, 3)))

    def plain(self) -> Any:
        layer = paddle.nn.Conv2DTranspose(4, 4, 3, 2, 1, 1, 2)
        return layer(paddle.to_tensor(numbers(1, 4, 3, 3)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape != expected.shape)


class AvgPoolPadding(Entry):
    """PyTorch counts the padding by default (count_include_pad=True), Paddle does not (exclusive=True)."""

    chinese = (
        "PyTorch 默认把填充计入平均（count_include_pad=True），Paddle 默认不计（exclusive=True）。"
    )
    apis = "torch.nn.AvgPool2d", "paddle.nn.AvgPool2D"
    keywords = "count_include_pad exclusive"
    conventions = {"count_include_pad": Convention("exclusive", lambda counts: not counts)}

    def torch_side(self) -> Any:
        return torch.nn.AvgPool2d(2, padding=1)(torch.tensor(numbers(1, 2, 4, 4)))

    def paddle_side(self) -> Any:
        pool = paddle.nn.AvgPool2D(2, padding=1, exclusive=False)
        return pool(paddle.to_tensor(numbers(1, 2, 4, 4)))

    def plain(self) -> Any:
        return paddle.nn.AvgPool2D(2, padding=1)(paddle.to_tensor(numbers(1, 2, 4, 4)))

    def as_described(self, expected: Any, found: Any) -> bool:
        corner, inner = (
            found[..., 0, 0] / expected[..., 0, 0],
            found[..., 1, 1] - expected[..., 1, 1],
        )
        return np.allclose(corner, 4) and np.allclose(inner, 0)


class AvgPoolGradient(Entry):
    """Paddle's gradient divides by a float32 number, inexact for kernels such as 3."""

    chinese = "Paddle 的梯度除以一个 float32 数，核大小为 3 等时不精确。"
    apis = "torch.nn.functional.avg_pool2d", "paddle.nn.functional.avg_pool2d"
    keywords = "adaptive_avg_pool2d float32 gradient"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(1, 2, 6, 6), requires_grad=True)
        (torch.nn.functional.avg_pool2d(x, 3) ** 2).sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(1, 2, 6, 6), stop_gradient=False)
        (x.reshape([1, 2, 2, 3, 2, 3]).mean([3, 5]) ** 2).sum().backward()
        return x.grad

    def plain(self) -> Any:
        x = paddle.to_tensor(numbers(1, 2, 6, 6), stop_gradient=False)
        (paddle.nn.functional.avg_pool2d(x, 3) ** 2).sum().backward()
        return x.grad

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected, rtol=1e-6)


class AdaptiveAvgPool(Entry):
    """Both split the input into the same, overlapping, windows."""

    chinese = "两边把输入划分为相同的（可能重叠的）窗口。"
    apis = "torch.nn.AdaptiveAvgPool2d", "paddle.nn.AdaptiveAvgPool2D"
    keywords = "global pooling output_size"

    def torch_side(self) -> Any:
        return torch.nn.AdaptiveAvgPool2d((3, 2))(torch.tensor(numbers(1, 2, 7, 5)))

    def paddle_side(self) -> Any:
        return paddle.nn.AdaptiveAvgPool2D((3, 2))(paddle.to_tensor(numbers(1, 2, 7, 5)))


class MaxPoolIndices(Entry):
    """return_indices is return_mask in Paddle; both count within one channel's plane."""

    chinese = "return_indices 在 Paddle 中叫 return_mask；两边都在单个通道的平面内计数。"
    apis = "torch.nn.MaxPool2d(return_indices=)", "paddle.nn.MaxPool2D(return_mask=)"
    keywords = "unpool mask"
    conventions = {"return_indices": Convention("return_mask")}

    def torch_side(self) -> Any:
        return torch.nn.MaxPool2d(2, return_indices=True)(torch.tensor(numbers(1, 2, 4, 4)))

    def paddle_side(self) -> Any:
        return paddle.nn.MaxPool2D(2, return_mask=True)(paddle.to_tensor(numbers(1, 2, 4, 4)))


class MaxPoolDilation(Entry):
    """Paddle's max pooling has no dilation: take the maximum of shifted slices."""

    chinese = "Paddle 的最大池化没有 dilation：对错开的切片取最大值。"
    apis = "torch.nn.MaxPool1d(dilation=)", "paddle.maximum of slices"
    keywords = "dilation"
    conventions = {"dilation": Convention("")}
    convention_kinds = ("MaxPool1d", "MaxPool2d", "MaxPool3d")

    def torch_side(self) -> Any:
        return torch.nn.MaxPool1d(2, stride=1, dilation=2)(torch.tensor(numbers(1, 2, 6)))

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(1, 2, 6))
        return paddle.maximum(x[:, :, :-2], x[:, :, 2:])

    def plain(self) -> Any:
        return paddle.nn.MaxPool1D(2, stride=1, dilation=2)

    raises = "TypeError: dilation"


class MaxPoolCeil(Entry):
    """With ceil_mode PyTorch drops a last window that would lie in the padding alone, as Paddle does."""

    chinese = "ceil_mode 下，只落在填充里的最后一个窗口两边都会去掉。"
    apis = "torch.nn.MaxPool2d(ceil_mode=)", "paddle.nn.MaxPool2D(ceil_mode=)"
    keywords = "ceil_mode output size"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(1, 1, 6, 6))
        return torch.nn.MaxPool2d(3, stride=2, ceil_mode=True)(x)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(1, 1, 6, 6))
        return paddle.nn.MaxPool2D(3, stride=2, ceil_mode=True)(x)


class MaxPoolSecondGradient(Entry):
    """Paddle still has no second gradient of max pooling: gather the maxima by the mask that it returns."""

    chinese = "Paddle 至今没有最大池化的二阶梯度：用它返回的 mask 取出最大值来代替。"
    apis = "torch.nn.functional.max_pool2d", "paddle.nn.functional.max_pool2d"
    sources = ("guide 4.4",)
    keywords = "double gradient penalty create_graph pooling"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(1, 1, 4, 4), requires_grad=True)
        y = (torch.nn.functional.max_pool2d(x, 2) ** 3).sum()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        return torch.autograd.grad((first**2).sum(), x)[0]

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(1, 1, 4, 4), stop_gradient=False)
        at = paddle.nn.functional.max_pool2d(x.detach(), 2, return_mask=True)[1]
        y = (paddle.index_select(x.reshape([-1]), at.flatten()) ** 3).sum()
        (first,) = paddle.grad(y, x, create_graph=True)
        return paddle.grad((first**2).sum(), x)[0]

    def plain(self) -> Any:
        x = paddle.to_tensor(numbers(1, 1, 4, 4), stop_gradient=False)
        y = (paddle.nn.functional.max_pool2d(x, 2) ** 3).sum()
        (first,) = paddle.grad(y, x, create_graph=True)
        return paddle.grad((first**2).sum(), x)[0]

    raises = "ValueError: only supports avgpool"


class AvgPoolSecondGradient(Entry):
    """Both have the second gradient of avg_pool2d."""

    chinese = "两边都支持 avg_pool2d 的二阶梯度。"
    apis = "torch.nn.functional.avg_pool2d", "paddle.nn.functional.avg_pool2d"
    sources = ("guide 4.4",)
    keywords = "double gradient penalty create_graph pooling"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(1, 1, 4, 4), requires_grad=True)
        y = (torch.nn.functional.avg_pool2d(x, 2) ** 3).sum()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        return torch.autograd.grad((first**2).sum(), x)[0]

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(1, 1, 4, 4), stop_gradient=False)
        y = (paddle.nn.functional.avg_pool2d(x, 2) ** 3).sum()
        (first,) = paddle.grad(y, x, create_graph=True)
        return paddle.grad((first**2).sum(), x)[0]


class PadOrder(Entry):
    """Both pad the last axis first; but amounts for all axes start at the first in Paddle, unless told."""

    chinese = "两边都从最后一维开始填充；但给出全部维度时 Paddle 从第一维开始，除非 pad_from_left_axis=False。"
    apis = "torch.nn.functional.pad", "paddle.nn.functional.pad"
    keywords = "padding order pad_from_left_axis"

    def torch_side(self) -> Any:
        return torch.nn.functional.pad(torch.tensor(numbers(2, 3)), [1, 2, 0, 1])

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 3))
        return paddle.nn.functional.pad(x, [1, 2, 0, 1], pad_from_left_axis=False)

    def plain(self) -> Any:
        return paddle.nn.functional.pad(paddle.to_tensor(numbers(2, 3)), [1, 2, 0, 1])

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.array_equal(found, np.pad(numbers(2, 3), [(1, 2), (0, 1)]))


class PadModes(Entry):
    """constant, reflect, replicate and circular have the same names and pad the last axis first."""

    chinese = "constant、reflect、replicate、circular 同名，都先填充最后一维。"
    apis = "torch.nn.functional.pad(mode=)", "paddle.nn.functional.pad(mode=)"
    keywords = "reflect replicate circular"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(1, 2, 4, 5))
        modes = ("reflect", "replicate", "circular")
        return [torch.nn.functional.pad(x, [1, 2, 0, 3], mode=mode) for mode in modes]

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(1, 2, 4, 5))
        modes = ("reflect", "replicate", "circular")
        return [
            paddle.nn.functional.pad(x, [1, 2, 0, 3], mode=mode, pad_from_left_axis=False)
            for mode in modes
        ]


class InterpolateCorners(Entry):
    """align_corners is False by default on both sides; with True Paddle keeps the ratio in float32."""

    chinese = "align_corners 默认两边都是 False；为 True 时 Paddle 用 float32 保存比例。"
    apis = "torch.nn.functional.interpolate", "paddle.nn.functional.interpolate"
    keywords = "bilinear upsample align_corners align_mode"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(1, 2, 4, 5))
        return torch.nn.functional.interpolate(x, size=[8, 11], mode="bilinear", align_corners=True)

    def paddle_side(self) -> Any:
        def weights(size: int, wanted: int) -> Any:
            at = paddle.arange(wanted, dtype="float64") * (size - 1) / (wanted - 1)
            return paddle.clip(1 - (at[:, None] - paddle.arange(size, dtype="float64")).abs(), 0)

        x = paddle.to_tensor(numbers(1, 2, 4, 5))
        return weights(4, 8) @ x @ weights(5, 11).T

    def plain(self) -> Any:
        x = paddle.to_tensor(numbers(1, 2, 4, 5))
        return paddle.nn.functional.interpolate(
            x, size=[8, 11], mode="bilinear", align_corners=True
        )

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected, atol=1e-5)


class InterpolateHalfPixel(Entry):
    """Without align_corners both take half-pixel centres (align_mode=0); align_mode=1 does not."""

    chinese = "不对齐角点时两边都用半像素中心（align_mode=0）；align_mode=1 不是。"
    apis = "torch.nn.functional.interpolate", "paddle.nn.functional.interpolate"
    keywords = "bilinear align_mode half pixel"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(1, 2, 4, 4))
        return torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(1, 2, 4, 4))
        return paddle.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")

    def plain(self) -> Any:
        x = paddle.to_tensor(numbers(1, 2, 4, 4))
        return paddle.nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_mode=1)


class InterpolateNearest(Entry):
    """Both round the nearest pixel's place down."""

    chinese = "最近邻插值两边都向下取整。"
    apis = "torch.nn.functional.interpolate", "paddle.nn.functional.interpolate"
    keywords = "nearest upsample downsample"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(1, 2, 4, 5))
        return torch.nn.functional.interpolate(x, size=[7, 3], mode="nearest")

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(1, 2, 4, 5))
        return paddle.nn.functional.interpolate(x, size=[7, 3], mode="nearest")


class UnfoldOrder(Entry):
    """The positional order is kernel, stride, padding, dilation in Paddle; PyTorch's kernel, dilation, padding, stride."""

    chinese = "位置参数顺序：Paddle 是 kernel、stride、padding、dilation；PyTorch 是 kernel、dilation、padding、stride。"
    apis = "torch.nn.functional.unfold", "paddle.nn.functional.unfold"
    keywords = "im2col fold positional arguments"

    def torch_side(self) -> Any:
        return torch.nn.functional.unfold(torch.tensor(numbers(1, 2, 6, 6)), 2, 1, 0, 2)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(1, 2, 6, 6))
        return paddle.nn.functional.unfold(x, 2, strides=2, paddings=0, dilations=1)

    def plain(self) -> Any:
        return paddle.nn.functional.unfold(paddle.to_tensor(numbers(1, 2, 6, 6)), 2, 1, 0, 2)

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape != expected.shape)


class PixelShuffle(Entry):
    """Both move channels to pixels in the same order."""

    chinese = "两边把通道变为像素的顺序相同。"
    apis = "torch.nn.PixelShuffle", "paddle.nn.PixelShuffle"

    def torch_side(self) -> Any:
        return torch.nn.PixelShuffle(2)(torch.tensor(numbers(1, 8, 2, 3)))

    def paddle_side(self) -> Any:
        return paddle.nn.PixelShuffle(2)(paddle.to_tensor(numbers(1, 8, 2, 3)))


class GridSampleCorners(Entry):
    """align_corners is False by default in PyTorch, True in Paddle."""

    chinese = "align_corners 默认值：PyTorch 是 False，Paddle 是 True。"
    apis = "torch.nn.functional.grid_sample", "paddle.nn.functional.grid_sample"
    keywords = "align_corners affine_grid default"

    def torch_side(self) -> Any:
        x, grid = torch.tensor(numbers(1, 1, 4, 4)), torch.tensor(numbers(1, 3, 3, 2) / 4)
        return torch.nn.functional.grid_sample(x, grid)

    def paddle_side(self) -> Any:
        x, grid = paddle.to_tensor(numbers(1, 1, 4, 4)), paddle.to_tensor(numbers(1, 3, 3, 2) / 4)
        return paddle.nn.functional.grid_sample(x, grid, align_corners=False)

    def plain(self) -> Any:
        x, grid = paddle.to_tensor(numbers(1, 1, 4, 4)), paddle.to_tensor(numbers(1, 3, 3, 2) / 4)
        return paddle.nn.functional.grid_sample(x, grid)


class AffineGridCorners(Entry):
    """align_corners is False by default in PyTorch, True in Paddle; size is out_shape."""

    chinese = "align_corners 默认值：PyTorch 是 False，Paddle 是 True；size 叫 out_shape。"
    apis = "torch.nn.functional.affine_grid", "paddle.nn.functional.affine_grid"
    keywords = "align_corners default"

    def torch_side(self) -> Any:
        return torch.nn.functional.affine_grid(torch.tensor(numbers(1, 2, 3)), [1, 1, 3, 4])

    def paddle_side(self) -> Any:
        theta = paddle.to_tensor(numbers(1, 2, 3))
        return paddle.nn.functional.affine_grid(theta, [1, 1, 3, 4], align_corners=False)

    def plain(self) -> Any:
        return paddle.nn.functional.affine_grid(paddle.to_tensor(numbers(1, 2, 3)), [1, 1, 3, 4])
