"""A call that is missing, or two arguments exchanged: the line that passes the value on is named."""

from pathlib import Path

import reprod_align
from tests.alignment.lines import torch_passing
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = Path(__file__).with_name("paddle_passing.py")
# what is changed in the port, to what, and a piece of the message
FAULTS = {
    "missing before a function": ("second = self.key(x)", "second = x", "PyTorch calls `self.key(x)` here"),
    "missing before a layout": ("mixed = self.inner(mixed + attended)", "mixed = mixed + attended",
                                "PyTorch calls `self.inner(mixed + attended)` here"),
    "arguments exchanged": ("self.mix(attended, x)", "self.mix(x, attended)",
                            "PyTorch passes on its input [0][0] here, Paddle its input [0][1]"),
    "another value": ("self.norm(after)", "self.norm(before)", "`self.norm(before)`"),
}  # fmt: skip


def judge(port: Path) -> reprod_align.Report:
    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(size=(2, 7, 8))
    return reprod_align.align(torch_passing.Model(), load(port).Model(), (x,))


def test_the_port_is_faithful() -> None:
    assert judge(PORT).verdict == "faithful"


@pytest.mark.parametrize("name", FAULTS)
def test_line_and_cause_are_named(name: str, tmp_path: Path) -> None:
    before, after, words = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = judge(port).findings[0]
    assert words in finding.message
    assert finding.paddle_line == f"{port}:{changed}", f"{finding} {finding.paddle_code}"


def test_a_call_that_is_moved_is_named_where_another_stands_in_its_place(tmp_path: Path) -> None:
    """Not at the statement before it, which a call that is left out would leave behind."""
    moved = (
        "after, _ = before, 0\n        after = self.norm(after)\n        return self.dense(after)"
    )
    before = "after = self.dense(before)\n        return self.norm(after)"
    port, changed = plant(PORT, before, moved, tmp_path)
    finding = judge(port).findings[0]
    assert finding.paddle_line == f"{port}:{changed + 1}", f"{finding} {finding.paddle_code}"
