"""For each remedy a source, the draft that PaConvert makes of it, and inputs."""

from reprod_align.porting import remedies
from tests.porting.drafts import NUMBERS

import numpy as np

IDS = (np.array([[0, 3, 1], [2, 0, 0]]),)
NET = "import torch\nfrom torch import Tensor, nn\n\nclass Net(nn.Module):\n"
DRAFT = "import paddle\n\nclass Net(paddle.nn.Module):\n"


def _alike(body: str, changed: str = "", inputs: object = NUMBERS) -> tuple[str, str, object]:
    """Return a case whose draft has the same body, PyTorch's names exchanged, or another one."""
    plain = body.replace("torch.", "paddle.").replace("nn.", "paddle.nn.")
    return NET + body, DRAFT + (changed or plain.replace("paddle.paddle.", "paddle.")), inputs


def _layered(
    layer: str, use: str, changed: str = "", inputs: object = NUMBERS
) -> tuple[str, str, object]:
    """Return the case of a layer: made in __init__, used in forward."""
    body = ("    def __init__(self):\n        super().__init__()\n        {layer}\n\n"
            "    def forward(self, x):\n        return {use}\n")  # fmt: skip
    other = body.format(layer=changed, use=use) if changed else ""
    return _alike(body.format(layer=layer, use=use), other, inputs)


FORWARD = "    def forward(self, x):\n        return {}\n"
CASES = {
    remedies.OtherCase: _layered("self.pool = nn.MaxPool1d(2)", "self.pool(x.unsqueeze(0))"),
    remedies.MissingSubmodule: (
        NET + FORWARD.format("x * len('wsgiref.headers')"),
        DRAFT.replace("paddle\n", "paddle\nimport wsgiref\n", 1)
        + FORWARD.format("x * len(wsgiref.headers.__name__)"),
        NUMBERS,
    ),
    remedies.PrivateSetting: _layered(
        "self.c = nn.Conv1d(4, 4, 3, stride=2)",
        "self.c(x.unsqueeze(0)) * self.c.stride[0]",
        "self.c = paddle.nn.Conv1D(4, 4, 3, stride=2)",
    ),
    remedies.InplaceArgument: _layered("self.act = nn.ReLU(inplace=True)", "self.act(x * 2)"),
    remedies.IndexTransposed: _alike(
        FORWARD.format("x.unsqueeze(0).permute(0, 2, 1)[:, torch.tensor([3, 0, 0, 2])]"),
        FORWARD.format("x.unsqueeze(0).permute(0, 2, 1)[:, paddle.to_tensor([3, 0, 0, 2])]"),
    ),
    remedies.ExtremesOfBooleans: _alike(
        FORWARD.format("x * torch.amax(x > 0, 1)[:, None].to(x.dtype)"),
        FORWARD.format("x * paddle.max(x > 0, 1)[:, None].to(x.dtype)"),
    ),
    remedies.ScalarOperand: _alike(FORWARD.format("x.div(0.5)")),
    remedies.ChangedInPlace: (
        _layered("self.layer = nn.Linear(6, 6)", "self.layer(x).exp().add(x).sin()")[0],
        _layered("self.layer = nn.Linear(6, 6)", "self.layer(x).exp().add_(x).sin_()")[1],
        NUMBERS,
    ),
    remedies.ChangedQuotient: _alike(
        "    def __init__(self):\n        super().__init__()\n        self.layer = nn.Linear(6, 6)\n\n"
        "    def forward(self, x):\n        y = self.layer(x) / (x.abs() + 1)\n"
        "        y = y.reshape(-1, 2)\n        y[..., 0] /= 3\n        return y\n"
    ),
    remedies.IndependentDivergence: (
        "from torch.distributions import Independent, Normal, kl_divergence\n" + NET
        + FORWARD.format("kl_divergence(*(Independent(Normal(x, x.exp() + n), 1) for n in (1, 2)))"),
        DRAFT + FORWARD.format("paddle.distribution.kl_divergence(*(paddle.distribution.Independent("
            "paddle.distribution.Normal(x, x.exp() + n), 1) for n in (1, 2)))"),
        NUMBERS,
    ),
    remedies.ShapeAsKey: _alike(
        "    from functools import lru_cache\n\n    @lru_cache\n    def table(self, size, axes):\n"
        "        return size[0] / axes\n\n"
        + FORWARD.format("x.reshape(x.shape) * self.table(x.shape, axes=len(x.shape)) "
            "* {(4, 6): 2.0}[x.shape]")
    ),
    remedies.IdleQuery: _alike(
        FORWARD.format("nn.functional.scaled_dot_product_attention(\n            x[None, None], "
            "x[None, None], x[None, None], torch.arange(4)[:, None].expand(4, 4) > 0)"),
        FORWARD.format("paddle.compat.nn.functional.scaled_dot_product_attention(\n            "
            "x[None, None], x[None, None], x[None, None], paddle.arange(4)[:, None].expand([4, 4]) > 0)"),
    ),
    remedies.PadRowFunction: _layered("self.weight = nn.Parameter(torch.ones(5, 3))",
        "nn.functional.embedding(x, self.weight, padding_idx=0)", inputs=IDS),
    remedies.PadRowLayer: _layered(
        "self.table = nn.Embedding(5, 3, padding_idx=0)", "self.table(x)", inputs=IDS
    ),
}  # fmt: skip
JOINED = _alike(
    "    def forward(self, x):\n        left, right, one = [1, 0], [3, 2], 1\n"
    "        y = x[None].permute(0, 2, 1)[:, left + right]\n        return y, x[:, one + 1]\n"
)
FAR = _alike(
    "    def forward(self, x):\n        y = (x.t() * 2).t()[:, torch.tensor([3, 0])]\n"
    "        return x[:, :2] + y\n",
    "    def forward(self, x):\n        y = (x.t() * 2).t()[:, paddle.to_tensor([3, 0])]\n"
    "        return x[:, :2] + y\n",
)
EPSILON = _layered(
    "self.norm = nn.LayerNorm(6)",
    "self.norm(x) + self.norm.eps",
    "self.norm = paddle.nn.LayerNorm(6)",
)
"""Paddle's private name is another word too"""
INPLACE = _alike(
    "    def forward(self, x):\n        y = x.clone()\n        y.mul_(0.5)\n"
    "        y.add_(2.0)\n        return y\n"
)
"""the case of ScalarOperand for methods that change their tensor"""
