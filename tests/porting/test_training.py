"""The optimizer and the schedule of a training script: proven by their steps, and in the pair file."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from reprod_align.base.difference import gap
from reprod_align.explain.code import Code
from reprod_align.pair.file import PairFile, open_file
from reprod_align.porting.calls import adapters, training
from reprod_align.porting.calls.candidates import execute_definition
from reprod_align.porting.calls.record import number_nodes
from reprod_align.porting.calls.steps import MadeOptimizer, draw_parameters, follows, stand_in
from reprod_align.porting.calls.values import to_paddle
from reprod_align.porting.calls.write import Written, write_paddle
from reprod_align.porting.port import port
from reprod_align.porting.report import PortResult
from reprod_align.porting.script import Script
from reprod_align.porting.source import open_source

import numpy as np
import paddle
import pytest
import torch

MAIN = """
import argparse
import math
import torch

LR = 0.05
decay = lambda rate: rate
rate = 0.5

def main(model, other):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", default=0.1)
    parser.add_argument("-e", "--max-epochs", default=9)
    args = parser.parse_args()
    return {}
"""


def write_main(text: str) -> tuple[Written, str]:
    """Return what is known of a training script that returns an expression, and Paddle's expression."""
    code = Code(MAIN.format(text))
    number_nodes(code.tree)
    made = write_paddle(code, {}, {})
    return made, made.text.rstrip().rpartition("return ")[2]


@pytest.mark.parametrize(
    ("given", "written", "near"),
    [
        ("SGD(model.parameters(), args.lr)",
         "SGD(learning_rate=args.lr, parameters=model.parameters())", False),
        ("SGD(model.parameters(), LR, 0.5, nesterov=True, weight_decay=0.01)",
         "Momentum(learning_rate=LR, momentum=0.5, parameters=model.parameters(), use_nesterov=True, "
         "weight_decay=0.01)", False),
        ("SGD(model.parameters(), 0.1, 0.9)",  # Paddle holds 0.9 as a float32, and so a decay
         "Momentum(learning_rate=0.1, momentum=0.9, parameters=model.parameters())", True),
        ("SGD(model.parameters(), 0.1, weight_decay=0.1)",
         "Momentum(learning_rate=0.1, momentum=0, parameters=model.parameters(), weight_decay=0.1)", True),
        ("AdamW(model.parameters(), args.lr, betas=(0.9, 0.95), weight_decay=0.5)",
         "AdamW(learning_rate=args.lr, parameters=model.parameters(), beta1=0.9, beta2=0.95, "
         "weight_decay=0.5)", False),
        ("Adam(model.parameters(), weight_decay=0.01)",
         "Adam(learning_rate=0.001, parameters=model.parameters(), weight_decay=0.01)", False),
    ],
)  # fmt: skip
def test_an_optimizer_takes_pytorchs_steps(given: str, written: str, near: bool) -> None:
    made, text = write_main(f"torch.optim.{given}")
    assert text == f"paddle.optimizer.{written}"
    assert (made.proven, made.unseen, made.unproven) == (1, [], [])
    assert [one.near for one in made.trainings] == [near] == [bool(made.rounded)]


@pytest.mark.parametrize("given", [
    "SGD(model.parameters(), 0.1, momentum=0.5, dampening=0.2)",
    "RMSprop(model.parameters(), 0.01)",  # Paddle's epsilon stands under the root
])  # fmt: skip
def test_other_steps_are_not_proven(given: str) -> None:
    made, _ = write_main(f"torch.optim.{given}")
    assert not made.proven and not made.trainings
    assert made.unproven == [f"line 15: torch.optim.{given.partition('(')[0]} (other steps)"]


@pytest.mark.parametrize("given", [
    "SGD(model.parameters(), other.lr)",
    "SGD(model.parameters(), rate)",
    "SGD([{'params': model.parameters()}], 0.1)",
])  # fmt: skip
def test_what_is_not_known_is_converted_and_not_proven(given: str) -> None:
    made, text = write_main(f"torch.optim.{given}")
    assert text.startswith("paddle.optimizer.SGD(") and not made.trainings
    assert made.unseen == ["line 15: torch.optim.SGD"]


