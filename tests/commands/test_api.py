"""`reprod-align api`: one entry, a list, or a refusal."""

import json
from pathlib import Path

from reprod_align.commands import api
from reprod_align.errors import ReprodError
from tests.commands.asked import run

import pytest


def test_entries_are_listed_and_searched(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(api, "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert run(api, "--search", "momentum", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 < len(found) < len(whole)
    assert run(api, "--search", "momentum") == 0
    assert "batch-norm-momentum" in capsys.readouterr().out


def test_an_entry_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(api, "linear-weight") == 0
    assert "linear-weight" in capsys.readouterr().out


def test_a_call_that_no_entry_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(api, "torch.lerp") == 0
    row = "torch.lerp(input, end, weight) = input + weight * (end - input)"
    assert row in capsys.readouterr().out
    assert run(api, "Tensor.movedim", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["calls"] == [
        "Tensor.movedim(source, destination) = paddle.moveaxis(self, source, destination)"
    ]


@pytest.mark.parametrize(("words", "message"), [
    (["no-such-entry"], "no-such-entry"),
    (["--search", "no such word"], "no entry contains 'no such word'"),
    (["linear-weight", "--search", "linear"], "only one of them"),
])  # fmt: skip
def test_unknown_names_and_two_questions_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(ReprodError, match=message):
        run(api, *words)


def test_pages_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                           capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setattr(api.pages, "write_pages", lambda folder: ["one.md", "two.md"])
    assert run(api, "--write", tmp_path) == 0
    assert capsys.readouterr().out == f"2 files written to {tmp_path}\n"
