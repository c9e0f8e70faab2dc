"""A run decides between what could be at fault: a number or the call that reads it, here or elsewhere."""

from pathlib import Path

from reprod_align.report import Finding
from tests.alignment.lines import torch_masked
from tests.alignment.lines.test_lines import first_of, masked_ids, plant

import pytest

PORT = Path(__file__).with_name("paddle_masked.py")
# what is changed in the port, to what, and what the finding says
FAULTS = {
    "operator beside a constructor's number": (
        "scores / self.scale", "scores * self.scale", "`scores / self.scale` in place of"),
    "number of a constructor": ("Scale(d, eps=1e-6)", "Scale(d, eps=1e-3)", "eps is 0.001 in Paddle: 1e-06"),
    "table of whole numbers": ("paddle.arange(12) + 2", "paddle.arange(12) + 3", "with its values the"),
    "positions, where kinds are not handed on": ("axis=1)", "axis=0)", "`1` in place of `0`"),
    "another index": ("self.table(ids)", "self.table(counted)", "`ids` in place of `counted`"),
    "mask not handed on": (
        "self.block(x, mask=mask)", "self.block(x)", "`self.block(x, mask=mask)` in place of"),
    "mask of which nothing comes": (
        "scores = scores + mask\n        return F.softmax(scores,",
        "scores = paddle.where(mask < 0, scores, scores)\n        return F.softmax(scores * 1.0,",
        "PyTorch adds a mask"),
    "step of a function": ("F.softmax(scores, axis=-1)", "scores", "PyTorch calls softmax inside"),
}  # fmt: skip


def find_first(port: Path) -> Finding | None:
    return first_of(torch_masked, port, "Model", *masked_ids())


def test_the_port_is_faithful() -> None:
    assert find_first(PORT) is None


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.edits(30)
def test_the_line_and_what_mends_it_are_named(name: str, tmp_path: Path) -> None:
    before, after, words = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = find_first(port)
    assert finding is not None and finding.paddle_line == f"{port}:{changed}", finding
    assert words in f"{finding.message} {finding.fix}"
