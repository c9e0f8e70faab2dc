"""Tensors: indexing, shapes, reductions, numbers."""

from typing import Any

from reprod_align.api.entry import Entry, numbers, paddle, torch

import numpy as np

CHINESE = "张量：索引、形状、归约与数值"


class MatmulMultiply(Entry):
    """matmul is the product of matrices, multiply that of elements, on both sides: @ and *."""

    chinese = "matmul 是矩阵乘，multiply 是逐元素乘，两边相同：即 @ 与 *。"
    apis = "torch.matmul, torch.mul", "paddle.matmul, paddle.multiply"
    sources = ("FAQ: matmul and multiply",)
    keywords = "mul mm bmm transpose_y"

    def torch_side(self) -> Any:
        x, y = torch.tensor(numbers(3, 3)), torch.tensor(numbers(3, 3, seed=1))
        return torch.matmul(x, y), torch.mul(x, y), torch.matmul(x, y.mT)

    def paddle_side(self) -> Any:
        x, y = paddle.to_tensor(numbers(3, 3)), paddle.to_tensor(numbers(3, 3, seed=1))
        return paddle.matmul(x, y), paddle.multiply(x, y), paddle.matmul(x, y, transpose_y=True)

    def plain(self) -> Any:
        x, y = paddle.to_tensor(numbers(3, 3)), paddle.to_tensor(numbers(3, 3, seed=1))
        return paddle.multiply(x, y), paddle.matmul(x, y), paddle.matmul(x, y)

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found[0], expected[1]) and np.allclose(found[1], expected[0])


class Gather(Entry):
    """torch.gather is take_along_axis in Paddle; paddle.gather takes whole slices, as index_select."""

    chinese = (
        "torch.gather 对应 paddle.take_along_axis；paddle.gather 取整片切片，相当于 index_select。"
    )
    apis = "torch.gather", "paddle.take_along_axis"
    sources = ("FAQ: gather",)
    keywords = "gather take_along_axis index_select"

    def torch_side(self) -> Any:
        x, index = torch.tensor(numbers(3, 4)), torch.tensor([[0, 2], [1, 1], [3, 0]])
        return torch.gather(x, 1, index), torch.index_select(x, 1, torch.tensor([3, 0]))

    def paddle_side(self) -> Any:
        x, index = paddle.to_tensor(numbers(3, 4)), paddle.to_tensor([[0, 2], [1, 1], [3, 0]])
        taken = paddle.take_along_axis(x, index, 1, broadcast=False)
        return taken, paddle.gather(x, paddle.to_tensor([3, 0]), 1)

    def plain(self) -> Any:
        x, index = paddle.to_tensor(numbers(3, 4)), paddle.to_tensor([[0, 2], [1, 1], [3, 0]])
        return paddle.gather(x, index, 1)

    raises = "ValueError"


