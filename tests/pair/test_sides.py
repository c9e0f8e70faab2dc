"""One PyTorch source for both sides: the port is the source itself, run on Paddle."""

import os
import subprocess
import sys
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.pair import paddle_side, torch_side
from tests.conftest import REPOSITORY

import paddle
import pytest
import torch

SOURCE = """
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.norm = nn.LayerNorm(16, eps=eps)
        self.attention = nn.MultiheadAttention(16, 4, dropout=0.1, batch_first=True)
        self.up, self.down, self.drop = nn.Linear(16, 32), nn.Linear(32, 16), nn.Dropout(0.1)

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attention(h, h, h)[0]
        return x + self.drop(self.down(F.gelu(self.up(x))))


class Net(nn.Module):
    def __init__(self, eps=2**-20):
        super().__init__()
        self.conv, self.pool = nn.Conv2d(3, 8, 3, padding=1), nn.AvgPool2d(2, 2)
        self.unfold, self.token = nn.Unfold(2, stride=2), nn.Parameter(torch.ones(1, 1, 16))
        self.dense, self.blocks = nn.Linear(32, 16), nn.ModuleList([Block(eps), Block(2**-20)])
        self.softmax, self.head = nn.Softmax(dim=-1), nn.Linear(16, 4)

    def forward(self, x):
        x = self.unfold(self.pool(torch.relu(self.conv(x)))).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), self.dense(x)], dim=1)
        for block in self.blocks:
            x = block(x)
        return self.softmax(self.head(x[:, 0] + x.mean(dim=1)))
"""
PAIR = """
import os

import numpy as np


def torch_model():
    import torch
    from net import Net

    torch.manual_seed(0)
    return Net()


def paddle_model():
    import paddle

    paddle.enable_compat()
    from net import Net

    return Net(float(os.environ.get("EPS", 2**-20)))


def inputs():
    return {"x": np.random.default_rng(0).normal(size=(3, 3, 8, 8)).astype("float32")}
"""
needs_compat = pytest.mark.skipif(
    not hasattr(paddle, "enable_compat"), reason="this Paddle has no enable_compat"
)


def judge(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "net.py").write_text(SOURCE)
    (folder / "pair.py").write_text(PAIR)
    command = [sys.executable, "-m", "reprod_align", "pair", str(folder / "pair.py"), *arguments]
    known = {**os.environ, "PYTHONPATH": str(REPOSITORY), **variables}
    return subprocess.run(command, capture_output=True, text=True, env=known, check=False)


@needs_compat
def test_pytorch_source_that_runs_on_paddle_is_faithful(tmp_path: Path) -> None:
    done = judge(tmp_path, "--paddle-python", sys.executable)
    assert done.returncode == 0 and "verdict: faithful" in done.stdout, done.stdout + done.stderr


@needs_compat
def test_a_fault_in_it_is_found_and_named(tmp_path: Path) -> None:
    done = judge(tmp_path, "--paddle-python", sys.executable, EPS="9e-4")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error[layer-norm-epsilon]: forward: blocks.0.norm: " in done.stdout
    assert "set epsilon=9.5367" in done.stdout
    assert "net.py:10\n" in done.stdout and done.stdout.count("error[") == 1, done.stdout


@needs_compat
def test_it_needs_a_process_of_its_own(tmp_path: Path) -> None:
    done = judge(tmp_path)
    assert done.returncode == 2 and "paddle.enable_compat()" in done.stderr, done.stderr
    assert f"--paddle-python {sys.executable}" in done.stderr


def test_each_function_takes_its_own_frameworks_models() -> None:
    assert torch_side(torch.nn.Linear(2, 2)).name == "PyTorch"
    assert paddle_side(paddle.nn.Linear(2, 2)).name == "Paddle"
    with pytest.raises(ReprodError, match="paddle_model is of type torch.*not a paddle.nn.Layer"):
        paddle_side(torch.nn.Linear(2, 2))
