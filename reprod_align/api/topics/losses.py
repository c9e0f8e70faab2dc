"""Losses."""

from typing import Any

from reprod_align.api.entry import Convention, Entry, numbers, paddle, torch

import numpy as np

CHINESE = "损失函数"


class CrossEntropyAxis(Entry):
    """The classes are the last axis in Paddle (axis=-1), axis 1 in PyTorch."""

    chinese = "类别所在的轴：Paddle 默认最后一维（axis=-1），PyTorch 是第 1 维。"
    apis = "torch.nn.CrossEntropyLoss", "paddle.nn.CrossEntropyLoss(axis=1)"
    sources = ("guide 4.4", "guide 3.4", "quick start 5.2.1")
    keywords = "axis dim classes segmentation"

    def torch_side(self) -> Any:
        labels = torch.tensor([[0, 2, 1, 1], [2, 0, 0, 1]])
        return torch.nn.CrossEntropyLoss()(torch.tensor(numbers(2, 3, 4)), labels)

    def paddle_side(self) -> Any:
        labels = paddle.to_tensor([[0, 2, 1, 1], [2, 0, 0, 1]])
        return paddle.nn.CrossEntropyLoss(axis=1)(paddle.to_tensor(numbers(2, 3, 4)), labels)

    def plain(self) -> Any:
        labels = paddle.to_tensor([[0, 2, 1, 1], [2, 0, 0, 1]])
        return paddle.nn.CrossEntropyLoss()(paddle.to_tensor(numbers(2, 3, 4)), labels)

    raises = "ValueError"


class CrossEntropyCalled(Entry):
    """The class is built first and called then; the quick start's CrossEntropyLoss(output, labels) computes nothing."""

    chinese = "损失类要先构造再调用；快速上手中的 CrossEntropyLoss(output, labels) 什么也没有计算。"
    apis = "torch.nn.CrossEntropyLoss()(x, y)", "paddle.nn.CrossEntropyLoss()(x, y)"
    sources = ("quick start 5.2.1",)
    keywords = "criterion functional class instance"
    obsolete = True

    def torch_side(self) -> Any:
        return torch.nn.CrossEntropyLoss()(torch.tensor(numbers(4, 3)), torch.tensor([0, 2, 1, 1]))

    def paddle_side(self) -> Any:
        labels = paddle.to_tensor([0, 2, 1, 1])
        return paddle.nn.CrossEntropyLoss()(paddle.to_tensor(numbers(4, 3)), labels)

    def plain(self) -> Any:
        made = paddle.nn.CrossEntropyLoss(
            paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, 2, 1, 1])
        )
        return type(made).__name__

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found == "CrossEntropyLoss")


class CrossEntropySoftLabel(Entry):
    """Probabilities as labels are recognised by their shape in PyTorch; Paddle wants soft_label=True."""

    chinese = "软标签：PyTorch 按形状自动识别，Paddle 要写 soft_label=True。"
    apis = "torch.nn.functional.cross_entropy", "paddle.nn.functional.cross_entropy(soft_label=)"
    sources = ("quick start 5.2.1 API table", "guide 3.4")
    keywords = "soft label distillation probabilities"

    def torch_side(self) -> Any:
        labels = torch.softmax(torch.tensor(numbers(4, 3, seed=1)), 1)
        return torch.nn.functional.cross_entropy(torch.tensor(numbers(4, 3)), labels)

    def paddle_side(self) -> Any:
        labels = paddle.nn.functional.softmax(paddle.to_tensor(numbers(4, 3, seed=1)), 1)
        x = paddle.to_tensor(numbers(4, 3))
        return paddle.nn.functional.cross_entropy(x, labels, soft_label=True)

    def plain(self) -> Any:
        labels = paddle.nn.functional.softmax(paddle.to_tensor(numbers(4, 3, seed=1)), 1)
        return paddle.nn.functional.cross_entropy(paddle.to_tensor(numbers(4, 3)), labels)

    raises = "ValueError"


