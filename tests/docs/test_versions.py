"""docs/versions.md shows what the trials gave; every version that is promised was tried."""

import re
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
    assert {row["paddlepaddle"] for row in rows} == {*noxfile.PADDLE}
    for row in rows:
        assert row["right"] and row["faithful"] == "faithful", row
        assert row["faulty"].split(", ") == versions.FOUND
        passed, chosen = row["smoke"].split(" of ")
        assert passed == chosen
    oldest = min(versions.name(row) for row in rows)[0]
    assert tuple(oldest[:2]) == OLDEST["paddlepaddle"]


def test_a_row_takes_the_place_of_the_same_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "NOTES", tmp_path / "notes.json")
    row = {
        "paddlepaddle": "3.1.1",
        "torch": "2.13.0",
        "numpy": "2.4.6",
        "python": "3.11.7",
        "faithful": "own-code",
    }
    for one in (row, {**row, "paddlepaddle": "2.6.2"}, {**row, "faithful": "faithful"}):
        versions.keep(one)
    assert [(one["paddlepaddle"], one["faithful"]) for one in versions.read()] == [
        ("2.6.2", "own-code"), ("3.1.1", "faithful"),
    ]  # fmt: skip


def test_the_smoke_holds_a_bug_and_a_correct_pair_of_each_kind() -> None:
    lines = versions.SMOKE.read_text(encoding="utf-8").splitlines()
    assert len({*lines}) == len(lines) == 60
    kinds: dict[str, set[str]] = {}
    for line in lines:
        found = re.match(r"tests/alignment/test_align\.py::(\w+)\[(\w+)/", line)
        if found:
            kinds.setdefault(found[2], set()).add(found[1])
    assert len(kinds) >= 9 and all(len(tests) == 2 for tests in kinds.values()), kinds
