"""`reprod-align pair` and `selftest`: a file of the user's is run, and judged."""

import json
import subprocess
import sys
from pathlib import Path

import reprod_align.selftest as planting
from reprod_align import commands
from reprod_align.commands import pair, selftest
from reprod_align.errors import ReprodError
from tests.commands.asked import run
from tests.conftest import REPOSITORY

import pytest
import torch

FILE = """
import numpy as np

def torch_model():
    import torch
    print("a word of the file's own")
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())

def paddle_model():
    from paddle import nn
    return nn.Sequential(nn.Linear(3, 2), nn.Tanh())

inputs = (np.random.default_rng(0).standard_normal((4, 3)),)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_a_faithful_pair_and_one_with_a_fault(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(pair, file, "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["passed"]  # the file's own words go to stderr
    assert "a word of the file's own" in shown.err
    file.write_text(FILE.replace("nn.Tanh())\n\ninputs", "nn.ReLU())\n\ninputs"))
    assert run(pair, file) == 1


def test_a_file_that_raises_is_placed(file: Path) -> None:
    file.write_text(FILE + "raise KeyError('planted')\n")
    for command in (pair, selftest):
        with pytest.raises(ReprodError, match=r"mine\.py, line 14: KeyError: 'planted'"):
            run(command, file)


@pytest.mark.parametrize(
    ("name", "why"), [("SIGSEGV", "a kernel of PyTorch or Paddle crashed"), ("SIGKILL", "no memory left")]
)  # fmt: skip
def test_a_run_that_ends_without_a_word_is_told(file: Path, name: str, why: str) -> None:
    ending = f"import os, signal\n    os.kill(os.getpid(), signal.{name})"
    file.write_text(FILE.replace("import torch\n", f"{ending}\n", 1))
    words = [sys.executable, "-m", "reprod_align", "pair", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        f"reprod-align: ended by {name} without a verdict"
    )
    assert why in done.stderr


def test_an_interpreter_that_is_missing_is_refused(file: Path) -> None:
    with pytest.raises(ReprodError, match="cannot start /no/python"):
        run(pair, file, "--torch-python", "/no/python")


def test_what_a_selftest_prints_and_returns(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = []
    nothing = planting.SelfTest(pair.Report(), [])
    monkeypatch.setattr(planting, "selftest_pair", lambda pair: given.append(pair) or nothing)
    assert run(selftest, file) == 1
    assert (given[0].reference.name, given[0].port.name) == ("PyTorch", "Paddle")
    assert "so nothing was planted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "size"), [("8G", 2**33), ("512m", 2**29), ("1.5KiB", 1536), ("7", 7)]
)
def test_sizes_are_read_with_their_units(text: str, size: int) -> None:
    assert commands.read_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "0", "-1G", "8 sheep", "1e9", "9" * 400])
def test_a_size_that_tells_no_bytes_is_refused(
    file: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(pair, file, f"--memory={text}")
    assert ended.value.code == 2
    assert "argument --memory: expected a size such as 8G or 512M" in capsys.readouterr().err


def test_a_small_budget_leaves_the_verdict(file: Path) -> None:
    assert run(pair, file, "--memory", "1M") == 0


def test_sections_are_judged_with_the_weights_of_a_file(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ReprodError, match="--sections needs torch_weights"):
        run(pair, file, "--sections")
    weights = {"0.weight": torch.ones(2, 3), "0.bias": torch.zeros(2)}
    torch.save(weights, tmp_path / "weights.bin")
    file.write_text(f"torch_weights = 'weights.bin'\n{FILE}")
    state = tmp_path / "state"
    assert run(pair, file, "--sections", "10", "--state", state) == 0
    assert list(state.iterdir())
    assert "by section" in capsys.readouterr().out
    file.write_text(f"torch_weights = 'weights.bin'\ncopy_weights = False\n{FILE}")
    with pytest.raises(ReprodError, match="go together"):
        run(pair, file, "--sections")
    with pytest.raises(ReprodError, match="leave the interpreters out"):
        run(pair, file, "--sections", "--torch-python", "python")


def test_findings_for_code_scanning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("FAULTY", "1")
    wanted, mlp = tmp_path / "out" / "found.sarif", Path("examples/pair_mlp.py")
    assert run(pair, mlp, "--sarif", wanted) == 1
    results = json.loads(wanted.read_text())["runs"][0]["results"]
    lines = mlp.read_text().splitlines()
    regions = [one["locations"][0]["physicalLocation"]["region"] for one in results]
    shown = [lines[one["startLine"] - 1] for one in regions]
    assert [word in line for word, line in zip(["epsilon=", "FAULTY", "kind("], shown, strict=True)]
    with pytest.raises(ReprodError, match="--sarif .*must end in"):
        run(pair, mlp, "--sarif", tmp_path / "found.txt")
