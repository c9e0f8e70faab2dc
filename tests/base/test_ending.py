"""How a command ends: one line on stderr and an exit code, whatever happens."""

import io
import sys
from collections.abc import Callable

from reprod_align import ReprodError
from reprod_align.base.console import run_command

import numpy as np
import pytest


def test_the_exit_code_is_the_works_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("x.py", lambda: None) == 0
    assert run_command("x.py", lambda: 1) == 1
    assert capsys.readouterr().err == ""


def raising(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ReprodError("no file a"), 2, "x.py: no file a\n"),
        (OSError(28, "No space left on device"), 2, "x.py: output: No space left on device\n"),
        (FileNotFoundError(2, "No such file", "b\nc"), 2, "x.py: b\\nc: No such file\n"),
        (KeyboardInterrupt(), 130, "x.py: interrupted\n"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command("x.py", raising(error)) == code
    assert capsys.readouterr().err == said


def test_the_exit_of_an_option_parser_passes() -> None:
    with pytest.raises(SystemExit):
        run_command("x.py", raising(SystemExit(2)))


def test_what_nobody_foresaw(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> int:
        raise KeyError("a\x1b[31m\nb")

    assert run_command("x.py", work) == 2
    said = capsys.readouterr().err
    assert said.startswith("x.py: not foreseen: KeyError: ") and "\x1b" not in said
    monkeypatch.setenv("REPROD_ALIGN_TRACEBACK", "1")
    with pytest.raises(KeyError):
        run_command("x.py", work)


def test_memory_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("x.py", lambda: np.ones(1 << 50).size) == 2
    assert "x.py: out of memory: " in capsys.readouterr().err


def test_output_that_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    monkeypatch.setattr(sys, "stderr", closed)
    assert run_command("x.py", lambda: print("done")) == 2


def test_a_message_without_end() -> None:
    assert len(str(ReprodError("x" * 10**6))) < 2100


@pytest.mark.parametrize("name", ["torch", "paddle.nn", "matplotlib"])
def test_a_package_that_is_missing_is_one_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    assert run_command("x", work) == 2
    line = capsys.readouterr().err
    packages = {"torch": "torch", "paddle.nn": "paddlepaddle", "matplotlib": "jinja2 matplotlib"}
    told = f"x: {name.partition('.')[0]} is not installed: python -m pip install {packages[name]}"
    assert line.strip() == told
