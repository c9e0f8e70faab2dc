"""The unchanged source on Paddle: what runs is judged, what does not is told with its line."""

from pathlib import Path

from reprod_align.porting.port import judge_source
from reprod_align.porting.source import open_source
from tests.porting.drafts import NUMBERS

import pytest

SOURCE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 2)

    def forward(self, x):
        return self.layer(x).tanh()
"""


@pytest.mark.parametrize("runs", [True, False])
def test_the_source_is_judged_in_a_process_of_its_own(
    runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"mine_proxied_{runs}"
    text = SOURCE if runs else SOURCE.replace("torch.nn.Linear(6, 2)", "torch.nn.LazyLinear(2)")
    (tmp_path / f"{name}.py").write_text(text)
    report = judge_source(open_source(tmp_path / f"{name}.py", f"{name}:Net()"), NUMBERS)
    assert report.passed == runs
    if not runs:
        assert f"{name}.py, line 7" in report.findings[0].message
        assert "has no attribute 'LazyLinear'" in report.findings[0].message
