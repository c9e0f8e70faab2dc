"""benchmarks/figures/padiff and benchmarks/padiff_cases: verdicts are counted right, PaDiff may be absent."""

from pathlib import Path
from typing import Any

from benchmarks import padiff_cases
from benchmarks.figures import __main__ as figures
from benchmarks.figures import padiff
from benchmarks.figures.measure import run_once
from benchmarks.figures.rows import COUNT, Unmeasurable
from tests.pairs import mlp

import pytest

VERDICTS = [
    {"faulty": True, "flagged": True, "named": True, "judged": True},
    {"faulty": True, "flagged": True, "named": False, "judged": True},
    {"faulty": True, "flagged": False, "named": False, "judged": False},
    {"faulty": False, "flagged": True, "named": False, "judged": True},
    {"faulty": False, "flagged": False, "named": False, "judged": True},
]


@pytest.mark.parametrize(("what", "count"), [("missed", 1), ("unnamed", 2), ("accused", 1)])
def test_wrong_verdicts_are_counted(what: str, count: int) -> None:
    assert padiff.count_wrong(VERDICTS, what) == count


def test_align_is_right_on_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padiff_cases, "FAMILIES", ("mlp",))
    verdicts = list(padiff_cases.judge_cases("align", len(mlp.CASES) // 3))
    assert verdicts and all(one["judged"] for one in verdicts)
    assert [padiff.count_wrong(verdicts, what) for what in ("missed", "unnamed", "accused")] == [
        0
    ] * 3


def test_a_tool_that_raises_has_judged_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError

    monkeypatch.setattr(padiff_cases, "FAMILIES", ("mlp",))
    monkeypatch.setattr(padiff_cases, "ask_padiff", fail)
    verdicts = list(padiff_cases.judge_cases("strict", len(mlp.CASES) // 2))
    assert verdicts and not any(one["judged"] or one["flagged"] for one in verdicts)


def test_where_padiff_cannot_be_installed_the_group_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(padiff, "PADIFF", tmp_path / "none")
    monkeypatch.setattr(padiff, "_REQUIREMENTS", tmp_path / "missing.txt")
    with pytest.raises(Unmeasurable, match="missing.txt can't be installed into none/"):
        figures.measure_group("padiff", padiff, "")


@pytest.mark.skipif(not (padiff.PADIFF / "padiff").is_dir(), reason="PaDiff is not installed")
def test_padiff_judges_the_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_once("benchmarks.figures.padiff:unnamed_by_default", tmp_path, COUNT) > 0
