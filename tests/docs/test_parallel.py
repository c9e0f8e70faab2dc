"""docs/parallel.md: its commands run on two processes."""

import shlex
from pathlib import Path

from reprod_align.commands import main, parse
from tests.conftest import REPOSITORY
from tests.docs.pages import assert_both_show_the_same, commands

import pytest

PAGES = ("docs/parallel.md", "docs/parallel_cn.md")


def read_command(line: str) -> tuple[dict[str, str], list[str]]:
    """Return what a command sets in the environment, and its arguments."""
    words = shlex.split(line)
    at = words.index("reprod-align")
    return dict(word.split("=") for word in words[:at]), words[at + 1 :]


def test_both_languages_show_the_same() -> None:
    assert_both_show_the_same(PAGES, "bash")


def test_the_first_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main(read_command(commands(PAGES[0])[0])[1]) == 0
    for command in commands(PAGES[0]):
        assert parse(read_command(command)[1])


@pytest.mark.longer
def test_all_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import runpy

    import torch

    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    monkeypatch.chdir(tmp_path)
    made = runpy.run_path("examples/pair_parallel.py")["torch_model"]()
    torch.save(made.state_dict(), "model.bin")
    for command in commands(PAGES[0])[1:]:
        variables, words = read_command(command)
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            assert main(words) == 0, command
    back = torch.load("back.bin")
    assert all(torch.equal(held, back[name]) for name, held in made.state_dict().items())
