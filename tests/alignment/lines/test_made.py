"""Layers that a function chooses, a loop makes by another name, or the caller hands in: the line is named."""

from pathlib import Path

import reprod_align
from reprod_align.model.source.making import find_only_naming
from tests.alignment.lines import torch_made
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = Path(__file__).with_name("paddle_made.py")
# what is changed in the port, to what, and the module that is named
FAULTS = {
    "a layer that is handed in": ("kernel_size=2, stride=2", "kernel_size=2, stride=4", "stem.1"),
    "a layer that a method makes and hands in": (
        "skip = nn.Conv2D(width, width, 1)",
        "skip = nn.Conv2D(width, width, 3, padding=1)",
        "blocks.0.skip",
    ),
    "a class that a function gives": ("return nn.ReLU", "return nn.GELU", "blocks.0.act"),
    "a condition in a loop": ("1 if i else stride", "stride if i else 1", "blocks.0.conv"),
    "a condition around a layer that is handed in": ("if norm", "if not norm", "stem.1.weight"),
    "another value of another shape": ("self.dense(first)", "self.dense(x)", "pooler"),
}


def judge(port: Path) -> reprod_align.Report:
    torch.manual_seed(0)
    image = np.random.default_rng(0).normal(size=(2, 3, 16, 16))
    return reprod_align.align(torch_made.make_model(), load(port).make_model(), (image,))


def test_the_port_is_faithful() -> None:
    report = judge(PORT)
    assert report.passed, report.summary()


@pytest.mark.edits(400)
@pytest.mark.parametrize("name", FAULTS)
def test_the_line_is_named(name: str, tmp_path: Path) -> None:
    before, after, module = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = judge(port).findings[0]
    assert finding.paddle_line == f"{port}:{changed}", f"{finding} {finding.paddle_code}"
    assert finding.paddle_name == module


@pytest.mark.edits(400)
def test_no_more_statements_are_replaced_than_differ(tmp_path: Path) -> None:
    port, changed = plant(PORT, "return (self.skip(x) + h) /", "return h /", tmp_path)
    finding = judge(port).findings[0]
    edit = finding.edit
    assert edit is not None and edit.last_line == changed
    assert changed - edit.line <= 1, edit


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("def f(a):\n    return nn.ReLU", 2),
        ("def f(a):\n    if a == 'relu':\n        return nn.ReLU", None),
        ("KINDS = {'relu': nn.ReLU}", None),
        ("def f(a: nn.ReLU):\n    return isinstance(a, nn.ReLU)", None),
        ("class A(nn.ReLU):\n    x = 1", None),
        ("a = nn.ReLU()\nb = nn.ReLU()", None),
        ("a = [nn.Tanh(), nn.ReLU()]", 1),
    ],
)
def test_which_places_name_a_class(text: str, named: int | None, tmp_path: Path) -> None:
    file = tmp_path / "port.py"
    file.write_text(text)
    found = find_only_naming([str(file)], "ReLU")
    assert (found and found.line) == named


def test_a_call_counts_by_what_its_argument_says(tmp_path: Path) -> None:
    file = tmp_path / "port.py"
    file.write_text(
        "a = nn.Pool(2, stride=4)\nb = nn.Pool(2, stride=[2, 2])\nc = nn.Pool(2, stride=s)\n"
    )
    found = [
        find_only_naming([str(file)], "Pool", ["stride"], value) for value in (4, (4, 4), (2, 2), 3)
    ]
    assert [one and one.line for one in found] == [1, 1, 2, None]
