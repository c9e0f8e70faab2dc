"""What is kept where: in memory while there is room, in files beyond, zero rows nowhere."""

import gc
import mmap
from pathlib import Path

from reprod_align.model.store import Shelf, keep_copy, keep_own, limit_memory

import numpy as np
import pytest

LARGE = np.random.default_rng(0).standard_normal((500, 600))  # 2.4 MB
TABLE = np.zeros((4096, 64))  # 2 MB
TABLE[[3, 700]] = 1.5


def test_nothing_is_written_while_memory_is_free() -> None:
    with limit_memory(None) as store:
        kept = [keep_copy(LARGE), keep_own(LARGE + 1), Shelf().keep(LARGE)]
        assert store.written == 0 and store.kept == store.most == 3 * LARGE.nbytes
        del kept
        gc.collect()
        assert store.kept == 0 and store.most == 3 * LARGE.nbytes


def test_beyond_the_limit_copies_go_to_files_and_read_the_same() -> None:
    with limit_memory(1) as store:
        kept = [keep_copy(LARGE), keep_own(LARGE + 1), Shelf().keep(LARGE.T)]
        assert store.written == 3 * LARGE.nbytes and store.kept == 0
    for array, expected in zip(kept, (LARGE, LARGE + 1, LARGE.T), strict=True):
        assert np.array_equal(array, expected)


def test_what_a_view_still_shows_counts() -> None:
    with limit_memory(None) as store:
        part = keep_copy(LARGE)[:10]
        gc.collect()
        assert store.kept == LARGE.nbytes and np.array_equal(part, LARGE[:10])


def test_rows_of_zeros_take_no_memory() -> None:
    with limit_memory(None) as store:
        thin = keep_own(TABLE.copy())
        assert np.array_equal(thin, TABLE) and store.kept == 2 * TABLE[0].nbytes
        full = TABLE + 1
        assert keep_own(full) is full and store.kept == 2 * TABLE[0].nbytes + TABLE.nbytes


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells")
def test_rows_of_zeros_take_no_memory_when_they_are_read() -> None:
    def read_resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    table = np.zeros((2**14, 512))
    table[7] = 1
    thin = keep_own(table)
    del table
    before = read_resident()
    assert thin.sum() == 512 and read_resident() < before + thin.nbytes // 4


def test_limits_within_limits_end_with_their_blocks() -> None:
    with limit_memory(None) as outer:
        with limit_memory(1) as inner:
            keep_copy(LARGE)
        kept = keep_copy(LARGE)
        assert inner.written == kept.nbytes and outer.written == 0