class Scatter(Entry):
    """torch.scatter is put_along_axis in Paddle; paddle.scatter writes whole rows."""

    chinese = "torch.scatter 对应 paddle.put_along_axis；paddle.scatter 写入整行。"
    apis = "torch.scatter", "paddle.put_along_axis"
    keywords = "put_along_axis overwrite scatter_"

    def torch_side(self) -> Any:
        x, index = torch.zeros(2, 3), torch.tensor([[2], [0]])
        return torch.scatter(x, 1, index, torch.tensor(numbers(2, 1)))

    def paddle_side(self) -> Any:
        x, index = paddle.zeros([2, 3]), paddle.to_tensor([[2], [0]])
        return paddle.put_along_axis(x, index, paddle.to_tensor(numbers(2, 1)), 1, broadcast=False)

    def plain(self) -> Any:
        x, index = paddle.zeros([2, 3]), paddle.to_tensor([1, 0])
        return paddle.scatter(x, index, paddle.to_tensor(numbers(2, 3)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.array_equal(found, numbers(2, 3)[::-1])


class ScatterAdd(Entry):
    """scatter_add is put_along_axis with reduce="add"; repeated indices add up on both sides."""

    chinese = 'scatter_add 对应 put_along_axis(reduce="add")；重复的索引两边都会累加。'
    apis = "torch.scatter_add", 'paddle.put_along_axis(reduce="add")'
    keywords = "scatter_reduce include_self"

    def torch_side(self) -> Any:
        x, index = torch.ones(2, 3), torch.tensor([[2, 2], [0, 1]])
        return torch.scatter_add(x, 1, index, torch.tensor(numbers(2, 2)))

    def paddle_side(self) -> Any:
        x, index = paddle.ones([2, 3]), paddle.to_tensor([[2, 2], [0, 1]])
        values = paddle.to_tensor(numbers(2, 2))
        return paddle.put_along_axis(x, index, values, 1, reduce="add", broadcast=False)


class IndexAdd(Entry):
    """The index stands before the axis in Paddle: index_add(x, index, axis, value)."""

    chinese = "Paddle 中索引在轴之前：index_add(x, index, axis, value)。"
    apis = "torch.index_add", "paddle.index_add"
    keywords = "argument order index_add_"

    def torch_side(self) -> Any:
        x, index = torch.ones(3, 2), torch.tensor([0, 2])
        return torch.index_add(x, 0, index, torch.tensor(numbers(2, 2)))

    def paddle_side(self) -> Any:
        x, index = paddle.ones([3, 2]), paddle.to_tensor([0, 2])
        return paddle.index_add(x, index, 0, paddle.to_tensor(numbers(2, 2)))


class BooleanIndex(Entry):
    """x[mask] picks the same elements; where a fixed shape is wanted, where(mask, x, 0) sums the same."""

    chinese = "x[mask] 选出的元素相同；需要固定形状时用 where(mask, x, 0)，求和结果相同。"
    apis = "torch.Tensor[mask]", "paddle.Tensor[mask], paddle.where"
    sources = ("guide 4.4",)
    keywords = "masked_select bool index loss"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3, 4))
        return x[x > 0], x[x > 0].sum()

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3, 4))
        return x[x > 0], paddle.where(x > 0, x, paddle.zeros_like(x)).sum()


class WhereOneArgument(Entry):
    """where(condition) alone gives a tuple of indices, (n,) each, in both."""

    chinese = "只给条件时 where 返回各维索引组成的元组，两边相同，形状都是 (n,)。"
    apis = "torch.where", "paddle.where"
    keywords = "nonzero as_tuple"

    def torch_side(self) -> Any:
        found = torch.where(torch.tensor(numbers(3, 4)) > 0)
        return list(found)

    def paddle_side(self) -> Any:
        found = paddle.where(paddle.to_tensor(numbers(3, 4)) > 0)
        return [index.flatten() for index in found]


class IndexTransposed(Entry):
    """Indexing a transposed tensor by integers past its first axis is wrong in Paddle: contiguous() before it."""

    chinese = "Paddle 中用整数张量索引转置后张量的后续轴，结果是错的：先调用 contiguous()。"
    apis = "torch.Tensor[:, index]", "paddle.Tensor.contiguous()[:, index]"
    keywords = "transpose permute integer index gather wrong numbers"

    def torch_side(self) -> Any:
        return torch.tensor(numbers(3, 3, 3)).permute(0, 2, 1)[:, torch.tensor([2, 0, 0])]

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3, 3, 3)).transpose([0, 2, 1])
        return x.contiguous()[:, paddle.to_tensor([2, 0, 0])]

    def plain(self) -> Any:
        return paddle.to_tensor(numbers(3, 3, 3)).transpose([0, 2, 1])[
            :, paddle.to_tensor([2, 0, 0])
        ]


