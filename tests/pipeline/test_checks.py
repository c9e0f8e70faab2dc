"""A record that was made with other files is refused, whichever of them changed since."""

import os
import shutil
from pathlib import Path

from pipeline import checks
from pipeline.bert.exported import weight_files
from pipeline.run import Run, make_run
from reprod_align import check, save_record
from tests.conftest import REPOSITORY

import numpy as np
import pytest

FORWARD = ("pipeline/Step1/pt_forward_bert.py", "pipeline/Step1/pd_forward_bert.py")
TRAINING = ("pipeline/Step5/pt_train.py", "pipeline/Step5/pd_train.py")
DATA = ("pipeline/Step2/pt_data.py", "pipeline/Step2/pd_data.py")
EARLIER, LATER = 1_000_000_000, 2_000_000_000  # seconds since 1970: the records lie between


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run with a copy of the code, all of it older than the records."""
    for name in ("pipeline", "models"):
        ignored = shutil.ignore_patterns("__pycache__", "*.md", "*.tsv")
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=ignored)
    monkeypatch.setattr(checks, "REPOSITORY", tmp_path)
    run = make_run(home=tmp_path, profile="tiny", no_explain=True)
    for path in (*weight_files(run, "torch"), *weight_files(run, "paddle")):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    for path in tmp_path.rglob("*.*"):
        os.utime(path, (EARLIER, EARLIER))
    for name in ("forward", "train_align", "data"):
        for side in ("torch", "paddle"):
            for dtype in ("float32", "float64"):
                save_record(run.output(f"{name}_{side}", dtype), {"x": np.array([1.0])})
    return run


def judge(run: Run, name: str, scripts: tuple[str, str], exact: bool = False) -> int:
    return check(checks.build_gate(run, name, scripts, exact=exact))


@pytest.mark.parametrize(
    "changed",
    [
        "pipeline/Step1/pt_forward_bert.py",
        "pipeline/Step1/pd_forward_bert.py",
        "pipeline/pt/model.py",
        "pipeline/pd/model.py",
        "pipeline/settings.py",
        "pipeline/bert/fake_batch.py",
        "models/pt_bert.py",
        "models/pd_bert.py",
        "models/bert_config.py",
        "weights/paddle_weight.pdparams",
        "classifier_weights/torch_classifier_weights.bin",
    ],
)
def test_a_file_that_makes_the_record_changed(
    run: Run, changed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.utime(run.home / changed, (LATER, LATER))
    assert judge(run, "forward", FORWARD) == 2
    said = capsys.readouterr().err
    assert " is older than " in said and changed in said and f"run python {FORWARD[0]}" in said
    os.utime(run.home / changed, (EARLIER, EARLIER))
    assert judge(run, "forward", FORWARD) == 0
    os.utime(run.home / changed, (LATER, LATER))
    assert judge(run, "forward", FORWARD) == 0, "its content is the same"
    (run.home / changed).write_bytes(b"another")
    os.utime(run.home / changed, (EARLIER, EARLIER))
    assert judge(run, "forward", FORWARD) == 2
    said = capsys.readouterr().err
    assert " was made with another " in said and f"run python {FORWARD[0]}" in said


@pytest.mark.parametrize(
    "changed", ["pipeline/align.py", "pipeline/checks.py", "pipeline/training/session.py"]
)
def test_another_file_changed(run: Run, changed: str) -> None:
    os.utime(run.home / changed, (LATER, LATER))
    assert judge(run, "forward", FORWARD) == 0


def test_each_record_has_its_own_sources(run: Run) -> None:
    """Training depends on its room as well; data depend on tasks, and not on the models."""
    os.utime(run.home / "pipeline" / "training" / "session.py", (LATER, LATER))
    assert judge(run, "train_align", TRAINING) == 2
    os.utime(run.home / "models" / "pd_bert.py", (LATER, LATER))
    assert judge(run, "data", DATA, exact=True) == 0
    (run.home / "pipeline" / "tasks.py").write_text("another")
    assert judge(run, "data", DATA, exact=True) == 2


def test_sources_of_one_side_are_its_own(run: Run) -> None:
    sources = checks.list_sources(run, "pd", FORWARD, exact=False)
    names = {str(path.relative_to(run.home)) for path in sources}
    assert "models/pd_bert.py" in names and "pipeline/pd/model.py" in names
    assert not [name for name in names if "pt_" in name or "/pt/" in name or "torch" in name]
    assert all(path.is_file() for path in sources)
