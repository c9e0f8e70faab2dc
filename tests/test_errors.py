"""Errors are one line, and say what and where."""

from reprod_align.errors import (
    MissingInputError,
    RecordError,
    ReprodError,
    WeightsError,
    describe_error,
    describe_unexpected,
    first_line,
    one_line,
)

import pytest


def test_control_characters_are_escaped_and_letters_stay() -> None:
    assert one_line("a\nb\x1b[31m\u2028é中") == r"a\nb\x1b[31m\u2028é中"


def test_a_message_is_one_line_of_bounded_length() -> None:
    said = str(ReprodError("x" * 10**6 + "\nend"))
    assert len(said) < 2100 and said.endswith(r"\nend") and "\n" not in said


def test_one_root_for_all() -> None:
    for kind in (RecordError, WeightsError, MissingInputError):
        assert issubclass(kind, ReprodError)


def test_the_first_line_that_says_something() -> None:
    paddle = (
        "\n----\nC++ Traceback (most recent call last):\nError Message Summary:\n  Shape differs\n"
    )
    assert first_line(paddle) == "Shape differs"
    assert first_line("\n") == "no message"


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_in_words() -> None:
    assert describe_error(KeyError("a")) == "KeyError: 'a'"
    assert describe_error(Mute()) == "Mute: no message"


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_an_unexpected_error_names_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    said = describe_unexpected(raised(ValueError("a\nb")))
    assert said.startswith(r"not foreseen: ValueError: a\nb (test_errors.py, line ")
    assert said.endswith("REPROD_ALIGN_TRACEBACK=1 shows the traceback")
    assert describe_unexpected(MemoryError("much")).startswith("out of memory: MemoryError: much;")
    monkeypatch.setenv("REPROD_ALIGN_TRACEBACK", "1")
    with pytest.raises(ValueError):
        describe_unexpected(raised(ValueError()))