class SplitSections(Entry):
    """An integer is the size of a part in torch.split, the number of parts in paddle.split."""

    chinese = "整数参数：torch.split 中是每份的大小，paddle.split 中是份数。"
    apis = "torch.split", "paddle.split"
    keywords = "split sections chunk num_or_sections"

    def torch_side(self) -> Any:
        return torch.split(torch.tensor(numbers(6, 2)), 2)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(6, 2))
        return paddle.split(x, x.shape[0] // 2)

    def plain(self) -> Any:
        return paddle.split(paddle.to_tensor(numbers(6, 2)), 2)

    def as_described(self, expected: Any, found: Any) -> bool:
        return [len(part) for part in expected] == [2, 2, 2] and [len(p) for p in found] == [3, 3]


class SplitSizes(Entry):
    """A list of sizes means the same; Paddle also takes one -1 for the rest."""

    chinese = "给出各份大小的列表时两边相同；Paddle 还允许一个 -1 表示剩余部分。"
    apis = "torch.split", "paddle.split"
    keywords = "sections"

    def torch_side(self) -> Any:
        return torch.split(torch.tensor(numbers(6, 2)), [1, 2, 3])

    def paddle_side(self) -> Any:
        return paddle.split(paddle.to_tensor(numbers(6, 2)), [1, 2, -1])


class Chunk(Entry):
    """If the size is not divisible by the number, torch.chunk makes a smaller last chunk; Paddle refuses."""

    chinese = "不能整除时 torch.chunk 的最后一份较小；Paddle 报错。"
    apis = "torch.chunk", "paddle.chunk"

    def torch_side(self) -> Any:
        return torch.chunk(torch.tensor(numbers(5, 2)), 2)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(5, 2))
        size = -(-len(x) // 2)
        return [x[start : start + size] for start in range(0, len(x), size)]

    def plain(self) -> Any:
        return paddle.chunk(paddle.to_tensor(numbers(5, 2)), 2)

    raises = "ValueError"


class StackSlices(Entry):
    """stack takes axis for dim; the slices and concat of the sources are not needed."""

    chinese = "stack 的 dim 在 Paddle 中叫 axis；原文档用 slice + concat 组合的写法已不需要。"
    apis = "torch.stack", "paddle.stack"
    sources = ("guide 4.0",)
    keywords = "concat slice cat per_locations"

    def torch_side(self) -> Any:
        places, sizes = torch.tensor(numbers(3, 2)), torch.tensor(numbers(3, 4))
        return torch.stack([places[:, 0] - sizes[:, 0], places[:, 1] + sizes[:, 3]], dim=1)

    def paddle_side(self) -> Any:
        places, sizes = paddle.to_tensor(numbers(3, 2)), paddle.to_tensor(numbers(3, 4))
        return paddle.stack([places[:, 0] - sizes[:, 0], places[:, 1] + sizes[:, 3]], axis=1)


class ReshapeZero(Entry):
    """A 0 in paddle.reshape keeps that axis's size; in PyTorch it is a size of zero."""

    chinese = "paddle.reshape 中的 0 表示保留该维大小；PyTorch 中就是大小为零。"
    apis = "torch.reshape", "paddle.reshape"
    keywords = "view zero -1"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 3, 4))
        return x.reshape(x.shape[0], -1)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 3, 4))
        return paddle.reshape(x, [x.shape[0], -1])

    def plain(self) -> Any:
        return paddle.reshape(paddle.to_tensor(numbers(2, 3, 4)), [0, 0, -1])

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape == (2, 3, 4))


class Transpose(Entry):
    """PyTorch's transpose swaps two axes; Paddle's takes the whole order, as permute does."""

    chinese = "PyTorch 的 transpose 交换两个轴；Paddle 的 transpose 给出全部顺序，相当于 permute。"
    apis = "torch.transpose, permute", "paddle.transpose"
    keywords = "permute swapaxes perm"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 3, 4))
        return x.transpose(1, 2), x.permute(2, 0, 1)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 3, 4))
        return x.transpose([0, 2, 1]), x.transpose([2, 0, 1])


