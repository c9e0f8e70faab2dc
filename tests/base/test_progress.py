"""Progress is for a person at a terminal; elsewhere nothing is shown."""

import io
import sys
from importlib.util import find_spec

from reprod_align.base import console

import pytest


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
