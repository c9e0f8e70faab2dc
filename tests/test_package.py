"""The package as others install it: a wheel of the library alone, used with numpy alone."""

import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import reprod_align
from reprod_align.backends.versions import OLDEST
from tests.conftest import PATIENCE, REPOSITORY, run_python
from tests.submission.making import make_submission

import numpy as np
import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def test_the_version_stands_in_two_places() -> None:
    assert PROJECT["version"] == reprod_align.__version__


def test_an_extra_takes_the_versions_of_the_requirements_and_replaces_no_framework() -> None:
    names = ("requirements.txt", "requirements-dev.txt", "requirements-zoo.txt")
    lines = [line for name in names for line in (REPOSITORY / name).read_text().splitlines()]
    pinned = {name: version for name, _, version in (line.partition("==") for line in lines)}
    extras = PROJECT["optional-dependencies"]
    assert sorted(extras) == [
        "all", "cluster", "completion", "docs", "mcp", "paddle", "port", "pytest", "report",
        "terminal", "torch", "zoo",
    ]  # fmt: skip
    for extra in extras.values():
        for word in map(Requirement, extra):
            assert word.name == PROJECT["name"] or word.specifier.contains(pinned[word.name])
    for extra, package, oldest in (
        ("torch", "torch", "2.2.0"),
        ("paddle", "paddlepaddle", "2.6.2"),
    ):
        (word,) = (one for one in map(Requirement, extras[extra]) if one.name == package)
        assert word.specifier.contains(oldest)
        assert str(word.specifier) == f">={'.'.join(map(str, OLDEST[package]))}"


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with nothing of this environment in its own."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def pip(python: str | Path, *words: str | Path, cwd: Path) -> None:
    finished = run(python, "-m", "pip", *words, cwd=cwd)
    assert finished.returncode == 0, finished.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built of what git would hand out."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    for name in ("reprod_align", "pipeline", "models"):
        shutil.copytree(
            REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    words = ("--no-deps", "--no-build-isolation", "--quiet", "-w", folder, source)
    pip(sys.executable, "wheel", *words, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """An interpreter that has this package and numpy alone."""
    folder = wheel.parent / "venv"
    venv.create(folder, with_pip=True)
    site = next(folder.glob("lib/python*/site-packages"))
    own = Path(np.__file__).parent.parent
    for part in own.glob("numpy*"):
        shutil.copytree(part, site / part.name)
    pip(
        folder / "bin" / "python",
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        wheel,
        cwd=folder,
    )
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def user(wheel: Path) -> Path:
    """The bin folder of a user's environment: the wheel, and the packages that this environment has.

    These are found by a path file, which copies nothing; this repository is not among them.
    """
    folder = wheel.parent / "user"
    venv.create(folder)
    pip(sys.executable, "--python", folder / "bin" / "python", "install", "--no-deps", "--no-index",
        "--quiet", wheel, cwd=wheel.parent)  # fmt: skip
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "here.pth").write_text("\n".join(one for one in sys.path if "site-packages" in one))
    return folder / "bin"


def test_the_wheel_passes_twines_check(wheel: Path) -> None:
    finished = run_python("-m", "twine", "check", "--strict", wheel)
    assert finished.returncode == 0 and "PASSED" in finished.stdout, finished


def test_a_user_of_the_wheel_judges_a_pair_and_tests_a_port(user: Path, tmp_path: Path) -> None:
    """Outside the repository: the command, and the fixture that pytest finds by its entry point."""
    shutil.copy(REPOSITORY / "examples" / "pair_mlp.py", tmp_path)
    shutil.copy(REPOSITORY / "examples" / "test_port.py", tmp_path)
    home = run(user / "python", "-c", "import reprod_align as it; print(it.__file__)", cwd=tmp_path)
    assert home.stdout.startswith(str(user.parent)), home
    judged = run(user / "reprod-align", "pair", "pair_mlp.py", cwd=tmp_path)
    assert (judged.returncode, judged.stderr) == (0, ""), judged
    assert judged.stdout.startswith("verdict: faithful")
    tested = run(user / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert tested.returncode == 0 and "2 passed" in tested.stdout, tested


@pytest.mark.longer
def test_the_wheel_holds_the_library_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith("/METADATA"))
        text = archive.read(metadata).decode()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"reprod_align"}
    data = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "reprod_align").rglob("*")
            if path.is_file() and path.suffix not in (".py", ".pyc")]  # fmt: skip
    assert "reprod_align/py.typed" in names and not set(data) - set(names), (
        "the package's own files"
    )
    assert "License-Expression: Apache-2.0" in text and "Provides-Extra: torch" in text
    assert any(name.endswith("LICENSE") for name in names)


@pytest.mark.longer
def test_numpy_alone_gives_the_commands_on_files(python: Path, tmp_path: Path) -> None:
    """Recording, comparing, verifying, curves and the doctor: nothing else is installed."""
    logs = make_submission(tmp_path)
    command = python.parent / "reprod-align"
    (tmp_path / "a.csv").write_text("step,loss\n1,0.5\n2,0.25\n3,0.2\n")
    (tmp_path / "b.csv").write_text("step,loss\n1,0.5\n2,0.35\n3,0.4\n")
    cases: Sequence[tuple[int, str, Sequence[str | Path]]] = (
        (0, "reprod-align 0.1.0", ("--version",)),
        (
            0,
            "passed  3 compared",
            ("compare", logs / "forward_torch.npy", logs / "forward_paddle.npy"),
        ),
        (0, "packed", ("submit", logs, "--output", tmp_path / "x.zip")),
        (0, "x.zip: verified", ("verify", tmp_path / "x.zip")),
        (1, "loss", ("curves", tmp_path / "a.csv", tmp_path / "b.csv")),
        (2, "not a .safetensors file", ("diff", tmp_path / "x.zip", tmp_path / "x.zip")),
        (0, "batch-norm-momentum", ("api", "--search", "momentum")),
        (1, "pip install torch scipy", ("doctor",)),
        (0, "run_all.py", ("new", tmp_path / "mine")),
        (2, "pip install paddlepaddle", ("selftest", tmp_path / "mine" / "pair.py")),
        (2, "No module named", ("pair", tmp_path / "mine" / "pair.py")),
    )
    for code, words, arguments in cases:
        finished = run(command, *arguments, cwd=tmp_path)
        assert finished.returncode == code, (arguments, finished)
        assert words in finished.stdout + finished.stderr, (arguments, finished)
        assert "Traceback" not in finished.stderr
    names = (
        run(python, "-c", "import models", cwd=tmp_path),
        run(python, "-c", "import pipeline", cwd=tmp_path),
    )
    assert [each.returncode for each in names] == [1, 1], "no top-level names but the library's"


@pytest.mark.longer
def test_an_editable_install_finds_the_scripts_packages(wheel: Path, tmp_path: Path) -> None:
    """A clone's scripts import `pipeline` and `models`, which the wheel leaves out."""
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=True)
    site = next(folder.glob("lib/python*/site-packages"))
    shutil.rmtree(site / "setuptools", ignore_errors=True)  # an old one, of Python's own
    (site / "tools.pth").write_text(str(Path(find_spec("setuptools").origin).parent.parent))  # type: ignore[union-attr, arg-type]
    words = ("--no-deps", "--no-build-isolation", "--quiet", "-e", wheel.parent / "source")
    pip(folder / "bin" / "python", "install", *words, cwd=tmp_path)
    finished = run(
        folder / "bin" / "python", "-c", "import pipeline, models, reprod_align; print(pipeline.__file__)",
        cwd=tmp_path,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith(str(wheel.parent / "source"))
