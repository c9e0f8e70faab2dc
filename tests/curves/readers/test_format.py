"""The first bytes of a file, as the formats see them."""

from pathlib import Path

from reprod_align.curves.readers.format import read_head

import pytest


@pytest.mark.parametrize("data", [b"\x00\x01", b"caf\xe9 and more text", b"step\0loss"])
def test_binary_files_have_no_text(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "log").write_bytes(data)
    head = read_head(tmp_path / "log")
    assert (head.data, head.text) == (data, "")


def test_a_head_that_ends_inside_a_character_is_text(tmp_path: Path) -> None:
    text = "x" + "é" * 40_000  # two bytes each: the head ends in the middle of one
    (tmp_path / "log").write_text(text, encoding="utf-8")
    head = read_head(tmp_path / "log")
    assert head.text == text[: len(head.text)] and len(head.text) > 32_000