class CrossEntropyIgnored(Entry):
    """With a negative ignore_index (the default, -100) Paddle's mean also counts the ignored labels."""

    chinese = "ignore_index 为负（默认 -100）时，Paddle 的平均把被忽略的标签也计入个数。"
    apis = "torch.nn.CrossEntropyLoss", "paddle.nn.CrossEntropyLoss"
    keywords = "ignore_index mean -100 masked language model"

    def torch_side(self) -> Any:
        labels = torch.tensor([0, -100, 1, -100])
        return torch.nn.functional.cross_entropy(torch.tensor(numbers(4, 3)), labels)

    def paddle_side(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, -100, 1, -100])
        total = paddle.nn.functional.cross_entropy(x, labels, reduction="sum")
        return total / (labels != -100).sum()

    def plain(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, -100, 1, -100])
        return paddle.nn.functional.cross_entropy(x, labels)

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected / 2)


class CrossEntropyIgnoredNonNegative(Entry):
    """With a non-negative ignore_index, as a padding id of 0, both means count the other labels alone."""

    chinese = "ignore_index 非负（如填充 id 0）时，两边的平均都只计其余标签。"
    apis = "torch.nn.CrossEntropyLoss(ignore_index=0)", "paddle.nn.CrossEntropyLoss(ignore_index=0)"
    keywords = "padding ignore_index mean"

    def torch_side(self) -> Any:
        x, labels = torch.tensor(numbers(4, 3)), torch.tensor([0, 2, 1, 0])
        return torch.nn.functional.cross_entropy(x, labels, ignore_index=0)

    def paddle_side(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, 2, 1, 0])
        return paddle.nn.functional.cross_entropy(x, labels, ignore_index=0)


class CrossEntropyFar(Entry):
    """A loss above 64 is 64 in Paddle, since its log_softmax goes no lower."""

    chinese = "大于 64 的损失在 Paddle 中就是 64，因为它的 log_softmax 不会更低。"
    apis = "torch.nn.functional.cross_entropy", "paddle.nn.functional.cross_entropy"
    keywords = "clip 64 large logits"

    def torch_side(self) -> Any:
        return torch.nn.functional.cross_entropy(torch.tensor([[0.0, 100.0]]), torch.tensor([0]))

    def paddle_side(self) -> Any:
        x, label = paddle.to_tensor([[0.0, 100.0]]), paddle.to_tensor([[0]])
        return (paddle.logsumexp(x, 1) - paddle.take_along_axis(x, label, 1)[:, 0]).mean()

    def plain(self) -> Any:
        x = paddle.to_tensor([[0.0, 100.0]])
        return paddle.nn.functional.cross_entropy(x, paddle.to_tensor([0]))

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(expected == 100 and found == 64)


class CrossEntropySmoothing(Entry):
    """label_smoothing computes in float32 in Paddle; smooth the labels yourself."""

    chinese = "Paddle 的 label_smoothing 用 float32 计算：可自己平滑标签。"
    apis = (
        "torch.nn.CrossEntropyLoss(label_smoothing=)",
        "paddle.nn.CrossEntropyLoss(label_smoothing=)",
    )
    keywords = "label_smooth float32"

    def torch_side(self) -> Any:
        x, labels = torch.tensor(numbers(4, 3)), torch.tensor([0, 2, 1, 1])
        return torch.nn.functional.cross_entropy(x, labels, label_smoothing=0.1)

    def paddle_side(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, 2, 1, 1])
        smooth = 0.9 * paddle.nn.functional.one_hot(labels, 3).astype("float64") + 0.1 / 3
        return paddle.nn.functional.cross_entropy(x, smooth, soft_label=True)

    def plain(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, 2, 1, 1])
        return paddle.nn.functional.cross_entropy(x, labels, label_smoothing=0.1)

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected, rtol=1e-6)


class CrossEntropyWeight(Entry):
    """Class weights divide the mean by the sum of the labels' weights, on both sides."""

    chinese = "带类别权重时，两边的平均都除以各标签权重之和。"
    apis = "torch.nn.CrossEntropyLoss(weight=)", "paddle.nn.CrossEntropyLoss(weight=)"
    keywords = "class weight imbalance"

    def torch_side(self) -> Any:
        loss = torch.nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 3.0]))
        return loss(torch.tensor(numbers(4, 3)), torch.tensor([0, 2, 1, 1]))

    def paddle_side(self) -> Any:
        loss = paddle.nn.CrossEntropyLoss(weight=paddle.to_tensor([0.5, 1.0, 3.0]))
        return loss(paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, 2, 1, 1]))