class RepeatTile(Entry):
    """Tensor.repeat is tile in Paddle; repeat_interleave has the same name."""

    chinese = "Tensor.repeat 在 Paddle 中是 tile；repeat_interleave 同名。"
    apis = "torch.Tensor.repeat", "paddle.tile"
    keywords = "expand repeat_interleave"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(2, 3))
        return x.repeat(2, 1), x.repeat_interleave(2, dim=1), x[:, None].expand(-1, 4, -1)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(2, 3))
        return x.tile([2, 1]), x.repeat_interleave(2, axis=1), x[:, None].expand([-1, 4, -1])


class TensorSize(Entry):
    """x.size() gives the shape in PyTorch; in Paddle x.size is the number of elements, x.shape the shape."""

    chinese = "PyTorch 的 x.size() 是形状；Paddle 的 x.size 是元素个数，形状用 x.shape。"
    apis = "torch.Tensor.size", "paddle.Tensor.shape"
    keywords = "numel shape"

    def torch_side(self) -> Any:
        return list(torch.zeros(2, 3).size())

    def paddle_side(self) -> Any:
        return list(paddle.zeros([2, 3]).shape)

    def plain(self) -> Any:
        return paddle.zeros([2, 3]).size

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found == 6)


class ToTensorDtype(Entry):
    """Python numbers get the default dtype or int64, numpy arrays keep theirs, on both sides."""

    chinese = "Python 数按默认浮点类型或 int64，numpy 数组保留自己的类型，两边相同。"
    apis = "torch.tensor", "paddle.to_tensor"
    sources = ("quick start 5.2.1",)
    keywords = "dtype int64 float32 double"

    def torch_side(self) -> Any:
        values = [1.5, 1, np.float32(1.5), np.ones(2, np.int32), True]
        return [str(torch.tensor(value).dtype).removeprefix("torch.") for value in values]

    def paddle_side(self) -> Any:
        values = [1.5, 1, np.float32(1.5), np.ones(2, np.int32), True]
        return [str(paddle.to_tensor(value).dtype).removeprefix("paddle.") for value in values]


class DtypeNames(Entry):
    """Paddle takes the dtype as a string too: torch.int64 becomes "int64" or paddle.int64."""

    chinese = 'Paddle 的 dtype 也可用字符串：torch.int64 写作 "int64" 或 paddle.int64。'
    apis = "torch.int64", '"int64", paddle.int64'
    sources = ("quick start 5.2.1, step 3",)
    keywords = "cast astype to type"

    def torch_side(self) -> Any:
        x = torch.tensor([1.7, -1.7])
        return x.to(torch.int64), torch.tensor([1, 2], dtype=torch.int64)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([1.7, -1.7])
        return x.astype("int64"), paddle.to_tensor([1, 2], dtype=paddle.int64)


class IntegerDivision(Entry):
    """/ of integers is a float in both; floor_divide and // round down in both."""

    chinese = "整数的 / 两边都得浮点数；floor_divide 与 // 两边都向下取整。"
    apis = "torch.floor_divide", "paddle.floor_divide"
    keywords = "floor trunc remainder mod"

    def torch_side(self) -> Any:
        x, y = torch.tensor([-7, 7]), torch.tensor([2, -2])
        return x // y, x % y, (x / y).double()

    def paddle_side(self) -> Any:
        x, y = paddle.to_tensor([-7, 7]), paddle.to_tensor([2, -2])
        return x // y, x % y, (x / y).astype("float64")


class Round(Entry):
    """Both round halves to the even number."""

    chinese = "恰好一半时两边都舍入到偶数。"
    apis = "torch.round", "paddle.round"
    keywords = "half even"

    def torch_side(self) -> Any:
        return torch.round(torch.tensor([0.5, 1.5, 2.5, -0.5]))

    def paddle_side(self) -> Any:
        return paddle.round(paddle.to_tensor([0.5, 1.5, 2.5, -0.5]))


class Clamp(Entry):
    """clamp is clip in Paddle; the gradient at the very bound is 1 on both sides."""

    chinese = "clamp 在 Paddle 中叫 clip；恰好在边界上梯度两边都是 1。"
    apis = "torch.clamp", "paddle.clip"
    keywords = "clip clamp gradient bound"

    def torch_side(self) -> Any:
        x = torch.tensor([-2.0, -1.0, 0.5, 1.0, 2.0], requires_grad=True)
        y = torch.clamp(x, -1, 1)
        y.sum().backward()
        return y, x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([-2.0, -1.0, 0.5, 1.0, 2.0], stop_gradient=False)
        y = paddle.clip(x, -1, 1)
        y.sum().backward()
        return y, x.grad


