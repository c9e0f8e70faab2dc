"""examples/zoo: its pairs, its rows and pages, and the faults of published ports."""

import importlib
import math
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from examples.zoo import __main__ as zoo_command
from examples.zoo import (
    faults_heads,
    faults_layers,
    faults_paddlenlp,
    faults_vision,
    inputs,
    releases_table,
    running,
)
from examples.zoo.__main__ import main
from examples.zoo.chinese import SENTENCES, STAGES, TITLES, VERDICTS
from examples.zoo.mending import Fault, load_faults, mend
from examples.zoo.page import PAGES, _make_line, make_tables, translate
from examples.zoo.pair import Pair
from examples.zoo.results import GOOD, Row, _shorten, load, save
from examples.zoo.running import judge, judge_pairs
from examples.zoo.tables import BY_KEY, TABLES, Table, choose, find_pair
from examples.zoo.transformers_table import ARCHITECTURES
from reprod_align.base.tasks import Workers

import numpy as np
import pytest

# A faithful pair, and two whose faults are known: judged anew, they give the rows that are kept.
SAMPLE = (
    "paddlenlp: bert ForTokenClassification",
    "paddlenlp: albert ForQuestionAnswering",
    "paddle.nn: BatchNorm2d",
)
FAULTS = [
    (key, fault)
    for key, faults in load_faults().items()
    for fault in faults
    if not fault.line  # those of a package that is installed elsewhere
]


def test_the_zoo_has_the_architectures_of_both_packages() -> None:
    assert len({one.name for one in ARCHITECTURES}) == len(ARCHITECTURES) >= 45
    for table in TABLES:
        names = [pair.name for _, pair in choose([table.key])]
        assert len(names) == len(set(names)) > 0


@pytest.mark.parametrize("language", range(2))
def test_the_pages_show_the_rows_that_are_kept(language: int) -> None:
    text = PAGES[language].read_text("utf-8")
    assert make_tables(load(), language) in text, "run: python -m examples.zoo --page"


def test_each_sentence_is_in_chinese_too() -> None:
    known = [fault for found in load_faults().values() for fault in found]
    faults = [text for fault in known for text in (fault.what, fault.left) if text]
    notes = [note for module in (faults_heads, faults_layers, faults_vision, releases_table)
             for note in module.NOTES.values()]  # fmt: skip
    assert set(SENTENCES) == {*faults, *notes}
    assert {row.verdict for row in load().values()} <= set(VERDICTS)
    assert {row.stage for row in load().values()} - {""} <= set(STAGES)
    assert {table.title for table in TABLES} == set(TITLES)
    assert translate(VERDICTS, "faithful", 0) == "faithful" != translate(VERDICTS, "faithful", 1)


def test_a_class_is_edited_alone() -> None:
    source = "class A:\n    x = 1\n\n\nclass B(A):\n    x = 1\n\n\ny = 1\n"
    fault = Fault("none", "json", "", (("x = 1", "x = 2"),), within="B")
    assert fault.edit(source) == source[::-1].replace("1 = x", "2 = x", 1)[::-1]
    with pytest.raises(ValueError, match="no class C"):
        replace(fault, within="C").edit(source)
    with pytest.raises(ValueError, match="2 times, not once"):
        replace(fault, within="").edit(source)


def test_rows_are_of_pairs() -> None:
    names = {f"{table.key}: {pair.name}" for table, pair in choose([])}
    assert set(load()) <= names


@pytest.mark.every_edit
@pytest.mark.parametrize("name", SAMPLE)
def test_a_row_is_what_align_says(name: str) -> None:
    pytest.importorskip("paddlenlp")
    row, kept = judge(*find_pair(name)), load()[name]
    shown = [(one.verdict, one.stage, one.place, one.paddle_line) for one in (row, kept)]
    assert shown[0] == shown[1], row
    assert (row.without in GOOD) == (kept.without in GOOD), row


