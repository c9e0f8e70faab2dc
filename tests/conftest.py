"""What the tests of the pipeline share: its scripts run as a user runs them, on the `tiny` profile."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

# before a framework is imported: on tensors this small a second thread only waits for the first
os.environ.setdefault("OMP_NUM_THREADS", "1")
REPOSITORY = Path(__file__).resolve().parent.parent
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}

Finished = subprocess.CompletedProcess[str]
RunScript = Callable[..., Finished]


def run_python(*words: str | Path, cwd: Path = REPOSITORY, **environment: str) -> Finished:
    """Run the tests' own Python with these words, and return what it printed and its exit code."""
    command = [sys.executable, *map(str, words)]
    env = ENVIRONMENT | environment
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=900)


def run_script(script: str, home: Path, *options: str, fault: str = "") -> Finished:
    """Run a script of the repository under `home`; `fault` is code that runs before it, to break it."""
    words = [str(REPOSITORY / script), "--profile", "tiny", "--home", str(home), *options]
    if not fault:
        return run_python(*words)
    start = "import runpy, sys; sys.argv = sys.argv[1:]; "
    start += "runpy.run_path(sys.argv[0], run_name='__main__')"
    return run_python("-c", f"{fault}\n{start}", *words)


def one_line_error(finished: Finished) -> str:
    """Return the single line on stderr of a script that could not do its work."""
    assert finished.returncode == 2, finished
    lines = finished.stderr.strip().splitlines()
    assert len(lines) == 1, finished.stderr
    return lines[0]


@pytest.fixture(scope="session")
def aligned_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the whole pipeline has run on the `tiny` profile. Read only: see `home`."""
    common = tmp_path_factory.getbasetemp()
    common = common.parent if "PYTEST_XDIST_WORKER" in os.environ else common
    home = common / "aligned"
    with FileLock(common / "aligned.lock"):  # the first process makes it, for all
        if not (home / "align.txt").exists():
            finished = run_python("-m", "pipeline.align", "--profile", "tiny", "--home", home)
            assert finished.returncode == 0, finished.stdout + finished.stderr
            (home / "align.txt").write_text(finished.stdout)
    return home


@pytest.fixture
def home(aligned_home: Path, tmp_path: Path) -> Path:
    """A copy of `aligned_home` to break."""
    return Path(shutil.copytree(aligned_home, tmp_path / "home"))
