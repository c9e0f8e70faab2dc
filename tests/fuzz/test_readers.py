"""Damaged files of every kind: one line each, nothing run, steps linear in the size, no false pass.

300 files of each kind in `make test`, 5,000 in `make suite`. A file is told by its seed: FAILED says which.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.records import load_record
from reprod_align.records.compare import STRICT, compare_records
from reprod_align.traces import load_trace
from reprod_align.traces.diff import compare_traces
from tests.fuzz.mutate import damage
from tests.fuzz.readers import KINDS
from tests.records.steps import count_steps

import numpy as np
import pytest

FEW, MANY = 300, 5000
COUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.longer)]
STEPS = 600  # lines of ours for each byte of a file, beside BASE: linear, whatever it asks for
BASE = 60_000
HARMFUL = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect",
           "os.remove", "os.rename", "os.mkdir", "os.rmdir", "shutil.rmtree", "ctypes.dlopen")  # fmt: skip

_heard: list[str] = []
_listening = False


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _listening and (event in HARMFUL or (event == "open" and _writes(arguments))):
        _heard.append(f"{event} {arguments!r:.200}")


def _writes(arguments: tuple[object, ...]) -> bool:
    mode = arguments[1] if len(arguments) > 1 else None
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


sys.addaudithook(_hear)  # it can't be taken off again, only told to sleep


@contextmanager
def nothing_run() -> Iterator[None]:
    """Assert that the block starts no program, changes no file and calls nobody."""
    global _listening
    _heard.clear()
    _listening = True
    try:
        yield
    finally:
        _listening = False
    assert _heard == []


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_read_or_is_one_line(tmp_path: Path, name: str, count: int) -> None:
    kind = KINDS[name]
    sound = kind.make(tmp_path)
    path = tmp_path / kind.name
    for data in sound:
        path.write_bytes(data)
        kind.read(path)
    outcomes = {"read": 0, "refused": 0}
    for seed in range(count):
        path.write_bytes(damage(sound, seed))
        with warnings.catch_warnings(), nothing_run():
            warnings.simplefilter("ignore")
            try:
                kind.read(path)
            except ReprodError as error:
                assert "\n" not in str(error), seed
                outcomes["refused"] += 1
            except Exception as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
            else:
                outcomes["read"] += 1
    assert outcomes["refused"] > count // 20, outcomes


@pytest.mark.parametrize("name", KINDS)
def test_steps_are_linear_in_a_damaged_file(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    sound = kind.make(tmp_path)
    path = tmp_path / kind.name
    for seed in range(20):
        path.write_bytes(damage(sound, seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps = count_steps(lambda: kind.read(path))
        assert steps <= BASE + STEPS * path.stat().st_size, seed


@pytest.mark.parametrize("count", COUNTS)
def test_a_damaged_record_that_passes_is_the_same(tmp_path: Path, count: int) -> None:
    sound = KINDS["record"].make(tmp_path)
    path = tmp_path / "a.npy"
    for number, data in enumerate(sound):
        path.write_bytes(data)
        whole = dict(load_record(path))
        for seed in range(count // len(sound)):
            path.write_bytes(damage([data], seed + number * count))
            try:
                found = dict(load_record(path))
            except ReprodError:
                continue
            if compare_records(whole, found, rule=STRICT).passed:
                assert_near(whole, found, seed)


def assert_near(whole: dict[str, np.ndarray], found: dict[str, np.ndarray], seed: int) -> None:
    """Assert by numpy's own means that two records agree."""
    assert whole.keys() == found.keys(), seed
    for key, array in whole.items():
        other = found[key]
        assert array.shape == other.shape and array.dtype.kind == other.dtype.kind, (seed, key)
        if array.dtype.kind in "fc":
            limit = 1e-9 * np.abs(array).max() + 2.3e-16
            assert np.abs(other.astype(complex) - array.astype(complex)).max() <= limit, (seed, key)
        else:
            assert (array == other).all(), (seed, key)


@pytest.mark.parametrize("count", COUNTS)
def test_a_damaged_trace_is_never_aligned(tmp_path: Path, count: int) -> None:
    """But where the damage is in white space: then its numbers are those that were written."""
    path = tmp_path / "a.trace"
    for number, data in enumerate(KINDS["trace"].make(tmp_path)):
        path.write_bytes(data)
        whole = load_trace(path)
        for seed in range(count // 2):
            path.write_bytes(damage([data], seed + number * count))
            try:
                found = load_trace(path)
            except ReprodError:
                continue
            for ours, theirs in zip(whole.tensors, found.tensors, strict=True):
                assert ours.values.tobytes() == theirs.values.tobytes(), seed
            assert compare_traces(whole, found).passed
