"""Ports that run in float32 alone, as where Paddle lacks a kernel: float32's own rounding is no fault."""

from functools import partial

from reprod_align import align
from tests.pairs.families import CASES, judged, run_in_float32

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as paddle_nn
from paddle.nn import functional as paddle_functional
from torch import nn as torch_nn
from torch.nn import functional as torch_functional

WIDTH, HEADS, CLASSES = 32, 4, 5
LABELS = np.array([0, 3, 1, 4])
NAMES = "query", "key", "value", "out"


class TorchBlock(torch_nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for name in NAMES:
            setattr(self, name, torch_nn.Linear(WIDTH, WIDTH))
        self.up, self.down = torch_nn.Linear(WIDTH, 64), torch_nn.Linear(64, WIDTH)
        self.first, self.second = torch_nn.LayerNorm(WIDTH), torch_nn.LayerNorm(WIDTH)

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = torch.softmax(q @ k.mT / (WIDTH / HEADS) ** 0.5, -1) @ v
        x = self.first(x + self.out(mixed.transpose(1, 2).flatten(2)))
        return self.second(x + self.down(torch_functional.gelu(self.up(x))))


class TorchModel(torch_nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch_nn.ModuleList([TorchBlock(), TorchBlock()])
        self.head = torch_nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


def keep_float32(x):
    """Return x as an operator does that Paddle has for float32 alone."""
    if x.dtype != paddle.float32:
        raise ValueError(f"unsupported dtype {x.dtype}")
    return x


class PaddleBlock(paddle_nn.Layer):
    def __init__(self, epsilon: float = 1e-5, scale: float = 1.0, gelu=None) -> None:
        super().__init__()
        for name in NAMES:
            setattr(self, name, paddle_nn.Linear(WIDTH, WIDTH))
        self.up, self.down = paddle_nn.Linear(WIDTH, 64), paddle_nn.Linear(64, WIDTH)
        self.first, self.second = (paddle_nn.LayerNorm(WIDTH, epsilon=e) for e in (1e-5, epsilon))
        self.scale, self.gelu = scale, gelu or paddle_functional.gelu

    def forward(self, x):
        q, k, v = (
            layer(x).reshape([0, 0, HEADS, -1]).transpose([0, 2, 1, 3])
            for layer in (self.query, self.key, self.value)
        )
        scores = paddle.matmul(q, k, transpose_y=True) / (WIDTH / HEADS) ** 0.5
        mixed = paddle.matmul(paddle_functional.softmax(scores * self.scale), v)
        x = self.first(x + self.out(mixed.transpose([0, 2, 1, 3]).flatten(2)))
        return self.second(x + self.down(self.gelu(keep_float32(self.up(x)))))


class PaddleModel(paddle_nn.Layer):
    def __init__(self, **fault) -> None:
        super().__init__()
        self.blocks = paddle_nn.LayerList([PaddleBlock(), PaddleBlock(**fault)])
        self.head = paddle_nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


def compare(seed: int, model: dict | None = None, optimizer: dict | None = None):
    torch.manual_seed(seed)
    paddle.seed(seed)
    x = np.random.default_rng(seed).normal(size=(4, 9, WIDTH))
    settings = {"learning_rate": 1e-3, "weight_decay": 0.01, **(optimizer or {})}
    return align(
        TorchModel(),
        PaddleModel(**(model or {})),
        (x,),
        torch_loss=lambda out: torch_functional.cross_entropy(out, torch.tensor(LABELS)),
        paddle_loss=lambda out: paddle_functional.cross_entropy(out, paddle.to_tensor(LABELS)),
        torch_optimizer=lambda net: torch.optim.AdamW(net.parameters(), lr=1e-3),
        paddle_optimizer=lambda net: paddle.optimizer.AdamW(
            parameters=net.parameters(), **settings
        ),
        steps=4,
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_faithful_port_agrees_to_float32_in_passes_and_in_training(seed: int) -> None:
    report = compare(seed)
    assert report.verdict == "agrees to float32", str(report)
    assert "judged in float32, since float64 does not run" in report.remarks[0]


@pytest.mark.parametrize(
    "model, optimizer, place, words",
    [
        ({"epsilon": 2e-5}, {}, "blocks.1.second", "eps"),
        ({"scale": 1.001}, {}, "blocks.1", ""),
        ({"gelu": partial(paddle_functional.gelu, approximate=True)}, {}, "blocks.1", ""),
        ({}, {"weight_decay": 0.0}, "", "weight_decay"),
        ({}, {"beta2": 0.99}, "", "beta"),
        ({}, {"epsilon": 1e-6}, "", "eps"),
    ],
)
def test_a_fault_that_float32_does_not_hide_is_named(model, optimizer, place, words) -> None:
    report = compare(0, model, optimizer)
    assert report.verdict == "diverges"
    assert len(report.findings) == 1, str(report)
    assert report.findings[0].torch_name == place and words in report.findings[0].message


@pytest.mark.parametrize(
    "name",
    [
        "rnn/cells, network",  # nothing inside the network can be compared
        "rnn/GRU cells both",  # a cell of Paddle gives its state twice
        "encoder/torch's own, fused",  # one parameter there, three here
        "decoder/GPT: output in a dict with None",  # the loss rounds as well
    ],
)
def test_faithful_pairs_of_the_suite_agree(name: str) -> None:
    outcome = judged(run_in_float32(CASES[name]))
    assert outcome.passed, outcome.text
    assert "agrees to float32" in outcome.text
