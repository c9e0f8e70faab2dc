"""Normalisation."""

from typing import Any

from reprod_align.api.entry import Convention, Entry, filled, numbers, paddle, torch

import numpy as np

CHINESE = "归一化"

_AFFINE = Convention("weight_attr", lambda present: None if present else False)


class LayerNormEpsilon(Entry):
    """eps is called epsilon; both default to 1e-5 (the sources say otherwise), but BERT's is 1e-12."""

    chinese = (
        "eps 在 Paddle 中叫 epsilon；两边默认都是 1e-5（原文档说不同，已过时），但 BERT 用 1e-12。"
    )
    apis = "torch.nn.LayerNorm", "paddle.nn.LayerNorm"
    sources = ("quick start 3.1 step 4 and API table", "guide 3.8")
    keywords = "eps epsilon default layer_norm_eps"
    conventions = {"eps": Convention("epsilon")}

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 8))
        return torch.nn.LayerNorm(8)(x), torch.nn.LayerNorm(8, eps=2**-40)(x)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 8))
        return paddle.nn.LayerNorm(8)(x), paddle.nn.LayerNorm(8, epsilon=2**-40)(x)


class LayerNormForgottenEpsilon(Entry):
    """A layer left at the default 1e-5 beside a reference with 1e-12 differs, by more the smaller its input."""

    chinese = "参考模型用 1e-12 而移植后仍是默认的 1e-5 时结果不同，输入越小差得越多。"
    apis = "torch.nn.LayerNorm(eps=1e-12)", "paddle.nn.LayerNorm(epsilon=1e-12)"
    sources = ("quick start 3.1 API table",)
    keywords = "bert epsilon"

    def torch_side(self) -> Any:
        return torch.nn.LayerNorm(8, eps=1e-12)(torch.tensor(numbers(2, 8) / 100))

    def paddle_side(self) -> Any:
        return paddle.nn.LayerNorm(8, epsilon=1e-12)(paddle.to_tensor(numbers(2, 8) / 100))

    def plain(self) -> Any:
        return paddle.nn.LayerNorm(8)(paddle.to_tensor(numbers(2, 8) / 100))

    def as_described(self, expected: Any, found: Any) -> bool:
        x = numbers(2, 8) / 100
        return np.allclose(
            found, (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        )


class NormEpsilonFloat32(Entry):
    """Paddle's norms round epsilon to float32, which shows on small inputs."""

    chinese = "Paddle 的归一化层把 epsilon 舍入为 float32，输入很小时看得出来。"
    apis = "torch.nn.LayerNorm", "paddle.nn.LayerNorm"
    keywords = "float32 epsilon rounding BatchNorm"

    def torch_side(self) -> Any:
        return torch.nn.LayerNorm(8)(torch.tensor(numbers(2, 8) / 100))

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 8) / 100)
        moved = x - x.mean(-1, keepdim=True)
        return moved / paddle.sqrt((moved**2).mean(-1, keepdim=True) + 1e-5)

    def plain(self) -> Any:
        return paddle.nn.LayerNorm(8)(paddle.to_tensor(numbers(2, 8) / 100))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected, rtol=1e-7)


class LayerNormAffine(Entry):
    """elementwise_affine=False and bias=False are weight_attr=False and bias_attr=False in Paddle."""

    chinese = (
        "elementwise_affine=False、bias=False 对应 Paddle 的 weight_attr=False、bias_attr=False。"
    )
    apis = "torch.nn.LayerNorm(elementwise_affine=)", "paddle.nn.LayerNorm(weight_attr=)"
    keywords = "elementwise_affine weight_attr bias_attr"
    conventions = {"elementwise_affine": _AFFINE}

    def torch_side(self) -> Any:
        layer = torch.nn.LayerNorm(8, elementwise_affine=False)
        return layer(torch.tensor(numbers(2, 8))), len(list(layer.parameters()))

    def paddle_side(self) -> Any:
        layer = paddle.nn.LayerNorm(8, weight_attr=False, bias_attr=False)
        return layer(paddle.to_tensor(numbers(2, 8))), len(layer.parameters())


