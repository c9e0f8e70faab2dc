"""The unchanged source on Paddle: what runs is judged, what does not is told with its line."""

from reprod_align.porting.port import judge_source
from tests.porting.conftest import WriteSource
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
    runs: bool, write_source: WriteSource
) -> None:
    text = SOURCE if runs else SOURCE.replace("torch.nn.Linear(6, 2)", "torch.nn.LazyLinear(2)")
    source = write_source(text)
    report = judge_source(source, NUMBERS)
    assert report.passed == runs
    if not runs:
        assert f"{source.path.name}, line 7" in report.findings[0].message
        assert "has no attribute 'LazyLinear'" in report.findings[0].message
