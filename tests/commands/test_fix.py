"""`reprod-align fix`: the patch, its proof, --apply and the exit codes."""

import json
import subprocess
from pathlib import Path

from reprod_align.commands import fix
from reprod_align.errors import ReprodError
from tests.commands.asked import run
from tests.mending.pairs import PAIR, write_pair

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_patch_is_printed_and_written_and_the_file_stays(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_pair(folder, "a function")
    before = path.read_text()
    assert run(fix, path, "-o", folder / "port.patch") == 0
    said = capsys.readouterr().out
    assert said.startswith("verdict: faithful, with 1 edit (safe)") and "+++ b/pair_net.py" in said
    assert path.read_text() == before
    subprocess.run(["git", "apply", "port.patch"], check=True, cwd=folder)
    assert path.read_text().replace("F.tanh(self.proj", "paddle.tanh(self.proj") == PAIR


def test_apply_makes_the_safe_edits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_pair(folder, "a summand left out")
    assert run(fix, path, "--apply", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["passed"] and told["verdict"] == "faithful" and told["edits"][0]["level"] == "safe"
    assert told["edits"][0]["after"].endswith("+ x") and told["patch"] and len(told["batches"]) >= 3
    assert path.read_text() == PAIR
    assert run(fix, path, "--apply") == 0 and path.read_text() == PAIR


def test_a_file_of_an_installed_package_is_never_edited(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = folder / "lib" / "site-packages"
    package.mkdir(parents=True)
    path = write_pair(package, "a function")
    before = path.read_text()
    with pytest.raises(ReprodError, match="installed package: use the patch"):
        run(fix, path, "--apply")
    assert path.read_text() == before


def test_unproven_edits_are_never_applied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_pair(folder, "a function")
    before = path.read_text()
    monkeypatch.setattr("reprod_align.mending.proof.list_unseen", lambda bench: iter(()))
    with pytest.raises(ReprodError, match="unproven, the files stay as they are"):
        run(fix, path, "--apply")
    assert path.read_text() == before


def test_a_faithful_port_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_pair(folder)
    assert run(fix, path) == 0
    assert capsys.readouterr().out.strip() == "verdict: faithful, as it is"


def test_bad_input_is_one_line(folder: Path) -> None:
    path = write_pair(folder, "a function")
    with pytest.raises(ReprodError, match="its folder does not exist"):
        run(fix, path, "-o", folder / "missing" / "port.patch")
    with pytest.raises(ReprodError, match=r"no\.py"):
        run(fix, folder / "no.py")
