"""benchmarks/figures/steps and benchmarks/plain: both sides run all steps on the same files, and agree."""

import json
import shlex
import shutil
from pathlib import Path

from benchmarks import plain
from benchmarks.figures import steps
from benchmarks.plain.__main__ import STEPS
from tests.conftest import run_warm_python

import pytest


def run(command: str, home: Path) -> str:
    words = [str(home) if word == "." else word for word in shlex.split(command)[1:]]
    words = ["tiny" if word == "random-base" else word for word in words]
    finished = run_warm_python(*words, warm_children=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def ours(aligned_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a folder in which our side of the first row has run, and what it printed."""
    home = Path(shutil.copytree(aligned_home, tmp_path_factory.mktemp("steps") / "home"))
    for name in steps.SENTENCES:
        (home / name).write_text("sentence\tlabel\nfine\t1\nnot fine\t0\nbad\t0\n")
    weights = home / "weights" / "paddle_weight.pdparams"
    made = weights.stat().st_mtime_ns
    table = run(steps.ROWS[0].ours, home)
    assert weights.stat().st_mtime_ns == made, "--prepared keeps them"
    return home, table


def test_both_sides_run_all_steps(ours: tuple[Path, str]) -> None:
    home, table = ours
    assert plain.__doc__ and [row.ours.endswith(steps.ROWS[0].ours) for row in steps.ROWS]
    (home / "plain").mkdir()
    assert table.count(" passed ") + table.count("not judged") >= 2 * 7
    run(steps.ROWS[0].peer, home)
    for name in (name for _, names in STEPS for name in names):
        log = (home / "plain" / f"{name}_diff.log").read_text()
        assert name == "train_align" or log.splitlines()[-1].endswith("diff check passed")


def test_float32_alone_is_not_called_strict(ours: tuple[Path, str]) -> None:
    home, table = ours
    rows = {
        line.split()[1]: line
        for line in table.splitlines()
        if line[:1] in "12345" and line[1:2] == " "
    }
    assert {name for name, row in rows.items() if "not judged" in row} == {
        "forward", "metric", "loss", "bp_align", "train_align"}  # fmt: skip
    folder = home / "log_reprod"
    assert not (folder / "strict" / "forward_torch.npy").exists()
    assert "strict" not in (folder / "forward_diff.log").read_text()
    assert "not judged" in (folder / "report.html").read_text()
    assert json.loads((folder / "strict" / "forward_diff.json").read_text())["passed"]
