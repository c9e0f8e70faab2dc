"""Findings without a call: the line where a layer, an optimizer or a schedule is made, or that raised."""

from pathlib import Path
from typing import Any

import reprod_align
from reprod_align.alignment.lines.construction import find_layer
from reprod_align.pair import paddle_side
from tests.alignment.lines import torch_switches
from tests.alignment.lines.test_lines import load, plant
from tests.alignment.small import PaddleNet, TorchNet

import numpy as np
import paddle
import pytest
import torch
from paddle.nn import functional as F
from torch.nn import functional as F_torch

X = (np.random.default_rng(0).normal(size=(4, 3)),)


def code_of(line: str | None) -> str:
    assert line is not None
    file, _, number = line.rpartition(":")
    with open(file, encoding="utf-8") as opened:
        return opened.read().splitlines()[int(number) - 1]


class Deep(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.parts = paddle.nn.Sequential(
            paddle.nn.Linear(6, 6),
            paddle.nn.LayerNorm(6),
        )
        self.more = paddle.nn.LayerList([paddle.nn.Linear(6, 6) for _ in range(2)])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.parts(x)


def test_layers_in_containers_are_found() -> None:
    side = paddle_side(Deep())
    info = side.describe()
    assert "LayerNorm" in code_of(str(find_layer(side, info, "parts.1")))
    assert "nn.Linear" in code_of(str(find_layer(side, info, "parts.0")))
    assert "self.more" in code_of(str(find_layer(side, info, "more.1")))
    assert find_layer(side, info, "") is None


class Near(torch.nn.Module):
    def __init__(self, heads: int, span: int) -> None:
        super().__init__()
        self.heads, self.span = heads, span
        self.bias = torch.nn.Embedding(2 * span + 1, heads)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        at = torch.arange(x.shape[1])
        apart = (at[:, None] - at).clip(-self.span, self.span) + self.span
        return x + self.bias(apart).sum()


class NearPort(paddle.nn.Layer):
    def __init__(self, heads: int, span: int) -> None:
        super().__init__()
        self.heads, self.span = heads, span
        self.bias = paddle.nn.Embedding(2 * span + 1, heads)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        at = paddle.arange(x.shape[1])
        apart = paddle.clip(at.unsqueeze(1) - at, -self.span, self.span) + self.span
        return x + self.bias(apart).sum()


class Block(paddle.nn.Layer):
    def __init__(self, span: int) -> None:
        super().__init__()
        self.near = NearPort(2, span)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.near(x)


class Narrow(paddle.nn.Layer):
    def __init__(self, span: int = 1) -> None:
        super().__init__()
        self.block = Block(
            span=span,
        )

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.block(x)


def test_a_number_of_which_a_setting_is_computed_is_named_where_it_is_handed_in() -> None:
    ours = torch.nn.Module()
    ours.block = torch.nn.Module()
    ours.block.near = Near(2, 2)
    ours.forward = ours.block.near.forward
    assert reprod_align.align(ours, Narrow(2), X).passed
    finding = reprod_align.align(ours, Narrow(), X).findings[0]
    assert "num_embeddings" in finding.settings
    assert "span=span," in code_of(finding.paddle_line)


class Torch(torch.nn.Module):
    def __init__(self, layers: list[torch.nn.Module], rests: list[torch.nn.Module] | None) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.rests = None if rests is None else torch.nn.ModuleList(rests)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for at, layer in enumerate(self.layers):
            x = torch.tanh(layer(x))
            x = self.rests[at](x) if self.rests is not None and at < len(self.rests) else x
        return x


class Port(paddle.nn.Layer):
    def __init__(self, layers: list[paddle.nn.Layer], rests: list[paddle.nn.Layer] | None) -> None:
        super().__init__()
        self.layers = paddle.nn.LayerList(layers)
        self.rests = None if rests is None else paddle.nn.LayerList(rests)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        for at, layer in enumerate(self.layers):
            x = paddle.tanh(layer(x))
            x = self.rests[at](x) if self.rests is not None and at < len(self.rests) else x
        return x


class Outer(paddle.nn.Layer):
    def __init__(self, count: int, less: int) -> None:
        super().__init__()
        self.port = make_port(count, less)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.port(x)


def make_port(count: int, less: int) -> Port:
    layers = [paddle.nn.Linear(3, 3) for _ in range(count)]
    rests = [paddle.nn.LayerNorm(3) for _ in range(count - less)] if count else None
    return Port(layers, rests)


@pytest.mark.parametrize("count", [2, 3])
def test_a_list_of_too_few_layers_is_named_where_it_is_made_and_counted(count: int) -> None:
    linear, norm = torch.nn.Linear, torch.nn.LayerNorm
    ours = torch.nn.Module()
    ours.port = Torch([linear(3, 3) for _ in range(count)], [norm(3) for _ in range(count - 1)])
    ours.forward = ours.port.forward
    assert reprod_align.align(ours, Outer(count, 1), X).passed
    finding = reprod_align.align(ours, Outer(count, 2), X).findings[0]
    assert "count - less" in code_of(finding.paddle_line)
    counted = (
        f"port.rests holds {count - 2} layer{'s' if count == 2 else ''} in Paddle and {count - 1}"
    )
    assert finding.cause.startswith(counted) and "decides" not in finding.cause


class Normed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.out = torch.nn.BatchNorm2d(3), torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(F_torch.relu(self.norm(x)).mean((2, 3)))


class NormedPort(paddle.nn.Layer):
    def __init__(self, act: str) -> None:
        super().__init__()
        self.norm = paddle.nn.BatchNorm(3, act=act)
        self.out = paddle.nn.Linear(3, 2)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.out(self.norm(x).mean([2, 3]))


@pytest.mark.parametrize("act", ["gelu", "sigmoid"])
def test_an_activation_that_a_layer_has_built_in_is_named_where_it_is_set(act: str) -> None:
    image = (np.random.default_rng(0).normal(size=(2, 3, 4, 4)),)
    assert reprod_align.align(Normed(), NormedPort("relu"), image).passed
    finding = reprod_align.align(Normed(), NormedPort(act), image).findings[0]
    assert "act=act" in code_of(finding.paddle_line)
    assert f"norm.act is '{act}' in Paddle: 'relu' gives PyTorch's numbers" in finding.message


def test_an_optimizer_that_differs_has_the_lines_where_it_is_made() -> None:
    report = reprod_align.align(
        TorchNet(),
        PaddleNet(),
        X,
        torch_optimizer=lambda m: torch.optim.AdamW(m.parameters(), lr=1e-3, eps=1e-8),
        paddle_optimizer=lambda m: paddle.optimizer.AdamW(
            1e-3, epsilon=1e-4, parameters=m.parameters()
        ),
    )
    finding = report.findings[0]
    assert finding.stage in ("optimizer", "audit")
    assert "torch.optim.AdamW" in code_of(finding.torch_line)
    assert "paddle.optimizer.AdamW" in code_of(finding.paddle_line)


def test_a_port_that_raises_has_the_line_that_raised() -> None:
    def fail(x: paddle.Tensor) -> paddle.Tensor:
        return x.reshape([7, 7, 7])

    report = reprod_align.align(TorchNet(), PaddleNet(fail), X)
    assert "x.reshape([7, 7, 7])" in code_of(report.findings[0].paddle_line)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        # handed to a layer of Paddle's whose parts stand elsewhere: what makes it is edited
        ("x = paddle.tanh(x)", "x = x", "x = self.words(ids)"),
        # layers that no model knows of
        ("nn.LayerList([nn.Linear(d, 3)])", "[nn.Linear(d, 3)]", "[nn.Linear(d, 3)]"),
    ],
)
def test_what_a_layer_is_handed_and_a_plain_list_have_their_line(
    before: str, after: str, line: str, tmp_path: Path
) -> None:
    original = Path(torch_switches.__file__).with_name("paddle_switches.py")
    port, _ = plant(original, before, after, tmp_path)
    torch.manual_seed(0)
    ids = np.random.default_rng(0).integers(1, 30, (2, 6))
    report = reprod_align.align(torch_switches.Stack(), load(port).Stack(), (ids,))
    assert line in code_of(report.findings[0].paddle_line)