@pytest.mark.parametrize("given", [
    "LambdaLR(other, lambda e: 0.5 * (1 + math.cos(math.pi * e / args.max_epochs)))",
    "StepLR(other, 3)",
    "MultiStepLR(other, [2, 5], gamma=0.5)",
    "ExponentialLR(other, 0.9)",
    "CosineAnnealingLR(other, args.max_epochs, eta_min=0.01)",
    "OneCycleLR(other, args.lr, total_steps=20)",
])  # fmt: skip
def test_a_schedule_gives_pytorchs_rates(given: str) -> None:
    made, text = write_main(f"torch.optim.lr_scheduler.{given}")
    name = given.partition("(")[0]
    assert text == given and re.search(rf"def {name}\(optimizer, |class {name}\(", made.text)
    assert made.proven == len(made.trainings) == 1
    assert bool(made.rounded) is (name == "OneCycleLR")  # Paddle holds a momentum as a float32


HANDED = """
import argparse
from dataclasses import dataclass
import torch

BASE = 0.05

@dataclass
class Config:
    lr: float = BASE * 2
    decay: float = 0.5
    seed: int = 0

def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", default=2 * BASE)
    return {returned}

def train(options, model):
    optimizer = torch.optim.AdamW(model.parameters(), lr={read})

if __name__ == "__main__":
    {main}
"""


@pytest.mark.parametrize(
    ("returned", "read", "main", "known"),
    [
        ("parser.parse_args()", "args.rate", "args = get_args()", True),
        ("parser.parse_known_args()[0]", "options.rate", "train(get_args(), None)", True),
        ("parser.parse_args()", "args.rate", "args, _ = argparse.ArgumentParser().parse_known_args()", True),
        ("None", "args.rate", "args = get_args()", False),
        ("parser", "args.rate", "args = get_args()", False),
        ("None", "config.lr", "config = Config(seed=1)", True),
        ("None", "options.decay", "config = Config(decay=0.1)\n    train(config, None)", True),
        ("None", "Config.lr", "pass", True),
        ("None", "config.lr", "config = Config()\n    config.lr = 1.0", False),
        ("None", "config.lr", "config = Config(lr=config.lr)", False),
        ("None", "config.other", "config = Config()", False),
    ],
)  # fmt: skip
def test_options_and_fields_are_followed(returned: str, read: str, main: str, known: bool) -> None:
    code = Code(HANDED.format(returned=returned, read=read, main=main))
    number_nodes(code.tree)
    made = write_paddle(code, {}, {})
    assert (len(made.trainings), len(made.unseen)) == ((1, 0) if known else (0, 1)), made.unproven
    assert not known or re.search(r"lr=(0\.05 \* 2|2 \* 0\.05|0\.1)\)", made.trainings[0].torch)


def test_a_momentum_that_stays_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "torch.optim.lr_scheduler.OneCycleLR"
    wrong = adapters.ADAPTERS[name].replace("if self.cycles", "if not self.cycles")
    monkeypatch.setitem(adapters.ADAPTERS, name, wrong)
    made, _ = write_main(f"{name}(other, 0.1, total_steps=20)")
    assert made.unproven == [f"line 15: {name} (other steps)"]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("nn.CrossEntropyLoss(label_smoothing=LR)", "paddle.nn.CrossEntropyLoss(label_smoothing=LR)"),
        ("nn.SmoothL1Loss(beta=0.5)", "paddle.nn.SmoothL1Loss(delta=0.5, is_huber=False)"),
        ("nn.BCEWithLogitsLoss()", "paddle.nn.BCEWithLogitsLoss()"),
        ("nn.functional.cross_entropy(model(other), other.y)",
         "paddle.nn.functional.cross_entropy(model(other), other.y)"),
        ("nn.functional.mse_loss(model(other), other.y, reduction='sum')",
         "paddle.nn.functional.mse_loss(model(other), other.y, reduction='sum')"),
        ("nn.functional.huber_loss(model(other), other.y, delta=0.5)",
         "paddle.nn.functional.smooth_l1_loss(model(other), other.y, delta=0.5)"),
    ],
)  # fmt: skip
def test_a_loss_is_tried_on_a_batch_of_its_own(given: str, written: str) -> None:
    made, text = write_main(f"torch.{given}")
    assert text == written and made.proven == len(made.rehearsed) == 1
    assert not (made.unseen or made.unproven)