class LayerNormFrozen(Entry):
    """With stop_gradient on the weight Paddle's gradient of the input is wrong: leave it out of the optimizer."""

    chinese = "权重被冻结时 Paddle 的 layer_norm 给出错误的输入梯度：不要设 stop_gradient，而是不把它交给优化器。"
    apis = "torch.nn.LayerNorm", "paddle.nn.LayerNorm"
    keywords = "stop_gradient frozen gradient wrong freeze"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.LayerNorm(8))
        layer.weight.requires_grad = False
        x = torch.tensor(numbers(2, 8), requires_grad=True)
        (layer(x) ** 2).sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.LayerNorm(8))  # its weight is left out of the optimizer instead
        x = paddle.to_tensor(numbers(2, 8), stop_gradient=False)
        (layer(x) ** 2).sum().backward()
        return x.grad

    def plain(self) -> Any:
        layer = filled(paddle.nn.LayerNorm(8))
        layer.weight.stop_gradient = True
        x = paddle.to_tensor(numbers(2, 8), stop_gradient=False)
        (layer(x) ** 2).sum().backward()
        return x.grad


class BatchNormNames(Entry):
    """running_mean and running_var are _mean and _variance in Paddle; num_batches_tracked has no twin."""

    chinese = "running_mean、running_var 在 Paddle 中叫 _mean、_variance；num_batches_tracked 没有对应物。"
    apis = "torch.nn.BatchNorm2d", "paddle.nn.BatchNorm2D"
    sources = ("Informer log 3.1.2",)
    keywords = "state_dict running_mean running_var convert"

    def torch_side(self) -> Any:
        names = {"running_mean": "_mean", "running_var": "_variance"}
        own = torch.nn.BatchNorm2d(3).state_dict()
        return [names.get(name, name) for name in own if name != "num_batches_tracked"]

    def paddle_side(self) -> Any:
        return list(paddle.nn.BatchNorm2D(3).state_dict())

    def plain(self) -> Any:
        values = {"running_mean": numbers(3), "running_var": numbers(3) ** 2}
        missing, unexpected = paddle.nn.BatchNorm2D(3).set_state_dict(values)
        return unexpected  # and nothing is raised

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found == ["running_mean", "running_var"])


class BatchNormEpsilon(Entry):
    """In batch and instance norm eps is called epsilon; both default to 1e-5."""

    chinese = "BatchNorm 与 InstanceNorm 的 eps 在 Paddle 中叫 epsilon；两边默认都是 1e-5。"
    apis = "torch.nn.BatchNorm1d(eps=)", "paddle.nn.BatchNorm1D(epsilon=)"
    keywords = "eps epsilon default InstanceNorm"
    conventions = {"eps": Convention("epsilon")}
    convention_kinds = (
        *("BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"),
        *("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"),
    )

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(4, 3, 5))
        kinds = torch.nn.BatchNorm1d, torch.nn.InstanceNorm1d
        return [layer(x) for kind in kinds for layer in (kind(3), kind(3, eps=2**-10))]

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(4, 3, 5))
        kinds = paddle.nn.BatchNorm1D, paddle.nn.InstanceNorm1D
        return [layer(x) for kind in kinds for layer in (kind(3), kind(3, epsilon=2**-10))]

    def plain(self) -> Any:
        return paddle.nn.BatchNorm1D(3, eps=2**-10)

    raises = "TypeError: eps"


class BatchNormMomentum(Entry):
    """Paddle's momentum is the share that is kept, PyTorch's the share that is new: m becomes 1 - m."""

    chinese = "Paddle 的 momentum 是旧值保留的比例，PyTorch 是新值的比例：m 要写成 1 - m。"
    apis = "torch.nn.BatchNorm1d(momentum=)", "paddle.nn.BatchNorm1D(momentum=)"
    sources = ("Informer log 3.1.2",)
    keywords = "momentum running mean complement"
    conventions = {
        "momentum": Convention("momentum", lambda m: None if m is None else 1 - m),
    }

    def torch_side(self) -> Any:
        layer = torch.nn.BatchNorm1d(3, momentum=0.25)
        layer(torch.tensor(numbers(8, 3)))
        return layer.running_mean

    def paddle_side(self) -> Any:
        layer = paddle.nn.BatchNorm1D(3, momentum=0.75)
        layer(paddle.to_tensor(numbers(8, 3)))
        return layer._mean

    def plain(self) -> Any:
        layer = paddle.nn.BatchNorm1D(3, momentum=0.25)
        layer(paddle.to_tensor(numbers(8, 3)))
        return layer._mean

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, 3 * expected)


