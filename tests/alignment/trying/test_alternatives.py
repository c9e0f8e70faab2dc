"""Weights held by a module that does more with them: they are turned together."""

from typing import Any

from reprod_align import align
from reprod_align.alignment.layouts import try_alternatives

import numpy as np
import paddle
import torch

BATCH = (np.random.default_rng(0).normal(size=(3, 5, 8)).astype("float32"),)


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