@pytest.mark.parametrize(
    "given", ["nn.CrossEntropyLoss(weight=other)", "nn.functional.mse_loss(*other)"]
)
def test_a_loss_with_unknown_arguments_is_not_tried(given: str) -> None:
    made, _ = write_main(f"torch.{given}")
    assert not (made.proven or made.rehearsed) and len(made.unseen) == 1


GROUPS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x).tanh())

def main():
    model = Net()
    groups = [{{"params": [*model.body.parameters()]{}}}, {{"params": [*model.head.parameters()]{}}}]
    optimizer = torch.optim.{}
    for _ in range(2):
        loss = model(torch.ones(2, 3)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(optimizer.param_groups[0]["lr"])
"""


def port_loop(folder: Path, body: str, head: str, made: str) -> tuple[PortResult, str]:
    """Return the port of a script with two groups and its text; body and head: what their dicts hold too."""
    path = folder / f"script_with_groups_{folder.name}.py"
    path.write_text(GROUPS.format(body, head, made))
    source = replace(open_source(path, f"{path.stem}:Net()"), script=Script("main()"))
    result = port(source, (np.ones((2, 3)),), folder / "out")
    assert result.loop is not None and result.loop.verdict == "the same steps", result.summary()
    return result, (folder / "out" / result.port).read_text()


@pytest.mark.parametrize(
    ("body", "head", "made", "written"),
    [
        ("", ', "lr": 0.01', "AdamW(groups, lr=0.1, weight_decay=0.1)",
         "AdamW(**scale_rates(groups, 0.1), weight_decay=0.1)"),
        (', "lr": 1', ', "lr": 2', "Adam(params=groups)", "Adam(**scale_rates(groups, 0.001))"),
        ("", ', "weight_decay": 0.0', "AdamW(groups, weight_decay=0.5)",
         "AdamW(learning_rate=0.001, parameters=groups, weight_decay=0.5)"),
    ],
)  # fmt: skip
def test_groups_keep_their_rates(
    body: str, head: str, made: str, written: str, tmp_path: Path
) -> None:
    result, text = port_loop(tmp_path, body, head, made)
    assert f"optimizer = paddle.optimizer.{written}" in text
    assert ("def scale_rates" in text) is ("scale_rates" in written)
    assert not any("not proven" in one and "torch.optim" in one for one in result.remarks)


@pytest.mark.parametrize("kind", ["AdamW", "SGD"])
def test_a_rate_that_is_left_out_is_other_steps(kind: str, float64_by_default: None) -> None:
    groups = [{"params": ()}, {"params": (), "lr": 0.01}]
    given, _ = stand_in((groups, 0.1), {})
    made = MadeOptimizer(getattr(torch.optim, kind), given, {})
    held = to_paddle(given[0])
    factors = [one.pop("lr", 0.1) / 0.1 for one in held]
    plain = getattr(paddle.optimizer, kind)(
        0.1, parameters=held, weight_decay=0.01 if kind == "AdamW" else None
    )
    assert not follows(plain, made, nearly=True)
    held = to_paddle(given[0])
    scaled = [{"params": one["params"], "learning_rate": factor}
              for one, factor in zip(held, factors, strict=True)]  # fmt: skip
    right = getattr(paddle.optimizer, kind)(
        0.1, parameters=scaled, weight_decay=0.01 if kind == "AdamW" else None
    )
    assert follows(right, made, nearly=False)


def test_an_optimizer_that_takes_no_steps_by_itself_is_not_proven() -> None:
    given, named = stand_in((), {"params": iter(())})
    with pytest.raises(TypeError):
        MadeOptimizer(torch.optim.LBFGS, given, named).after  # noqa: B018


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("kind", ["Adam", "SGD"])
@pytest.mark.parametrize("options", [
    {}, {"three_phase": True, "pct_start": 0.4}, {"anneal_strategy": "linear", "base_momentum": 0.5},
    {"cycle_momentum": False},
])  # fmt: skip
def test_one_cycle_goes_through_rates_and_momenta(
    groups: bool, kind: str, options: dict[str, Any], float64_by_default: None
) -> None:
    name = "torch.optim.lr_scheduler.OneCycleLR"
    text = adapters.write_adapter(name, "Cycle", (), {})
    space = execute_definition(text, {"math": math, "paddle": paddle})
    held = draw_parameters()
    given = [{"params": [one]} for one in held] if groups else held
    ours = to_paddle(given)
    momentum = {"momentum": 0.9} if kind == "SGD" else {}
    made = getattr(torch.optim, kind)(given, 0.1, **momentum)
    names = {"SGD": "Momentum"}
    other = getattr(paddle.optimizer, names.get(kind, kind))(0.1, parameters=ours, **momentum)
    cycles = [
        torch.optim.lr_scheduler.OneCycleLR(made, 0.2, total_steps=20, **options),
        space["Cycle"](other, 0.2, total_steps=20, **options),
    ]
    flat = [one["params"][0] if groups else one for one in ours]
    for step in range(18):
        slopes = [np.random.default_rng(step).standard_normal(list(one.shape)) for one in held]
        for parameters, tensor in ((held, torch.tensor), (flat, paddle.to_tensor)):
            for one, slope in zip(parameters, slopes, strict=True):
                (one * tensor(slope)).sum().backward()
        for each in (made, other, *cycles):
            each.step()
        made.zero_grad(), other.clear_grad()
        assert cycles[1].last_lr == pytest.approx(cycles[0].get_last_lr()[0], rel=1e-12)
        for one, theirs in zip(flat, held, strict=True):
            tolerance = 1e-6 if kind == "SGD" else 1e-12  # Paddle's Momentum holds it as a float32
            assert gap(theirs.detach().numpy(), one.numpy(), tolerance).ok


def test_a_schedule_with_other_rates_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "torch.optim.lr_scheduler.StepLR"
    wrong = adapters.ADAPTERS[name].replace("step_size, gamma, last", "step_size, gamma / 2, last")
    monkeypatch.setitem(adapters.ADAPTERS, name, wrong)
    made, _ = write_main(f"{name}(other, 3)")
    assert made.unproven == [f"line 15: {name} (other steps)"] and not made.trainings


def test_a_pair_has_one_optimizer_or_none() -> None:
    one = training.Training("torch.optim.SGD(model.parameters())", "paddle.optimizer.SGD()", False)
    assert training.write_trainings([one, one], "p") == "" == training.write_trainings([], "p")
    assert "def torch_optimizer(model):" in training.write_trainings([one], "p")


SOURCE = MAIN.replace("def main", """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 2)

    def forward(self, x):
        return self.layer(x).tanh()

