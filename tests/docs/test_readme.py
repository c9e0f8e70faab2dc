"""The READMEs are true: every command in them runs, and both languages show the same ones."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from pipeline.run import make_parser
from reprod_align.commands import parse
from tests.conftest import ENVIRONMENT, REPOSITORY, Finished, run_python, run_warm_python
from tests.docs.pages import (
    assert_both_show_the_same,
    blocks,
    commands,
    read,
)
from tests.warm import CHILDREN, warm_executable

import pytest

READMES = ("README.md", "README_cn.md")
STEP_READMES = sorted(
    str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("pipeline/*/README.md")
)
RECORDS = "docs/records.md"
FAILS_ON_PURPOSE = "pipeline/reprod_log_demo/check_log_diff.py"


def scripts(name: str) -> list[str]:
    return [line.removeprefix("python ") for line in commands(name) if line.startswith("python ")]


def test_both_languages_show_the_same_commands_and_code() -> None:
    assert commands("README.md") == commands("README_cn.md")
    assert_both_show_the_same(READMES, "text")
    assert blocks(READMES[0], "python") == blocks(READMES[1], "python")


def test_the_walkthrough(tmp_path: Path) -> None:
    """From an empty folder, every script in the README's order, then the demo, on the `tiny` profile."""
    walked = [*scripts("README.md"), *scripts(RECORDS)]
    assert len(walked) >= 25
    for script in walked:
        of_step = Path(script).name.startswith(("pt_", "pd_"))
        words = (REPOSITORY / script, "--profile", "tiny", "--home", tmp_path)
        finished = run_warm_python(*words) if of_step else run_python(*words)
        assert finished.returncode == (1 if script == FAILS_ON_PURPOSE else 0), finished
        assert finished.stderr == "", f"{script} is not quiet"


@pytest.fixture
def shell(aligned_home: Path, tmp_path: Path) -> Callable[[str], Finished]:
    """Run a block in a folder that looks like the repository, its `python` on the `tiny` profile."""
    home = shutil.copytree(aligned_home, tmp_path / "home")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        f'#!/bin/sh\nexec "{warm_executable()}" "$@" --profile tiny --home "{home}"\n'
    )
    python.chmod(0o755)
    for name in ("pipeline", "weights", "fake_data", "classifier_weights", "tests"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    (tmp_path / "SST-2").symlink_to(REPOSITORY / "pipeline" / "Step2" / "demo_sst2_sentence")
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"

    def run(block: str) -> Finished:
        words = ["bash", "-c", block]
        env = ENVIRONMENT | {"PATH": path, CHILDREN: "yes"}
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)

    return run


@pytest.mark.parametrize("name", STEP_READMES)
def test_what_a_steps_readme_shows(name: str, shell: Callable[[str], Finished]) -> None:
    """The blocks that the walkthrough doesn't run: variants, and faults planted to see a check fail."""
    known = commands("README.md")
    for block in blocks(name, "bash"):
        if not all(line in known for line in block.splitlines()):
            finished = shell(block)
            assert "Traceback" not in finished.stderr, finished.stderr
            assert "error" not in finished.stderr, finished.stderr
            if "import runpy" in block or "| python -" in block:
                assert finished.returncode == 1, finished  # the check after it sees the fault


@pytest.mark.parametrize("name", STEP_READMES)
def test_the_steps_readmes_have_the_same_headings(name: str) -> None:
    text = read(name)
    found = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    wanted = ["Question", "Inputs and outputs", "Pass rule", "If it fails"]
    assert [heading for heading in found if heading in wanted] == wanted


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md", "CONTRIBUTING_cn.md"])
def test_make_targets_exist(name: str) -> None:
    text = read(name)
    targets = {*re.findall(r"(?:^|`)make ([a-z-]+)", text, flags=re.MULTILINE)}
    assert {"align", "test"} < targets
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=REPOSITORY, check=True, capture_output=True)


def test_the_code_on_records_runs(tmp_path: Path) -> None:
    first, second = blocks(RECORDS, "python")
    finished = run_warm_python("-c", first, cwd=tmp_path)
    assert finished.stdout.strip() == "True" and finished.returncode == 0, finished.stderr
    assert run_warm_python("-c", second, cwd=tmp_path).returncode == 0
    compared = [shlex.split(line)[1:] for line in commands(RECORDS) if line.startswith("reprod-")]
    codes = [run_warm_python("-m", "reprod_align", *words, cwd=tmp_path) for words in compared]
    assert [finished.returncode for finished in codes] == [0, 1]  # official, strict


@pytest.mark.parametrize("name", ["README.md", "docs/options.md"])
def test_every_pair_command_names_a_pair(name: str) -> None:
    lines = [line for line in commands(name) if line.startswith("reprod-align")]
    assert lines
    for line in lines:
        options = parse(shlex.split(line)[1:])  # exits where it can't be
        assert (REPOSITORY / options.file).is_file(), line


@pytest.mark.parametrize("name", READMES)
def test_convert_works_as_the_readme_shows_it(name: str, tmp_path: Path) -> None:
    (shown,) = re.findall(r"^\| `reprod-align (convert [^`]*)`", read(name), flags=re.MULTILINE)
    save = "import torch; torch.save(torch.nn.Linear(2, 3).state_dict(), 'a.bin')"
    assert run_warm_python("-c", save, cwd=tmp_path).returncode == 0
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def torch_model():\n    import torch; return torch.nn.Linear(2, 3)\n"
        "def paddle_model():\n    import paddle; return paddle.nn.Linear(2, 3)\n"
        "inputs = (np.ones((1, 2)),)\n"
    )
    given = {"SRC": "a.bin", "DST": "a.pdparams", "FILE.py": "mine.py"}
    words = [given.get(word, word) for word in shlex.split(shown)]
    finished = run_warm_python("-m", "reprod_align", *words, cwd=tmp_path)
    assert finished.returncode == 0 and "wrote a.pdparams" in finished.stdout, finished


def test_selftest_of_the_readmes_example_reveals_every_fault() -> None:
    (shown,) = [line for line in commands("README.md") if line.startswith("reprod-align selftest")]
    finished = run_warm_python("-m", "reprod_align", *shlex.split(shown)[1:], cwd=REPOSITORY)
    assert finished.returncode == 0 and "INVISIBLE" not in finished.stdout, finished


@pytest.mark.parametrize("name", ["docs/options.md", "docs/options_cn.md"])
def test_the_options_are_those_of_every_script(name: str) -> None:
    rows = [line for line in read(name).splitlines() if line[:1] == "|"]
    known = {name for action in make_parser(None)._actions for name in action.option_strings}
    assert {*re.findall(r"--[a-z][a-z-]+", "\n".join(rows))} == known - {"-h", "--help"}
