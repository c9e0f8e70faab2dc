"""Arrays of a trace: copied, equal ones kept once, large ones in files; and sent through a wire."""

import tempfile
from multiprocessing import Pipe
from threading import Thread

from reprod_align.errors import ReprodError
from reprod_align.model.store import Shelf, keep_copy, limit_memory, unload
from reprod_align.pair.wire import Wire

import numpy as np
import pytest

ZEROS = np.zeros((100, 100))
LARGE = np.random.default_rng(0).standard_normal((700, 700)) + 1j  # 7.8 MB: lies in a file


def test_equal_arrays_are_kept_once_and_others_apart() -> None:
    shelf, changed, negative = Shelf(), ZEROS.copy(), ZEROS.copy()
    changed[3, 3], negative[50, 50] = 1.0, -0.0
    first = shelf.keep(ZEROS)
    assert shelf.keep(ZEROS.copy()) is first
    for other in (changed, negative, ZEROS.astype("f4"), ZEROS.reshape(50, 200)):
        assert shelf.keep(other) is not first
    missing = np.full((100, 100), np.nan)
    assert shelf.keep(missing) is shelf.keep(missing.copy())


def test_what_is_kept_is_a_copy() -> None:
    array = np.ones((100, 100))
    copy = Shelf().keep(array)
    array[:] = 5
    assert (copy == 1).all()


def test_transposed_arrays_keep_their_order() -> None:
    turned = np.arange(10000.0).reshape(100, 100).T
    shelf = Shelf()
    assert np.array_equal(shelf.keep(turned), turned)
    assert shelf.keep(np.ascontiguousarray(turned)) is shelf.keep(turned)


@pytest.mark.parametrize(
    "array", [LARGE, LARGE.T, LARGE[::2, ::3]], ids=["plain", "turned", "strided"]
)
def test_a_large_array_comes_back_from_its_file(array) -> None:
    with limit_memory(1) as store:
        copy = keep_copy(array)
    assert store.written == array.nbytes
    unload()
    assert copy.dtype == array.dtype and np.array_equal(copy, array)


def test_without_room_on_the_disk_the_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with limit_memory(1), pytest.raises(ReprodError, match="no room to keep .* allow more memory"):
        keep_copy(LARGE)
    with limit_memory(None):
        assert np.array_equal(keep_copy(LARGE), LARGE)


def test_arrays_of_every_kind_pass_through_a_wire() -> None:
    sent = {
        "twice": [LARGE, LARGE],
        "turned": LARGE.T,
        "empty": np.zeros((0, 3)),
        "scalar": np.array(1.5),
        "reversed": np.arange(4)[::-1],
        "flags": np.ones((500, 500), bool),
        "words": np.array(["ab", "c"]),
    }
    ends = [Wire(end) for end in Pipe()]
    sender = Thread(target=ends[0].send, args=(sent,))
    sender.start()
    got = ends[1].receive()
    sender.join()
    assert np.array_equal(got.pop("twice")[1], LARGE)
    for name, array in got.items():
        assert array.dtype == sent[name].dtype and np.array_equal(array, sent[name]), name
