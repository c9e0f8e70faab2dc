"""Small files that ask for much: refused by what they declare against what they hold, before it is read."""

import io
import json
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

from reprod_align.conversion.choose import choose_state
from reprod_align.errors import WeightsError
from reprod_align.records.pickled import Refused
from reprod_align.weights.reading import open_checkpoint
from reprod_align.weights.stored import Span, Stored, find_fault, name_all

import numpy as np
import paddle
import pytest
import torch


def refused(path: Path) -> str:
    """Return the line about a file, which took little memory to find out."""
    tracemalloc.start()
    try:
        with pytest.raises(WeightsError) as caught:
            open_checkpoint(path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("zipped", [True, False])
def test_many_views_of_a_few_numbers(tmp_path: Path, zipped: bool) -> None:
    """Each is allowed by itself; together they would unfold to 4 GB."""
    one = torch.ones(1, dtype=torch.complex128)
    state: dict[Any, Any] = {f"w{n}": one.expand(2**20 - n) for n in range(256)}
    torch.save(state, tmp_path / "a.bin", _use_new_zipfile_serialization=zipped)
    assert "bytes of tensors, far more than its size explains" in refused(tmp_path / "a.bin")
    torch.save({"w": one.expand(2**20)}, tmp_path / "b.bin")
    assert open_checkpoint(tmp_path / "b.bin").tensors["w"].size == 2**20


def test_views_in_dicts_and_lists_count_too(tmp_path: Path) -> None:
    one = torch.ones(1, dtype=torch.complex128)
    inner: Any = {"state": [{n: one.expand(2**20 - n)} for n in range(256)]}
    torch.save({"w": torch.ones(2), "optimizer": inner}, tmp_path / "a.bin")
    assert "far more than its size explains" in refused(tmp_path / "a.bin")


def test_tied_tensors_count_once(tmp_path: Path) -> None:
    large = torch.ones(2**20)
    torch.save({f"layer.{n}.weight": large for n in range(100)}, tmp_path / "a.bin")
    assert len(open_checkpoint(tmp_path / "a.bin").tensors) == 100


def recompressed(path: Path, *names: str) -> None:
    """Write the archive anew, the named entries compressed."""
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            kind = zipfile.ZIP_DEFLATED if name.endswith(names) else zipfile.ZIP_STORED
            archive.writestr(name, data, kind)


def test_compressed_entries(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for name, said in (("data.pkl", "a compressed "), ("byteorder", "a compressed "),
                       ("data/0", "no plain entry data/0")):  # fmt: skip
        torch.save({"w": torch.ones(3), "text": "a" * 2**20}, path)
        recompressed(path, name)
        assert said in refused(path)
    assert open_checkpoint(saved(path, {"w": torch.ones(3)})).tensors["w"].size == 3


def saved(path: Path, state: Any) -> Path:
    torch.save(state, path)
    return path


def test_a_size_that_lies(tmp_path: Path) -> None:
    """An entry that says it is larger than what is stored of it."""
    path = saved(tmp_path / "a.bin", {"w": torch.ones(3)})
    data = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entry = next(one for one in archive.infolist() if one.filename.endswith("data.pkl"))
    size = entry.file_size.to_bytes(4, "little")
    at = data.rindex(size + len(entry.filename).to_bytes(2, "little"))
    path.write_bytes(data[:at] + (2**30).to_bytes(4, "little") + data[at + 4 :])
    assert "compressed" in refused(path)


def test_keys_that_read_alike(tmp_path: Path) -> None:
    state: Any = {"1": torch.ones(2), 1: torch.zeros(2)}
    assert "two of its keys read 1" in refused(saved(tmp_path / "a.bin", state))
    both: Any = {"1": np.ones(2, np.float32), 1: np.zeros(2, np.float32)}
    paddle.save(both, str(tmp_path / "a.pdparams"))
    assert "two of its keys read 1" in refused(tmp_path / "a.pdparams")
    with pytest.raises(WeightsError, match="optimizer: two of its keys"):
        choose_state({"optimizer": state}, ["w"])
    assert name_all({1: 2, "a": 3}, "x") == {"1": 2, "a": 3}


def test_a_name_twice_in_a_header(tmp_path: Path) -> None:
    entry = json.dumps({"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})
    header = f'{{"w": {entry}, "w": {entry}}}'.encode()
    (tmp_path / "a").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    assert "an object has the name 'w' twice" in refused(tmp_path / "a")


def test_a_name_too_long_for_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.index.json"
    path.write_text(json.dumps({"weight_map": {"w": "a" * 5000}}))
    assert "a.index.json" in refused(path)


def test_more_axes_than_an_array_has(tmp_path: Path) -> None:
    span = Span(tmp_path, 0, 8)
    assert find_fault(Stored("float32", (1,) * 65, span)) == "it has 65 axes"
    assert find_fault(Stored("float32", (2**62,) * 10**6, span)) == "it has 1000000 axes"
    assert find_fault(Stored("float32", (1,) * 64, span)) == ""
    assert find_fault(Stored("float32", (1,), span, strides=(1, 1))) != ""


def test_a_storage_with_an_endless_name(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.bin", {"w": torch.ones(3)})
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            key = b"X\x01\x00\x00\x000"
            assert not name.endswith("data.pkl") or key in data
            archive.writestr(name, data.replace(key, b"X\xc8\x00\x00\x00" + b"0" * 200))
    assert "names a storage with 200 letters" in refused(path)
    assert issubclass(Refused, Exception)


CUT = "UnpackBigParamInfor@@"
SLICES = {"w@@.0": np.arange(6.0), "w@@.1": np.arange(4.0)}
NAMES = list(SLICES)


def cut(path: Path, info: Any, **more: Any) -> Path:
    """Write what paddle.save writes of a tensor of more than 1 GiB, with protocol 2."""
    path.write_bytes(pickle.dumps({**SLICES, **more, CUT: info}, 2))
    return path


def test_a_slice_named_again_and_again_takes_no_memory(tmp_path: Path) -> None:
    """Two hundred tensors of two hundred slices, which are all the same megabyte."""
    part, path = np.zeros(2**17), tmp_path / "a.pdparams"
    for info in (
        {"w": {"OriginShape": (200, 2**17), "slices": ["big"] * 200}},
        {f"w{n}": {"OriginShape": (1, 2**17), "slices": ["big"]} for n in range(200)},
    ):
        assert "needs the slice big, which is taken" in refused(cut(path, info, big=part))
    shared = [f"s{n}" for n in range(20_000)]  # one list, forty times
    info = {f"w{n}": {"OriginShape": (20_000,), "slices": shared} for n in range(40)}
    rows = {name: part[:1] for name in shared[:50]}
    assert "needs the slice s50, which is taken, missing" in refused(cut(path, info, **rows))


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"w": {"OriginShape": (-2, -5), "slices": NAMES}}, "are not natural numbers"),
        ({"w": {"OriginShape": (2.0, 5.0), "slices": NAMES}}, "are not natural numbers"),
        ({"w": {"OriginShape": (float("nan"),), "slices": NAMES}}, "are not natural numbers"),
        ({"w": {"OriginShape": (True, 10), "slices": NAMES}}, "are not natural numbers"),
        ({"w": {"OriginShape": ((10,),), "slices": NAMES}}, "are not natural numbers"),
        ({"w": {"OriginShape": (2**63, 2**63), "slices": NAMES}}, "are not natural numbers"),
        ({"w": {"OriginShape": (0, 2**62, 2**62), "slices": NAMES}}, "beyond any array's"),
        ({"w": {"OriginShape": (10**100000,), "slices": NAMES}}, "are not natural numbers"),
        ({"w": {"OriginShape": (1,) * 65 + (10,), "slices": NAMES}}, "it has 66 axes"),
        ({"w": {"OriginShape": (3, 3), "slices": NAMES}}, "(3, 3) is not that of 10 elements"),
        ({"w": {"OriginShape": (3, 5), "slices": NAMES}}, "it ends beyond its storage"),
        ({"w": {"OriginShape": (), "slices": NAMES}}, "() is not that of 10 elements"),
        ({"w": {"OriginShape": (2, 5), "slices": [*NAMES, "w@@.2"]}}, "needs the slice w@@.2"),
        ({"w": {"OriginShape": (2, 6), "slices": [*NAMES, "w@@.0"]}}, "the slice w@@.0, which is"),
        ({"w": {"OriginShape": (2, 5), "slices": [*NAMES, ["a"]]}}, "needs the slice ['a']"),
        ({"w": {"OriginShape": (2, 5), "slices": [*NAMES, CUT]}}, f"needs the slice {CUT}"),
        ({"w": {"OriginShape": (2, 5), "slices": [*NAMES, "text"]}}, "needs the slice text"),
        ({"w": {"OriginShape": (2, 5), "slices": [*NAMES, "small"]}}, "float64 and of float32"),
        ({"w": {"OriginShape": (2, 5), "slices": [*NAMES, "square"]}}, "needs the slice square"),
        ({"w": {"OriginShape": (2, 5), "slices": []}}, "are not listed"),
        ({"w": {"OriginShape": 10, "slices": NAMES}}, "are not listed"),
        ({"w": {"slices": NAMES}}, "are not listed"),
        ({"w": None}, "are not listed"),
        ({"small": {"OriginShape": (2, 5), "slices": NAMES}}, "both whole and in slices"),
        ([1], "is a list, not a dict"),
    ],
)  # fmt: skip
def test_slices_that_do_not_make_a_tensor(tmp_path: Path, info: Any, said: str) -> None:
    more = {"small": np.ones(1, np.float32), "square": np.ones((1, 1)), "text": "a\x1b[31m"}
    assert said in refused(cut(tmp_path / "a.pdparams", info, **more))


def test_slices_are_read_where_they_lie(tmp_path: Path) -> None:
    path = cut(tmp_path / "a", {"w": {"OriginShape": (2, 5), "slices": NAMES}})
    stored, whole = open_checkpoint(path).tensors["w"], np.concatenate([*SLICES.values()])
    assert stored.read().tobytes() == stored.map().tobytes() == whole.tobytes()
    room = np.empty(stored.span, np.uint8)
    assert (
        np.array_equal(stored.read(room), whole.reshape(2, 5)) and room.tobytes() == whole.tobytes()
    )
    for start in range(0, 81, 8):
        for end in range(start, 81, 8):
            found = stored.source.read(start, end - start)
            assert found.tobytes() == whole.tobytes()[start:end]


@pytest.mark.parametrize("kind", [dict, list])
def test_dicts_that_hold_one_another_twice(tmp_path: Path, kind: Any) -> None:
    """Seventeen small dicts, which a walk through all of it would meet a hundred thousand times."""
    inner: Any = {"w": np.ones(1)}
    for _ in range(17):
        inner = {"a": inner, "b": inner} if kind is dict else [inner, inner]
    path = tmp_path / "a.pdparams"
    path.write_bytes(pickle.dumps({"inner": inner}, 2))
    assert "repeats its dicts and lists" in refused(path)
    once = {"inner": {"w": np.ones(1)}}
    path.write_bytes(pickle.dumps({"model": once, "ema": once, "w": np.ones(1)}, 2))
    content = open_checkpoint(path).content
    assert content["model"] == content["ema"]
