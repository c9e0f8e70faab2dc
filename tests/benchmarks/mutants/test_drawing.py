"""Mutants are drawn evenly over kinds and files, from a seed; the files for the score are set apart."""

from dataclasses import replace
from pathlib import Path

import pipeline  # noqa: F401
from benchmarks.mutants import __main__ as command
from benchmarks.mutants.drawing import draw, find_change, prepare
from benchmarks.mutants.kinds import mutate
from benchmarks.mutants.source import Splice
from benchmarks.mutants.subjects import DRAWN_FOR_SCORE, SUBJECTS, draw_lists, load_lists

import pytest

KINDS = ["function", "operator", "call left out"]


def test_the_lists_are_those_that_were_drawn_and_share_no_file() -> None:
    lists = load_lists()
    assert lists == draw_lists()
    assert not set(lists["development"]) & set(lists["score"])
    assert not any(SUBJECTS[name].seen for name in lists["score"])
    families = [SUBJECTS[name].family for name in lists["score"]]
    assert {families.count(it) for it in families} == {DRAWN_FOR_SCORE}


def test_drawing_is_even_over_the_kinds_and_repeats_itself() -> None:
    first, again, other = (
        [it for it, _ in draw(["pd_bert"], KINDS, 6, seed)] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert [it.kind for it in first] == [*KINDS, *KINDS]


def test_a_longer_set_begins_with_the_shorter_one() -> None:
    short, long = ([it for it, _ in draw(["pd_bert"], KINDS, count, 1)] for count in (2, 4))
    assert long[:2] == short


def test_a_mutation_without_effect_or_with_an_error_is_not_drawn() -> None:
    bench = prepare("pd_bert")
    made = mutate("function", bench.source, bench.lines["any"])
    tanh = next(it for it in made if it.before == "Tanh")
    assert "bert.pooler" in (find_change(bench, tanh) or [])
    for after in ("Tanh", "Gone", "("):
        splice = Splice(tanh.splice.start, tanh.splice.end, after)
        assert find_change(bench, replace(tanh, splice=splice)) is None


def test_single_mutants_of_the_score_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "set.json").write_text('{"files": "score"}', encoding="utf-8")
    assert command.main(["show", str(tmp_path), str(tmp_path)]) == 2
    assert "development set alone" in capsys.readouterr().err


def test_a_frozen_set_is_not_drawn_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["draw", str(tmp_path)]) == 2
    assert "exists" in capsys.readouterr().err


def test_a_result_needs_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.parse(["judge", "set"])
    assert "name the folder" in capsys.readouterr().err