class MaxWithIndices(Entry):
    """max along an axis returns values and indices in PyTorch, the values alone in Paddle."""

    chinese = "沿轴取 max：PyTorch 返回值和索引，Paddle 只返回值。"
    apis = "torch.max(dim=)", "paddle.max, paddle.argmax"
    keywords = "min values indices"

    def torch_side(self) -> Any:
        values, indices = torch.max(torch.tensor(numbers(3, 4)), 1)
        return values, indices

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3, 4))
        return paddle.max(x, 1), paddle.argmax(x, 1)

    def plain(self) -> Any:
        return paddle.max(paddle.to_tensor(numbers(3, 4)), 1)

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.array_equal(found, expected[0])


class ArgmaxTies(Entry):
    """Among equal largest elements argmax returns the first on a CPU, on both sides; a GPU may return another."""

    chinese = "最大值并列时 CPU 上两边的 argmax 都返回第一个；GPU 上不保证。"
    apis = "torch.argmax", "paddle.argmax"
    keywords = "ties argmin first"

    def torch_side(self) -> Any:
        return torch.argmax(torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), 1)

    def paddle_side(self) -> Any:
        return paddle.argmax(paddle.to_tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), 1)


class SortTies(Entry):
    """Neither sort promises the order of equal elements: pass stable=True on both sides."""

    chinese = "两边的排序都不保证相等元素的次序：都要写 stable=True。"
    apis = "torch.sort(stable=)", "paddle.argsort(stable=)"
    sources = ("guide 4.3",)
    keywords = "ties stable argsort ranking metric"

    def torch_side(self) -> Any:
        x = torch.tensor([float(n % 3) for n in range(40)])
        return torch.sort(x, stable=True).indices, torch.argsort(x, descending=True, stable=True)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([float(n % 3) for n in range(40)])
        return paddle.argsort(x, stable=True), paddle.argsort(x, descending=True, stable=True)


class SortReturns(Entry):
    """sort returns values and indices in PyTorch, the values alone in Paddle: take argsort too."""

    chinese = "sort：PyTorch 返回值和索引，Paddle 只返回值：另用 argsort 取索引。"
    apis = "torch.sort", "paddle.sort, paddle.argsort"
    keywords = "sort argsort indices"

    def torch_side(self) -> Any:
        values, indices = torch.sort(torch.tensor(numbers(6)))
        return values, indices

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(6))
        return paddle.sort(x), paddle.argsort(x)

    def plain(self) -> Any:
        return paddle.sort(paddle.to_tensor(numbers(6)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.array_equal(found, expected[0])


class TopkTies(Entry):
    """topk takes axis for dim; its choice among equal elements is not defined: break ties before."""

    chinese = "topk 的 dim 叫 axis；相等元素取哪个没有约定：先消除并列。"
    apis = "torch.topk", "paddle.topk"
    keywords = "ProbSparse ties"

    def torch_side(self) -> Any:
        values, indices = torch.topk(torch.tensor(numbers(3, 6)), 2, dim=-1)
        return values, indices

    def paddle_side(self) -> Any:
        values, indices = paddle.topk(paddle.to_tensor(numbers(3, 6)), 2, axis=-1)
        return values, indices


class Variance(Entry):
    """var and std divide by n - 1 by default on both sides; numpy's by n."""

    chinese = "var、std 两边默认都除以 n - 1；numpy 默认除以 n。"
    apis = "torch.var, torch.std", "paddle.var, paddle.std"
    keywords = "unbiased correction ddof std"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3, 4))
        return x.var(), x.std(1), x.var(1, unbiased=False)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3, 4))
        return x.var(), x.std(1), x.var(1, unbiased=False)

    def plain(self) -> Any:
        x = numbers(3, 4)
        return x.var(), x.std(1), x.var(1)

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found[0], expected[0] * 11 / 12)


