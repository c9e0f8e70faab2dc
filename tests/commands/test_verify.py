"""`reprod-align submit` packs what `reprod-align verify` accepts, and exit codes tell what it does not."""

import json
import zipfile
from pathlib import Path

from reprod_align.commands import submit, verify
from reprod_align.errors import MissingInputError, ReprodError
from tests.commands.asked import run
from tests.conftest import run_python
from tests.submission.making import make_submission

import pytest


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission's log_reprod/. Read only."""
    return make_submission(tmp_path_factory.mktemp("honest"))


def test_what_is_packed_is_verified(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.log"
    log.write_text("loss 0.5")
    target = tmp_path / "x.zip"
    assert run(submit, honest.parent, "--output", target, "--training-log", log) == 0
    assert f"packed 31 files: {target}" in capsys.readouterr().out
    with zipfile.ZipFile(target) as archive:
        assert "log_reprod/training/log.log" in archive.namelist()
        assert len(json.loads(archive.read("log_reprod/manifest.json"))["files"]) == 31
    assert run(verify, target) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{target}: verified\n")
    said = [line.strip() for line in printed.splitlines() if "remark" in line]
    assert said == ["remark: 1 training log not compared with a record: training/log.log"]
    assert run(verify, target, "--json") == 0
    assert json.loads(capsys.readouterr().out)["passed"]


def test_two_training_logs_of_one_name_are_refused(honest: Path, tmp_path: Path) -> None:
    """The second would take the first one's place."""
    words: list[Path | str] = ["--output", tmp_path / "x.zip"]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.log").write_text(f"loss {name}")
        words += ["--training-log", tmp_path / name / "log.log"]
    with pytest.raises(ReprodError, match=r"training/log\.log is in the submission already"):
        run(submit, honest, *words)
    words[-1] = tmp_path / "one" / "log.log"
    assert run(submit, honest, *words) == 0


def test_nothing_is_packed_with_a_fault(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = make_submission(tmp_path)
    (logs / "loss_diff.log").unlink()
    assert run(submit, logs, "--output", tmp_path / "x.zip") == 1
    assert "missing: loss_diff.log or loss_diff_log.txt" in capsys.readouterr().out
    assert not (tmp_path / "x.zip").exists()


def test_what_cannot_be_done(honest: Path, tmp_path: Path) -> None:
    with pytest.raises(ReprodError, match="ends in .zip"):
        run(submit, honest, "--output", tmp_path / "x.rar")
    with pytest.raises(MissingInputError, match="expected the folder"):
        run(submit, tmp_path / "none")
    with pytest.raises(MissingInputError, match="--training-log"):
        run(submit, honest, "--training-log", tmp_path / "none")
    with pytest.raises(MissingInputError, match="expected a folder or a zip"):
        run(verify, tmp_path / "none.zip")


def test_verifying_needs_numpy_alone(honest: Path) -> None:
    """No framework, and neither reprod_log nor the engine is imported."""
    code = (
        "import sys; from reprod_align.commands import main; code = main(sys.argv[1:])\n"
        "allowed = {'numpy', 'reprod_align'}\n"
        "own = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(name for name in own if not name.startswith('_')), code)"
    )
    finished = run_python("-c", code, "verify", honest)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines()[-1] == "['numpy', 'reprod_align'] 0"
