"""Large records: read in parts, never whole; the verdict is that of the arrays in memory."""

import os
import pickle
import tracemalloc
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from reprod_align import compare_arrays, compare_records, load_record, save_record
from reprod_align import records as record_module
from reprod_align.base import blocks
from reprod_align.errors import RecordError, ReprodError
from reprod_align.records import unread_items
from reprod_align.records.safe_pickle import restricted_loads
from tests.records.npy import SAMPLE, assert_same, boxed, npy, refused

import numpy as np
import pytest

RANDOM = np.random.default_rng(0)
LARGE = {
    "single": RANDOM.standard_normal((300, 1001)).astype(np.float32),
    "double": RANDOM.standard_normal((300, 700)),
    "half": RANDOM.standard_normal(2**20).astype(np.float16),
    "complex": RANDOM.standard_normal((2, 2**17)).astype(np.complex64) * (1 + 2j),
    "tokens": RANDOM.integers(0, 9, 2**18),
    "big endian": RANDOM.standard_normal(2**18).astype(">f8"),
    "mask": RANDOM.integers(0, 2, 2**21).astype(bool),
    "words": np.repeat(np.array(["ab", "é"]), 2**18),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return save_record(tmp_path / "r.npy", LARGE | SAMPLE)


def test_arrays_come_back_as_they_were(path: Path) -> None:
    record = load_record(path)
    assert_same(record, LARGE | SAMPLE)
    assert all(array.flags.writeable and array.flags.aligned for array in record.values())
    record["single"][0, 0] = 7.0
    assert record["single"][0, 0] == record.get("single")[0, 0] == 7.0
    assert record.get("other") is None and record.pop("other", 1) == 1
    assert record.pop("double").flags.writeable and "double" not in record
    assert load_record(path)["single"][0, 0] != 7.0


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_fortran_order_and_every_protocol(protocol: int, tmp_path: Path) -> None:
    arrays = {"f": np.asfortranarray(LARGE["double"]), "c": LARGE["double"]}
    (tmp_path / "r.npy").write_bytes(npy(boxed(arrays, protocol)))
    assert compare_records(arrays, load_record(tmp_path / "r.npy")).passed
    assert_same(load_record(tmp_path / "r.npy"), arrays)


def test_a_record_can_be_saved_by_anyone(path: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "again.npy", load_record(path), allow_pickle=True)  # type: ignore[arg-type]
    assert_same(load_record(tmp_path / "again.npy"), LARGE | SAMPLE)
    save_record(tmp_path / "third.npy", load_record(path))
    assert (tmp_path / "third.npy").read_bytes() == path.read_bytes()


def test_comparing_takes_no_memory(path: Path) -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    ours, theirs = load_record(path), load_record(path)
    assert compare_records(ours, theirs).passed
    copied = sum(array.nbytes for name, array in LARGE.items() if name in ("mask", "words"))
    assert tracemalloc.get_traced_memory()[1] - before < 2 * copied + 24 * 2**20
    tracemalloc.stop()
    unread = [name for name, array in unread_items(ours) if not array.flags.writeable]
    assert unread == [name for name in LARGE if name not in ("mask", "words")]


def test_the_verdict_is_that_of_the_arrays_in_memory(tmp_path: Path) -> None:
    changed = {name: np.array(array) for name, array in LARGE.items()}
    changed["single"][200, 3] += 1.0
    changed["double"][5, 5] = np.nan
    changed["tokens"][77] += 1
    paths = [save_record(tmp_path / f"{n}.npy", one) for n, one in enumerate((LARGE, changed))]
    here = compare_records(LARGE, changed)
    there = compare_records(*(load_record(path) for path in paths))
    assert there.to_json() == here.to_json()
    assert [one.key for one in there.failures] == ["single", "double", "tokens"]


def test_what_the_user_changed_is_compared(path: Path) -> None:
    record = load_record(path)
    record["single"][0, 0] += 1.0
    assert compare_records(load_record(path), record).first_failure.key == "single"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: os.truncate(path, 100),
        lambda path: save_in_place(path, {"other": np.ones(3)}),
        lambda path: save_in_place(path, LARGE | {"tokens": LARGE["tokens"] + 1} | SAMPLE),
    ],
    ids=["truncated", "shorter", "as long"],
)
def test_a_file_written_in_place_since_is_one_line(
    change: Callable[[Path], None], path: Path
) -> None:
    record, other = load_record(path), load_record(path)
    change(path)
    os.utime(path, ns=(1, 1))
    for use in (lambda: compare_records(record, other), lambda: record["single"]):
        with pytest.raises(ReprodError, match="r.npy was written to while it was in use"):
            use()


