"""The unchanged source on Paddle: what runs is judged, what does not is told with its line."""

from reprod_align.porting.port import judge_source
from tests.porting.conftest import WriteSource
from tests.porting.drafts import NUMBERS

import pytest
import torch

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


NESTED = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 2)

    def forward(self, batch):
        return self.layer(batch["x"]).tanh() * batch["scale"]
"""


def test_nested_inputs_with_tensors_reach_the_source_on_both_sides(
    write_source: WriteSource,
) -> None:
    report = judge_source(write_source(NESTED), ({"x": torch.ones(3, 6), "scale": 0.5},))
    assert report.passed, report.summary()