class BatchNormMomentumFloat32(Entry):
    """Paddle rounds momentum to float32: 0.9 is 0.899999976; 0.75 and 0.5 are exact."""

    chinese = "Paddle 把 momentum 舍入为 float32：0.9 变成 0.899999976；0.75、0.5 则精确。"
    apis = "torch.nn.BatchNorm1d(momentum=0.1)", "paddle.nn.BatchNorm1D(momentum=0.9)"
    keywords = "float32 momentum 0.9"

    def torch_side(self) -> Any:
        layer = torch.nn.BatchNorm1d(3)
        layer(torch.tensor(numbers(8, 3)))
        return layer.running_mean

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(8, 3))
        return 0.9 * paddle.zeros([3]) + 0.1 * x.mean(0)

    def plain(self) -> Any:
        layer = paddle.nn.BatchNorm1D(3)
        layer(paddle.to_tensor(numbers(8, 3)))
        return layer._mean

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected * (1 - np.float64(np.float32(0.9))) / 0.1, rtol=1e-12)


class BatchNormRunningVariance(Entry):
    """Paddle's running variance is the biased one (over n), PyTorch's the unbiased (over n - 1)."""

    chinese = "Paddle 的滑动方差是有偏的（除以 n），PyTorch 是无偏的（除以 n - 1）。"
    apis = "torch.nn.BatchNorm1d", "paddle.nn.BatchNorm1D"
    keywords = "running variance biased unbiased"

    def torch_side(self) -> Any:
        layer = torch.nn.BatchNorm1d(3, momentum=0.5)
        layer(torch.tensor(numbers(8, 3)))
        return layer.running_var

    def paddle_side(self) -> Any:
        layer = paddle.nn.BatchNorm1D(3, momentum=0.5)
        layer(paddle.to_tensor(numbers(8, 3)))
        kept = 0.5 * paddle.ones([3])
        return kept + (layer._variance - kept) * 8 / 7

    def plain(self) -> Any:
        layer = paddle.nn.BatchNorm1D(3, momentum=0.5)
        layer(paddle.to_tensor(numbers(8, 3)))
        return layer._variance

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose((expected - 0.5) * 7 / 8, found - 0.5)


