"""Copies of arrays, in memory or in files; what the system says of memory; tensors as they came."""

import errno
import gc
import mmap
import os
from pathlib import Path
from typing import Any

from reprod_align import align
from reprod_align.errors import ReprodError
from reprod_align.model import store
from reprod_align.model.store import (
    OriginalValues,
    Shelf,
    keep_copy,
    keep_own,
    limit_memory,
    read_narrow,
)
from reprod_align.pair import paddle_side, torch_side
from tests.conftest import run_warm_python

import numpy as np
import paddle
import pytest
import torch

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


class _Disk:
    """A temporary file on a disk with room for so many bytes, which takes `most` at a time."""

    def __init__(self, room: int, most: int, raises: bool = True) -> None:
        self.file = TEMPORARY_FILE(buffering=0)
        self.room, self.most, self.raises = room, most, raises

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def write(self, data: Any) -> int:
        taken = min(len(data), self.room, self.most)
        if not taken and self.raises:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= taken
        return self.file.write(data[:taken]) if taken else 0

    def fileno(self) -> int:
        return int(self.file.fileno())


TEMPORARY_FILE = store.tempfile.TemporaryFile


def use_disk(monkeypatch: pytest.MonkeyPatch, *words: int, raises: bool = True) -> None:
    monkeypatch.setattr(
        store.tempfile, "TemporaryFile", lambda buffering: _Disk(*words, raises=raises)
    )


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("room", [0, 10**6])
@pytest.mark.parametrize("keep", [keep_copy, keep_own, Shelf().keep])
def test_a_full_disk_is_one_line_and_the_limit_holds(
    monkeypatch: pytest.MonkeyPatch, keep: Any, room: int, raises: bool
) -> None:
    use_disk(monkeypatch, room, 2**16, raises=raises)
    with limit_memory(1) as counted:
        with pytest.raises(ReprodError, match="^no room to keep 2,400,000 bytes") as caught:
            keep(LARGE)
        assert "No space left on device" in str(caught.value) and counted.kept == 0


def test_a_disk_that_takes_a_little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    use_disk(monkeypatch, 2**30, 4099)
    with limit_memory(1) as counted:
        assert np.array_equal(keep_copy(LARGE), LARGE) and counted.written == LARGE.nbytes


@pytest.mark.parametrize("room", [n * 2**21 for n in (0, 1, 4, 8, 10)])
def test_a_full_disk_is_no_fault_of_the_port(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Wherever it fills up: in Paddle's backward pass too, which changes the class of an error."""
    left = [room]

    class Shared(_Disk):
        def write(self, data: Any) -> int:
            self.room = left[0]
            try:
                return super().write(data)
            finally:
                left[0] = self.room

    monkeypatch.setattr(store.tempfile, "TemporaryFile", lambda buffering: Shared(0, 2**30))
    ours, port = torch.nn.Linear(512, 512), paddle.nn.Linear(512, 512)
    with pytest.raises(ReprodError, match="^no room to keep") as caught:
        align(ours, port, {"input": np.ones((512, 512))}, memory=1)
    assert type(caught.value) is ReprodError


def test_a_small_disk_is_one_line_of_the_command(tmp_path: Path) -> None:
    """The system's own limit on the size of files stands for it."""
    code = """
import resource, signal
import numpy as np
from reprod_align.base.console import run_command
from reprod_align.model.store import keep_copy, limit_memory
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))
with limit_memory(1):
    raise SystemExit(run_command("keep", lambda: keep_copy(np.ones(2**18)) and 0))
"""
    finished = run_warm_python("-c", code, cwd=tmp_path)
    assert finished.returncode == 2 and finished.stderr.startswith("keep: no room to keep")
    assert finished.stderr.count("\n") == 1 and "File too large" in finished.stderr


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_a_process_takes_memory_and_more_is_free() -> None:
    assert 0 < store.read_own() < store.read_own() + store.read_free()


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory__max": "1000\n", "memory__current": "700\n"}, 300),
        ({"memory__max": "1000", "memory__current": "700", "memory__stat": "inactive_file 200\n"}, 500),
        ({"memory__max": "1000", "memory__current": "900", "memory__stat": "active_file 200\n"}, 300),
        ({"memory__max": "max\n", "memory__current": "700\n"}, 800),
        ({"memory__limit_in_bytes": "500", "memory__usage_in_bytes": "600"}, 0),
        ({}, 800),
    ],
)  # fmt: skip
def test_a_control_group_may_leave_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], left: int
) -> None:
    monkeypatch.setattr(store, "_GROUPS", tmp_path)
    monkeypatch.setattr(store, "_find_own_groups", lambda: ())
    monkeypatch.setattr(store, "_read_free_of_machine", lambda: 800)
    write(tmp_path, **files)
    assert store.read_free() == left


def test_freed_memory_is_kept_in_the_block_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, ...]] = []

    class C:
        def mallopt(self, *given: int) -> None:
            calls.append(given)

        def malloc_trim(self, *given: int) -> None:
            calls.append(given)

    monkeypatch.setattr(store, "_find_c", C)
    with store.reuse_freed():
        assert (store._TRIM_THRESHOLD, store._MOST) in calls
        calls.clear()
    assert calls == [(store._MMAP_THRESHOLD, 2**25), (store._TRIM_THRESHOLD, 2**26), (0,)]


@pytest.mark.parametrize("functions", [None, object()])
def test_another_allocator_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, functions: object
) -> None:
    monkeypatch.setattr(store, "_find_c", lambda: functions)
    with store.reuse_freed():
        store.give_back_freed()


@pytest.mark.parametrize(
    "side", [torch_side(torch.nn.Linear(3, 2)), paddle_side(paddle.nn.Linear(3, 2))]
)
def test_what_came_is_read_in_the_dtype_of_work_whatever_was_loaded_since(side) -> None:
    came = side.values()
    with side.working("float64"):
        given = side.read_given()
        side.load({name: array + 1 for name, array in came.items()})
        assert list(given) == list(came) and len(given) == 2 and "weight" in given
        for name, array in given.items():
            assert array.dtype == "float64" and np.array_equal(array, came[name]), name


def test_whole_numbers_stay_and_complex_ones_widen() -> None:
    arrays = {"ids": np.arange(3), "turns": np.ones(2, np.complex64), "w": np.ones(2, np.float32)}
    given = OriginalValues(np.asarray, arrays, "float64")
    assert [array.dtype.name for array in given.values()] == ["int64", "complex128", "float64"]
    assert OriginalValues(np.asarray, arrays, None)["w"].dtype == "float32"


def test_what_came_is_read_in_its_own_dtype_for_a_copy_that_widens_it() -> None:
    given = OriginalValues(np.asarray, {"w": np.ones(2, np.float32)}, "float64")
    assert read_narrow(given)["w"].dtype == "float32" and given["w"].dtype == "float64"
    plain = {"w": np.ones(2)}
    assert read_narrow(plain) is plain
