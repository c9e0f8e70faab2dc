"""What a reader is made of: the head of a file, and rows with their column of steps."""

import json
from pathlib import Path

from reprod_align.curves.log import CurveError
from reprod_align.curves.readers import find_step_column, read_curves, read_head, read_rows

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


def test_epochs_count_where_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text('{"train_loss": 2.5, "epoch": 0}\n{"train_loss": 2.0, "epoch": 1}\n')
    assert read_curves(path).curves["train_loss"].steps.tolist() == [0, 1]


def test_steps_that_start_again_with_every_epoch(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    rows = [{"epoch": e, "iter": i, "loss": 1.0} for e in (1, 2, 3) for i in (50, 100)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_curves(path)
    assert log.curves["loss"].steps.tolist() == [50, 100, 150, 200, 250, 300]
    assert "starts again with every epoch" in log.remarks[0]


def test_a_step_of_a_total(tmp_path: Path) -> None:
    path = tmp_path / "logging.jsonl"
    path.write_text('{"loss": 2.5, "global_step/max_steps": "1/93"}\n')
    assert read_curves(path).curves["loss"].steps.tolist() == [1]


def test_a_damaged_row_is_left_out_at_the_end_only(tmp_path: Path) -> None:
    whole, damaged = {"step": 1, "loss": 0.5}, "not JSON"
    log = read_rows(tmp_path / "log", "rows", [(1, whole), (2, damaged)])
    assert log.curves["loss"].values.tolist() == [0.5]
    assert log.remarks == ("the last line (2) was cut off and is left out",)
    with pytest.raises(CurveError, match="log, line 1 is damaged: not JSON"):
        read_rows(tmp_path / "log", "rows", [(1, damaged), (2, whole)])


@pytest.mark.parametrize("name", ["step", "trainer/global_step", "Iteration", "_step", "batch"])
def test_a_column_of_steps_goes_before_one_of_epochs(name: str) -> None:
    assert find_step_column(["epoch", name, "loss"]) == name
