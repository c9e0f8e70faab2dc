"""What is wrong far from where it shows: in a number, a mask, an index or an argument that is handed on."""

from pathlib import Path

import reprod_align
from tests.alignment.lines import torch_encoder
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = Path(__file__).with_name("paddle_encoder.py")
# what is changed in the port, to what, and how many lines the finding may be off
FAULTS = {
    "a number that both modules hold": ("self.factor = 0.5", "self.factor = 1.0", 0),
    "a mask that hides nothing": ("(1.0 - mask) * -1e4", "(1.0 - mask) * -1.0", 0),
    "a mask of the other sign": ("1.0 - mask", "mask - 1.0", 0),
    "an argument that is not handed on": (
        "self.attention(x, mask=mask, position_bias=position_bias)", "self.attention(x, mask=mask)", 0,
    ),
    "an index that is one number": ("paddle.cumsum(ones, axis=-1)", "ones", 1),
    "a step of a composite call": ("shares = nn.functional.softmax(scores, -1)", "shares = scores", 0),
    "parts that are exchanged": ("first, second = paddle.chunk", "second, first = paddle.chunk", 0),
    "a table of another name": ("paddle.arange(72.0) / 64", "paddle.arange(72.0) / 32", 0),
    "a function in a constructor": ("paddle.cos(steps)", "paddle.sin(steps)", 0),
    "a number in a constructor": ("/ 10000 **", "/ 1000 **", 0),
    "a condition around what PyTorch does not do": ("if mask is None", "if mask is not None", 0),
    "a module that is None": ("Gate() if d > 4", "Gate() if d < 4", 0),
    "a summand that is asked for and left out": ("scores = scores + position_bias", "scores = scores", 0),
    "a module that returns what it is given": ("return x * nn.functional.sigmoid(x)", "return x", 0),
    "a rate that is written out": ("self.drop = nn.Dropout(0.0)", "self.drop = nn.Dropout(0.4)", 0),
}  # fmt: skip


def judge(port: Path) -> reprod_align.Report:
    torch.manual_seed(0)
    ids, mask = np.random.default_rng(0).integers(1, 20, (2, 7)), np.ones((2, 7), "int64")
    mask[1, -3:] = 0
    return reprod_align.align(torch_encoder.Model(), load(port).Model(), {"ids": ids, "mask": mask})


def test_the_port_is_faithful() -> None:
    assert judge(PORT).verdict == "faithful"


@pytest.mark.edits(400)
@pytest.mark.parametrize("name", FAULTS)
def test_the_line_is_named_that_makes_it(name: str, tmp_path: Path) -> None:
    before, after, off = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = judge(port).findings[0]
    near = [f"{port}:{changed + at}" for at in range(-off, off + 1)]
    assert finding.paddle_line in near, f"{finding} {finding.paddle_code}"
