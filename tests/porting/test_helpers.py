"""Layers that Paddle builds in another way: ports of small sources that end faithful."""

from tests.porting.conftest import PortSource

import numpy as np
import pytest

_HEAD = "import torch\nfrom torch import nn\n\n"
_X = np.random.default_rng(0).standard_normal
_LINEAR = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):"""
"""a model with one layer, up to what is done with its input"""
CASES = {
    "a choice among classes, and a loss whose target needs a gradient": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        x = self.layer(x)
        first = torch.distributions.Categorical(logits=x)
        second = torch.distributions.Categorical(probs=x.softmax(-1) + 0.1)
        barred = torch.distributions.Categorical(logits=x - 1e8 * (x > x.mean()).to(x)).logits
        ratio = (first.log_prob(first.sample()) - second.entropy()).exp()
        loss = nn.functional.binary_cross_entropy_with_logits(x, second.probs)
        return ratio, loss, torch.distributions.kl_divergence(first, second), second.mode, barred
''',
        _X((2, 5, 4)),
        "bce_with_logits(x, second.probs)",
    ),
    "what stands between the imports": (
        '''
__all__ = ["Net"]

import math
import torch.nn.functional as F

POOLS = {"mean": nn.AdaptiveAvgPool2d}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool, self.layer = POOLS["mean"](3), nn.Linear(9, 2)

    def forward(self, x):
        return self.layer(F.avg_pool2d(self.pool(x).tanh(), 3, 1, 1).flatten(1)) * math.pi
''',
        _X((2, 1, 7, 7)),
        "import math\n\ndef average_windows(",
    ),
    "items of a view that tensors choose": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        places = torch.arange(5).repeat(2, 1, 1)
        places = places.flip(-1)[..., :3]
        places[places == 4] = places[..., 1:2].repeat(1, 1, 3)[places == 4]
        return torch.gather(self.layer(x), 2, places)
''',
        _X((2, 1, 4)),
        "places = places.contiguous()",
    ),
    "a transform that is handed on": (
        '''
from functools import partial


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.layer = partial(torch.fft.fftn, dim=(1, 2)), nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(self.mix(x).real)
''',
        _X((2, 5, 4)),
        "def fftn(input, s=None, dim=None, norm='backward'):",
    ),
    "a row of padding that is drawn, a form over three axes, and items that are set at once": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 4, padding_idx=0)
        nn.init.normal_(self.table.weight)
        self.mix = nn.Bilinear(4, 4, 4)

    def forward(self, ids):
        x = self.table(ids)
        x = self.mix(x, x) * torch.where(ids > 2, 1, 0.5).unsqueeze(-1)
        first, second = torch.zeros(3, 4, dtype=x.dtype), torch.zeros(3, 4, dtype=x.dtype)
        rows = torch.arange(2)
        first[rows], second[rows] = x[:, 0], x[:, 1]
        return first + second.square()
''',
        np.array([[3, 5, 1], [4, 1, 2]]),
        "first.index_put_((rows,), first_items)",
    ),
    "recurrent layers without biases": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(6, 8, 2, bias=False, batch_first=True)
        self.second = nn.GRU(8, 5, bias=False, bidirectional=True, batch_first=True)
        self.third = nn.RNN(10, 3, bias=False, batch_first=True)

    def forward(self, x):
        for layer in (self.first, self.second, self.third):
            x, _ = layer(x)
        return x[:, -1]
''',
        _X((3, 5, 6)),
        "drop_biases(nn.GRU(8, 5, direction='bidirect', time_major=False))",
    ),
    "running statistics that are means": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.norm = nn.BatchNorm2d(6, momentum=None)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))).mean((2, 3))
''',
        _X((4, 3, 8, 8)),
        "average_statistics(nn.BatchNorm2D(6))",
    ),
    "a parametrization": (
        '''
from torch.nn.utils import parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.arange(1.0, 7.0))

    def forward(self, x):
        return x * self.scale[:, None]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(6, 6)
        parametrize.register_parametrization(self.mix, "weight", Symmetric())
        parametrize.register_parametrization(self.mix, "weight", Scaled())

    def forward(self, x):
        return torch.tanh(self.mix(x))
''',
        _X((4, 6)),
        "register_parametrization(self.mix, \"weight\", Scaled())",
    ),
    "a base that is called by its name, and a table that is drawn anew": (
        '''
class Masked(nn.Linear):
    def __init__(self, inputs, outputs, mask):
        nn.Linear.__init__(self, inputs, outputs)
        self.register_buffer("mask", mask)

    def forward(self, x):
        return nn.functional.linear(x, self.mask * self.weight, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.table.reset_parameters()
        self.masked = Masked(4, 4, torch.ones(4, 4).tril())

    def forward(self, x):
        return self.masked(self.table(x))
''',
        np.array([[0, 3], [4, 1]]),
        "paddle.compat.nn.Linear.__init__(self, inputs, outputs)",
    ),
    "layers that are drawn anew": (
        '''
class Masked(nn.Linear):
    def __init__(self, inputs, outputs, mask):
        nn.Linear.__init__(self, inputs, outputs)
        self.register_buffer("mask", mask)

    def reset_parameters(self):
        super().reset_parameters()

    def forward(self, x):
        return nn.functional.linear(x, self.mask * self.weight, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.row, self.pair = nn.GRUCell(4, 4), nn.LSTM(4, 4), nn.Bilinear(4, 4, 4)
        self.heads = nn.MultiheadAttention(4, 2)
        for one in (self.cell, self.row, self.pair):
            one.reset_parameters()
        self.own = Masked(4, 4, torch.ones(4, 4).tril())
        for one in self.children():
            if hasattr(one, "reset_parameters"):
                one.reset_parameters()
        self.heads._reset_parameters()

    def forward(self, x):
        y, _ = self.row(self.cell(x).unsqueeze(0))
        y, _ = self.heads(y, y, y)
        return self.pair(y[0], self.own(x))
''',
        _X((3, 4)),
        "redraw_parameters(self.heads)",
    ),
    "rows of a sparse matrix that are counted": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 4)

    def forward(self, rows):
        starts = torch._convert_indices_from_coo_to_csr(rows, 5, out_int32=False)
        pairs = torch._convert_indices_from_csr_to_coo(starts, rows)
        return self.table(starts[1:] - starts[:-1]).sum(0), self.table(pairs.sum(0) % 6)
''',
        np.array([0, 0, 1, 3, 3, 3]),
        "paddle.searchsorted(rows, paddle.arange(5 + 1, dtype=rows.dtype)",
    ),
    "rows of booleans that occur once": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 4)

    def forward(self, x):
        rows, place = torch.unique(x > 0, dim=0, return_inverse=True)
        return self.layer(rows.to(x.dtype)), place, torch.unique(x > 9)
''',
        _X((7, 2)),
        "find_unique(x > 0, return_inverse=True, axis=0)",
    ),
    "a model made for quantization": (
        '''
from torch.ao.quantization import DeQuantStub, QuantStub


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant, self.layer = QuantStub(), DeQuantStub(), nn.Linear(4, 4)
        self.skip = nn.quantized.FloatFunctional()

    def forward(self, x):
        x = self.quant(x)
        y = self.skip.add_relu(self.layer(x), x)
        return self.dequant(self.skip.cat([self.skip.mul(x, y), y], dim=1))
''',
        _X((3, 4)),
        "self.skip = FloatFunctional()",
    ),
    "a function whose keywords are in a dict": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.options = nn.Linear(9, 4), dict(n_fft=16, hop_length=4, normalized=True)

    def forward(self, x):
        made = torch.stft(x, **self.options, window=torch.ones(16).to(x), return_complex=True)
        made = torch.view_as_real(made)[..., 0].mT
        return self.layer(made)
''',
        _X((2, 40)),
        "stft(x, **self.options, ",
    ),
    "a table that is given": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.waves = nn.Embedding.from_pretrained(torch.linspace(-1, 1, 24).view(6, 4).sin())
        self.words = nn.Embedding.from_pretrained(torch.ones(6, 4), freeze=False, padding_idx=0)
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(self.waves(x) + self.words(x))
''',
        np.array([[1, 3], [4, 1]]),
        "embedding_from(paddle.ones([6, 4]), freeze=False, padding_idx=0)",
    ),
    "a likelihood whose labels are ignored in part": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.loss = nn.Linear(4, 3), nn.NLLLoss(torch.tensor([1.0, 2.0, 0.5]), ignore_index=2)

    def forward(self, x):
        y = self.layer(x).log_softmax(-1)
        labels = torch.arange(5) % 3
        every = nn.functional.nll_loss(y, labels) + nn.functional.nll_loss(y, labels, reduction="sum")
        return self.loss(y, labels), every, nn.functional.nll_loss(y, labels.where(labels > 0, -100))
''',
        _X((5, 4)),
        " nll_loss(y, paddle.where(labels > 0, labels, -100))",
    ),
    "a frozen table with a row of padding": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(torch.ones(6, 4), padding_idx=0)
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(self.words(x))
''',
        np.array([[0, 3], [4, 0]]),
        "embedding_from(paddle.ones([6, 4]), padding_idx=0)",
    ),
    "a tensor that is told by the name of its class": (
        _LINEAR + '''
        if str(type(x)).startswith("<class 'torch."):
            x = 2 * x
        return self.layer(x)
''',
        _X((3, 4)),
        """startswith("<class 'paddle.")""",
    ),
    "a number divided by integers": (
        _LINEAR + '''
        y = self.layer(x)
        with torch.no_grad():
            rank = (y >= y[:, :1]).sum(1) + 2
            share = (1.0 / rank).mean()
        return y, share
''',
        _X((3, 4)),
        "(1.0 / rank.astype(paddle.get_default_dtype())).mean()",
    ),
    "a norm that is given its device by position": (
        '''
class Norm(nn.LayerNorm):
    def __init__(self, shape, eps=1e-5, affine=True, bias=True, device=None, dtype=None):
        super().__init__(shape, eps, affine, bias, device, dtype)

    def forward(self, x):
        args = x, self.normalized_shape, self.weight + 1, self.bias, self.eps
        return nn.functional.layer_norm(*args)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.plain = Norm(4), nn.LayerNorm(4, 1e-5, True, True, None)

    def forward(self, x):
        return self.plain(x) + self.norm(x * x)
''',
        _X((3, 4)),
        "super().__init__(shape, epsilon=eps, elementwise_affine=affine, bias=bias)",
    ),
    "an activation that is found by its name": (
        '''
def find_activation(name):
    kinds = [
        kind for kind in vars(torch.nn.modules.activation).values()
        if isinstance(kind, type) and issubclass(kind, torch.nn.Module)
    ]
    return next(kind for kind in kinds if kind.__name__.lower() == name)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.act = nn.Linear(4, 4), find_activation("silu")()

    def forward(self, x):
        return self.act(self.layer(x))
''',
        _X((3, 4)),
        "vars(nn.layer.activation).values()",
    ),
    "items that a mask chooses, or none": (
        _LINEAR + '''
        total = torch.relu(x).sum(1)
        total[torch.where(total == 0)] = 1
        far = x.clone()
        far[torch.where(x > 1e9)] = 0.0
        return self.layer(far) / total.unsqueeze(1)
''',
        np.array([[1.0, 2, -3, 4], [-1, -2, -3, -4], [0.5, 1, 1, 2]]),
        "total[total == 0] = 1",
    ),
    "booleans and numbers gathered at one place": (
        '''
def choose(values, index):
    return values.gather(1, index)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        near = x.argsort(1)
        return choose(self.layer(x), near).masked_fill(choose(x > 0, near), 0.0)
''',
        _X((3, 4)),
        'axis=1, broadcast=False).astype(values.dtype)',
    ),
    "distributions and factors": (
        '''
from torch.distributions import Independent, MultivariateNormal, Normal, StudentT


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 8)
        self.turn, *rest = torch.linalg.lu(torch.eye(4)[[1, 0, 3, 2]] * 2)

    def forward(self, x):
        mean, spread = self.layer(x @ self.turn.to(x)).chunk(2, dim=-1)
        spread = spread.exp()
        near = Independent(Normal(mean, spread), 1, validate_args=False).log_prob(x)
        joint = MultivariateNormal(mean, scale_tril=torch.diag_embed(spread)).log_prob(x)
        return near, joint, StudentT(2.0 + spread, mean, spread).log_prob(x).sum()
''',
        _X((3, 4)),
        "paddle.distribution.Independent(paddle.distribution.Normal(mean, spread), 1).log_prob(x)",
    ),
    "an index that is a list of slices": (
        _LINEAR + '''
        places = [slice(None)] * x.ndim
        places[1] = slice(1, 3)
        return self.layer(x) + x[places].sum()
''',
        _X((3, 4)),
        "x[tuple(places)].sum()",
    ),
    "a setting that a layer is asked for": (
        '''
def find_width(layer):
    if hasattr(layer, "in_features"):
        return layer.in_features
    return layer.in_channels if hasattr(layer, "in_channels") else None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.conv = nn.Linear(4, 4), nn.Conv1d(4, 4, 1)
        self.scale = nn.Parameter(torch.ones(find_width(self.layer), find_width(self.conv)))
        self.shift = nn.Parameter(torch.zeros(1 if find_width(nn.ReLU()) is None else 2))

    def forward(self, x):
        return self.conv((self.layer(x) @ self.scale)[..., None])[..., 0] + self.shift
''',
        _X((3, 4)),
        'if (isinstance(layer, nn.Linear) or hasattr(layer, "in_features")):',
    ),
    "kernels with another gradient, or none": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.loss = nn.Linear(4, 4), nn.KLDivLoss(reduction="batchmean")
        self.table = nn.Embedding(5, 4, _weight=torch.arange(20.0).view(5, 4).sin())

    def forward(self, x):
        y = self.layer(x)
        grid, other = torch.meshgrid(y[0], x[0].detach(), indexing="xy")
        turned = torch.cross(y[:, :3], x[:, 1:], dim=1)
        kept = x.index_copy(1, torch.tensor([2, 0]), y[:, :2]) + self.table(torch.tensor([4, 1, 1]))
        odd = torch.bitwise_and(torch.arange(4), 1)
        near = self.loss(y.log_softmax(1), x.softmax(1))
        return grid + other, turned, kept * odd, near, torch.matrix_power(y[:, :3], 2)
''',
        _X((3, 4)),
        "weight_attr=nn.initializer.Assign(",
    ),
    "sparse matrices": (
        _LINEAR + '''
        places = torch.tensor([[0, 1, 2, 2], [1, 0, 2, 0]])
        y = self.layer(x)
        near = torch.sparse_coo_tensor(places, y[:, 0].exp()[places[0]], (3, 3))
        plain = torch.sparse.FloatTensor(places, torch.ones(4).to(x), torch.Size([3, 3])).coalesce()
        made = torch.mm(plain, x) + 2 * (plain @ x)
        return torch.sparse.mm(near, y) + torch.spmm(plain, y), made, plain.to_dense()
''',
        _X((3, 4)),
        "multiply_sparse(near, y) + multiply_sparse(plain, y)",
    ),
    "windows that overlap in a transposed tensor, and sizes of integers": (
        _LINEAR + '''
        y = self.layer(x).view(3, 2, 4).transpose(0, 1)
        half = torch.div(x.size(1), 2, rounding_mode="trunc")
        rows, step, _ = y.stride()
        return y.as_strided(size=(2, 2, 2, half), stride=(rows, step, step, y.stride(-1))) * half
''',
        _X((6, 4)),
        "stride_over(y, (2, 2, 2, half), (rows, step, step, y.contiguous().stride(-1)))",
    ),
    "targets of CTC in one row, and labels that do not count": (
        _LINEAR + '''
        y = self.layer(x)
        labels = torch.tensor([[2, 1, -100], [3, -100, -100]])
        kept = labels >= 0
        near = nn.functional.ctc_loss(
            y.log_softmax(-1), labels.masked_select(kept), torch.tensor([5, 4]), kept.sum(-1),
            blank=0, reduction="sum", zero_infinity=False,
        )
        loss = nn.CrossEntropyLoss(ignore_index=-100)
        return near, loss(y[:3].transpose(1, 2).reshape(6, -1)[:, :4], labels.view(-1).repeat(1))
''',
        _X((5, 2, 4)),
        "lay_in_rows(labels.masked_select(kept), ",
    ),
    "targets of a CTC layer in one row": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.loss = nn.Linear(4, 4), nn.CTCLoss(reduction="sum", zero_infinity=True)

    def forward(self, x):
        logs = self.layer(x).log_softmax(-1)
        return self.loss(logs, torch.tensor([2, 1, 3]), torch.tensor([5, 4]), torch.tensor([2, 1]))
''',
        _X((5, 2, 4)),
        "targets = lay_in_rows(targets, target_lengths)",
    ),
    "classes with weights, smoothed, and a negative index of what does not count": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.loss = nn.Linear(4, 3), nn.CrossEntropyLoss(ignore_index=-1)

    def forward(self, x):
        y, labels = self.layer(x), torch.tensor([0, 2, 1, 2, 0])
        one = nn.functional.cross_entropy(y, labels, torch.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1)
        return one, self.loss(y, labels), nn.functional.cross_entropy(y, labels, ignore_index=-7)
''',
        _X((5, 4)),
        "cross_entropy(y, labels, ignore_index=-7)",
    ),
    "a smoothing that training alone has, and a normalized weight": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.classes = nn.Linear(4, 4), nn.Linear(4, 3, bias=False)

    def forward(self, x):
        y = torch.rot90(self.layer(x), 1, dims=[0, 1]).mT
        y = nn.functional.linear(y, nn.functional.normalize(self.classes.weight, dim=-1))
        losses, target = [], torch.tensor([0, 2, -100, 2, 0])
        for at in range(5):
            smooth = 0.1 if self.training and at == 4 else 0.0
            losses.append(nn.functional.cross_entropy(y, target, reduction="sum", label_smoothing=smooth))
        return torch.stack(losses)
''',
        _X((5, 4)),
        "paddle.rot90(self.layer(x), 1, axes=[0, 1])",
    ),
    "fans, a triangle with its state, and a bilinear layer": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.up = nn.Linear(4, 3), nn.UpsamplingBilinear2d(scale_factor=1.5)
        nn.init.constant_(self.layer.bias, 1 / nn.init._calculate_correct_fan(self.layer.weight, "fan_out"))

    def forward(self, x):
        y = self.layer(x)
        L, info = torch.linalg.cholesky_ex(y @ y.T + torch.eye(5, dtype=y.dtype))
        return L, info.any(), self.up(y[None, None])
''',
        _X((5, 4)),
        "paddle.linalg.cholesky(",
    ),
    "powers of whole numbers beyond what a float holds": (
        _LINEAR + '''
        hashes = torch.tensor(1000000007) ** torch.arange(4) * torch.tensor([3, 1, 4, 2])
        return self.layer(x) * (hashes % 30)
''',
        _X((6, 4)),
        "whole_power(paddle.to_tensor(1000000007), paddle.arange(4))",
    ),
    "a parameter of norms that Paddle names otherwise": (
        '''
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        plain, scaled = nn.InstanceNorm1d(4), nn.InstanceNorm1d(4, affine=True)
        self.layers = nn.Sequential(nn.BatchNorm1d(4), plain, scaled, nn.GroupNorm(2, 4))
        for layer in self.layers:
            if layer.weight is not None:
                nn.init.constant_(layer.weight, 2)

    @torch.no_grad
    def double(self, x):
        return x * 2

    def forward(self, x):
        return self.layers(x) + self.double(x)
''',
        _X((3, 4, 5)),
        "(layer.scale if isinstance(layer, nn.InstanceNorm1D) else layer.weight) is not None",
    ),
    "numbers that are drawn where nothing ran": (
        _LINEAR + '''
        return self.layer(x)

    def crop(self, least):
        scale = float(torch.empty(1).uniform_(least, 1))
        return int(torch.randint(0, 5, size=(1,))), scale, int(len(least))
''',
        _X((6, 4)),
        ".uniform_(least, 1).item())",
    ),
    "several results that are read by their names": (
        _LINEAR + '''
        y, most = self.layer(x), x[:, :2]
        held = y.max(1).values + y.kthvalue(2).values + y.topk(2).values[:, 0]
        return held, y.cummax(1).indices, torch.linalg.lstsq(y, most).solution
''',
        _X((6, 4)),
        "y.kthvalue(2)[0] + y.topk(2).values[:, 0]",
    ),
    "rows that are reduced by an index": (
        _LINEAR + '''
        y, index = self.layer(x), torch.tensor([0, 2, 1, 1, 0, 0])
        near = [y[:3].index_reduce(0, index, y, one, include_self=False) for one in ("amax", "mean")]
        return y[:3].index_reduce(0, index, y, "prod"), *near
''',
        _X((6, 4)),
        'reduce="multiply", include_self=True',
    ),
    "a window whose function is handed on": (
        '''
class Net(nn.Module):
    def __init__(self, make=torch.hann_window):
        super().__init__()
        self.layer, self.make = nn.Linear(4, 4), make

    def forward(self, x):
        return self.layer(x) * self.make(4, device=x.device).to(x)
''',
        _X((3, 4)),
        "def __init__(self, make=hann_window):",
    ),
    "logarithms of shares that are zero": (
        _LINEAR + '''
        y = self.layer(x)
        near = (y @ y.t()).masked_fill(torch.eye(len(x)).bool(), float("-inf"))
        far = 900 * y
        shares = nn.functional.log_softmax(near, dim=1), torch.log_softmax(far, 1), far.log_softmax(1)
        return [one.roll(1, 1).diagonal() for one in shares], near.log_softmax(-1).exp()
''',
        _X((4, 4)),
        "near - paddle.logsumexp(near, axis=1, keepdim=True)",
    ),
    "NumPy's names of arguments, a function that may change its input": (
        '''
from torch.autograd.function import InplaceFunction


class Halved(InplaceFunction):
    @staticmethod
    def forward(ctx, x):
        return x * 0.5

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 0.5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = Halved.apply(self.layer(x))
        highest, _ = y.max(dim=1, keepdims=True)
        return y - highest, y.sum(axis=1, keepdims=True), torch.mean(y, axis=0)
''',
        _X((3, 4)),
        "class Halved(paddle.autograd.PyLayer):",
    ),
}  # fmt: skip
"""a source, its input, and what stands in the port"""


@pytest.mark.parametrize("name", CASES)
def test_the_port_is_faithful(name: str, port_source: PortSource) -> None:
    source, values, part = CASES[name]
    made, text = port_source(_HEAD + source, (values,))
    assert made.verdict == "faithful" and not made.course.steps, made.left
    assert part in text