class BatchNormWithoutStatistics(Entry):
    """track_running_stats=False cannot be set in Paddle: give use_global_stats=False, which holds in eval too."""

    chinese = (
        "Paddle 没有 track_running_stats=False：用 use_global_stats=False，eval 时也按批统计。"
    )
    apis = "torch.nn.BatchNorm1d(track_running_stats=)", "paddle.nn.BatchNorm1D(use_global_stats=)"
    keywords = "track_running_stats use_global_stats"
    conventions = {"track_running_stats": Convention("")}

    def torch_side(self) -> Any:
        return torch.nn.BatchNorm1d(3, track_running_stats=False).eval()(
            torch.tensor(numbers(8, 3))
        )

    def paddle_side(self) -> Any:
        layer = paddle.nn.BatchNorm1D(3, use_global_stats=False)
        layer.eval()
        return layer(paddle.to_tensor(numbers(8, 3)))

    def plain(self) -> Any:
        layer = paddle.nn.BatchNorm1D(3)
        layer.eval()
        return layer(paddle.to_tensor(numbers(8, 3)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, numbers(8, 3), rtol=1e-5)


class BatchNormAffine(Entry):
    """affine=False is weight_attr=False and bias_attr=False in Paddle."""

    chinese = "affine=False 对应 Paddle 的 weight_attr=False 与 bias_attr=False。"
    apis = "torch.nn.BatchNorm1d(affine=)", "paddle.nn.BatchNorm1D(weight_attr=)"
    keywords = "affine weight_attr"
    conventions = {"affine": _AFFINE}

    def torch_side(self) -> Any:
        layer = torch.nn.BatchNorm1d(3, affine=False)
        return layer(torch.tensor(numbers(8, 3))), len(list(layer.parameters()))

    def paddle_side(self) -> Any:
        layer = paddle.nn.BatchNorm1D(3, weight_attr=False, bias_attr=False)
        return layer(paddle.to_tensor(numbers(8, 3))), 0

    def plain(self) -> Any:
        return paddle.nn.BatchNorm1D(3, affine=False)

    raises = "TypeError: affine"


class BatchNormOldClass(Entry):
    """paddle.nn.BatchNorm is the old class of any number of dimensions: its weight's attribute is param_attr."""

    chinese = (
        "paddle.nn.BatchNorm 是不分维数的旧类：权重属性叫 param_attr，推荐用 BatchNorm1D/2D/3D。"
    )
    apis = "torch.nn.BatchNorm2d", "paddle.nn.BatchNorm"
    sources = ("FAQ: BatchNorm's checkpoint",)
    keywords = "param_attr fluid"
    conventions = {"affine": Convention("param_attr", _AFFINE.from_torch)}
    convention_kinds = ("BatchNorm",)

    def torch_side(self) -> Any:
        return torch.nn.BatchNorm2d(3)(torch.tensor(numbers(4, 3, 2, 2)))

    def paddle_side(self) -> Any:
        layer = paddle.nn.BatchNorm(3, param_attr=False, bias_attr=False, dtype="float64")
        return layer(paddle.to_tensor(numbers(4, 3, 2, 2)))

    def plain(self) -> Any:
        return paddle.nn.BatchNorm(3, weight_attr=False)

    raises = "TypeError: weight_attr"


class GroupNormArguments(Entry):
    """The arguments have the same order; eps is epsilon, affine=False weight_attr=False and bias_attr=False."""

    chinese = "参数顺序相同；eps 叫 epsilon，affine=False 写作 weight_attr=False、bias_attr=False。"
    apis = "torch.nn.GroupNorm", "paddle.nn.GroupNorm"
    keywords = "num_groups num_channels"
    conventions = {"eps": Convention("epsilon")}
    convention_kinds = ("GroupNorm",)

    def torch_side(self) -> Any:
        return filled(torch.nn.GroupNorm(2, 4, eps=2**-10))(torch.tensor(numbers(3, 4, 5)))

    def paddle_side(self) -> Any:
        return filled(paddle.nn.GroupNorm(2, 4, epsilon=2**-10))(paddle.to_tensor(numbers(3, 4, 5)))


class GroupNormWithoutWeight(Entry):
    """Without weight and bias Paddle's gradient of the input is wrong: keep a weight of ones."""

    chinese = "没有权重和偏置时 Paddle 的 GroupNorm 输入梯度是错的：保留值为 1 的权重即可。"
    apis = "torch.nn.GroupNorm(affine=False)", "paddle.nn.GroupNorm(weight_attr=False)"
    keywords = "gradient wrong affine"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3, 4, 5), requires_grad=True)
        (
            torch.nn.GroupNorm(2, 4, affine=False)(x) * torch.tensor(numbers(3, 4, 5, seed=1))
        ).sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3, 4, 5), stop_gradient=False)
        (paddle.nn.GroupNorm(2, 4)(x) * paddle.to_tensor(numbers(3, 4, 5, seed=1))).sum().backward()
        return x.grad

    def plain(self) -> Any:
        x = paddle.to_tensor(numbers(3, 4, 5), stop_gradient=False)
        norm = paddle.nn.GroupNorm(2, 4, weight_attr=False, bias_attr=False)
        (norm(x) * paddle.to_tensor(numbers(3, 4, 5, seed=1))).sum().backward()
        return x.grad


class InstanceNormAffine(Entry):
    """PyTorch's InstanceNorm has no weight by default, Paddle's has one, called scale."""

    chinese = "PyTorch 的 InstanceNorm 默认没有权重；Paddle 默认有，名字叫 scale。"
    apis = "torch.nn.InstanceNorm2d", "paddle.nn.InstanceNorm2D"
    keywords = "affine scale weight state_dict"

    def torch_side(self) -> Any:
        norm = torch.nn.InstanceNorm2d(3)
        return norm(torch.tensor(numbers(2, 3, 4, 4))), len(norm.state_dict())

    def paddle_side(self) -> Any:
        norm = paddle.nn.InstanceNorm2D(3, weight_attr=False, bias_attr=False)
        return norm(paddle.to_tensor(numbers(2, 3, 4, 4))), len(norm.state_dict())

    def plain(self) -> Any:
        norm = paddle.nn.InstanceNorm2D(3)
        return norm(paddle.to_tensor(numbers(2, 3, 4, 4))), len(norm.state_dict())

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found[1] == 2 and np.allclose(found[0], expected[0]))


class RmsNorm(Entry):
    """Paddle has no nn.RMSNorm layer: write it; PyTorch's eps of None is the dtype's machine epsilon."""

    chinese = "Paddle 没有 nn.RMSNorm 层：自己写；PyTorch 中 eps=None 表示该数据类型的机器精度。"
    apis = "torch.nn.RMSNorm", "no layer in Paddle"
    keywords = "rms eps None llama"

    def torch_side(self) -> Any:
        return torch.nn.RMSNorm(8)(torch.tensor(numbers(2, 8)))

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 8))
        return x / paddle.sqrt((x**2).mean(-1, keepdim=True) + np.finfo(np.float64).eps)

    def plain(self) -> Any:
        return paddle.nn.RMSNorm(8)

    raises = "AttributeError: RMSNorm"


