"""Arrays block by block: mapped files read as they are, sums as numpy forms them, matrices laid otherwise."""

import os
import threading
from itertools import permutations
from math import prod
from pathlib import Path

from reprod_align.base import blocks
from reprod_align.base.blocks import (
    MappedFile,
    add_up,
    borrow,
    copy_array,
    copy_tiles,
    cut,
    find_file,
    lay_dense,
    map_file,
    map_spans,
    read_both,
    read_span,
    transpose,
)
from reprod_align.base.difference import gap
from reprod_align.errors import ReprodError

import numpy as np
import pytest

NUMBERS = np.arange(6000, dtype=np.float32).reshape(60, 100)
LAYOUTS = {
    "C": lambda array: array,
    "transposed": lambda array: array.T,
    "strided": lambda array: array[:, ::3],
    "one row": lambda array: array[7],
    "no dimensions": lambda array: array[3, 3, ...],
}


def mapped(path: Path, array: np.ndarray = NUMBERS, offset: int = 3) -> np.ndarray:
    """Return an array of a file, in which it begins at a byte that is not a multiple of its items."""
    path.write_bytes(b"x" * offset + array.tobytes())
    file = map_file(path)
    return np.ndarray(array.shape, array.dtype, memoryview(file)[offset:])


@pytest.mark.parametrize("block", [1, 64, 2**16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read_as_it_is(
    layout: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: block)
    there, here = LAYOUTS[layout](mapped(tmp_path / "x")), LAYOUTS[layout](NUMBERS)
    assert isinstance(find_file(there), MappedFile) and find_file(here) is None
    read = [part.copy() for _, part, other in read_both(there, here) if (part == other).all()]
    np.testing.assert_array_equal(np.concatenate(read), here.ravel())
    assert gap(here, there).difference == 0
    copy = copy_array(there)
    assert copy.flags.writeable and copy.flags.aligned and find_file(copy) is None
    np.testing.assert_array_equal(copy, here)
    assert read_span(there, 0, 1).tolist() == [here.flat[0]]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", ["cut", "emptied", "written to"])
def test_a_file_that_was_written_to_is_one_error(change: str, layout: str, tmp_path: Path) -> None:
    array = LAYOUTS[layout](mapped(tmp_path / "x"))
    with open(tmp_path / "x", "r+b") as handle:
        if change == "written to":
            handle.write(b"other")
        else:
            handle.truncate(5 if change == "cut" else 0)
    os.utime(tmp_path / "x", ns=(1, 1))  # a clock may be too coarse to tell at once
    for use in (lambda: copy_array(array), lambda: list(read_both(array, array))):
        with pytest.raises(
            ReprodError, match="x was written to while it was in use: load it again"
        ):
            use()


def test_a_file_that_is_cut_while_it_is_read_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_count_block", lambda *_: 1000)
    array, read = mapped(tmp_path / "x"), []
    with pytest.raises(ReprodError, match="was written to"):
        for start, _ in blocks.read_blocks(array):
            read.append(start)
            os.truncate(tmp_path / "x", 8000)
    assert 0 < len(read) < 6


def test_a_file_that_is_replaced_stays_readable(tmp_path: Path) -> None:
    array = mapped(tmp_path / "x")
    (tmp_path / "y").write_bytes(b"short")
    os.replace(tmp_path / "y", tmp_path / "x")
    assert gap(NUMBERS, array).ok


def test_files_are_closed_when_nothing_uses_them(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    array = mapped(tmp_path / "x")
    assert len(os.listdir("/proc/self/fd")) > before
    del array
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_cannot_be_mapped_is_an_oserror(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("empty", "missing"):
        with pytest.raises(OSError):
            map_file(tmp_path / name)


RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("most", [1, 2, 7, 8, 9, 128, 1000])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 9, 17, 1000, 4099])
def test_the_parts_are_the_whole(size: int, most: int) -> None:
    spans = list(cut((5, 5 + size), most))
    assert [at for start, stop in spans for at in range(start, stop)] == [*range(5, 5 + size)]
    assert all(stop - start <= most for start, stop in spans)


@pytest.mark.parametrize("size", [1, 129, 1000, 4099, 100_003])
@pytest.mark.parametrize("most", [128, 200, 1000, 10**6])
def test_the_sum_of_the_parts_is_numpys_of_the_whole(size: int, most: int) -> None:
    numbers = RANDOM.standard_normal(size) * 10.0 ** RANDOM.integers(-9, 9, size)
    parts = [(stop - start, numbers[start:stop].sum()) for start, stop in cut((0, size), most)]
    assert add_up(parts) == numbers.sum()


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_results_come_in_order_on_any_number_of_cores(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "SPAN", 10)
    monkeypatch.setattr(blocks, "count_cores", lambda: cores)
    assert map_spans(lambda span: span, 95) == list(cut((0, 95), 10))


def test_an_error_in_a_thread_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SPAN", 10)
    monkeypatch.setattr(blocks, "count_cores", lambda: 2)

    def fail(span: blocks.Span) -> None:
        assert threading.current_thread() is not threading.main_thread()
        raise ValueError(span)

    with pytest.raises(ValueError, match="0, "):
        map_spans(fail, 95)


def test_what_is_borrowed_twice_at_once_is_two_arrays() -> None:
    with borrow(8, np.dtype(np.float64)) as one, borrow(3, np.dtype(">f4")) as other:
        one[:], other[:] = 1.0, 2.0
        assert not np.shares_memory(one, other)
        assert one.tolist() == [1.0] * 8 and other.tolist() == [2.0] * 3


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (257, 256), (600, 513), (0, 4), (5, 0)])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "c16"])
def test_it_is_numpys(shape: tuple[int, int], dtype: str):
    matrix = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    for given in (matrix, matrix.T, matrix[::-1]):
        made = transpose(given)
        assert made.flags.c_contiguous and made.dtype == given.dtype
        again = np.empty_like(made)
        copy_tiles(again, given.T)
        assert np.array_equal(again, made)
        assert made.shape == given.T.shape and np.array_equal(made, given.T)


@pytest.mark.parametrize("axes", list(permutations(range(3))))
@pytest.mark.parametrize(
    "shape", [(3, 260, 140), (2, 1, 40000), (300, 2, 200), (0, 300, 300), (4, 5, 6)]
)
def test_an_array_in_another_order_is_laid_dense(axes: tuple[int, ...], shape: tuple[int, ...]):
    array = np.arange(prod(shape)).reshape(shape).transpose(axes)
    repeated = np.broadcast_to(array[..., :1], array.shape)
    for given in (array, array[::-1], array[:, ::2], repeated, array[..., None]):
        made = lay_dense(given)
        assert made.flags.c_contiguous and made.dtype == given.dtype
        assert np.array_equal(made, given)


def test_a_dense_array_is_not_copied():
    array = np.ones((300, 300))
    assert lay_dense(array) is array