def test_a_process_for_each_side_judges_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As packages with environments of their own are judged; here both are this one."""
    table, pair = find_pair("paddle.nn: BatchNorm2d")
    python = Path(sys.executable)
    monkeypatch.setattr(running, "find_python", lambda name: python)
    kept, row = judge(table, pair), judge(replace(table, environments=("own", "")), pair)
    assert row.verdict == kept.verdict and (row.stage, row.place) == (kept.stage, kept.place), row


@pytest.mark.parametrize(("key", "fault"), FAULTS, ids=str)
def test_a_fault_is_one_place_of_the_source(key: str, fault: Fault) -> None:
    pytest.importorskip("paddlenlp")
    source = fault.path.read_text("utf-8")
    assert fault.edit(source) != source
    assert 0 < fault.find_line() <= source.count("\n")
    pairs = BY_KEY[key].load_pairs()
    assert [name for name in fault.pairs.split(", ") if name not in pairs] == []


def test_another_source_is_refused() -> None:
    fault = replace(faults_paddlenlp.FAULTS[0], edits=(("not there", "there"),))
    with pytest.raises(ValueError, match="0 times, not once"):
        fault.edit(fault.path.read_text("utf-8"))


def test_rows_are_kept_whole(tmp_path) -> None:
    rows = {"b": Row("faithful", 1.234e-16), "a": Row("diverges", float("inf"), "forward")}
    save(rows, tmp_path / "zoo.json")
    kept = load(tmp_path / "zoo.json")
    assert list(kept) == ["a", "b"] and kept["b"].worst == 1.2e-16
    assert load(tmp_path / "none.json") == {}


def test_a_crash_is_a_row() -> None:
    table = replace(BY_KEY["paddle.nn"], torch="math", paddle="math")
    none = Pair("none", lambda package: package.gone, lambda package: package.gone, dict)
    row = judge(table, none)
    assert row.verdict == "cannot be judged" and "gone" in row.message
    row = judge(BY_KEY["paddle.nn"], replace(none, torch=lambda package: package.ReLU()))
    assert row.verdict == "does not build" and "gone" in row.message
    assert judge(replace(table, paddle="no_such_package"), find_pair(SAMPLE[2])[1]).verdict == (
        "not installed"
    )


def test_the_command_lists_pairs_and_refuses_what_it_does_not_know(capsys) -> None:
    assert main(["--list", "albert"]) == 0
    assert "paddlenlp: albert ForQuestionAnswering" in capsys.readouterr().out
    assert main(["no_such_model"]) == 2
    assert "no_such_model" in capsys.readouterr().out


def test_a_line_is_named_from_its_package_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/a", "/a/b"])
    for place in ("/env/lib/site-packages/net/it.py:3", "/a/b/net/it.py:3", "net/it.py:3"):
        assert _shorten(place) == "net/it.py:3"
    assert _shorten(None) == ""


def test_what_is_so_by_design_has_its_row_alone() -> None:
    mistake = Fault("bert Model", "json", "a mistake", (("a", "b"),), line=1)
    design = replace(mistake, what="by design: wider", design=True)
    table, row = BY_KEY["paddlenlp"], Row("diverges", 1.0, without="faithful")
    line = _make_line(table, "bert Model", row, [design, mistake], 0)
    link = "[1](zoo/paddlenlp/01_bert_model.md)"
    assert line.endswith(f"| {link}; by design: wider; without: faithful |")


def test_modules_that_imported_a_class_get_it_without_its_faults(tmp_path, monkeypatch) -> None:
    for name, text in {"__init__": "", "layer": "class Layer:\n    width = 1\n",
                       "model": "from zoo_port.layer import Layer\n\n\ndef build():\n"
                                "    return Layer().width\n"}.items():  # fmt: skip
        (tmp_path / "zoo_port").mkdir(exist_ok=True)
        (tmp_path / "zoo_port" / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    model = importlib.import_module("zoo_port.model")
    assert model.build() == 1
    fault = Fault("none", "zoo_port.layer", "", (("width = 1", "width = 2"),))
    assert mend(model, [fault]).build() == 2


def test_what_a_row_was_made_from_tells_whether_it_is_judged_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A version, the statement and a file of the models count; nothing else does."""
    name = "paddle.nn: BatchNorm2d"
    table, pair = find_pair(name)
    now = inputs.read_inputs(table, pair)
    assert now["paddlepaddle"] == version("paddlepaddle") and inputs.STATEMENT in now
    given = inputs.read_inputs(table, pair.given(x=np.ones(3)))
    assert inputs.list_changes(now, given) == [inputs.STATEMENT]
    other = replace(pair, paddle=table.load_pairs()["GroupNorm"].paddle)
    assert inputs.list_changes(now, inputs.read_inputs(table, other)) == [inputs.STATEMENT]
    assert inputs.list_changes({}, now) == ["what it was made from is not known"]

    rows, judged = {}, []
    for command in ("save", "write_pages"):
        monkeypatch.setattr(zoo_command, command, lambda rows: None)
    monkeypatch.setattr(zoo_command, "load", lambda: rows)
    monkeypatch.setattr(
        zoo_command, "judge_pairs",
        lambda left, minutes, workers: [*map(judged.append, left)] and [(name, Row("diverges", inputs=now))],
    )  # fmt: skip
    rows[name] = Row("faithful", inputs=now)
    assert main(["BatchNorm2d"]) == 0 and not judged
    assert "pairs to judge: 0 of 1\nrows that have become others: 0" in capsys.readouterr().out
    rows[name] = Row("faithful", inputs={**now, "paddlepaddle": "3.2.2"})
    assert main(["BatchNorm2d"]) == 0 and judged == [(table, table.load_pairs()["BatchNorm2d"])]
    change = f"paddlepaddle 3.2.2 -> {now['paddlepaddle']}"
    assert capsys.readouterr().out.endswith(
        f"rows that have become others: 1\n  {name}: faithful -> diverges ({change})\n"
    )


