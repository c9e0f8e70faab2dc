"""Weights of custom layers that fit in two ways: what the layers compute decides."""

from collections.abc import Callable
from typing import Any

from reprod_align import align
from reprod_align.alignment.layouts import settle_layouts, try_alternatives
from tests.alignment.small import at_work

import numpy as np
import paddle
import pytest
import torch

BATCH = (np.random.default_rng(0).normal(size=(3, 5, 8)).astype("float32"),)


class Product(paddle.nn.Layer):
    """Multiplies with a bare weight, (in, out), and gives the heads apart: BigBird's projections."""

    def __init__(self, heads: int = 1) -> None:
        super().__init__()
        self.weight = self.create_parameter([8, 8])
        self.bias = self.create_parameter([8], is_bias=True)
        self.heads = heads

    def forward(self, x: Any) -> Any:
        out = paddle.matmul(x, self.weight) + self.bias
        if self.heads == 1:
            return out
        return out.reshape([*x.shape[:2], self.heads, 8 // self.heads]).transpose([0, 2, 1, 3])


class Transposed(paddle.nn.Linear):
    """Derived from Linear, and keeps (out, in): `Transposed(out, in)`."""

    def forward(self, x: Any) -> Any:
        return paddle.matmul(x, self.weight, transpose_y=True)


class OwnLinear(paddle.nn.Layer):
    """Keeps (out, in), as PaddleNLP's TransposedLinear."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = self.create_parameter([outputs, inputs])
        self.bias = self.create_parameter([outputs], is_bias=True)

    def forward(self, x: Any) -> Any:
        return paddle.nn.functional.linear(x, self.weight.T, self.bias)


class TorchNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.dense = (torch.nn.Linear(8, 8) for _ in range(4))
        self.norm, self.out = torch.nn.LayerNorm(8), torch.nn.Linear(8, 6, bias=False)

    def forward(self, x: Any) -> Any:
        weights = torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), -1)
        return self.out(torch.tanh(self.dense(self.norm(x + weights @ self.v(x)))))


class PaddleNet(paddle.nn.Layer):
    def __init__(
        self, epsilon: float = 1e-5, dense: Callable[..., Any] = OwnLinear, heads: int = 1
    ) -> None:
        super().__init__()
        self.q, self.k, self.v, self.dense = Product(), Product(), Product(heads), dense(8, 8)
        self.norm, self.out = (
            paddle.nn.LayerNorm(8, epsilon=epsilon),
            Transposed(6, 8, bias_attr=False),
        )

    def forward(self, x: Any) -> Any:
        weights = paddle.nn.functional.softmax(self.q(x) @ self.k(x).transpose([0, 2, 1]), -1)
        value = self.v(x)
        value = value if value.ndim == 3 else value.transpose([0, 2, 1, 3]).flatten(2)
        return self.out(paddle.tanh(self.dense(self.norm(x + weights @ value))))


@pytest.mark.parametrize("dense", [OwnLinear, paddle.nn.Linear])
@pytest.mark.parametrize("heads", [1, 2])
def test_custom_layers_with_square_weights_are_faithful(dense: Any, heads: int) -> None:
    report = align(TorchNet(), PaddleNet(dense=dense, heads=heads), BATCH)
    assert report.verdict == "faithful", str(report)
    assert any("laid out by comparing outputs" in remark for remark in report.remarks)
    assert not any("settings differ" in remark for remark in report.remarks)


def test_a_fault_elsewhere_does_not_keep_weights_from_being_laid_out() -> None:
    report = align(TorchNet(), PaddleNet(epsilon=9e-4), BATCH)
    assert [finding.torch_name for finding in report.findings] == ["norm"], str(report)


def test_a_converted_weight_that_lies_the_wrong_way_is_found() -> None:
    ours, theirs = TorchNet(), PaddleNet()
    for name, tensor in theirs.state_dict().items():
        values = ours.state_dict()[name].detach().numpy()
        tensor.set_value(values.T if name in ("q.weight", "k.weight", "v.weight") else values)
    assert align(ours, theirs, BATCH, copy_weights=False).passed
    theirs.dense.weight.set_value(theirs.dense.weight.T)
    report = align(ours, theirs, BATCH, copy_weights=False)
    assert [finding.torch_name for finding in report.findings] == ["dense.weight"], str(report)


def test_layouts_are_settled_once() -> None:
    with at_work(TorchNet(), PaddleNet(), inputs=BATCH) as (runner, findings):
        again, turned = settle_layouts(runner)
        assert turned == [] and again.pairing.match.pairs == runner.pairing.match.pairs
        assert len(findings.report.remarks) == 1
        assert callable(try_alternatives)


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(8, 8, bias=False) for _ in range(3))

    def forward(self, x: Any) -> Any:
        return torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), -1) @ self.v(x)


class PaddleBlock(paddle.nn.Layer):
    """Holds the three weights itself, (in, out)."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (self.create_parameter([8, 8]) for _ in range(3))

    def forward(self, x: Any) -> Any:
        weights = paddle.nn.functional.softmax((x @ self.q) @ (x @ self.k).transpose([0, 2, 1]), -1)
        return weights @ (x @ self.v)


class TorchTwo(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return torch.tanh(self.left(x)) * self.right(x)


class PaddleTwo(paddle.nn.Layer):
    """Lacks a bias, under names that do not say which layer is which."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = paddle.nn.Linear(8, 8)
        self.other = paddle.nn.Linear(8, 8, bias_attr=False)

    def forward(self, x: Any) -> Any:
        return paddle.tanh(self.gate(x)) * self.other(x)


def test_look_alikes_are_not_exchanged_where_one_lacks_a_tensor() -> None:
    report = align(TorchTwo(), PaddleTwo(), BATCH)
    assert report.verdict == "diverges"
    assert any("bias" in finding.message for finding in report.findings), str(report)


def test_bare_weights_are_turned_together() -> None:
    report = align(torch.nn.Sequential(TorchBlock()), paddle.nn.Sequential(PaddleBlock()), BATCH)
    assert report.verdict == "faithful", str(report)
    assert any("laid out another way" in remark for remark in report.remarks), str(report)
    assert callable(try_alternatives)
