"""An attempt: weights are moved off their constants, and what ends the process is a problem of the draft."""

import faulthandler
import json
import signal
import sys
from hashlib import sha256
from pathlib import Path

from reprod_align.explain.code import Code
from reprod_align.pair import torch_side
from reprod_align.porting import attempt
from reprod_align.porting.attempt import stir_weights
from reprod_align.porting.loop import mend
from reprod_align.porting.remedies import REMEDIES
from tests.porting.drafts import make_bench, names_of

import pytest
import torch

WORK = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from pathlib import Path
from reprod_align.porting.attempt import note_attempt
text = Path({folder!r}, "mine.py").read_text()
problem = note_attempt(text, "mine.py")
if problem is None:
    import mine
assert problem.line == 4 and "os.kill" in problem.code and "SIGSEGV" in problem.text
sys.exit(7)
"""
FAULTY = """import os
import signal

os.kill(os.getpid(), signal.SIGSEGV)
"""
SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.PReLU()

    def forward(self, x):
        return self.act(x)
"""


def test_what_ends_the_process_is_a_problem_of_the_draft(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAULTY)
    words = [sys.executable, "-c", WORK.format(folder=str(tmp_path))]
    assert attempt.run_guarded(words) == 7


def test_a_process_that_ends_before_it_attempts_anything_is_not_started_again() -> None:
    words = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"]
    assert attempt.run_guarded(words) == -signal.SIGSEGV


SAMPLED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.place = nn.Linear(6, 2)

    def forward(self, x):
        grid = self.place(x).tanh().reshape(1, 2, 2, 2)
        return nn.functional.grid_sample(x.reshape(1, 1, 4, 6), grid, align_corners=True)
"""


@pytest.mark.parametrize(
    ("source", "remedy"), [(SOURCE, "SlopeOfGivenInput"), (SAMPLED, "GridOfGivenImage")]
)
def test_what_is_given_without_a_gradient_is_mended(
    source: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = source.replace("torch\nfrom torch import nn", "paddle").replace("nn.", "paddle.nn.")
    draft = draft.replace("Module", "Layer")
    bench = make_bench(tmp_path, source, draft)
    text = bench.draft.text
    found = json.dumps({"signal": "SIGSEGV", "line": None})
    (tmp_path / f"{sha256(text.encode()).hexdigest()}.json").write_text(found)
    monkeypatch.setenv(attempt.VARIABLE, str(tmp_path))
    try:
        course = mend(Code(text), bench, REMEDIES, bench.file)
    finally:
        faulthandler.enable(sys.__stderr__)
        while attempt._open:
            attempt._open.pop().close()
    assert course.outcome.passed and names_of(course) == [remedy]


def test_constant_rows_and_statistics_are_moved() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(4, 3, padding_idx=1), torch.nn.BatchNorm1d(3))
    model.register_buffer("mask", torch.ones(2, 2))
    model.register_parameter("none", torch.nn.Parameter(torch.ones(0, 2)))
    model.register_parameter("scalar", torch.nn.Parameter(torch.tensor(1.0)))
    before = {name: held.clone() for name, held in model.state_dict().items()}
    stir_weights(torch_side(model))
    after = model.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {"0.weight", "1.weight", "1.bias", "1.running_mean", "1.running_var", "scalar"}
    rows = before["0.weight"] == after["0.weight"]
    assert rows.all(1).tolist() == [True, False, True, True]
    assert (after["1.running_var"] > 0).all() and after["1.weight"].unique().numel() == 3
