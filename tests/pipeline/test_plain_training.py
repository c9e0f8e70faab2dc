"""Step 5's plain scripts: the numbers of pt_train_many.py and pd_train_many.py, which do what they do not."""

import importlib
import os
import shutil
import sys
from pathlib import Path

from pipeline import run
from reprod_align import load_record
from tests.conftest import REPOSITORY
from tests.pipeline.runs import files_closed, tiny_run  # noqa: F401

import pytest

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
SIDES = {"pt": "torch", "pd": "paddle"}


@pytest.mark.parametrize("side", SIDES)
def test_without_options_both_are_one_training(
    side: str, aligned_home: Path, tmp_path: Path
) -> None:
    """`make align` ran the plain script; records and log are the same bytes."""
    shutil.copytree(aligned_home, tmp_path / "home", ignore=shutil.ignore_patterns("log_reprod"))
    script = importlib.import_module(f"pipeline.Step5.{side}_train_many")
    script.main(tiny_run(tmp_path / "home", "--dtype", "float64"))
    record, log = (
        f"log_reprod/strict/train_align_{SIDES[side]}.npy",
        f"log_reprod/training/{SIDES[side]}_float64.jsonl",
    )
    ours, theirs = (load_record(home / record) for home in (aligned_home, tmp_path / "home"))
    assert list(ours) == list(theirs)
    assert all(ours[key].tobytes() == theirs[key].tobytes() for key in ours)
    assert (aligned_home / log).read_bytes() == (tmp_path / "home" / log).read_bytes()


@pytest.mark.parametrize(
    ("words", "variable", "many"),
    [
        ("", "", False),
        ("--epochs 1 --dtype float32 --quiet", "", False),
        ("--lr 1e-3", "", True),
        ("--output runs/try", "", True),
        ("--task mnli", "", True),
        ("", "WORLD_SIZE", True),
        ("", "PADDLE_TRAINERS_NUM", True),
    ],
)
def test_who_trains(words: str, variable: str, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    for name in ("WORLD_SIZE", "PADDLE_TRAINERS_NUM"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "2")
    script = str(REPOSITORY / "pipeline" / "Step5" / "pd_train.py")
    monkeypatch.setattr(sys, "argv", [script, *words.split()])

    def run_path(path: str, run_name: str) -> None:
        started.append(Path(path).name)
        assert sys.argv == [path, *words.split()] and os.path.isfile(path)
        raise SystemExit(0)

    def start(main: object, about: object, writes: str) -> None:
        started.append(writes)

    monkeypatch.setattr(run.runpy, "run_path", run_path)
    monkeypatch.setattr(run, "start", start)
    try:
        run.start_plain(lambda run: None, None, writes="train_align_paddle")
    except SystemExit as ended:
        assert ended.code == 0
    assert started == (["pd_train_many.py"] if many else ["train_align_paddle"])
