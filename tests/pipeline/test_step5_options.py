"""Step 5's threshold and the paper's own figures as its reference."""

import importlib
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from pipeline.run import Run, make_run
from reprod_align import load_record, save_record

import pytest

STEP5: Any = importlib.import_module("pipeline.Step5.check_step5")


def run_of(home: Path, *words: str) -> Run:
    parser = ArgumentParser()
    STEP5.add_options(parser)
    return make_run(home=home, no_explain=True, **vars(parser.parse_args(words)))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two trainings whose accuracies are 0.2% apart in float32, and equal in float64."""
    for side, accuracy in (("torch", 0.93), ("paddle", 0.928)):
        save_record(tmp_path / "log_reprod" / f"train_align_{side}.npy", {"acc": accuracy})
        save_record(tmp_path / "log_reprod" / "strict" / f"train_align_{side}.npy", {"acc": 0.93})
    return tmp_path


def test_the_threshold(home: Path) -> None:
    assert STEP5.main(run_of(home)) == 1
    assert STEP5.main(run_of(home, "--threshold", "0.0025")) == 0


def test_the_papers_figures(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert STEP5.main(run_of(home, "--benchmark", "acc=0.9275")) == 0
    assert "the reference is the benchmark" in capsys.readouterr().out
    path = home / "log_reprod" / "train_align_benchmark.npy"
    assert load_record(path)["acc"] == 0.9275
    assert STEP5.main(run_of(home)) == 0, "it stays the reference"
    assert STEP5.main(run_of(home, "--benchmark", "acc=0.94")) == 1


def test_the_papers_figures_without_a_run_of_pytorch(home: Path) -> None:
    for path in home.rglob("train_align_torch.npy"):
        path.unlink()
    assert STEP5.main(run_of(home)) == 2
    assert STEP5.main(run_of(home, "--benchmark", "acc=0.9275")) == 0
    assert STEP5.main(run_of(home, "--benchmark", "acc=0.94")) == 1
    assert STEP5.main(run_of(home, "--benchmark", "f1=0.94")) == 1, "another metric"


@pytest.mark.parametrize("words", [("--threshold", "-1"), ("--threshold", "nan"), ("--benchmark", "acc"),
                                   ("--benchmark", "=1"), ("--benchmark", "acc=x")])  # fmt: skip
def test_what_is_refused(words: tuple[str, str], home: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        run_of(home, *words)


def test_a_report_and_a_table_to_paste(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = home / "page.html"
    words = ("--benchmark", "acc=0.9275", "--report", str(page), "--markdown")
    assert STEP5.main(run_of(home, *words)) == 0
    said = capsys.readouterr()
    assert said.out.startswith("### ✅") and "the reference is the benchmark" in said.err
    assert "train_align" in page.read_text()
