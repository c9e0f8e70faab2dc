"""Rows of a sketch: a small row beside large ones is seen, in files of up to 2 KB more for a tensor."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from reprod_align.backends.paddle import trace as paddle_trace
from reprod_align.backends.torch import trace as torch_trace
from reprod_align.errors import ReprodError
from reprod_align.traces import RecordedTrace, load_trace, save_trace
from reprod_align.traces.diff import Floors, compare_traces, measure
from reprod_align.traces.sketch import (
    GROUPS,
    SLAB,
    count_together,
    group_rows,
    sketch,
    sketch_with_rows,
)
from tests.traces.made import tensor
from tests.traces.test_sketch import OnDevice

import numpy as np
import paddle
import pytest
import torch

SOURCE = np.random.default_rng(0)
SHAPES = [
    (2, 600),
    (4, 400),
    (128, 16),
    (3, 5, 300),
    (2, 3, 7, 50),
    (64, 512),
    (2, SLAB + 5),
    (3, 2 * SLAB + 7),
]


def small_row(shape: tuple[int, ...], dtype: str, row: int = 1, size: float = 1e-4) -> np.ndarray:
    """Return rows of about 10, and one that is small."""
    values = 10 * SOURCE.standard_normal(shape)
    values.reshape(-1, shape[-1])[row] *= size / 10
    return values.astype(dtype)


def negated(values: np.ndarray, row: int = 1) -> np.ndarray:
    changed = values.copy()
    changed.reshape(-1, values.shape[-1])[row] *= -1
    return changed


def kept(values: np.ndarray, whole: bool = False) -> Any:
    if whole:
        return tensor(values)
    vector, rows = sketch_with_rows(values)
    return replace(tensor(values), whole=False, values=vector, rows=rows)


def found(first: np.ndarray, second: np.ndarray, modes: tuple[bool, bool] = (False, False)) -> Any:
    one, other = kept(first, modes[0]), kept(second, modes[1])
    return measure(one, other, Floors([one]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_negated_small_row_is_seen(shape: tuple[int, ...], dtype: str) -> None:
    size = 1e-4 if dtype != "float64" else 1e-9
    values = small_row(shape, dtype, size=size)
    other = negated(values)
    norm, apart = np.linalg.norm(values), np.linalg.norm(other - values)
    assert apart < (1e-4 if dtype != "float64" else 1e-9) * norm  # as a whole they agree
    for modes in ((False, False), (True, False), (False, True)):
        assert found(values, values, modes).passed
        said = found(values, other, modes)
        assert not said.passed and "row 1, small beside others" in said.words
        assert not found(other, values, modes).passed


def test_of_many_rows_neighbours_share() -> None:
    values = 10 * SOURCE.standard_normal((500, 64)).astype(np.float32)
    values[8:12] *= 1e-5
    other = values.copy()
    other[8:12] *= -1
    said = found(values, other)
    assert not said.passed and "rows 8 to 11, small" in said.words
    values[9] *= 1e5
    other = values.copy()
    other[8] *= -1
    assert found(
        values, other
    ).passed  # docs/align_reference.md: row 9 is large, and of the same group


@pytest.mark.parametrize("shape", [*SHAPES, (257, 9), (1000, 64), (5, 1, 1, 300)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_is_no_difference(shape: tuple[int, ...], dtype: str) -> None:
    """Nor is a row that is only rounding beside others."""
    eps = float(np.finfo(dtype).eps)
    for size in (1e-4, 1e-12, 0.0):
        values = small_row(shape, dtype, size=size)
        noise = eps * 10 * SOURCE.standard_normal(shape)
        assert found(values, (values + noise).astype(dtype)).passed
        assert found(
            values, (values * (1 + 4 * eps * SOURCE.standard_normal(shape))).astype(dtype)
        ).passed


def test_noise_of_all_rows_is_that_of_a_small_one() -> None:
    """Where large rows are off by as much as they may, a small row may be off as they are."""
    values = small_row((40, 100), "float32")
    noisy = (values + 1e-4 * SOURCE.standard_normal(values.shape)).astype(np.float32)
    assert found(values, noisy).passed


@pytest.mark.parametrize("shape", [(30, 50), (257, 9), (3, 5, 90), (2, SLAB + 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "float16"])
def test_all_backends_keep_the_same(shape: tuple[int, ...], dtype: str) -> None:
    values = SOURCE.standard_normal(shape).astype(dtype)
    made = {
        "torch": sketch_with_rows(torch.tensor(values), torch_trace),
        "paddle": sketch_with_rows(paddle.to_tensor(values), paddle_trace),
        "torch on its device": sketch_with_rows(torch.tensor(values), OnDevice(torch_trace)),
        "paddle on its device": sketch_with_rows(paddle.to_tensor(values), OnDevice(paddle_trace)),
    }
    vector, rows = sketch_with_rows(values)
    assert rows is not None and rows.shape == (group_rows(shape), 4) and rows.dtype == np.float32
    np.testing.assert_array_equal(vector, sketch(values))
    count = count_together(shape)
    flat = values.reshape(-1, shape[-1]).astype(np.complex128)
    norms = np.array([np.linalg.norm(flat[at : at + count]) for at in range(0, len(flat), count)])
    assert (np.linalg.norm(rows, axis=1) < 5 * norms).all()
    assert np.linalg.norm(rows) > 0.1 * np.linalg.norm(norms)
    for name, (_, own) in made.items():
        assert own is not None
        assert (np.abs(own - rows) <= 1e-5 * norms[:, None]).all(), name


def test_what_has_no_rows() -> None:
    for values in (
        np.ones(2000),
        np.ones((1, 2000)),
        np.ones((40, 50), int),
        np.ones((40, 50), bool),
    ):
        assert sketch_with_rows(values)[1] is None
    shapes = ((), (5,), (1, 9), (2, 9), (128, 3), (129, 3), (4, 0))
    assert [group_rows(shape) for shape in shapes] == [0, 0, 0, 2, 128, 65, 0]
    assert max(group_rows((rows, 2)) for rows in range(2, 5000)) == GROUPS


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e9, np.finfo(np.float32).min])
@pytest.mark.parametrize("ops", [None, torch_trace, OnDevice(torch_trace)])
def test_what_a_sketch_sets_apart_is_no_part_of_a_row(value: float, ops: Any) -> None:
    values = small_row((40, 60), "float32")
    values[:, ::7] = value
    made = sketch_with_rows(values) if ops is None else sketch_with_rows(torch.tensor(values), ops)
    with np.errstate(invalid="ignore"):
        zeros = np.where(np.abs(values) < 1e6, values, 0)
    assert made[1] is not None
    np.testing.assert_allclose(made[1], sketch_with_rows(zeros)[1], rtol=1e-4, atol=1e-4)
    assert found(values, values).passed
    other = np.where(zeros == 0, values, negated(zeros))
    assert "row 1, small beside others" in found(values, other).words


def test_numbers_beyond_float32_tell_nothing_and_raise_nothing() -> None:
    values = np.full((4, 400), 1e200)
    values[1] = 1e-4
    assert found(values, values).passed


TORCH = torch.nn.Identity, torch.tensor, torch_trace
PADDLE = paddle.nn.Identity, paddle.to_tensor, paddle_trace


def record(folder: Path, name: str, values: np.ndarray, framework: Any) -> RecordedTrace:
    make_model, make, trace = framework
    layer = make_model()
    with trace.record_trace(layer, folder / name, mode="sketch", backward=False):
        layer(make(values))
    return load_trace(folder / name)


@pytest.mark.parametrize("frameworks", [(TORCH, PADDLE), (PADDLE, TORCH)])
def test_two_recorded_sketches(tmp_path: Path, frameworks: Any) -> None:
    values = small_row((4, 400), "float32")
    first = record(tmp_path, "a", values, frameworks[0])
    assert compare_traces(first, record(tmp_path, "b", values, frameworks[1])).passed
    result = compare_traces(first, record(tmp_path, "c", negated(values), frameworks[1]))
    assert not result.passed and "row 1, small beside others" in result.headline


def test_a_file_without_rows_is_read_and_compared_as_before(tmp_path: Path) -> None:
    values = small_row((4, 400), "float32")
    old = [replace(kept(one), rows=None) for one in (values, negated(values))]
    for name, one in zip("ab", old, strict=True):
        save_trace(tmp_path / name, RecordedTrace("PyTorch", "sketch", (one,)))
    first, second = (load_trace(tmp_path / name) for name in "ab")
    assert first.tensors[0].rows is None and compare_traces(first, second).passed
    new = RecordedTrace("PyTorch", "sketch", (kept(values),))
    assert compare_traces(new, second).passed and compare_traces(first, new).passed


@pytest.mark.parametrize("transposed", [False, True])
def test_rows_are_saved_and_read_and_must_fit(tmp_path: Path, transposed: bool) -> None:
    values = SOURCE.standard_normal((40, 50))
    vector, rows = sketch_with_rows(values.T if transposed else values)
    one = replace(tensor(values), whole=False, values=vector, rows=rows, transposed=transposed)
    save_trace(tmp_path / "a", RecordedTrace("PyTorch", "sketch", (one,)))
    np.testing.assert_array_equal(load_trace(tmp_path / "a").tensors[0].rows, rows)
    assert rows is not None
    for bad in (rows[:-1], rows.astype("float64"), rows.reshape(-1), rows.view("i4")):
        save_trace(tmp_path / "a", RecordedTrace("PyTorch", "sketch", (replace(one, rows=bad),)))
        with pytest.raises(ReprodError, match="entry 0: its rows are not those of its shape"):
            load_trace(tmp_path / "a")
    save_trace(
        tmp_path / "a", RecordedTrace("PyTorch", "whole", (replace(tensor(values), rows=rows),))
    )
    with pytest.raises(ReprodError, match="entry 0: its rows are not those of its shape"):
        load_trace(tmp_path / "a")