class Median(Entry):
    """For an even count PyTorch returns the lower middle element, Paddle the mean of both unless mode="min"."""

    chinese = '偶数个元素时 PyTorch 取较小的中间值，Paddle 默认取两者平均，除非 mode="min"。'
    apis = "torch.median", "paddle.median"
    keywords = "nanmedian mode avg"

    def torch_side(self) -> Any:
        return torch.median(torch.tensor([4.0, 1.0, 3.0, 2.0]))

    def paddle_side(self) -> Any:
        return paddle.median(paddle.to_tensor([4.0, 1.0, 3.0, 2.0]), mode="min")

    def plain(self) -> Any:
        return paddle.median(paddle.to_tensor([4.0, 1.0, 3.0, 2.0]))

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(expected == 2 and found == 2.5)


class MaximumTies(Entry):
    """Where both are equal maximum gives each half of the gradient, on both sides."""

    chinese = "两数相等时 maximum 的梯度各分一半，两边相同。"
    apis = "torch.maximum", "paddle.maximum"
    keywords = "gradient ties minimum"

    def torch_side(self) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.tensor([1.0, 3.0], requires_grad=True)
        torch.maximum(x, y).sum().backward()
        return x.grad, y.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        y = paddle.to_tensor([1.0, 3.0], stop_gradient=False)
        paddle.maximum(x, y).sum().backward()
        return x.grad, y.grad


class MaxTies(Entry):
    """Among equal largest elements along an axis PyTorch's max gives the gradient to one, Paddle's divides it among them."""

    chinese = "沿轴取 max 且有并列时：PyTorch 只把梯度给其中一个，Paddle 平分。"
    apis = "torch.max(dim=)", "paddle.max(axis=)"
    keywords = "gradient ties amax min pooling"

    def torch_side(self) -> Any:
        x = torch.tensor([[3.0, 1.0, 3.0]], requires_grad=True)
        x.max(1).values.sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([[3.0, 1.0, 3.0]], stop_gradient=False)
        at = paddle.argmax(x, 1, keepdim=True)
        paddle.take_along_axis(x, at, 1).sum().backward()
        return x.grad

    def plain(self) -> Any:
        x = paddle.to_tensor([[3.0, 1.0, 3.0]], stop_gradient=False)
        paddle.max(x, 1).sum().backward()
        return x.grad

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.array_equal(found, [[0.5, 0, 0.5]]) and sorted(expected[0]) == [0, 0, 1]


class Einsum(Entry):
    """einsum takes the same equations."""

    chinese = "einsum 的公式写法相同（Paddle 2.2 起提供）。"
    apis = "torch.einsum", "paddle.einsum"
    sources = ("FAQ: einsum",)
    keywords = "einstein"

    def torch_side(self) -> Any:
        x, y = torch.tensor(numbers(2, 3, 4)), torch.tensor(numbers(2, 4, 5))
        return torch.einsum("bij,bjk->bik", x, y), torch.einsum("bij->ij", x)

    def paddle_side(self) -> Any:
        x, y = paddle.to_tensor(numbers(2, 3, 4)), paddle.to_tensor(numbers(2, 4, 5))
        return paddle.einsum("bij,bjk->bik", x, y), paddle.einsum("bij->ij", x)


class OneHot(Entry):
    """one_hot is int64 in PyTorch, float32 in Paddle, whatever the default dtype."""

    chinese = "one_hot：PyTorch 得 int64，Paddle 总是 float32。"
    apis = "torch.nn.functional.one_hot", "paddle.nn.functional.one_hot"
    keywords = "dtype num_classes"

    def torch_side(self) -> Any:
        return torch.nn.functional.one_hot(torch.tensor([0, 2]), 3)

    def paddle_side(self) -> Any:
        return paddle.nn.functional.one_hot(paddle.to_tensor([0, 2]), 3).astype("int64")

    def plain(self) -> Any:
        return paddle.nn.functional.one_hot(paddle.to_tensor([0, 2]), 3)

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.dtype.kind == "f" and np.array_equal(found, expected))


