"""The skeleton of `reprod-align new`: its files, and that they run at once."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from reprod_align.commands.new import list_templates, write_skeleton
from reprod_align.errors import ReprodError
from tests.conftest import ENVIRONMENT, PATIENCE, REPOSITORY, run_python

import pytest


def test_the_two_sides_are_twins() -> None:
    """The same lines: what differs is a framework's name or call."""
    files = list_templates()
    for name in ("model", "steps"):
        ours, theirs = (files[f"{name}_{side}.py"].splitlines() for side in ("pt", "pd"))
        assert len(ours) == len(theirs)
        assert sum(a != b for a, b in zip(ours, theirs, strict=True)) < len(ours) / 3
    assert "NAME" in files["README.md"]


def test_what_is_written(tmp_path: Path) -> None:
    for path in write_skeleton(tmp_path / "mine"):
        assert path.suffix == ".md" or compile(path.read_text(), path.name, "exec")
    assert (tmp_path / "mine" / "README.md").read_text().startswith("# mine\n")


@pytest.mark.parametrize(("name", "text"), list_templates().items())
def test_what_it_imports_of_this_library_exists(name: str, text: str) -> None:
    tree = ast.parse(text if name.endswith(".py") else "")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("reprod_align"):
            module = import_module(str(node.module))
            assert [one.name for one in node.names if not hasattr(module, one.name)] == []


def test_a_folder_in_use_and_an_odd_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(ReprodError, match="exists already"):
        write_skeleton(tmp_path)
    with pytest.raises(ReprodError, match="exists already"):
        write_skeleton(tmp_path / "x")
    with pytest.raises(ReprodError, match="expected a name"):
        write_skeleton(tmp_path / "a\x1bb")


@pytest.mark.longer
def test_it_runs_at_once_and_its_results_are_verified(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write_skeleton(folder)
    environment = ENVIRONMENT | {"PYTHONPATH": str(REPOSITORY)}
    words = [sys.executable, folder / "run_all.py"]
    finished = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.count(": aligned\n") == 5
    packed = run_python("-m", "reprod_align", "submit", cwd=folder, PYTHONPATH=str(REPOSITORY))
    assert packed.returncode == 0, packed.stdout
    judged = run_python(
        "-m", "reprod_align", "pair", "pair.py", cwd=folder, PYTHONPATH=str(REPOSITORY)
    )
    assert judged.stdout.startswith("verdict: faithful"), judged.stdout + judged.stderr
    # a mistake in the port: the weights stay, since names and shapes do
    port = folder / "model_pd.py"
    port.write_text(port.read_text().replace("epsilon=1e-12", "epsilon=1e-5"))
    for script in ("steps_pd.py", "check.py"):
        finished = subprocess.run([sys.executable, folder / script, "forward"], env=environment,
                                  capture_output=True, text=True, timeout=PATIENCE)  # fmt: skip
    assert finished.returncode == 1 and "forward: DIFFERENT" in finished.stdout
    assert "reprod-align pair pair.py" in finished.stdout.splitlines()[-1]
