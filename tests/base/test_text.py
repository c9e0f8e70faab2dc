"""Tables, shortened lists and counted nouns, as they are printed."""

from pathlib import Path

from reprod_align.base.text import and_more, count, shorten, shorten_lines, shorten_path, table

import pytest


def test_a_table_aligns_its_columns_and_ends_no_line_in_spaces() -> None:
    assert table([("name", "n", ""), ("a.long.name", "12", "bad"), ("b", "", "")]) == [
        "name         n",
        "a.long.name  12  bad",
        "b",
    ]


def test_what_does_not_fit_is_counted() -> None:
    names = ["a", "b", "c", "d", "e"]
    assert shorten(names, 3) == "a, b, c and 2 more"
    assert shorten(names, 5) == "a, b, c, d, e"
    assert shorten(names, 4, "; ") == "a; b; c; d and 1 more"
    assert shorten([], 3) == ""
    assert shorten_lines(names, 2, indent="  ") == ["a", "b", "  ... and 3 more"]
    assert shorten_lines(names, 5) == names
    assert and_more(names, 5) == "" and and_more(names, 1) == " and 4 more"


def test_a_name_with_a_line_break_stays_in_its_line() -> None:
    assert shorten(["a\nb", "c"], 2) == r"a\nb, c"


def test_counts_are_singular_for_one_only() -> None:
    assert [count(n, "tensor") for n in (0, 1, 2)] == ["0 tensors", "1 tensor", "2 tensors"]
    assert count(3, "entry", "entries") == "3 entries"


def test_a_path_is_what_the_user_would_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shorten_path(tmp_path / "a" / "b.npy") == "a/b.npy"
    assert shorten_path(tmp_path.parent / "b.npy") == str(tmp_path.parent / "b.npy")