def save_in_place(path: Path, record: dict[str, Any]) -> None:
    np.save(path, record, allow_pickle=True)  # type: ignore[arg-type]


def test_a_file_replaced_since_is_compared_as_it_was(path: Path) -> None:
    record = load_record(path)
    save_record(path, {"other": np.ones(3)})
    assert compare_records(LARGE | SAMPLE, record).passed


# hostile files


def test_truncation_of_a_large_file(path: Path) -> None:
    data = path.read_bytes()
    for size in (2**20, 2**20 + 77, len(data) // 2, len(data) - 1):
        assert "is truncated" in refused(path, data[:size])
    assert "after its end" in refused(path, data + b"\0")


def test_flipped_bytes_never_escape(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "_LARGE", 16)
    save_record(path, SAMPLE)
    data, random = path.read_bytes(), np.random.default_rng(3)
    for _ in range(1500):
        damaged = bytearray(data)
        damaged[random.integers(len(data))] ^= int(random.integers(1, 256))
        path.write_bytes(damaged)
        try:
            record = load_record(path)
            compare_records(record, record).summary()
            assert all(isinstance(array, np.ndarray) for array in record.values())
        except RecordError as error:
            assert "\n" not in str(error)


def test_what_stays_in_the_file_counts_as_memory() -> None:
    array = np.ones(2**17)
    many = pickle.dumps([array.copy() for _ in range(3)], protocol=4)
    assert len(restricted_loads(many, where="x", leave_from=1)) == 3  # type: ignore[arg-type]
    state, payload = array.__reduce__()[2], array.tobytes()  # type: ignore[index]
    assert payload in state
    shared = [Shared(payload) for _ in range(40)]  # 40 arrays on the same megabyte
    with pytest.raises(RecordError, match="asks for more memory than its size explains"):
        restricted_loads(pickle.dumps(shared, protocol=4), where="x", leave_from=1)


class Shared:
    """Pickles as an array on bytes that the pickle holds once."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def __reduce__(self) -> Any:
        build, arguments, state = np.ones(2**17).__reduce__()  # type: ignore[misc]
        return build, arguments, (*state[:-1], self.payload)


# neither blocks nor threads change a verdict


def random_pair(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    kinds = (np.float32, np.float64, np.float16, np.int32, np.int64, np.complex128, np.float32)
    shape = tuple(random.integers(1, [2, 40, 700][: random.integers(1, 4)]))
    expected = (random.standard_normal(shape) * 50).astype(random.choice(kinds))
    actual = (expected * (1 + random.choice([0, 1e-7, 1e-3], shape))).astype(expected.dtype)
    if random.integers(2) and expected.dtype.kind == "f":
        actual = actual.astype(random.choice([np.float32, np.float64]))
    if not random.integers(4) and expected.dtype.kind in "fc":
        actual.flat[random.integers(actual.size)] = random.choice([np.nan, np.inf])
    layouts = (np.ascontiguousarray, np.asfortranarray, lambda one: np.repeat(one, 2, -1)[..., ::2])
    return tuple(layouts[random.integers(3)](one) for one in (expected, actual))  # type: ignore[return-value]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("seed", range(60))
def test_blocks_and_threads_change_no_bit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = random_pair(np.random.default_rng(seed))
    sides = {"x": pair[0], "logits": pair[0]}, {"x": pair[1], "logits": pair[1]}
    whole, verdict = compare_arrays(*pair), compare_records(*sides).to_json()
    names = [field.name for field in fields(whole) if field.name != "_sides"]
    for block, span, cores in product((128, 1000), (128, 5000), (1, 3)):
        monkeypatch.setattr(blocks, "_count_block", lambda *_, block=block: block)
        monkeypatch.setattr(blocks, "SPAN", max(span, block))
        monkeypatch.setattr(blocks, "count_cores", lambda cores=cores: cores)
        parts = compare_arrays(*pair)
        for name in (*names, "ulp"):
            np.testing.assert_equal(getattr(parts, name), getattr(whole, name))
        assert compare_records(*sides).to_json() == verdict
    assert replace(whole) == whole
