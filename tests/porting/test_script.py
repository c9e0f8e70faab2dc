"""A training script's own loop: two steps on each side, with faults planted into the port."""

from pathlib import Path
from types import ModuleType

from reprod_align.porting.script import (
    Course,
    LoopReport,
    PaddleScript,
    Script,
    Step,
    TorchScript,
    compare_courses,
    run_loop,
    watch_script,
)

import numpy as np
import pytest

TORCH = """
import argparse
import random
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4)
        self.drop, self.fc, self.act = nn.Dropout(0.3), nn.Linear(4, 2), nn.PReLU()

    def forward(self, x):
        return self.fc(self.drop(self.act(self.bn(self.conv(x))).mean(-1)))

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    data = TensorDataset(torch.randn(24, 3, 5), torch.randn(24, 2))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model = Net()
    decay = [one for one in model.parameters() if one.ndim > 1]
    rest = [one for one in model.parameters() if one.ndim < 2]
    groups = [{"params": decay}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, weight_decay=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for epoch in range(3):
        for x, y in loader:
            keep = random.random()
            loss = keep * ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
            schedule.step()
        torch.save({"model": model.state_dict(), "epoch": epoch}, "here.pt")
"""
PADDLE = """
import argparse
import random
import paddle

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = paddle.nn.Conv1D(3, 4, 1), paddle.nn.BatchNorm1D(4)
        self.drop, self.fc = paddle.nn.Dropout(0.3), paddle.nn.Linear(4, 2)
        self.act = paddle.nn.PReLU()

    def forward(self, x):
        return self.fc(self.drop(self.act(self.bn(self.conv(x))).mean(-1)))

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    data = paddle.io.TensorDataset([paddle.randn([24, 3, 5]), paddle.randn([24, 2])])
    loader = paddle.io.DataLoader(data, batch_size=4, shuffle=True)
    model = Net()
    decay = [one for one in model.parameters() if one.ndim > 1]
    rest = [one for one in model.parameters() if one.ndim < 2]
    groups = [{"params": decay}, {"params": rest, "weight_decay": 0.0}]
    schedule = paddle.optimizer.lr.StepDecay(args.lr, 1, 0.5)
    optimizer = paddle.optimizer.AdamW(schedule, parameters=groups, weight_decay=0.5)
    for epoch in range(3):
        for x, y in loader:
            keep = random.random()
            loss = keep * ((model(x) - y) ** 2).mean()
            optimizer.clear_grad()
            loss.backward()
            paddle.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
            schedule.step()
        paddle.save({"model": model.state_dict(), "epoch": epoch}, "here.pt")
"""


def load(text: str, name: str = "script_here") -> ModuleType:
    """Return a module of a text."""
    module = ModuleType(name)
    module.__file__ = f"{name}.py"
    exec(compile(text, module.__file__, "exec"), vars(module))
    return module


def judge(paddle: str, torch: str = TORCH, arguments: str = "") -> LoopReport:
    """Return how a port's loop compares."""
    return run_loop(Script("main()", arguments), load(torch), lambda: load(paddle, "port_here"))


@pytest.fixture(autouse=True)
def _stand_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_loop_with_groups_clipping_schedule_and_checkpoints_takes_the_same_steps() -> None:
    report = judge(PADDLE, arguments="--lr 0.02")
    assert report.passed and report.verdict.startswith("the same steps"), report.lines()
    assert [row.what for row in report.rows][:2] == ["step 1, loss", "step 1, learning rate"]
    assert not list(Path().iterdir())  # the checkpoints went elsewhere


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (
            "            paddle.nn.utils.clip_grad_norm_(model.parameters(), 0.05)\n",
            "",
            "step 1, gradients",
        ),
        (', "weight_decay": 0.0', "", "step 1, parameters"),
        ("            schedule.step()\n", "", "step 2, learning rate"),
        ("            optimizer.clear_grad()\n", "", "step 2, gradients"),
        ("lr.StepDecay(args.lr", "lr.StepDecay(2 * args.lr", "step 1, learning rate"),
        ("Dropout(0.3)", "Dropout(0.0)", "step 1, loss"),
        ("keep * ((model", "((model", "step 1, loss"),
    ],
)
def test_a_planted_fault_shows_where_it_is(old: str, new: str, where: str) -> None:
    assert old in PADDLE
    report = judge(PADDLE.replace(old, new))
    assert report.verdict == "diverges"
    assert next(row.what for row in report.rows if row.difference > 2e-5) == where


@pytest.mark.parametrize(
    ("torch", "paddle", "said"),
    [
        (TORCH.replace("optimizer.step()", "pass"), PADDLE, "takes no step"),
        (TORCH, PADDLE.replace("optimizer.step()", "pass"), "the port's loop has 0 steps"),
        (TORCH.replace("model = Net()", "model = missing"), PADDLE, "PyTorch's loop: line 23: NameError"),
        (TORCH, PADDLE.replace("schedule.step()", "missing"), "the port's loop: line 36: NameError"),
        (TORCH, PADDLE.replace("self.conv,", "self.other = paddle.nn.Linear(2, 2)\n        self.conv,")
         .replace("Conv1D(3, 4, 1)", "Conv1D(3, 4, 3)"), "has no conv.weight"),
        (TORCH.replace("args = parser", "raise SystemExit(3)\n    args = parser"), PADDLE, "exit code 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_said(torch: str, paddle: str, said: str) -> None:
    report = judge(paddle, torch)
    assert said in report.problem and not report.passed, report.lines()


def test_the_frameworks_are_as_before() -> None:
    import paddle
    import torch

    before = (torch.save, paddle.save, torch.Tensor.backward, paddle.optimizer.AdamW.step)
    seen = watch_script(Script("main()"), load(TORCH), TorchScript())
    made = watch_script(Script("main()"), load(PADDLE), PaddleScript(), seen)
    assert compare_courses(seen, made).passed and len(seen.batches[0]) == 2
    assert (torch.save, paddle.save, torch.Tensor.backward, paddle.optimizer.AdamW.step) == before
    assert torch.get_default_dtype() is torch.float32 and paddle.get_default_dtype() == "float32"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("both", [False, True])
def test_what_is_not_finite_is_not_hidden_by_what_agrees(bad: float, both: bool) -> None:
    def make(first: float) -> Course:
        gradients = {"a": np.array([first]), "b": np.ones(3)}
        step = Step(0.1, gradients, {"a": np.ones(1), "b": np.ones(3)})
        return Course(losses=[(0, 1.0)], steps=[step])

    assert compare_courses(make(0.5), make(0.5)).passed
    report = compare_courses(make(bad if both else 0.5), make(bad))
    assert not report.passed
    assert [row.what for row in report.rows if row.difference > 0] == ["step 1, gradients"]
    assert report.rows[2].words == ", at a"
