"""A command ends in one line on stderr and an exit code; progress and chatter are shown where asked for."""

import io
import logging
import os
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec

from reprod_align import ReprodError
from reprod_align.base import console
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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_nothing_is_shown_without_a_terminal(
    stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    console.tell("work")
    items = [1, 2]
    assert console.track(items, "work") is items
    assert stream is None or stream.getvalue() == ""


@pytest.mark.skipif(find_spec("tqdm") is None, reason="needs tqdm")
def test_a_terminal_shows_one_line_and_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(console.track([1, 2], "planting")) == [1, 2]
    assert "planting" in terminal.getvalue() and "2/2" in terminal.getvalue()


def test_a_block_can_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    items = [1]
    with console.without_progress(), console.without_progress():
        console.tell("work")
        assert console.track(items, "work") is items
    assert terminal.getvalue() == ""


def test_without_tqdm_the_items_come_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(console, "find_spec", lambda name: None)
    items = [1]
    assert console.track(items, "x") is items
    console.tell("x")


def test_the_environment_is_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOG_minloglevel", "0")
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    with warnings.catch_warnings():
        console.quieten()
        warnings.warn("No ccache found. Please be aware", UserWarning, stacklevel=1)
        with pytest.raises(UserWarning):  # pytest turns warnings into errors
            warnings.warn("the user's own", UserWarning, stacklevel=1)
    assert os.environ["GLOG_minloglevel"] == "0"
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"


def test_log_lines_below_error_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    console.quieten()
    logger = logging.getLogger("PaddleNLP")
    logger.setLevel(logging.DEBUG)  # as paddlenlp does when it is imported
    with caplog.at_level(logging.DEBUG):
        logger.warning("chatter")
        logger.error("trouble")
    assert [line.message for line in caplog.records if line.name == "PaddleNLP"] == ["trouble"]


def test_a_block_shows_no_warning_unless_python_was_told_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "warnoptions", [])
    with console.without_warnings():
        warnings.warn("hidden", UserWarning, stacklevel=1)
    monkeypatch.setattr(sys, "warnoptions", ["error"])
    with console.without_warnings(), pytest.raises(UserWarning):
        warnings.warn("shown", UserWarning, stacklevel=1)
