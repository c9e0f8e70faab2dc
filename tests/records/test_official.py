"""The log that reprod_log writes: whole or not at all, and heard by nobody else."""

import io
import logging
import math
import sys
from pathlib import Path
from typing import Any

from reprod_align import ReprodError, Rule, compare_arrays, compare_records
from reprod_align.records import gate
from reprod_align.records.gate import measure_mean, write_log
from tests.records.test_gate import RECORD, messages

import numpy as np
import pytest


def write(path: Path, extra: list[str]) -> None:
    write_log(path, RECORD, RECORD, compare_records(RECORD, RECORD), 1e-6, extra)


def test_root_logger_is_left_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, heard = logging.getLogger(), io.StringIO()
    mine = logging.StreamHandler(heard)
    root.addHandler(mine)
    before = list(root.handlers), root.level
    logging.disable(logging.CRITICAL)
    try:
        for _ in range(3):
            write(tmp_path / "x.log", ["one", "two"])
        assert (list(root.handlers), root.level) == before
        assert root.manager.disable == logging.CRITICAL
    finally:
        logging.disable(logging.NOTSET)
        root.removeHandler(mine)
    assert heard.getvalue() == "" and capsys.readouterr() == ("", "")
    lines = messages(tmp_path / "x.log")
    assert lines.count("diff check passed") == 1 and lines[-2:] == ["one", "two"]


def test_the_root_logger_is_given_back_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reprod_log import ReprodDiffHelper

    root, closed = logging.getLogger(), []
    before = list(root.handlers), root.level, root.manager.disable
    theirs = ReprodDiffHelper.report

    def fail(*arguments: object, **options: object) -> None:
        theirs(*arguments, **options)
        monkeypatch.setattr(root.handlers[0], "close", lambda: closed.append("theirs"))
        raise KeyboardInterrupt

    monkeypatch.setattr(ReprodDiffHelper, "report", fail)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "x.log", [])
    assert (list(root.handlers), root.level, root.manager.disable) == before
    assert closed == ["theirs"]


def test_the_log_is_the_only_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """reprod_log's own default is a file of its own, where the program runs."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x.log", [])
    assert [path.name for path in tmp_path.iterdir()] == ["x.log"]


def test_why_reprod_log_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reprod_log.py").write_text("raise OSError('a' * 150 + 'b' * 150)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "reprod_log", raising=False)
    with pytest.raises(ReprodError) as caught:
        write(tmp_path / "x.log", [])
    said = "a" * 150 + "b" * 50
    assert str(caught.value) == (
        f"reprod_log cannot be imported (OSError: {said}): pip install -r requirements.txt"
    )


def test_a_log_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x.log", ["first"])

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(ReprodError, match="cannot write .*x.log: No space left on device"):
        write(tmp_path / "x.log", ["second"])
    assert messages(tmp_path / "x.log")[-1] == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["x.log"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, complex])
@pytest.mark.parametrize("limit", [2**20, 100])
def test_the_mean_of_a_large_array_is_reprod_logs(
    limit: int, dtype: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "_LARGE", limit)
    random = np.random.default_rng(0)
    ours, theirs = (random.standard_normal((700, 1001)).astype(dtype) for _ in range(2))
    pair = {"x": ours}, {"x": theirs}
    write_log(tmp_path / "x.log", *pair, compare_records(*pair), 1e-6, [])
    wide = np.result_type(dtype, np.float32)
    mean = np.abs(ours.astype(wide) - theirs.astype(wide)).mean()
    (line,) = [line for line in messages(tmp_path / "x.log") if line.startswith("\tmean")]
    shown = line.removeprefix("\tmean diff: check passed: False, value: ")
    assert float(shown) == pytest.approx(mean, rel=0 if limit > ours.size else 1e-6)
    assert shown == f"{mean.dtype.type(shown)}"


@pytest.mark.parametrize(
    ("expected", "actual", "mean"),
    [
        (np.array(["a", "b", "d", "e"]), np.array(["a", "c", "d", "e"]), 0.25),
        (np.array([True, False]), np.array([True, True]), 0.5),
        (np.array([0], np.uint8), np.array([255], np.uint8), 255.0),
        (np.array([1 + 2.0**-40]), np.ones(1, np.float32), 2.0**-40),
        (np.ones(1, np.float32), np.array([1 + 2.0**-40]), 2.0**-40),
    ],
)
def test_the_mean_of_a_pair_is_taken_where_both_fit(
    expected: Any, actual: Any, mean: float
) -> None:
    assert measure_mean(compare_arrays(expected, actual), expected, actual) == mean


def test_where_a_mean_begins_to_be_rounded_from_ours() -> None:
    for size in (2**20, 2**20 + 1):
        actual = np.ones(size, np.float32)
        actual[0] = 2.0**24  # where float32 counts in twos, so its sums lose ones
        expected = np.zeros_like(actual)
        difference = compare_arrays(expected, actual)
        own, rounded = actual.mean(), np.float32(difference.mean_abs)
        assert own != rounded
        wanted = own if size == 2**20 else rounded
        assert measure_mean(difference, expected, actual) == wanted


def test_the_largest_threshold_there_is(tmp_path: Path) -> None:
    pair = {"x": np.zeros(1)}, {"x": np.array([1.7e308])}
    most = sys.float_info.max
    found = compare_records(*pair, rule=Rule("mean", most, math.inf, 0.0))
    assert found.passed
    write_log(tmp_path / "x.log", *pair, found, most, [])
    assert "diff check passed" in messages(tmp_path / "x.log")


def test_a_key_that_fails_at_the_very_threshold_fails_the_log(tmp_path: Path) -> None:
    pair = {"x": np.zeros(4)}, {"x": np.array([1.0, 0, 0, 0])}  # their mean is the threshold
    found = compare_records(*pair, 0.25)
    assert not found.passed
    write_log(tmp_path / "x.log", *pair, found, 0.25, [])
    assert "diff check failed" in messages(tmp_path / "x.log")


def test_float32_rounding_of_the_mean_does_not_contradict_us(tmp_path: Path) -> None:
    for seed in range(20):  # in some of them float32 rounds the mean up, beyond the threshold
        apart = np.random.default_rng(seed).random(1000, np.float32)
        pair = {"x": np.full(1000, 0, np.float32)}, {"x": apart}
        threshold = compare_arrays(pair[0]["x"], apart).mean_abs
        found = compare_records(*pair, rule=Rule("mean", threshold, math.inf, 0.0))
        write_log(tmp_path / "x.log", *pair, found, threshold, [])
        assert found.passed and "diff check passed" in messages(tmp_path / "x.log")