class LocalResponseNorm(Entry):
    """Size, alpha, beta and k mean the same; both divide alpha by the size."""

    chinese = "size、alpha、beta、k 含义相同；两边都把 alpha 除以 size。"
    apis = "torch.nn.LocalResponseNorm", "paddle.nn.LocalResponseNorm"
    keywords = "lrn"

    def torch_side(self) -> Any:
        norm = torch.nn.LocalResponseNorm(3, alpha=0.5, k=2.0)
        return norm(torch.tensor(numbers(2, 5, 4, 4)))

    def paddle_side(self) -> Any:
        norm = paddle.nn.LocalResponseNorm(3, alpha=0.5, k=2.0)
        return norm(paddle.to_tensor(numbers(2, 5, 4, 4)))


class WeightNormDim(Entry):
    """weight_norm of a Linear needs dim=1 in Paddle for PyTorch's dim=0: the weight is transposed."""

    chinese = (
        "对 Linear 做 weight_norm 时，PyTorch 的 dim=0 在 Paddle 中是 dim=1，因为权重是转置存放的。"
    )
    apis = "torch.nn.utils.parametrizations.weight_norm", "paddle.nn.utils.weight_norm"
    keywords = "weight_g weight_v parametrizations original0 original1"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.Linear(4, 3))
        return torch.nn.utils.parametrizations.weight_norm(
            layer
        ).parametrizations.weight.original0.reshape(-1)

    def paddle_side(self) -> Any:
        layer = paddle.nn.Linear(4, 3)
        layer.weight.set_value(numbers(3, 4).T / 2)
        return paddle.nn.utils.weight_norm(layer, dim=1).weight_g

    def plain(self) -> Any:
        layer = paddle.nn.Linear(4, 3)
        layer.weight.set_value(numbers(3, 4).T / 2)
        return paddle.nn.utils.weight_norm(layer).weight_g

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape == (4,) and expected.shape == (3,))


class SpectralNormNames(Entry):
    """The newer parametrization keeps weight in original and divides by the same sigma as weight_orig's."""

    chinese = "新的 parametrizations 版把权重存在 original 中；除以的 sigma 与 weight_orig 版相同。"
    apis = "torch.nn.utils.parametrizations.spectral_norm", "paddle.nn.utils.spectral_norm"
    keywords = "weight_orig weight_u weight_v parametrizations power iteration"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.Conv1d(4, 3, 1))
        normed = torch.nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=60)
        normed(torch.tensor(numbers(1, 4, 2)))
        return normed.eval().weight

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.Conv1D(4, 3, 1))
        normed = paddle.nn.utils.spectral_norm(layer, n_power_iterations=60)
        normed(paddle.to_tensor(numbers(1, 4, 2)))
        return normed.weight


class Normalize(Entry):
    """Both divide by the larger of norm and epsilon along axis 1 by default; dim is axis, eps epsilon."""

    chinese = "默认都沿第 1 维除以范数与 epsilon 中较大者；dim 叫 axis，eps 叫 epsilon。"
    apis = "torch.nn.functional.normalize", "paddle.nn.functional.normalize"
    keywords = "l2 axis epsilon"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 3, 4))
        return torch.nn.functional.normalize(x), torch.nn.functional.normalize(x, dim=-1, p=1.0)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 3, 4))
        return paddle.nn.functional.normalize(x), paddle.nn.functional.normalize(x, axis=-1, p=1.0)


class CosineSimilarity(Entry):
    """dim is axis, eps keeps its name; both take axis 1 by default."""

    chinese = "dim 叫 axis，eps 名字不变；两边默认都沿第 1 维。"
    apis = "torch.nn.CosineSimilarity", "paddle.nn.CosineSimilarity"
    conventions = {"eps": Convention("eps")}
    convention_kinds = ("CosineSimilarity",)

    def torch_side(self) -> Any:
        x, y = (torch.tensor(numbers(3, 4, seed=seed)) for seed in (0, 1))
        return torch.nn.CosineSimilarity(dim=-1, eps=1e-6)(x, y)

    def paddle_side(self) -> Any:
        x, y = (paddle.to_tensor(numbers(3, 4, seed=seed)) for seed in (0, 1))
        return paddle.nn.CosineSimilarity(axis=-1, eps=1e-6)(x, y)
