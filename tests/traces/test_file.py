"""Traces on disk: read without trust, whole or not at all."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pipeline  # noqa: F401
from reprod_align.backends.torch import trace as torch_trace
from reprod_align.commands import main
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.traces import RecordedTrace, _digest, load_trace, save_trace
from reprod_align.traces.sketch import sketch
from tests.traces.made import tensor, trace

import numpy as np
import pytest
import torch


@pytest.mark.parametrize(
    "dtype", ["bool", "int64", "uint8", "float16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
def test_round_trip(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(math.prod(shape)).reshape(shape) * (1 + 2j)).real.astype(dtype)
    if dtype.startswith("complex"):
        values = (values * (1 - 2j)).astype(dtype)
    written = trace(values, np.asfortranarray(values), phase="gradient", leaf="[0].logits", call=3)
    save_trace(tmp_path / "a.trace", written)
    read = load_trace(tmp_path / "a.trace")
    assert (read.framework, read.mode) == ("PyTorch", "whole")
    for before, after in zip(written.tensors, read.tensors, strict=True):
        assert after.values.dtype == before.values.dtype
        np.testing.assert_array_equal(after.values, before.values)
        assert replace(before, values=0) == replace(after, values=0)  # type: ignore[arg-type]


def test_the_file_is_plain_safetensors(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    shared = np.arange(6.0)
    save_trace(tmp_path / "a.trace", trace(shared, shared, np.ones(2, np.float32)))
    arrays = load_file(tmp_path / "a.trace")
    assert {name: array.shape for name, array in arrays.items()} == {"0": (6,), "1": (2,)}


def test_an_empty_trace_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(b"old")
    with pytest.raises(ReprodError, match="empty"):
        save_trace(path, RecordedTrace("PyTorch", "whole", ()))
    model = torch.nn.Linear(2, 2)
    with pytest.raises(ReprodError, match="nothing was recorded"):
        with torch_trace.record_trace(model, path):
            pass
    with pytest.raises(RuntimeError):
        with torch_trace.record_trace(model, path):
            model(torch.ones(1, 3))
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.trace"]


def packed(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def described(content: object) -> bytes:
    text = content if isinstance(content, str) else json.dumps(content)
    one = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    metadata = {
        "reprod_align.trace": text,
        "reprod_align.trace.sha256": _digest(text, {"0": np.zeros(1)}),
    }
    return packed({"__metadata__": metadata, "0": one}, bytes(8))


ENTRY = {
    "module": "a", "call": 0, "order": 0, "leaf": "", "phase": "output", "dtype": "float64",
    "shape": [1], "whole": True, "transposed": False, "passed_on": False, "data": 0,
}  # fmt: skip
CONTENT = {"version": 3, "framework": "PyTorch", "mode": "whole", "tensors": [ENTRY]}


def with_entry(**changes: object) -> bytes:
    return described({**CONTENT, "tensors": [{**ENTRY, **changes}]})


F64 = {"dtype": "F64", "shape": [1 << 40], "data_offsets": [0, 1 << 43]}
HOSTILE = {
    "empty": b"",
    "short": b"\x01",
    "header longer than the file": packed({}, length=1 << 20),
    "header of 2^63 bytes": packed({}, length=1 << 63),
    "no JSON": packed(b"\x80\x04cos\nsystem\n"),
    "a pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93.",
    "declares terabytes": packed({"0": F64}),
    "offsets past the end": packed({"0": {**F64, "shape": [4], "data_offsets": [0, 32]}}, bytes(8)),
    "shape against offsets": packed({"0": {**F64, "shape": [3], "data_offsets": [0, 8]}}, bytes(8)),
    "foreign": packed({"__metadata__": {"format": "pt"}}),
    "metadata no JSON": described("__import__('os').system('true')"),
    "deep metadata": described("[" * 100_000),
    "metadata a list": described([1]),
    "another version": described({**CONTENT, "version": 4}),
    "an older version": described({**CONTENT, "version": 2}),
    "its own tolerance": with_entry(dtype="bfloat16"),
    "version true": described({**CONTENT, "version": "1"}),
    "no framework": described({**CONTENT, "framework": None}),
    "no tensors": described({**CONTENT, "tensors": []}),
    "tensors no list": described({**CONTENT, "tensors": {"a": 1}}),
    "entry no object": described({**CONTENT, "tensors": [7]}),
    "entry lacks a field": described({**CONTENT, "tensors": [{"module": "a"}]}),
    "entry has one more": with_entry(code="import os"),
    "module a number": with_entry(module=3),
    "order a text": with_entry(order="0"),
    "call true": with_entry(call=True),
    "huge integer": described(json.dumps(CONTENT).replace('"order": 0', '"order": ' + "9" * 5000)),
    "shape negative": with_entry(shape=[-1]),
    "shape huge": with_entry(shape=[1 << 40, 1 << 40], whole=False),
    "shape a text": with_entry(shape="1"),
    "shape of another tensor": with_entry(shape=[2]),
    "dtype of another tensor": with_entry(dtype="float32"),
    "dtype unknown": with_entry(dtype="object"),
    "phase unknown": with_entry(phase="weights"),
    "data missing": with_entry(data="../../etc/passwd"),
    "no sketch": with_entry(whole=False),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_line(tmp_path: Path, name: str, capsys: Any) -> None:
    path = tmp_path / "bad.trace"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ReprodError) as caught:
        load_trace(path)
    assert "bad.trace" in str(caught.value) and "\n" not in str(caught.value)
    assert main(["diff", str(path), str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1


def test_the_sound_twin_of_the_hostile_files_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_bytes(with_entry())
    assert load_trace(tmp_path / "a.trace").tensors[0].values.tolist() == [0.0]


def test_a_file_cut_anywhere_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    save_trace(path, trace(np.arange(5.0), np.arange(3)))
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(ReprodError, match="a.trace"):
            load_trace(path)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="missing"):
        load_trace(tmp_path / "none")
    with pytest.raises(ReprodError, match="not a file"):
        load_trace(tmp_path)


def test_an_older_file_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_bytes(described({**CONTENT, "version": 2}))
    with pytest.raises(ReprodError, match="format version 3 expected, got 2: record it again"):
        load_trace(tmp_path / "a.trace")


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Of the names, the shapes, the numbers and the checksum itself: all that a verdict reads."""
    path, values = tmp_path / "a.trace", np.random.default_rng(0).standard_normal(5)
    save_trace(path, trace(values, np.arange(3)))
    whole = path.read_bytes()
    for bit in range(64, 8 * len(whole)):  # behind the length of the header
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = load_trace(path)
        except ReprodError:
            continue
        assert chr(damaged[bit // 8]).isspace()  # white space between the entries of the header
        assert found.tensors[0].values.tolist() == values.tolist()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("claimed", "stored"), [("bfloat16", "float32"), ("float32", "float64"), ("float16", "float32")]
)
def test_a_trace_does_not_choose_its_tolerance(
    tmp_path: Path, whole: bool, claimed: str, stored: str
) -> None:
    """A coarser dtype has a wider tolerance: what claims it must hold its numbers."""
    values = np.random.default_rng(0).standard_normal((40, 40)).astype(stored)
    coarse = values.astype("float16").astype(stored) if claimed != "bfloat16" else np.trunc(values)
    for array, sound in ((values, False), (coarse, True)):
        kept = array if whole else sketch(array)
        if whole and claimed != "bfloat16":
            kept = array.astype(claimed) if sound else array
        save_trace(tmp_path / "a.trace", trace(kept, dtype=claimed, shape=(40, 40), whole=whole))
        if sound:
            assert load_trace(tmp_path / "a.trace").tensors[0].dtype == claimed
        else:
            with pytest.raises(ReprodError, match=f"finer than {claimed}|{claimed} of shape"):
                load_trace(tmp_path / "a.trace")


def test_numbers_that_are_named_again_and_again(tmp_path: Path) -> None:
    values = np.ones(2**17)
    for count, fits in ((200, True), (400, False)):
        named = [tensor(values, order=n, call=n) for n in range(count)]
        save_trace(tmp_path / "a", RecordedTrace("PyTorch", "whole", tuple(named)))
        if fits:
            assert len(load_trace(tmp_path / "a").tensors) == count
        else:
            with pytest.raises(ReprodError, match="name the same numbers more often than nested"):
                load_trace(tmp_path / "a")
