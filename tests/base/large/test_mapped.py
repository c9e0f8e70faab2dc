"""Arrays in a mapped file: read as they are, whatever their layout; a file that changes is one error."""

import os
from pathlib import Path

from reprod_align.base import blocks
from reprod_align.base.blocks import (
    MappedFile,
    copy_array,
    find_file,
    map_file,
    read_both,
    read_span,
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
