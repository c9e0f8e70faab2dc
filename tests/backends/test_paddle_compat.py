"""Ports written with `paddle.compat`, whose layers follow PyTorch's conventions."""

from typing import Any

from reprod_align import align
from reprod_align.backends.paddle import linear_weights as paddle_linears
from reprod_align.backends.paddle import load_weights
from reprod_align.backends.paddle.settings import module_settings
from reprod_align.backends.torch import linear_weights as torch_linears
from reprod_align.model.settings import ModuleSettings

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pd
from torch import nn as pt

compat = pytest.importorskip("paddle.compat").nn
BATCH = (np.random.default_rng(0).normal(size=(4, 3, 8, 8)).astype("float32"),)


class TorchNet(pt.Module):
    """One layer of each kind that `paddle.compat.nn` has."""

    def __init__(self, **attention: Any) -> None:
        super().__init__()
        self.conv, self.pool = pt.Conv2d(3, 8, 3), pt.AvgPool2d(2, 2, 1)
        self.unfold, self.dense = pt.Unfold(2, stride=2), pt.Linear(32, 16)
        self.square, self.norm = pt.Linear(16, 16, bias=False), pt.LayerNorm(16, eps=1e-6)
        self.attention = pt.MultiheadAttention(16, 4, dropout=0.1, **attention)
        self.halve, self.out = pt.AvgPool1d(2), pt.Linear(16, 5)
        self.softmax = pt.Softmax(dim=-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.unfold(self.pool(self.conv(x))).transpose(1, 2)
        x = self.norm(self.square(self.dense(x)))
        key = x[..., : self.attention.kdim]
        attended, _ = self.attention(x, key, key)
        return self.softmax(self.out(self.halve((x + attended).transpose(1, 2)).transpose(1, 2)))


class PaddleNet(pd.Module):
    """The same, with PyTorch's names, keywords and defaults."""

    def __init__(
        self, eps: float = 1e-6, dim: int = -1, pad: bool = True, **attention: Any
    ) -> None:
        super().__init__()
        self.conv = pd.Conv2D(3, 8, 3)
        self.pool = compat.AvgPool2D(2, 2, 1, count_include_pad=pad)
        self.unfold, self.dense = compat.Unfold(2, stride=2), compat.Linear(32, 16)
        self.square, self.norm = compat.Linear(16, 16, bias=False), pd.LayerNorm(16, eps=eps)
        self.attention = compat.MultiheadAttention(16, 4, **{"dropout": 0.1, **attention})
        self.halve, self.out = compat.AvgPool1D(2), compat.Linear(16, 5)
        self.softmax = compat.Softmax(dim=dim)

    def forward(self, x: Any) -> Any:
        x = self.unfold(self.pool(self.conv(x))).transpose([0, 2, 1])
        x = self.norm(self.square(self.dense(x)))
        key = x[..., : self.attention.kdim]
        attended, _ = self.attention(x, key, key)
        x = self.halve((x + attended).transpose([0, 2, 1])).transpose([0, 2, 1])
        return self.softmax(self.out(x))


@pytest.mark.parametrize(
    "attention",
    [
        {},
        {"batch_first": True},
        {"kdim": 8, "vdim": 8},
        {"kdim": 8, "vdim": 8, "bias": False},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
    ],
)
def test_a_port_made_of_compat_layers_is_faithful(attention: dict[str, Any]) -> None:
    report = align(TorchNet(**attention), PaddleNet(**attention), BATCH)
    assert report.verdict == "faithful", str(report)
    assert all(remark.startswith("never called") for remark in report.remarks), str(report)


@pytest.mark.parametrize(
    ("faulty", "module", "words"),
    [
        ({"eps": 1e-3}, "norm", "set epsilon=1e-06"),
        ({"dim": 1}, "softmax", "dim: PyTorch -1, Paddle 1; set dim=-1"),
        ({"pad": False}, "pool", "set count_include_pad=True"),
        ({"dropout": 0.2}, "attention", "dropout: PyTorch 0.1, Paddle 0.2; set dropout=0.1"),
    ],
)
def test_a_wrong_setting_of_a_compat_layer_is_named(
    faulty: dict[str, Any], module: str, words: str
) -> None:
    report = align(TorchNet(), PaddleNet(**faulty), BATCH)
    assert [finding.torch_name for finding in report.findings] == [module], str(report)
    assert words in report.findings[0].message


def test_a_weight_that_was_transposed_for_a_compat_layer_is_found() -> None:
    ours, theirs = pt.Sequential(pt.Linear(4, 4)), pd.Sequential(compat.Linear(4, 4))
    state = {name: tensor.detach().numpy() for name, tensor in ours.state_dict().items()}
    theirs.set_state_dict(state)
    batch = (np.ones((2, 4), "float32") * np.arange(4, dtype="float32"),)
    assert align(ours, theirs, batch, copy_weights=False).passed
    theirs.set_state_dict({**state, "0.weight": state["0.weight"].T})
    report = align(ours, theirs, batch, copy_weights=False)
    assert report.findings[0].torch_name == "0.weight", str(report)


def test_weights_for_compat_layers_are_converted_as_they_are() -> None:
    ours, theirs = pt.Sequential(pt.Linear(3, 2)), pd.Sequential(compat.Linear(3, 2))
    weights = {name: tensor.detach().numpy() for name, tensor in ours.state_dict().items()}
    assert torch_linears(ours) == {"0.weight"} and not paddle_linears(theirs)
    load_weights(theirs, weights)
    x = np.ones((1, 3), "float32")
    expected = ours(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(theirs(paddle.to_tensor(x)).numpy(), expected, rtol=1e-5)


def test_compat_layers_are_read_by_pytorchs_names() -> None:
    settings = module_settings(compat.Linear(3, 2, bias=False))
    assert settings == ModuleSettings(
        "Linear", "Linear", {"in_features": 3, "out_features": 2, "bias": False}, "PyTorch"
    )
    assert module_settings(pd.Linear(3, 2)).convention == ""
    derived = type("Derived", (compat.Linear,), {})(3, 2)
    assert module_settings(derived).convention == "PyTorch"


def test_every_class_of_compat_has_a_kind() -> None:
    layers = {
        name: module_settings(getattr(compat, name)(*arguments)).kind
        for name, arguments in {
            "Unfold": (2,), "Linear": (2, 2), "Softmax": (), "AvgPool1D": (2,), "AvgPool2D": (2,),
            "AvgPool3D": (2,), "AvgPool1d": (2,), "AvgPool2d": (2,), "AvgPool3d": (2,),
            "MultiheadAttention": (4, 2),
        }.items()
    }  # fmt: skip
    assert set(compat.__all__) <= layers.keys() and all(layers.values())