def test_rows_are_judged_once_here_or_in_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(running, "ROWS", tmp_path)
    pairs = [find_pair(f"paddle.nn: {name}") for name in ("BatchNorm2d", "GroupNorm", "LayerNorm")]
    here = dict(judge_pairs(pairs[:1], math.inf))
    (before,) = tmp_path.iterdir()
    kept, written = load(), before.stat().st_mtime_ns
    rows = dict(judge_pairs(pairs, math.inf, Workers(2)))
    assert {name: row.told for name, row in rows.items()} == {
        name: kept[name].told for name in rows
    }
    assert len(rows) == len(list(tmp_path.iterdir())) == 3
    assert rows.items() >= here.items() and before.stat().st_mtime_ns == written
    # from here on nothing is judged: what is there is found, the rest comes after the deadline
    monkeypatch.setattr(running, "judge", None)
    before.unlink()
    assert dict(judge_pairs(pairs, 0)).keys() == rows.keys() - here.keys()


def test_a_row_is_judged_anew_where_a_file_or_the_judge_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "ROWS", tmp_path)
    judged: list[str] = []

    def judge(table: Table, pair: Pair) -> Row:
        judged.append(pair.name)
        return Row("faithful", inputs=inputs.read_inputs(table, pair, ["mine/net.py"]))

    monkeypatch.setattr(running, "judge", judge)
    pairs = [find_pair("paddle.nn: BatchNorm2d")]
    path = tmp_path / "path" / "mine" / "net.py"
    path.parent.mkdir(parents=True)
    path.write_text("one")
    monkeypatch.syspath_prepend(tmp_path / "path")
    for count in (1, 1):
        assert [row.verdict for _, row in judge_pairs(pairs, math.inf)] == ["faithful"]
        assert len(judged) == count
    path.write_text("two")
    list(judge_pairs(pairs, math.inf))
    assert len(judged) == 2
    monkeypatch.setattr(running, "digest_judge", lambda: "another")
    list(judge_pairs(pairs, math.inf))
    assert len(judged) == 3


def test_the_version_that_counts_is_that_of_the_first_on_the_path(tmp_path, monkeypatch) -> None:
    """An environment has its own packages in front of those that it shares."""
    own = tmp_path / "numpy-0.0.1.dist-info"
    own.mkdir()
    (own / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.0.1\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    inputs._find_versions.cache_clear()
    assert inputs._find_versions("", ("numpy",)) == {"numpy": "0.0.1"}
    inputs._find_versions.cache_clear()


def test_a_changed_file_of_a_package_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    table, pair = find_pair("paddle.nn: BatchNorm2d")
    encoder = importlib.import_module("safetensors.torch")
    error = None
    try:
        encoder.load(b"")
    except Exception as raised:
        error = raised
    files = inputs.list_files(error=error)
    assert files == {"safetensors/torch.py"}
    before = inputs.read_inputs(table, pair, files)
    monkeypatch.setattr(sys, "path", [])
    assert inputs.list_changes(before, inputs.read_inputs(table, pair, files)) == [*files]
