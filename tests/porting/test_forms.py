"""Calls whose arguments Paddle takes in another type alone, and helpers in the input's dtype."""

from typing import Any

from reprod_align.porting.calls.adapters import HELPERS
from tests.porting.conftest import PortSource

import numpy as np
import paddle
import pytest
import torch
from torch.nn import functional as F

NET = """
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shape = np.array([4, 3, 2])
        self.layer = nn.Linear(6, np.prod(self.shape[1:]))
        self.scale = nn.Parameter(torch.ones(()))
        self.scale.data.fill_(torch.log(torch.tensor(2.5)))
        self.register_buffer("kept", nn.Parameter(torch.ones(3), requires_grad=False))

    def forward(self, x):
        assert x.layout == torch.strided and x.layout != torch.sparse_coo
        y = self.layer(x).reshape(-1, *self.shape[1:]).flip(1, 2) * self.scale
        y = F.batch_norm(y, None, None, training=True) + self.kept[:, None]
        counts = torch.arange(3, dtype=torch.int32)
        chosen = (counts > 1) | counts
        return y.reshape(len(x), np.prod(self.shape[1:])), chosen
"""


def test_arguments_are_written_in_the_form_that_paddle_takes(port_source: PortSource) -> None:
    inputs = (np.random.default_rng(0).standard_normal((4, 6)),)
    result, text = port_source(NET, inputs)
    assert result.passed and not result.draft.unproven, (result.left, result.draft.unproven)
    assert ".reshape([-1, *self.shape[1:]]).flip([1, 2])" in text
    assert (
        ".log(paddle.to_tensor(2.5)).item())" in text and "requires_grad=False).detach())" in text
    )
    assert (
        "paddle.zeros([y.shape[1]], y.dtype)" in text and ").astype(counts.dtype)) | counts" in text
    )


BOOLEANS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(4, 2)

    def forward(self, x):
        y = self.dense(x)
        low = y[None, :, None, 0] + y[None, :, None, 1:].flip(1).sum(-1)
        eye = torch.eye(len(x), dtype=torch.bool)
        near = (y > 0).gather(1, torch.argsort(y, dim=1))
        return (x @ x.t()).masked_fill(eye, 0.0), near, low * y.mean()
"""


def test_kernels_that_know_no_booleans_and_an_index_that_moves_an_axis(
    port_source: PortSource,
) -> None:
    inputs = (np.random.default_rng(0).standard_normal((5, 4)),)
    result, text = port_source(BOOLEANS, inputs)
    assert result.passed and not result.draft.unproven, (result.left, result.draft.unproven)
    assert 'paddle.eye(len(x), dtype="int64").astype("bool")' in text
    assert "y.unsqueeze(0).unsqueeze(2)[:, :, :, 0]" in text


def _load(name: str) -> Any:
    space: dict[str, Any] = {"paddle": paddle}
    for one in ("average_windows", name):
        exec(HELPERS[one], space)
    return space[name]


def _check(helper: str, given: dict[str, Any], expected: Any, shape: tuple[int, ...]) -> None:
    """Hold a helper against PyTorch's function, with its gradient."""
    values = np.random.default_rng(0).standard_normal(shape)
    theirs, ours = torch.tensor(values, requires_grad=True), paddle.to_tensor(values)
    ours.stop_gradient = False
    wanted, made = expected(theirs), _load(helper)(ours, **given)
    assert list(made.shape) == list(wanted.shape)
    np.testing.assert_allclose(made.numpy(), wanted.detach().numpy(), rtol=1e-12, atol=1e-12)
    weights = np.random.default_rng(1).standard_normal(list(wanted.shape))
    (wanted * torch.tensor(weights)).sum().backward()
    (made * paddle.to_tensor(weights)).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-12, atol=1e-12)


POOLS: list[dict[str, Any]] = [
    {"kernel_size": 3},
    {"kernel_size": (3, 2), "stride": 2, "padding": (1, 0)},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
    {"kernel_size": 3, "stride": 3, "divisor_override": 5},
]


@pytest.mark.parametrize("given", POOLS, ids=str)
def test_average_pool_is_pytorchs(given: dict[str, Any]) -> None:
    _check("average_pool", {"axes": 2, **given}, lambda x: F.avg_pool2d(x, **given), (2, 3, 7, 8))


@pytest.mark.parametrize("size", [1, 3, (2, 5), (None, 3)], ids=str)
def test_adaptive_average_is_pytorchs(size: Any) -> None:
    given = {"axes": 2, "output_size": size}
    _check("adaptive_average", given, lambda x: F.adaptive_avg_pool2d(x, size), (2, 3, 7, 8))


def test_hardsigmoid_in_dtype_is_pytorchs() -> None:
    _check("hardsigmoid_in_dtype", {}, lambda x: F.hardsigmoid(x), (20, 30))