class CrossEntropyShape(Entry):
    """Paddle also takes labels (N, 1), and then reduction="none" gives (N, 1)."""

    chinese = 'Paddle 也接受形状 (N, 1) 的标签，此时 reduction="none" 的结果是 (N, 1)。'
    apis = "torch.nn.functional.cross_entropy", "paddle.nn.functional.cross_entropy"
    sources = ("quick start 1.1",)
    keywords = "label shape reduction none reshape"

    def torch_side(self) -> Any:
        x, labels = torch.tensor(numbers(4, 3)), torch.tensor([0, 2, 1, 1])
        return torch.nn.functional.cross_entropy(x, labels, reduction="none")

    def paddle_side(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([[0], [2], [1], [1]])
        return paddle.nn.functional.cross_entropy(x, labels, reduction="none")[:, 0]

    def plain(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([[0], [2], [1], [1]])
        return paddle.nn.functional.cross_entropy(x, labels, reduction="none")

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape == (4, 1))


class CrossEntropyUseSoftmax(Entry):
    """Paddle's use_softmax=False takes probabilities; given logits after a softmax it would take it twice."""

    chinese = "Paddle 的 use_softmax=False 接收概率；已做过 softmax 却不写它就会做两次。"
    apis = "torch.nn.functional.nll_loss", "paddle.nn.functional.cross_entropy(use_softmax=)"
    keywords = "softmax twice probabilities"

    def torch_side(self) -> Any:
        x, labels = torch.tensor(numbers(4, 3)), torch.tensor([0, 2, 1, 1])
        return torch.nn.functional.nll_loss(torch.softmax(x, 1).log(), labels)

    def paddle_side(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, 2, 1, 1])
        p = paddle.nn.functional.softmax(x, 1)
        return paddle.nn.functional.cross_entropy(p, labels, use_softmax=False)

    def plain(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, 2, 1, 1])
        return paddle.nn.functional.cross_entropy(paddle.nn.functional.softmax(x, 1), labels)


class NllLossIgnored(Entry):
    """Pick the values yourself: with ignored labels Paddle 3.3.1's nll_loss writes past its memory on a CPU (not run here)."""

    chinese = "自己取值求平均：CPU 上有被忽略的标签时，Paddle 3.3.1 的 nll_loss 会越界写内存（此处不运行它）。"
    apis = "torch.nn.functional.nll_loss", "paddle.take_along_axis"
    keywords = "ignore_index mean crash NLLLoss heap"

    def torch_side(self) -> Any:
        x, labels = torch.tensor(numbers(4, 3)), torch.tensor([0, -100, 1, -100])
        return torch.nn.functional.nll_loss(x, labels)

    def paddle_side(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4, 3)), paddle.to_tensor([0, -100, 1, -100])
        kept = (labels != -100).astype("float64")
        picked = paddle.take_along_axis(x, labels.clip(min=0)[:, None], 1)[:, 0]
        return -(picked * kept).sum() / kept.sum()


class BinaryCrossEntropyLimit(Entry):
    """The logarithm of a probability of 0 stops at -100 on both sides."""

    chinese = "概率为 0 时，两边的对数都截断在 -100。"
    apis = "torch.nn.functional.binary_cross_entropy", "paddle.nn.functional.binary_cross_entropy"
    keywords = "BCELoss epsilon log zero"

    def torch_side(self) -> Any:
        x, labels = torch.tensor([1.0, 0.5]), torch.tensor([0.0, 1.0])
        return torch.nn.functional.binary_cross_entropy(x, labels, reduction="none")

    def paddle_side(self) -> Any:
        x, labels = paddle.to_tensor([1.0, 0.5]), paddle.to_tensor([0.0, 1.0])
        return paddle.nn.functional.binary_cross_entropy(x, labels, reduction="none")