def softmax_twice(output: Any) -> Any:
    labels = paddle.to_tensor([0, 1, 1, 0])
    probabilities = F.softmax(output)
    return F.cross_entropy(probabilities, labels)


def mean_over_rows(output: Any) -> Any:
    labels = torch.tensor([0, 1, 1, 0])
    return torch.nn.functional.cross_entropy(output, labels)


def test_a_loss_that_differs_has_the_line_of_the_call_that_is_at_fault() -> None:
    report = reprod_align.align(
        TorchNet(), PaddleNet(), X, torch_loss=mean_over_rows, paddle_loss=softmax_twice
    )
    (finding,) = report.findings
    assert "applies softmax before a loss that applies it again" in finding.message
    assert "F.softmax(output)" in code_of(finding.paddle_line)
    assert "return torch.nn.functional.cross_entropy" in code_of(finding.torch_line)


def test_another_difference_of_the_losses_has_the_line_of_the_loss() -> None:
    def summed(output: Any) -> Any:
        labels = paddle.to_tensor([0, 1, 1, 0])
        return F.cross_entropy(F.softmax(output), labels, reduction="sum")

    report = reprod_align.align(
        TorchNet(), PaddleNet(), X, torch_loss=mean_over_rows, paddle_loss=summed
    )
    assert 'reduction="sum"' in code_of(report.findings[0].paddle_line)
