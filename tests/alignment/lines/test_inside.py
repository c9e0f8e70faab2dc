"""A method of the port that a framework calls is at fault: its own line is named."""

from pathlib import Path

import reprod_align
from tests.alignment.lines import torch_inside
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = Path(__file__).with_name("paddle_inside.py")


def judge(port: Path) -> reprod_align.Report:
    torch.manual_seed(0)
    ids = np.random.default_rng(0).integers(0, 20, (2, 7))
    return reprod_align.align(torch_inside.Model(), load(port).Model(), (ids,))


def test_the_port_is_faithful() -> None:
    report = judge(PORT)
    assert report.passed, report.summary()


@pytest.mark.every_edit
@pytest.mark.parametrize("name", ["q", "k"])
def test_a_call_that_is_left_out_is_named_where_its_value_is_passed_on(
    name: str, tmp_path: Path
) -> None:
    call = f"self.rotary({name}, offset=0)"
    port, changed = plant(PORT, call, name, tmp_path)
    finding = judge(port).findings[0]
    assert finding.paddle_line == f"{port}:{changed}", finding
    assert finding.paddle_name == "attention"
    assert finding.edit is not None and finding.edit.after == call
    assert "PyTorch calls `self.rotary` here, and Paddle does not" in finding.message


@pytest.mark.every_edit
def test_a_parameter_that_is_never_read_is_what_is_left_out(tmp_path: Path) -> None:
    without = "alpha * paddle.matmul(batch1, batch2)"
    port, changed = plant(PORT, f"x + {without}", without, tmp_path)
    finding = judge(port).findings[0]
    assert finding.paddle_line == f"{port}:{changed}", finding
    assert finding.edit is not None and finding.edit.after == f"{without} + x"


def test_a_condition_that_keeps_a_layer_from_being_set_is_named(tmp_path: Path) -> None:
    asked = "isinstance(layer, nn.LayerNorm)"
    port, changed = plant(PORT, f"if {asked}", f"if not {asked}", tmp_path)
    finding = judge(port).findings[0]
    assert finding.code == "layer-norm-epsilon" and finding.paddle_name == "norm"
    assert finding.paddle_line == f"{port}:{changed}", finding
