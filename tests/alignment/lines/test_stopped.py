"""Gradients that a block or a decorator of the port stops: it is named, once, and leaving it out mends."""

from pathlib import Path
from types import ModuleType

import reprod_align
from tests.alignment.lines import torch_stopped
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = Path(__file__).with_name("paddle_stopped.py")
LOOP = "        for block in self.blocks:\n            x = block(x)"
# what is changed in the port, to what, and what the edit leaves out
FAULTS = {
    "a block around modules": (
        LOOP,
        "        with paddle.no_grad():\n    " + LOOP.replace("\n", "\n    "),
        "with paddle.no_grad():",
    ),
    "a block around functions": (
        "        x = 2 * nn.functional.relu(x)\n",
        "        with paddle.set_grad_enabled(False):\n            x = 2 * nn.functional.relu(x)\n",
        "with paddle.set_grad_enabled(False):",
    ),
    "a decorator of a method": (
        "    def encode", "    @paddle.no_grad()\n    def encode", "paddle.no_grad()",
    ),
    "a decorator of a method that calls no module": (
        "    def scale", "    @paddle.no_grad()\n    def scale", "paddle.no_grad()",
    ),
    "one of two blocks in a line": (
        "with nullcontext():", "with nullcontext(), paddle.no_grad():", "",
    ),
}  # fmt: skip


def judge(port: Path, reference: ModuleType = torch_stopped) -> reprod_align.Report:
    torch.manual_seed(
        28
    )  # where the cut hides what float32 inside Paddle's norm does to a gradient
    x = np.random.default_rng(0).standard_normal((5, 4))
    return reprod_align.align(reference.Model(), load(port).Model(), (x,))


def test_the_port_is_faithful() -> None:
    report = judge(PORT)
    assert report.passed, report.summary()


@pytest.mark.parametrize("name", FAULTS)
def test_what_stops_gradients_is_named_once_and_leaving_it_out_mends(
    name: str, tmp_path: Path
) -> None:
    before, after, left_out = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    report = judge(port)
    [finding] = report.findings
    assert finding.paddle_line == f"{port}:{changed}" and finding.code == "gradient-cut"
    assert finding.edit is not None and finding.edit.kind == "stopped-gradient"
    if left_out:
        assert str(finding.edit) == f"leaving out `{left_out}` gives PyTorch's numbers"
    else:
        assert finding.edit.after == "nullcontext()"


def test_what_the_reference_runs_without_gradients_is_named_once_and_a_block_is_added(
    tmp_path: Path,
) -> None:
    inside = "        with torch.no_grad():\n    " + LOOP.replace("\n", "\n    ")
    reference, _ = plant(Path(torch_stopped.__file__), LOOP, inside, tmp_path)
    report = judge(PORT, load(reference))
    [finding] = report.findings
    assert finding.code == "gradient-cut" and finding.edit is not None
    assert finding.edit.kind == "gradient-not-stopped"
    assert str(finding.edit) == "adding `with paddle.no_grad():` gives PyTorch's numbers"
    moved = "\n".join(f"    {line}" for line in LOOP.splitlines())
    assert finding.edit.after == f"with paddle.no_grad():\n{moved}"
