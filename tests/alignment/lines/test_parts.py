"""What is chosen among results, handed to a layer, or to a base class: the line that does so is named."""

from pathlib import Path

import reprod_align
from tests.alignment.lines import torch_parts
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = Path(__file__).with_name("paddle_parts.py")
# what is changed in the port, to what, and a piece of the message
FAULTS = {
    "another result": ("last = found[-1]", "last = found[-2]",
                       "PyTorch passes on the output of stack [1] here, Paddle the output of stack [0]"),
    "mask not handed on": ("self.layers(x, src_mask=mask)", "self.layers(x)",
                           "the mask or index it hands to layers"),
    "arguments exchanged": ("super().__init__(kernel_size, stride)", "super().__init__(stride, kernel_size)",
                            "kernel_size and stride are exchanged"),
}  # fmt: skip


def judge(port: Path) -> reprod_align.Report:
    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(size=(2, 7, 8))
    return reprod_align.align(torch_parts.Model(), load(port).Model(), (x,))


def test_the_port_is_faithful() -> None:
    assert judge(PORT).verdict == "faithful"


@pytest.mark.parametrize("name", FAULTS)
def test_line_and_cause_are_named(name: str, tmp_path: Path) -> None:
    before, after, words = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = judge(port).findings[0]
    assert words in finding.message
    assert finding.paddle_line == f"{port}:{changed}", f"{finding} {finding.paddle_code}"
