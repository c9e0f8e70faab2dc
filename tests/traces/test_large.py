"""Large traces: compared from the file, in parts; the verdict is that of the tensors in memory."""

import os
import tracemalloc
from itertools import product
from pathlib import Path

from reprod_align.base import blocks
from reprod_align.base.blocks import find_file
from reprod_align.commands import main
from reprod_align.errors import ReprodError
from reprod_align.traces import load_trace, save_trace
from reprod_align.traces.diff import Floors, compare_traces, measure
from tests.traces.made import tensor, trace

import numpy as np
import pytest

RANDOM = np.random.default_rng(0)
LARGE = (
    RANDOM.standard_normal((1000, 300)).astype(np.float32),
    RANDOM.standard_normal((500, 301)),
    RANDOM.standard_normal((3, 2**18)).astype(np.float16),
    RANDOM.integers(0, 9, 2**18),
    RANDOM.standard_normal(2**18) * (1 + 2j),
    np.ones(3, np.float32),
)


def test_large_tensors_stay_in_the_file(tmp_path: Path) -> None:
    save_trace(tmp_path / "a", trace(*LARGE))
    tracemalloc.start()
    loaded = [load_trace(tmp_path / "a") for _ in range(2)]
    assert compare_traces(*loaded).passed
    assert tracemalloc.get_traced_memory()[1] < 24 * 2**20
    tracemalloc.stop()
    values = [one.values for one in loaded[0].tensors]
    assert [find_file(one) is not None for one in values] == [True] * 5 + [False]
    for read, written in zip(values, LARGE, strict=True):
        np.testing.assert_array_equal(read, written)


def test_one_element_is_found_and_a_transposed_tensor_compared(tmp_path: Path) -> None:
    save_trace(tmp_path / "a", trace(*LARGE))
    other = list(LARGE)
    other[1] = np.array(LARGE[1])
    other[1][400, 7] += 1e-3
    save_trace(tmp_path / "b", trace(*other))
    result = compare_traces(load_trace(tmp_path / "a"), load_trace(tmp_path / "b"))
    assert [row.module for row in result.rows if not row.passed] == ["layer.1"]
    assert "at (400, 7) expected" in result.rows[1].words
    save_trace(tmp_path / "c", trace(LARGE[0].T, transposed=True))
    save_trace(tmp_path / "d", trace(LARGE[0]))
    assert compare_traces(load_trace(tmp_path / "d"), load_trace(tmp_path / "c")).passed


@pytest.mark.parametrize("size", [0, 100, 2**20])
def test_a_trace_cut_after_loading_is_one_error(size: int, tmp_path: Path) -> None:
    save_trace(tmp_path / "a", trace(*LARGE))
    loaded = load_trace(tmp_path / "a")
    os.truncate(tmp_path / "a", size)
    with pytest.raises(ReprodError, match="a was written to while it was in use"):
        compare_traces(loaded, loaded)


@pytest.mark.parametrize("size", [0, 100, 2**20, 2**22])
def test_a_cut_trace_is_one_line(
    size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_trace(tmp_path / "a", trace(*LARGE))
    os.truncate(tmp_path / "a", size)
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "a")]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert ("is truncated" if size else "is damaged or not a .safetensors file") in said.err


@pytest.mark.parametrize("seed", range(30))
def test_blocks_and_threads_change_no_verdict(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    expected = random.standard_normal((60, 70)).astype(random.choice([np.float32, np.float64]))
    actual = expected * (1 + random.choice([0, 1e-12, 1e-7, 1e-3], expected.shape))
    if random.integers(2):
        for side in (expected, actual):
            side[3:5, 6] = random.choice([np.nan, np.inf, -1e9])
    pair = tensor(expected), tensor(actual.astype(expected.dtype))
    whole = measure(*pair, Floors(pair[:1]))
    for block, cores in product((7, 128, 1000), (1, 3)):
        monkeypatch.setattr(blocks, "_BLOCK", block)
        monkeypatch.setattr(blocks, "SPAN", 1000)
        monkeypatch.setattr(blocks, "count_cores", lambda cores=cores: cores)
        found = measure(*pair, Floors(pair[:1]))
        assert found.relative == pytest.approx(whole.relative, rel=1e-12)
        assert (found.passed, found.words, found.nans) == (whole.passed, whole.words, whole.nans)
