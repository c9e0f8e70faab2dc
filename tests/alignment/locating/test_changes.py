"""One changed call on the way to a mask or an index: its line is named, and the change that mends it."""

from pathlib import Path

import reprod_align
from reprod_align.alignment.locating.changes import Trial
from reprod_align.report import Finding
from tests.alignment.lines import torch_masks
from tests.alignment.lines.test_lines import load

import numpy as np
import pytest
import torch

PORT = Path(__file__).parents[1] / "lines" / "paddle_masks.py"
# what is changed in the port, to what, and what the finding says
FAULTS = {
    "operator": ("* -1e4", "/ -1e4", "the mask comes from", "`* -10000` in place of `/ -10000`"),
    "difference": ("1.0 - kept", "1.0 + kept", "the mask comes from", "in place of `+ 1`"),
    "triangle": ("tensor.triu", "tensor.tril", "the mask comes from", "triu of diagonal 1 in place of tril"),
    "diagonal": ("-1e4), 1)", "-1e4), 2)", "the mask comes from", "triu of diagonal 1 in place of"),
    "axis": ("axis=1", "axis=0", "the index comes from", "cumsum over axis 1 in place of cumsum over axis 0"),
    "ones": ("ones_like(ids)", "zeros_like(ids)", "the index comes from", "1 in place of 0"),
    "call dropped": ("paddle.cumsum(ones, axis=1)", "ones", "the index comes from", "cumsum of it"),
    "number": ("self.places(counted)", "self.places(counted - 1)", "the index comes from", ""),
}  # fmt: skip


def find_first(port: Path) -> Finding | None:
    torch.manual_seed(0)
    ids = np.random.default_rng(0).integers(1, 30, (2, 6))
    kept = np.ones((2, 6), np.int64)
    kept[1, 4:] = 0
    report = reprod_align.align(torch_masks.Encoder(), load(port).Encoder(), (ids, kept))
    return report.findings[0] if report.findings else None


def test_a_faithful_port_has_no_finding_and_nothing_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Trial, "find_change", None)
    assert find_first(PORT) is None


@pytest.mark.parametrize("name", FAULTS)
def test_the_changed_call_is_named(name: str, tmp_path: Path) -> None:
    before, after, *words = FAULTS[name]
    text = PORT.read_text()
    assert text.count(before) == 1
    port = tmp_path / "port.py"
    port.write_text(text.replace(before, after))
    changed = 1 + text[: text.index(before)].count("\n")
    finding = find_first(port)
    assert finding is not None and finding.paddle_line == f"{port}:{changed}"
    for piece in words:
        assert piece in finding.message
    assert finding.message.endswith(("PyTorch's numbers", "(a call is missing)"))