class BinaryCrossEntropyLogits(Entry):
    """binary_cross_entropy_with_logits takes the same weight and pos_weight; the target is called label."""

    chinese = "binary_cross_entropy_with_logits 的 weight、pos_weight 相同；target 叫 label。"
    apis = (
        "torch.nn.functional.binary_cross_entropy_with_logits",
        "paddle.nn.functional.binary_cross_entropy_with_logits",
    )
    keywords = "BCEWithLogitsLoss pos_weight"

    def torch_side(self) -> Any:
        x, labels = torch.tensor(numbers(4)), torch.tensor([0.0, 1.0, 1.0, 0.0])
        weight = torch.tensor([3.0])
        return torch.nn.functional.binary_cross_entropy_with_logits(x, labels, pos_weight=weight)

    def paddle_side(self) -> Any:
        x, labels = paddle.to_tensor(numbers(4)), paddle.to_tensor([0.0, 1.0, 1.0, 0.0])
        weight = paddle.to_tensor([3.0])
        return paddle.nn.functional.binary_cross_entropy_with_logits(x, labels, pos_weight=weight)


class SmoothL1(Entry):
    """Paddle's smooth_l1_loss is the Huber loss by default: is_huber=False divides by beta, called delta."""

    chinese = (
        "Paddle 的 smooth_l1_loss 默认是 Huber 损失：写 is_huber=False 才除以 beta（叫 delta）。"
    )
    apis = "torch.nn.SmoothL1Loss(beta=)", "paddle.nn.SmoothL1Loss(delta=, is_huber=False)"
    keywords = "huber beta delta is_huber"
    conventions = {"beta": Convention("delta")}
    convention_kinds = ("SmoothL1Loss",)

    def torch_side(self) -> Any:
        x, y = torch.tensor(numbers(9)), torch.tensor(numbers(9, seed=1))
        return torch.nn.SmoothL1Loss(beta=0.5)(x, y)

    def paddle_side(self) -> Any:
        x, y = paddle.to_tensor(numbers(9)), paddle.to_tensor(numbers(9, seed=1))
        return paddle.nn.SmoothL1Loss(delta=0.5, is_huber=False)(x, y)

    def plain(self) -> Any:
        x, y = paddle.to_tensor(numbers(9)), paddle.to_tensor(numbers(9, seed=1))
        return paddle.nn.SmoothL1Loss(delta=0.5)(x, y)

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, expected / 2)


class HuberLoss(Entry):
    """HuberLoss is smooth_l1_loss with is_huber=True, its default in Paddle."""

    chinese = "HuberLoss 对应 Paddle 默认（is_huber=True）的 smooth_l1_loss。"
    apis = "torch.nn.HuberLoss(delta=)", "paddle.nn.SmoothL1Loss(delta=)"
    keywords = "huber is_huber smooth_l1"
    conventions = {"huber": Convention("is_huber")}

    def torch_side(self) -> Any:
        x, y = torch.tensor(numbers(9)), torch.tensor(numbers(9, seed=1))
        return torch.nn.HuberLoss(delta=0.5)(x, y)

    def paddle_side(self) -> Any:
        x, y = paddle.to_tensor(numbers(9)), paddle.to_tensor(numbers(9, seed=1))
        return paddle.nn.SmoothL1Loss(delta=0.5)(x, y)


class MeanSquaredError(Entry):
    """Both broadcast (4, 1) against (4,) to (4, 4), PyTorch with a warning: give equal shapes."""

    chinese = "(4, 1) 与 (4,) 两边都会广播成 (4, 4)（PyTorch 有警告）：应保证形状相同。"
    apis = "torch.nn.MSELoss", "paddle.nn.MSELoss"
    keywords = "mse l1 broadcast shape regression"

    def torch_side(self) -> Any:
        x, y = torch.tensor(numbers(4, 1)), torch.tensor(numbers(4))
        loss = torch.nn.functional.mse_loss
        return loss(x[:, 0], y), loss(x, y)

    def paddle_side(self) -> Any:
        x, y = paddle.to_tensor(numbers(4, 1)), paddle.to_tensor(numbers(4))
        loss = paddle.nn.functional.mse_loss
        return loss(x[:, 0], y), loss(x, y)


