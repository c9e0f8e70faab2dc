"""A `pt_*` script runs where Paddle is not installed, a `pd_*` script where PyTorch is not.

Each side gets an environment of its own: a folder of links to every installed package but the other
framework and what depends on it, and an interpreter that sees nothing else.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from pipeline.align import STEPS
from tests.conftest import ENVIRONMENT, PATIENCE, REPOSITORY

import pytest

OTHERS = {
    "pt": ("paddle", "paddlenlp", "paddlefsl", "paddle2onnx", "reprod_log", "visualdl"),
    "pd": ("torch", "torchgen", "torchmetrics", "functorch"),
}


@pytest.fixture(scope="module", params=["pt", "pd"])
def side(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Return a side's prefix and its packages, without the other framework's."""
    packages = tmp_path_factory.mktemp(request.param)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        name = entry.name.split("-")[0].split(".")[0].lower()
        if name not in OTHERS[request.param] and name not in ("paddlepaddle", "__editable__"):
            (packages / entry.name).symlink_to(entry)
    if request.param == "pd":
        for entry in Path(sysconfig.get_path("purelib")).glob("paddlepaddle-*"):
            (packages / entry.name).symlink_to(entry)
    return request.param, packages


def run_isolated(packages: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the base interpreter, which has no packages of its own, with `packages` alone."""
    paths = os.pathsep.join((str(REPOSITORY), str(packages)))
    command = [Path(sys.base_prefix, "bin", "python3"), *map(str, words)]
    env = ENVIRONMENT | {"PYTHONPATH": paths, "PYTHONNOUSERSITE": "1"}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)


def test_the_other_framework_is_really_absent(side: tuple[str, Path]) -> None:
    prefix, packages = side
    for framework, present in (("torch", prefix == "pt"), ("paddle", prefix == "pd")):
        finished = run_isolated(packages, "-W", "ignore", "-c", f"import {framework}")
        assert (finished.returncode == 0) == present, finished.stderr


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"Step{step.number}")
def test_scripts_run(side: tuple[str, Path], step, aligned_home: Path, tmp_path: Path) -> None:
    prefix, packages = side
    ignored = shutil.ignore_patterns("log_reprod")
    shutil.copytree(aligned_home, tmp_path, dirs_exist_ok=True, ignore=ignored)
    for script in step.side(prefix):
        words = (REPOSITORY / script, "--profile", "tiny", "--home", tmp_path)
        finished = run_isolated(packages, *words)
        assert finished.returncode == 0, finished.stderr
        assert finished.stderr == "", "quiet by default"
    assert list(tmp_path.glob("log_reprod/**/*.npy"))


def test_the_core_imports_neither(side: tuple[str, Path]) -> None:
    code = "import sys, reprod_align; assert not {'torch', 'paddle'} & set(sys.modules)"
    assert run_isolated(side[1], "-c", code).returncode == 0
