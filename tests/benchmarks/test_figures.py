"""benchmarks/figures: sides take turns, medians and exponents are right, the pages hold what was measured."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.figures.__main__ import load_groups
from benchmarks.figures.measure import measure_row, run_once
from benchmarks.figures.page import (
    PAGES,
    draw_curve,
    load_figures,
    make_tables,
    plot_name,
    save_figures,
)
from benchmarks.figures.rows import Curve, Figure, Row, divide_medians, fit_exponent
from reprod_align import save_record

import numpy as np
import pytest

ROW = Row(("one / other", "甲 / 乙"), "a b", 0.5, "c d")
ALONE = Row(("memory", "内存"), "a b", 300, unit="MB")
CURVE = Curve(("growth", "增长"), "module:function", (1, 2, 4), ("MB", "MB"), 1.1)
GROUP: Any = SimpleNamespace(TITLE=("Title", "标题"), ROWS=(ROW, ALONE), CURVES=(CURVE,))


def test_a_figure_is_the_ratio_of_the_medians() -> None:
    assert divide_medians([3.0, 1.0, 90.0], [6.0, 2.0, 7.0]) == (0.5, 3.0, 6.0)
    assert divide_medians([3.0, 1.0, 90.0], []) == (3.0, 3.0, 0.0)


def test_the_exponent_is_that_of_the_power_law() -> None:
    assert fit_exponent([1, 10, 100], [2.0, 2 * 10**1.5, 2 * 100**1.5]) == pytest.approx(1.5)


def test_the_sides_take_turns_and_the_first_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    def run(work: str, folder: Path, unit: str) -> float:
        asked.append(work)
        return 100.0 if len(asked) <= 2 else float(len(asked))

    monkeypatch.setattr("benchmarks.figures.measure.run_once", run)
    figure = measure_row(ROW, tmp_path)
    assert asked == ["a b", "c d"] * 4
    assert (figure.value, figure.ours, figure.peer) == (5 / 6, 5.0, 6.0)


def test_calls_and_commands_are_measured_in_processes_of_their_own(tmp_path: Path) -> None:
    for side in ("torch", "paddle"):
        save_record(tmp_path / f"forward_{side}.npy", {"x": np.ones(4, np.float32)})
    work = "benchmarks.figures.compare:compare_ours"
    assert 0 < run_once(work, tmp_path, "s") < 60
    assert 0 <= run_once(work, tmp_path, "MB") < 100
    assert 0 <= run_once(work, tmp_path, "GB of I/O") < 1
    assert 0 < run_once("python -c pass", tmp_path, "s of work") < 60
    save_record(tmp_path / "forward_torch.npy", {"x": np.zeros(4, np.float32)})
    with pytest.raises(SystemExit, match="the two sides should agree"):
        run_once(work, tmp_path, "s")


def test_a_figure_that_is_not_measured_again_keeps_its_run(tmp_path: Path) -> None:
    store = tmp_path / "figures.json"
    assert load_figures(store) == {}
    old = Figure(0.7, 7.0, 10.0, "2026-01-01", "a machine")
    new = Figure(12.0, 12.0, 0.0, "2026-02-01", "another")
    save_figures({ROW.name[0]: old}, store)
    save_figures(load_figures(store) | {ALONE.name[0]: new}, store)
    for language, never in enumerate(("not yet measured", "尚未测量")):
        lines = make_tables({"group": GROUP}, load_figures(store), language).splitlines()
        assert f"| {ROW.name[language]} | ≤ 0.5 | **0.7** | 7 s | 10 s | 2 |" in lines
        assert f"| {ALONE.name[language]} | ≤ 300 | 12 | 12 MB |  | 1 |" in lines
        assert any(CURVE.name[language] in line and never in line for line in lines)
        assert lines[-2].endswith("1: 2026-02-01 · another")
        assert lines[-1].endswith("2: 2026-01-01 · a machine")


def test_a_curve_is_drawn_alike_for_the_same_numbers(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw_curve(CURVE, 1.0, [1.0, 2.0, 4.1], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_rows_have_names_of_their_own_and_the_pages_hold_what_was_measured() -> None:
    groups, figures = load_groups(), load_figures()
    names = [row.name[0] for group in groups.values() for row in (*group.ROWS, *group.CURVES)]
    assert len(set(names)) == len(names) and set(figures) <= set(names)
    for language, page in enumerate(PAGES):
        assert make_tables(groups, figures, language) in page.read_text("utf-8")
    for name, group in groups.items():
        for number, curve in enumerate(group.CURVES):
            drawn = PAGES[0].parent / "results" / plot_name(name, number)
            assert drawn.exists() == (curve.name[0] in figures)
