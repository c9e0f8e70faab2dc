"""What the tests of the pipeline share: its scripts run as a user runs them, on the `tiny` profile."""

import compileall
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

from tests.warm import ADDRESS, CHILDREN, run_warm, serving

import pytest
from filelock import FileLock

# before a framework is imported: on tensors this small a second thread only waits for the first
os.environ.setdefault("OMP_NUM_THREADS", "1")
REPOSITORY = Path(__file__).resolve().parent.parent
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}

PACKAGES = ("benchmarks", "examples", "models", "pipeline", "reprod_align", "tests")

Finished = subprocess.CompletedProcess[str]
RunScript = Callable[..., Finished]
PATIENCE = 900.0  # seconds after which a program is taken to hang


# What compares floats closely: `make test-cpus` runs it under another instruction set too.
NUMERIC = (
    "alignment/", "backends/", "base/", "causes/", "curves/test_rounding.py", "docs/test_align.py",
    "model/", "models/", "records/", "significance/", "traces/",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the numeric tests by where they stand."""
    tests = Path(__file__).parent
    for item in items:
        if item.path.relative_to(tests).as_posix().startswith(NUMERIC):
            item.add_marker("numeric")


def pytest_configure(config: pytest.Config) -> None:
    """Serve warm programs from the process that starts the others.

    The project is compiled before: hundreds of programs read it, and one that ends halfway leaves no half
    of a compiled file.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        for package in PACKAGES:
            compileall.compile_dir(REPOSITORY / package, quiet=2)
        stack = ExitStack()
        stack.enter_context(serving(REPOSITORY, ENVIRONMENT))
        config.add_cleanup(stack.close)
        ENVIRONMENT[ADDRESS] = os.environ[ADDRESS]


def run_warm_python(
    *words: str | Path, cwd: Path = REPOSITORY, warm_children: bool = False, **environment: str
) -> Finished:
    """Run the tests' own Python with these words, and return what it printed and its exit code.

    The frameworks are imported already: see tests/warm.py. `run_python` starts with nothing imported.
    warm_children: so they are in the programs that this one starts by sys.executable.
    """
    strings, env = list(map(str, words)), ENVIRONMENT | environment
    env |= {CHILDREN: "yes"} if warm_children else {}
    with open(os.devnull) as stdin, TemporaryFile("w+") as stdout, TemporaryFile("w+") as stderr:
        files = [file.fileno() for file in (stdin, stdout, stderr)]
        code = run_warm(strings, str(cwd), env, files, PATIENCE)
        printed = [file.seek(0) or file.read() for file in (stdout, stderr)]
    return Finished(["python", *strings], code, *printed)


def run_python(*words: str | Path, cwd: Path = REPOSITORY, **environment: str) -> Finished:
    """Do the same in a process that Python starts anew, as a user's does."""
    command = [sys.executable, *map(str, words)]
    env = ENVIRONMENT | environment
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE
    )


def run_script(
    script: str, home: Path, *options: str, fault: str = "", warm_children: bool = False
) -> Finished:
    """Run a script of the repository under `home`; `fault` is code that runs before it, to break it."""
    words = [str(REPOSITORY / script), "--profile", "tiny", "--home", str(home), *options]
    if not fault:
        return run_warm_python(*words, warm_children=warm_children)
    start = "import runpy, sys; sys.argv = sys.argv[1:]; "
    start += "runpy.run_path(sys.argv[0], run_name='__main__')"
    return run_warm_python("-c", f"{fault}\n{start}", *words, warm_children=warm_children)


def one_line_error(finished: Finished) -> str:
    """Return the single line on stderr of a script that could not do its work."""
    assert finished.returncode == 2, finished
    lines = finished.stderr.strip().splitlines()
    assert len(lines) == 1, finished.stderr
    return lines[0]


def align_once(tmp_path_factory: pytest.TempPathFactory, name: str, *options: str) -> Path:
    """Return the folder `name` in which the whole pipeline has run, once for all test processes.

    Its align.txt holds what the run printed. Read only.
    """
    common = tmp_path_factory.getbasetemp()
    common = common.parent if "PYTEST_XDIST_WORKER" in os.environ else common
    home = common / name
    with FileLock(common / f"{name}.lock"):  # the first process makes it
        if not (home / "align.txt").exists():
            words = ("-m", "pipeline.align", *options, "--home", home)
            finished = run_warm_python(*words, warm_children=True)
            assert finished.returncode == 0, finished.stdout + finished.stderr
            assert finished.stderr == "", "quiet by default"
            (home / "align.txt").write_text(finished.stdout)
    return home


@pytest.fixture(scope="session")
def aligned_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the whole pipeline has run on the `tiny` profile. Read only: see `home`."""
    return align_once(tmp_path_factory, "aligned", "--profile", "tiny")


@pytest.fixture(autouse=True)
def float32_by_default() -> Iterator[None]:
    """Put the default dtypes back that a script run in the tests' own process has set."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_default_dtype(sys.modules["torch"].float32)
    if "paddle" in sys.modules:
        sys.modules["paddle"].set_default_dtype("float32")


@pytest.fixture(autouse=True)
def few_edits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """End a search of `align` for the edit that mends a fault after 10 runs, not 1,000: most have none.

    A test's mark `edits` gives another number; `every_edit` and what `make suite` runs search to the end.
    """
    from reprod_align.explain.trials import BUDGETS

    if any(map(request.node.get_closest_marker, ("longer", "every_edit"))):
        return
    mark = request.node.get_closest_marker("edits")
    runs = mark.args[0] if mark else 10
    monkeypatch.setitem(BUDGETS, "align", replace(BUDGETS["align"], runs=runs))


@pytest.fixture
def float64_by_default(float32_by_default: None) -> None:
    """Build everything in float64, on the CPU."""
    import paddle
    import torch

    paddle.set_device("cpu")
    torch.set_default_dtype(torch.float64)
    paddle.set_default_dtype("float64")


@pytest.fixture
def home(aligned_home: Path, tmp_path: Path) -> Path:
    """A copy of `aligned_home` to break."""
    return Path(shutil.copytree(aligned_home, tmp_path / "home"))
