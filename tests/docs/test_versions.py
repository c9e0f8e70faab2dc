"""docs/versions.md shows what the trials gave; every version that is promised was tried."""

from pathlib import Path

import noxfile
from reprod_align.backends.versions import OLDEST
from tools import versions

import pytest


@pytest.mark.parametrize("page", versions.PAGES, ids=lambda path: path.name)
def test_the_table_is_that_of_the_trials(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert versions.fill(text) == text and versions.make_table() in text


def test_every_version_that_is_tried_was_right() -> None:
    rows = versions.read()
    assert [row["paddlepaddle"] for row in rows] == list(noxfile.PADDLE)
    for row in rows:
        assert row["right"] and row["faithful"] == "faithful", row
        assert row["faulty"].split(", ") == versions.FOUND
    oldest = min(versions.name(row) for row in rows)[0]
    assert tuple(oldest[:2]) == OLDEST["paddlepaddle"]


def test_a_row_takes_the_place_of_the_same_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "NOTES", tmp_path / "notes.json")
    row = {"paddlepaddle": "3.1.1", "torch": "2.13.0", "faithful": "own-code"}
    for one in (row, {**row, "paddlepaddle": "2.6.2"}, {**row, "faithful": "faithful"}):
        versions.keep(one)
    assert [(one["paddlepaddle"], one["faithful"]) for one in versions.read()] == [
        ("2.6.2", "own-code"), ("3.1.1", "faithful"),
    ]  # fmt: skip