RESIZED: list[tuple[dict[str, Any], tuple[int, ...]]] = [
    ({"size": (5, 9), "mode": "bilinear"}, (2, 3, 7, 8)),
    ({"size": (11, 3), "mode": "bilinear", "align_corners": True}, (2, 3, 7, 8)),
    ({"scale_factor": 1.7, "mode": "bilinear"}, (2, 3, 7, 8)),
    ({"scale_factor": (0.6, 3), "mode": "bicubic"}, (2, 3, 7, 8)),
    ({"size": (5, 17), "mode": "bicubic", "align_corners": True}, (2, 3, 7, 8)),
    ({"size": (3, 5), "mode": "bicubic", "antialias": True}, (2, 3, 7, 8)),
    ({"size": (3, 11), "mode": "bilinear", "antialias": True}, (2, 3, 7, 8)),
    ({"size": 10, "mode": "linear"}, (2, 3, 7)),
    ({"size": (3, 5, 4), "mode": "trilinear"}, (2, 3, 2, 3, 5)),
    ({"size": (5, 17), "mode": "nearest"}, (2, 3, 7, 8)),
    ({"size": (5, 17), "mode": "nearest-exact"}, (2, 3, 7, 8)),
]


@pytest.mark.parametrize(("given", "shape"), RESIZED, ids=str)
def test_resize_in_dtype_is_pytorchs(given: dict[str, Any], shape: tuple[int, ...]) -> None:
    _check("resize_in_dtype", given, lambda x: F.interpolate(x, **given), shape)


SIZES = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, size=3):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, size))
        self.shift = nn.Parameter(torch.rand(size, 2, device=None))
        nn.init.ones_(self.weight)

    def forward(self, x):
        y = x @ self.weight @ self.shift
        if x.shape[0] > 1000:
            y = y + torch.ones(2, 3, device=x.device, dtype=x.dtype)[0, 0]
        return y + torch.ones((x.shape[0], 2)) + torch.full((1, 2), 0.5, dtype=x.dtype)
"""


def test_sizes_one_by_one_become_a_list_and_a_tuple_of_sizes_stays(port_source: PortSource) -> None:
    result, text = port_source(SIZES, (np.random.default_rng(0).standard_normal((3, 4)),))
    assert result.passed and not result.draft.unproven, (result.left, result.draft.unproven)
    assert "paddle.zeros([4, size])" in text and "paddle.rand([size, 2])" in text
    assert "paddle.ones([2, 3], dtype=x.dtype)[0, 0]" in text  # never ran
    assert "paddle.ones((x.shape[0], 2)) + paddle.full((1, 2), 0.5, dtype=x.dtype)" in text


NUMBERS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 6)
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))
        self.register_buffer("scale", torch.full((1, 1), 2.0))
        self.register_buffer("queue", torch.ones(8, 3))

    def forward(self, x):
        z = torch.view_as_complex(self.layer(x).reshape(x.shape[0], 3, 2))
        y = (torch.exp(z) + z.exp() * torch.sigmoid(z)).abs()
        met = torch.bmm((y[None] > 1).long(), (y[None] > 2).long().transpose(1, 2)) > 0
        at = int(self.pointer)
        if self.training:
            with torch.no_grad():
                self.queue[at : at + x.shape[0]] = y
                self.pointer[0] = (at + x.shape[0]) % 8
        return y * float(self.scale) + self.queue.mean(0) + int(met.sum())
"""


def test_numbers_of_tensors_with_axes_and_exponentials_of_complex_numbers(
    port_source: PortSource,
) -> None:
    result, text = port_source(NUMBERS, (np.random.default_rng(0).standard_normal((3, 4)),))
    assert result.passed and not result.left, (result.left, result.draft.unproven)
    assert "at = int(self.pointer.item())" in text and "float(self.scale.item())" in text
    assert (
        "int(met.sum())" in text
        and "paddle.polar(paddle.exp(paddle.real(z)), paddle.imag(z))" in text
    )


SETTINGS = """
import torch
from torch import nn


class Norm(nn.BatchNorm1d):
    def __init__(self, size, momentum=1e-3, eps=1e-3):
        super().__init__(size)
        self.momentum, self.eps = momentum, eps

    def forward(self, x):
        return super().forward(x) * self.momentum + self.eps


class Net(nn.Module):
    def __init__(self, momentum=0.05):
        super().__init__()
        self.layer, self.norm, self.own = nn.Linear(4, 6), nn.BatchNorm1d(6), Norm(6)
        self.drop, self.last = nn.Dropout1d(0.5), nn.BatchNorm1d(6)
        self.last.momentum, self.last.eps = momentum, 1e-2
        for module in self.modules():
            if type(module) is nn.BatchNorm1d and module is not self.last:
                module.eps = 1e-3
                module.momentum = 0.03

    def forward(self, x):
        x = self.own(self.norm(self.layer(x)))
        return self.last(nn.functional.dropout1d(self.drop(x[None]), 0.2, self.training)[0])
"""


def test_settings_that_are_given_to_norms_reach_them(port_source: PortSource) -> None:
    result, text = port_source(SETTINGS, (np.random.default_rng(0).standard_normal((5, 4)),))
    assert result.passed, (result.left, result.draft.unproven)
    assert "module._epsilon = 1e-3\n                module._momentum = 0.97" in text
    assert "self.last._momentum, self.last._epsilon = 1 - momentum, 1e-2" in text
    kept = "        self.momentum, self.eps = momentum, eps\n"
    assert (
        f"{kept}        self._momentum = 1 - self.momentum\n        self._epsilon = self.eps"
        in text
    )
    assert "nn.Dropout(0.5, axis=[0, 1])" in text