def main""").replace("return {}", """
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
""")  # fmt: skip


@pytest.fixture(scope="module")
def ported(tmp_path_factory: pytest.TempPathFactory) -> tuple[PortResult, Path]:
    """The port of a training script, and its folder."""
    folder = tmp_path_factory.mktemp("script")
    (folder / "script_of_training.py").write_text(SOURCE)
    source = open_source(folder / "script_of_training.py", "script_of_training:Net()")
    inputs = (np.random.default_rng(0).standard_normal((4, 6)),)
    return port(source, inputs, folder / "out"), folder / "out"


def test_the_verdict_covers_the_steps(ported: tuple[PortResult, Path]) -> None:
    result, folder = ported
    assert result.verdict == "faithful" and not result.left
    (tried,) = (one for one in result.remarks if one.startswith("never ran"))
    assert "torch.optim.SGD" in tried and "torch.optim.lr_scheduler.StepLR" in tried
    report = result.course.outcome.report
    assert report is not None
    assert {check.stage for check in report.checks} >= {"optimizer", "schedule"}
    assert json.loads(result.to_json())["calls"]["never_ran"] == []
    with open_file(folder / "pair.py", PairFile) as file:
        assert (
            file.side("torch").optimizer is not None and file.side("paddle").scheduler is not None
        )
