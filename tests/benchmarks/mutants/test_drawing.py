"""Mutants are drawn evenly over kinds and files, from a seed; the files for the score are set apart."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pipeline  # noqa: F401
from benchmarks.mutants import __main__ as command
from benchmarks.mutants.drawing import draw, find_change, prepare, restore
from benchmarks.mutants.frozen import list_entries
from benchmarks.mutants.kinds import KINDS as MADE
from benchmarks.mutants.kinds import mutate
from benchmarks.mutants.places import find_running
from benchmarks.mutants.source import Splice
from benchmarks.mutants.subjects import DRAWN_FOR_SCORE, SUBJECTS, Use, draw_lists, load_lists

import paddle
import pytest

SETS = Path(command.__file__).with_name("sets")
KINDS = ["function", "operator", "call left out"]


def test_the_lists_are_those_that_were_drawn_and_share_no_file() -> None:
    lists = load_lists()
    assert lists == draw_lists()
    assert not set(lists["development"]) & set(lists["score"])
    assert not any(SUBJECTS[name].seen for name in lists["score"])
    families = [SUBJECTS[name].family for name in lists["score"]]
    assert max(families.count(it) for it in families) == DRAWN_FOR_SCORE
    assert len(set(families)) == 4


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


def test_a_frozen_list_gives_the_same_mutants_again() -> None:
    drawn = [it for it, _ in draw(["pd_bert"], KINDS, 2, 1)]
    assert [it for it, _ in restore(list_entries(drawn))] == drawn
    entry = {**list_entries(drawn)[0], "before": "elsewhere"}
    with pytest.raises(ValueError, match="another version"):
        list(restore([entry]))


@pytest.mark.parametrize("use", ["development", "score"])
def test_the_frozen_lists_take_their_own_files_alone_and_every_kind_that_these_have(
    use: Use,
) -> None:
    held = json.loads((SETS / f"{use}.json").read_text(encoding="utf-8"))
    assert held["files"] == use
    assert {it["subject"] for it in held["mutants"]} <= set(load_lists()[use])
    counts = Counter(it["kind"] for it in held["mutants"])
    assert set(counts) <= set(MADE) and len(counts) >= 20
    assert max(counts.values()) <= -(-len(held["mutants"]) // len(counts)) + 2


def test_a_table_that_loading_weights_replaces_is_no_fault() -> None:
    bench = prepare("pd_informer")
    made = mutate("number in a table", bench.source, bench.lines["built"])
    table = next(it for it in made if it.before == "10000.0")  # of the buffer `pe`
    assert find_change(bench, table) is None


def test_lines_that_make_the_model_and_those_that_call_it_are_told_apart() -> None:
    bench = prepare("pd_bert")
    lines = bench.source.text.splitlines()
    made, called = (next(at for at, it in enumerate(lines, 1) if words in it)
                    for words in ("self.activation = nn.Tanh()", "scores / math.sqrt"))  # fmt: skip
    assert made in bench.lines["built"] - bench.lines["called"]
    assert called in bench.lines["called"] - bench.lines["built"]
    assert {made, called} <= bench.lines["any"]


@pytest.mark.parametrize("use", ["development", "score"])
def test_each_place_of_a_frozen_list_is_still_there(use: Use) -> None:
    for entry in json.loads((SETS / f"{use}.json").read_text(encoding="utf-8"))["mutants"]:
        held = SUBJECTS[entry["subject"]].path.read_bytes()
        assert held[entry["start"] : entry["end"]].decode() == entry["before"]


def test_a_line_that_no_class_mentions_is_of_the_modules_that_run_it(tmp_path: Path) -> None:
    path = tmp_path / "named.py"
    path.write_text("def act(x):\n    return x * 2.0\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)

    class Given(paddle.nn.Layer):
        def forward(self, x: Any) -> Any:
            return space["act"](x)

    model = paddle.nn.Sequential(paddle.nn.Linear(2, 2), Given())
    x = paddle.ones([1, 2])
    assert [*find_running(2, path, model, lambda: model(x))] == ["1"]
    assert [*find_running(9, path, model, lambda: model(x))] == []