class NumpyOfGradients(Entry):
    """numpy() of a tensor that needs a gradient is refused by PyTorch: detach first; Paddle allows it."""

    chinese = "需要梯度的张量：PyTorch 要先 detach 才能 numpy()，Paddle 可以直接调用。"
    apis = "torch.Tensor.detach().numpy", "paddle.Tensor.numpy"
    keywords = "cpu detach convert"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3), requires_grad=True)
        return (2 * x).detach().cpu().numpy()

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3), stop_gradient=False)
        return (2 * x).numpy()


class Norm(Entry):
    """torch.norm's dim is axis; without it both take the norm of all elements, p of 2."""

    chinese = "norm 的 dim 叫 axis；不写时两边都取全部元素的 2 范数。"
    apis = "torch.linalg.vector_norm", "paddle.linalg.norm"
    keywords = "frobenius p-norm"

    def torch_side(self) -> Any:
        x = torch.tensor(numbers(3, 4))
        return x.norm(), x.norm(p=1, dim=1)

    def paddle_side(self) -> Any:
        x = paddle.to_tensor(numbers(3, 4))
        return paddle.linalg.norm(x), paddle.linalg.norm(x, p=1, axis=1)


class CumulativeSum(Entry):
    """cumsum without an axis flattens in Paddle; PyTorch demands dim."""

    chinese = "Paddle 的 cumsum 不写 axis 时先展平；PyTorch 必须写 dim。"
    apis = "torch.cumsum", "paddle.cumsum"
    keywords = "cumsum axis flatten"

    def torch_side(self) -> Any:
        return torch.cumsum(torch.tensor(numbers(2, 3)), 0)

    def paddle_side(self) -> Any:
        return paddle.cumsum(paddle.to_tensor(numbers(2, 3)), axis=0)

    def plain(self) -> Any:
        return paddle.cumsum(paddle.to_tensor(numbers(2, 3)))

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape == (6,))


class Unique(Entry):
    """return_inverse and return_counts are the same; both sort and flatten by default."""

    chinese = "return_inverse、return_counts 含义相同；默认都排序并展平。"
    apis = "torch.unique", "paddle.unique"
    keywords = "inverse counts"

    def torch_side(self) -> Any:
        x = torch.tensor([3, 1, 3, 2])
        return list(torch.unique(x, return_inverse=True, return_counts=True))

    def paddle_side(self) -> Any:
        x = paddle.to_tensor([3, 1, 3, 2])
        return list(paddle.unique(x, return_inverse=True, return_counts=True))


class MaxOfNan(Entry):
    """The maximum of numbers with a NaN among them is NaN on both sides, wherever it stands."""

    chinese = "含 NaN 时 max 两边都是 NaN，与位置无关。"
    apis = "torch.max", "paddle.max"
    keywords = "nan amax fmax"

    def torch_side(self) -> Any:
        return [torch.tensor(x).max() for x in ([1.0, torch.nan, 0.5], [torch.nan, 1.0, 0.5])]

    def paddle_side(self) -> Any:
        return [paddle.to_tensor(x).max() for x in ([1.0, np.nan, 0.5], [np.nan, 1.0, 0.5])]


class Meshgrid(Entry):
    """Both index as matrices do ("ij") unless told."""

    chinese = '两边默认都按矩阵下标（"ij"）。'
    apis = 'torch.meshgrid(indexing="ij")', "paddle.meshgrid"
    keywords = "indexing xy"

    def torch_side(self) -> Any:
        x, y = torch.tensor(numbers(2)), torch.tensor(numbers(3))
        return list(torch.meshgrid(x, y, indexing="ij"))

    def paddle_side(self) -> Any:
        return list(paddle.meshgrid(paddle.to_tensor(numbers(2)), paddle.to_tensor(numbers(3))))
