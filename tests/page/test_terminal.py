"""What a command prints: dressed on a terminal, plain elsewhere, nothing where nothing is wanted."""

import io
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

from reprod_align import save_record
from reprod_align.commands import COMMANDS, main, parse
from reprod_align.page.outputs import show_output
from tests.conftest import ENVIRONMENT, PATIENCE, REPOSITORY, run_python

import numpy as np
import pytest

COLOUR = re.compile(r"\x1b\[[\d;]*m")
WIDTH = 60


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def run_on_terminal(*words: str | Path, **environment: str) -> tuple[int, str]:
    """Return the exit code and what stands on a terminal of 60 columns; stderr is elsewhere."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, WIDTH))
    command = [sys.executable, "-m", "reprod_align", *map(str, words)]
    env = {**ENVIRONMENT, "TERM": "xterm", **environment}
    process = subprocess.Popen(
        command, stdout=slave, stderr=subprocess.PIPE, env=env, cwd=REPOSITORY
    )
    os.close(slave)
    read = bytearray()
    try:
        while part := os.read(master, 4096):
            read += part
    except OSError:  # the other end is closed
        pass
    os.close(master)
    _, error = process.communicate(timeout=PATIENCE)
    assert error == b""
    return process.returncode, read.decode().replace("\r\n", "\n")


@pytest.fixture
def records(tmp_path: Path) -> tuple[Path, Path]:
    """Two records that differ."""
    paths = tmp_path / "a.npy", tmp_path / "b.npy"
    for number, path in enumerate(paths):
        save_record(path, {"x": np.arange(3.0) + number})
    return paths


def test_a_terminal_shows_the_same_words_in_colour(records: tuple[Path, Path]) -> None:
    code, shown = run_on_terminal("compare", *records)
    assert code == 1 and "\x1b[31mfailed\x1b[0m" in shown
    code, good = run_on_terminal("compare", records[0], records[0])
    assert code == 0 and "\x1b[32mpassed\x1b[0m" in good
    plain = run_python("-m", "reprod_align", "compare", *records).stdout
    assert COLOUR.sub("", shown).split() == plain.split() and not COLOUR.search(plain)


@pytest.mark.parametrize(
    ("option", "environment"),
    [(["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})],
    ids=["--no-color", "NO_COLOR", "dumb"],
)
def test_no_colour(
    records: tuple[Path, Path], option: list[str], environment: dict[str, str]
) -> None:
    code, shown = run_on_terminal("compare", *records, *option, **environment)
    assert code == 1 and shown.startswith("failed  1 compared") and "\x1b" not in shown


def test_json_is_printed_as_it_is(records: tuple[Path, Path]) -> None:
    _, shown = run_on_terminal("compare", *records, "--json", "--quiet")
    assert shown == run_python("-m", "reprod_align", "compare", *records, "--json").stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse([name, "--help"])
    said = capsys.readouterr().out
    assert "--quiet" in said and "--no-color" in said


def test_quiet_leaves_errors_and_the_exit_code(
    records: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, records), "--quiet"]) == 1
    assert capsys.readouterr() == ("", "")
    assert main(["compare", "nowhere.npy", "nowhere.npy", "--quiet"]) == 2
    found = capsys.readouterr()
    assert found.out == "" and "nowhere.npy" in found.err


def test_long_lines_hang_below_their_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "30")
    with show_output(colour=False):
        print("ok      a name  a sentence of some length")
        print("  1. words and more of them, up to the end")
        print("a line that has no columns but is long all the same")
        print("名字  一个很长的句子，一个很长的句子，到此为止")
        print("the rest", end="")
    lines = terminal.getvalue().splitlines()
    assert lines[:2] == ["ok      a name  a sentence of", f"{'':16}some length"]
    assert lines[2:4] == ["  1. words and more of them,", "     up to the end"]
    assert lines[4:6] == ["a line that has no columns but", "    is long all the same"]
    assert lines[6].startswith("名字  一") and lines[7] == f"{'':6}的句子，到此为止"
    assert lines[-1] == "the rest"
    assert sys.stdout is terminal


def test_what_was_printed_before_an_error_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with pytest.raises(ValueError), show_output():
        print("half", end="")
        raise ValueError
    assert terminal.getvalue() == "half"


def test_without_rich_the_text_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr("reprod_align.page.outputs.find_spec", lambda name: None)
    with show_output():
        print("verdict: faithful")
    assert terminal.getvalue() == "verdict: faithful\n"


def test_off_a_terminal_rich_is_not_loaded(records: tuple[Path, Path]) -> None:
    code = (
        "import sys; from reprod_align.commands import main\n"
        f"main(['compare', {str(records[0])!r}, {str(records[1])!r}])\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('rich', 'tqdm')])"
    )
    assert run_python("-c", code).stdout.splitlines()[-1] == "[]"