class KlDivergence(Entry):
    """Both take log-probabilities first and average over elements by default: batchmean is the divergence."""

    chinese = "两边第一个参数都是对数概率，默认对元素取平均：数学上的散度要用 batchmean。"
    apis = "torch.nn.functional.kl_div", "paddle.nn.functional.kl_div"
    keywords = "batchmean log_target distillation"

    def torch_side(self) -> Any:
        p, q = (torch.tensor(numbers(4, 3, seed=seed)).log_softmax(1) for seed in (0, 1))
        loss = torch.nn.functional.kl_div
        return loss(p, q.exp(), reduction="batchmean"), loss(p, q, log_target=True)

    def paddle_side(self) -> Any:
        log_softmax = paddle.nn.functional.log_softmax
        p, q = (log_softmax(paddle.to_tensor(numbers(4, 3, seed=seed)), 1) for seed in (0, 1))
        loss = paddle.nn.functional.kl_div
        return loss(p, q.exp(), reduction="batchmean"), loss(p, q, log_target=True)


class CtcLoss(Entry):
    """Paddle's ctc_loss takes unscaled logits and applies log_softmax itself; the labels are int32."""

    chinese = "Paddle 的 ctc_loss 接收未归一化的 logits 并自己做 log_softmax；标签为 int32。"
    apis = "torch.nn.functional.ctc_loss", "paddle.nn.functional.ctc_loss"
    keywords = "warpctc log_softmax speech blank"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(6, 2, 4)).log_softmax(2)
        labels, lengths = torch.tensor([[1, 2], [3, 1]]), torch.tensor([6, 5])
        return torch.nn.functional.ctc_loss(x, labels, lengths, torch.tensor([2, 1]))

    def paddle_side(self) -> Any:
        x, labels = paddle.to_tensor(numbers(6, 2, 4)), paddle.to_tensor([[1, 2], [3, 1]], "int32")
        lengths, sizes = paddle.to_tensor([6, 5]), paddle.to_tensor([2, 1])
        return paddle.nn.functional.ctc_loss(x, labels, lengths, sizes)

    def plain(self) -> Any:
        x, labels = paddle.to_tensor(numbers(6, 2, 4)), paddle.to_tensor([[1, 2], [3, 1]])
        lengths, sizes = paddle.to_tensor([6, 5]), paddle.to_tensor([2, 1])
        return paddle.nn.functional.ctc_loss(x, labels, lengths, sizes)

    raises = "ValueError"


class TripletMargin(Entry):
    """Both take the margin of 1 and the 2-norm by default; eps is epsilon."""

    chinese = "默认 margin 都是 1、范数都是 2；eps 叫 epsilon。"
    apis = "torch.nn.TripletMarginLoss", "paddle.nn.TripletMarginLoss"
    keywords = "triplet contrastive"

    def torch_side(self) -> Any:
        parts = [torch.tensor(numbers(3, 4, seed=seed)) for seed in range(3)]
        return torch.nn.TripletMarginLoss()(*parts)

    def paddle_side(self) -> Any:
        parts = [paddle.to_tensor(numbers(3, 4, seed=seed)) for seed in range(3)]
        return paddle.nn.TripletMarginLoss()(*parts)


class LossAccumulation(Entry):
    """A running sum of losses keeps every graph: add numbers (loss.item(), or under no_grad), on both sides."""

    chinese = "累加损失张量会保留每一步的计算图：两边都应累加数值（loss.item() 或在 no_grad 下）。"
    apis = "torch.Tensor.item", "paddle.Tensor.item"
    sources = ("guide 4.4",)
    keywords = "memory leak no_grad detach avg_loss"

    def torch_side(self) -> Any:
        weight, total = torch.tensor(numbers(3), requires_grad=True), torch.tensor(0.0)
        for _ in range(2):
            total = total + (weight**2).sum().item()
        return total, total.requires_grad

    def paddle_side(self) -> Any:
        weight, total = paddle.to_tensor(numbers(3), stop_gradient=False), paddle.to_tensor(0.0)
        for _ in range(2):
            total = total + (weight**2).sum().item()
        return total, not total.stop_gradient

    def plain(self) -> Any:
        weight, total = paddle.to_tensor(numbers(3), stop_gradient=False), paddle.to_tensor(0.0)
        for _ in range(2):
            total = total + (weight**2).sum()
        return total, not total.stop_gradient

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found[1] and not expected[1])
