"""Two tensors of traces: no element hides behind a norm or a large number, and NaN is reported."""

from dataclasses import replace
from typing import Any

from reprod_align.commands import main
from reprod_align.traces import RecordedTrace, save_trace
from reprod_align.traces.diff import Floors, compare_traces, measure
from reprod_align.traces.sketch import sketch
from tests.traces.made import tensor, trace

import numpy as np
import pytest

SOURCE = np.random.default_rng(0)
MASK = np.triu(np.full((40, 40), -np.inf), 1)
NANS = np.where(SOURCE.standard_normal((40, 40)) > 2, np.nan, 1.0)


def recorded(values: np.ndarray, whole: bool) -> RecordedTrace:
    kept = values if whole else sketch(values)
    return RecordedTrace("PyTorch", "whole", (replace(tensor(values), whole=whole, values=kept),))


def pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return pairs that differ, although each differs little by a norm, or in places alone."""
    million = SOURCE.standard_normal((1000, 1000)).astype(np.float32)
    one_off = million.copy()
    one_off[5, 5] += 0.08
    column = SOURCE.standard_normal((400, 3))
    column[:, 1] = -1e9
    beside = column.copy()
    beside[0, 0] += 1.0
    ids = np.full(1000, 2**53 + 2**40)
    next_id = ids.copy()
    next_id[3] += 1
    rows = SOURCE.standard_normal((4, 200)) * np.array([[1e-4], [10], [10], [10]])
    negated = rows * np.array([[-1], [1], [1], [1]])
    return {
        "one element of a million": (million, one_off),
        "an error of 1 beside -1e9": (column, beside),
        "ids above 2**53": (ids, next_id),
        "a negated row of 1e-4 beside rows of 10": (rows, negated),
        "a causal mask, upper and lower": (MASK, MASK.T),
        "-inf and +inf": (MASK, -MASK),
        "-inf and NaN": (MASK, np.where(MASK == 0, 0, np.nan)),
        "NaN and inf": (NANS, np.where(np.isnan(NANS), np.inf, 1.0)),
        "inf and finfo.max": (-MASK, np.minimum(-MASK, np.finfo(float).max)),
    }


@pytest.mark.parametrize("name", pairs())
@pytest.mark.parametrize("modes", [(True, True), (False, False), (True, False)])
def test_what_differs_fails(name: str, modes: tuple[bool, bool]) -> None:
    expected, actual = pairs()[name]
    for first, second in ((expected, actual), (actual, expected)):
        result = compare_traces(recorded(first, modes[0]), recorded(second, modes[1]))
        assert not result.passed and "NOT aligned" in result.summary()
        assert compare_traces(recorded(first, modes[0]), recorded(first, modes[1])).passed


def test_a_row_hides_from_a_sketch_alone_in_float32() -> None:
    rows, negated = (
        one.astype(np.float32) for one in pairs()["a negated row of 1e-4 beside rows of 10"]
    )
    assert not compare_traces(recorded(rows, True), recorded(negated, True)).passed
    assert compare_traces(
        recorded(rows, False), recorded(negated, False)
    ).passed  # docs/align_reference.md


def test_the_words_say_where() -> None:
    million, one_off = pairs()["one element of a million"]
    summary = compare_traces(trace(million), trace(one_off)).summary()
    assert "DIFFERENT  at (5, 5) expected" in summary
    assert summary.splitlines()[-1].startswith(
        "NOT aligned: 1 of 1 pairs of tensors differ, first the output of layer.0: at (5, 5) expected"
    )
    found = compare_traces(recorded(MASK, False), recorded(MASK.T, False))
    assert "-inf in other places" in found.summary()


@pytest.mark.parametrize("whole", [True, False])
def test_nan_on_both_sides_is_reported(whole: bool, tmp_path: Any, capsys: Any) -> None:
    count = int(np.isnan(NANS).sum())
    result = compare_traces(recorded(NANS, whole), recorded(NANS, whole))
    assert result.passed and result.rows[0].nans == count
    summary = result.summary().splitlines()
    assert f"  {count} in the output of layer" in summary
    assert summary[-1].endswith("1 pairs of tensors agree, 1 of them but for NaN on both sides")
    everywhere = NANS * np.nan
    assert not compare_traces(recorded(everywhere, whole), recorded(everywhere, whole)).passed
    save_trace(tmp_path / "a", recorded(NANS, whole))
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "a")]) == 0
    assert "NaN on both sides, not compared (1):" in capsys.readouterr().out


def test_masks_on_both_sides_agree() -> None:
    for values in (MASK, np.triu(np.full((40, 40), -1e9), 1)):
        for whole in (True, False):
            result = compare_traces(recorded(values, whole), recorded(values, whole))
            assert result.passed and "NaN" not in result.summary()


def test_floors_and_limits_are_those_of_the_coarser_side() -> None:
    values = SOURCE.standard_normal((20, 20))
    expected, actual = tensor(values), tensor((values * (1 + 1e-6)).astype(np.float32))
    found = measure(expected, actual, Floors([expected]))
    assert found.passed and found.limit == 1e-4
    again = measure(expected, tensor(values * (1 + 1e-6)), Floors([expected]))
    assert not again.passed and again.limit == 1e-9
    zero = tensor(np.zeros((20, 20)))
    assert (
        measure(zero, tensor(values * 1e-16), Floors([expected, zero])).words
        == "rounding around zero"
    )
