"""Checkpoints as the frameworks write them: names, dtypes, shapes and bits are theirs."""

import argparse
import io
import json
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

from reprod_align.conversion import choose_state
from reprod_align.errors import MissingInputError, WeightsError
from reprod_align.records.pickled import Refused
from reprod_align.weights.paddle_file import read_paddle_file
from reprod_align.weights.reading import open_checkpoint
from reprod_align.weights.safetensors_file import CODES, is_safetensors
from reprod_align.weights.stored import DTYPES, FileSpan, Stored, find_fault, name_all, widen
from reprod_align.weights.torch_file import STORAGES, CheckpointMachine, Opaque, is_torch_zip

import numpy as np
import paddle
import pytest
import torch
from safetensors.torch import save_file

TORCH = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
         "bfloat16", "float16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn",
         "float8_e5m2"]  # fmt: skip
PADDLE = ["bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float16", "float32",
          "float64", "complex64", "complex128"]  # fmt: skip


def torch_tensor(dtype: str) -> torch.Tensor:
    """Return (3, 4) of random bits; booleans are 0 and 1."""
    bits = np.random.default_rng(3).integers(0, 256, 3 * 4 * 16, dtype=np.uint8)
    bits = bits % 2 if dtype == "bool" else bits
    whole: torch.Tensor = torch.from_numpy(bits).view(getattr(torch, dtype))
    return whole[:12].reshape(3, 4)


def bits_of(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors"])
def test_every_dtype_of_torch_is_read_bit_for_bit(tmp_path: Path, dtype: str, form: str):
    tensor, path = torch_tensor(dtype), tmp_path / "w"
    if form == "safetensors":
        if dtype == "complex128":
            pytest.skip("the format lacks it")
        save_file({"w": tensor}, path, {"format": "pt"})
    else:
        torch.save({"w": tensor}, path, _use_new_zipfile_serialization=form == "zip")
    found = open_checkpoint(path)
    stored = found.tensors["w"]
    assert (stored.dtype, stored.shape, found.framework) == (dtype, (3, 4), "torch")
    assert stored.read().tobytes() == stored.map().tobytes() == bits_of(tensor)


@pytest.mark.parametrize("dtype", PADDLE)
@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_every_dtype_of_paddle_is_read_bit_for_bit(tmp_path: Path, dtype: str, protocol: int):
    path = tmp_path / "w.pdparams"
    tensor = paddle.to_tensor(np.arange(12.0).reshape(3, 4)).astype(dtype)
    paddle.save({"w": tensor, "nested": {"v": tensor}}, str(path), protocol=protocol)
    found = open_checkpoint(path)
    stored = found.tensors["w"]
    assert (stored.dtype, stored.shape, found.framework) == (dtype, (3, 4), "paddle")
    assert stored.read().tobytes() == stored.map().tobytes() == tensor.numpy().tobytes()
    inner = found.content["nested"]
    assert isinstance(inner, dict) and inner["v"].read().tobytes() == tensor.numpy().tobytes()


def test_what_protocol_2_cuts_is_whole_again(tmp_path: Path):
    whole = np.arange(10.0).reshape(2, 5)
    slices = {"w@@.0": whole.reshape(-1)[:6], "w@@.1": whole.reshape(-1)[6:]}
    info = {"w": {"OriginShape": (2, 5), "slices": ["w@@.0", "w@@.1"]}}
    (tmp_path / "w").write_bytes(pickle.dumps({**slices, "UnpackBigParamInfor@@": info}, 2))
    tensors = open_checkpoint(tmp_path / "w").tensors
    assert list(tensors) == ["w"]
    assert np.array_equal(tensors["w"].read(), whole)


@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_views_scalars_and_ties(tmp_path: Path, form: str):
    base = torch.arange(24.0).reshape(4, 6)
    state = {"t": base.t(), "row": base[1], "block": base[1:3, 2:4], "again": base.t(),
             "one": torch.tensor(5), "none": torch.zeros(0, 3), "wide": torch.ones(1).expand(7),
             "p": torch.nn.Parameter(base)}  # fmt: skip
    torch.save(state, tmp_path / "w", _use_new_zipfile_serialization=form == "zip")
    tensors = open_checkpoint(tmp_path / "w").tensors
    for name, tensor in state.items():
        assert tensors[name].shape == tuple(tensor.shape), name
        assert np.array_equal(tensors[name].read(), tensor.detach().numpy()), name
        assert np.array_equal(tensors[name].map(), tensor.detach().numpy()), name
    assert tensors["t"] == tensors["again"] != tensors["p"]


@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_what_a_training_script_saves_beside_the_weights_is_named_and_never_made(
    tmp_path: Path, form: str
):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
             "args": argparse.Namespace(lr=1.0, names={"a"}, path=Path("x")),
             "rng": np.random.default_rng(0).bit_generator.state}  # fmt: skip
    torch.save(state, tmp_path / "w", _use_new_zipfile_serialization=form == "zip")
    content = open_checkpoint(tmp_path / "w").content
    assert list(content["model"]) == ["weight", "bias"]
    assert content["epoch"] == 3
    assert content["args"].name == "argparse.Namespace"


def test_bfloat16_is_widened(tmp_path: Path):
    tensor = torch.randn(5).bfloat16()
    torch.save({"w": tensor}, tmp_path / "w")
    stored = open_checkpoint(tmp_path / "w").tensors["w"]
    assert np.array_equal(stored.values(), tensor.float().numpy())
    assert np.array_equal(widen(stored.read()), tensor.float().numpy())


def write_shards(folder: Path, kind: str) -> dict[str, np.ndarray]:
    arrays = {f"w{n}": np.full((2, 3), n, np.float32) for n in range(4)}
    listed = {}
    for number in range(2):
        held = {f"w{n}": arrays[f"w{n}"] for n in (2 * number, 2 * number + 1)}
        name = f"part-{number}.{kind}"
        if kind == "safetensors":
            save_file({k: torch.from_numpy(v) for k, v in held.items()}, folder / name)
        elif kind == "bin":
            torch.save({k: torch.from_numpy(v) for k, v in held.items()}, folder / name)
        else:
            paddle.save({k: paddle.to_tensor(v) for k, v in held.items()}, str(folder / name))
        listed.update(dict.fromkeys(held, name))
    (folder / f"model.{kind}.index.json").write_text(json.dumps({"weight_map": listed}))
    return arrays


@pytest.mark.parametrize("kind", ["safetensors", "bin", "pdparams"])
def test_shards(tmp_path: Path, kind: str):
    arrays = write_shards(tmp_path, kind)
    for path in (tmp_path, tmp_path / f"model.{kind}.index.json"):
        found = open_checkpoint(path)
        assert len(found.files) == 2
        assert {n: s.read().tolist() for n, s in found.tensors.items()} == {
            name: array.tolist() for name, array in arrays.items()
        }


def test_shards_that_do_not_hold_what_the_index_lists(tmp_path: Path):
    write_shards(tmp_path, "bin")
    index = tmp_path / "model.bin.index.json"
    listed = json.loads(index.read_text())["weight_map"]
    for change, message in (
        ({"w9": "part-0.bin"}, "promises w9, which is missing"),
        ({"w0": "part-1.bin"}, "promises w0"),
        ({"w0": "part-7.bin"}, "part-7.bin is missing: model.bin.index.json lists it"),
        ({"w0": "../part-0.bin"}, "expected names of files beside it"),
    ):
        index.write_text(json.dumps({"weight_map": listed | change}))
        with pytest.raises((WeightsError, MissingInputError), match=message):
            open_checkpoint(index)
    index.write_text(json.dumps({"weight_map": {k: v for k, v in listed.items() if k != "w0"}}))
    with pytest.raises(WeightsError, match="holds w0, which model.bin.index.json lacks"):
        open_checkpoint(index)
    index.write_text(json.dumps({"weight_map": listed}))
    torch.save({f"w{n}": torch.zeros(2, 3) for n in (0, 2, 3)}, tmp_path / "part-1.bin")
    with pytest.raises(
        WeightsError, match="part-1.bin holds w0, which model.bin.index.json lists in part-0"
    ):
        open_checkpoint(index)


def test_shards_of_two_frameworks_are_refused(tmp_path: Path):
    torch.save({"a": torch.zeros(2, 3)}, tmp_path / "1.bin")
    paddle.save({"b": paddle.zeros([2, 3])}, str(tmp_path / "2.pdparams"))
    for number, form in (("3", "pt"), ("4", "pd")):
        save_file({number: torch.zeros(2)}, tmp_path / f"{number}.safetensors", {"format": form})
    index = tmp_path / "w.index.json"
    for listed in ({"a": "1.bin", "b": "2.pdparams"}, {"3": "3.safetensors", "4": "4.safetensors"}):
        index.write_text(json.dumps({"weight_map": listed}))
        with pytest.raises(
            WeightsError, match="its files are of different frameworks: paddle, torch"
        ):
            open_checkpoint(index)
    index.write_text(json.dumps({"weight_map": {"a": "1.bin", "3": "3.safetensors"}}))
    assert open_checkpoint(index).framework == "torch"


@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors", "pdparams"])
def test_a_truncated_file_is_named(tmp_path: Path, form: str):
    path = tmp_path / "w"
    state = {"w": torch.randn(40, 40)}
    if form == "safetensors":
        save_file(state, path)
    elif form == "pdparams":
        paddle.save({"w": paddle.randn([40, 40])}, str(path))
    else:
        torch.save(state, path, _use_new_zipfile_serialization=form == "zip")
    whole = path.read_bytes()
    for length in (0, 1, 9, 70, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(WeightsError, match="w (is|holds|does not)"):
            open_checkpoint(path)


@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors", "pdparams"])
def test_a_damaged_file_is_refused_or_read_but_raises_nothing_else(tmp_path: Path, form: str):
    path = tmp_path / "w"
    state = {"w": torch.randn(3, 4), "v": torch.zeros(2)}
    if form == "safetensors":
        save_file(state, path)
    elif form == "pdparams":
        paddle.save({"w": paddle.randn([3, 4])}, str(path))
    else:
        torch.save(state, path, _use_new_zipfile_serialization=form == "zip")
    whole, source = path.read_bytes(), np.random.default_rng(5)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[source.integers(len(whole))] = source.integers(256)
        path.write_bytes(damaged)
        try:
            for tensor in open_checkpoint(path).tensors.values():
                assert tensor.read().shape == tensor.shape
        except WeightsError:
            pass


def test_the_file_changes_while_it_is_read(tmp_path: Path):
    torch.save({"w": torch.randn(40, 40)}, tmp_path / "w")
    stored = open_checkpoint(tmp_path / "w").tensors["w"]
    (tmp_path / "w").write_bytes(b"PK")
    with pytest.raises(WeightsError, match="truncated"):
        stored.read()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a file of weights"), (b"text", "is not a file of weights"),
        (pickle.dumps({}, 2), "holds no state dict"), (pickle.dumps([1], 4), "holds no state dict"),
        (pickle.dumps({"w": print}, 4), "asks to run builtins.print: refused, nothing was run"),
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str):
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(WeightsError, match=message):
        open_checkpoint(tmp_path / "w")


def test_other_paths_are_refused(tmp_path: Path):
    with pytest.raises(MissingInputError, match="missing"):
        open_checkpoint(tmp_path / "w.bin")
    with pytest.raises(WeightsError, match="neither an index nor a file of weights"):
        open_checkpoint(tmp_path)
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), tmp_path / "w.pt")
    with pytest.raises(WeightsError, match="TorchScript"):
        open_checkpoint(tmp_path / "w.pt")


def test_the_tables_of_dtypes():
    assert set(CODES.values()) == set(DTYPES) - {"complex128"}
    assert set(STORAGES.values()) <= set(DTYPES)
    for name, kind in STORAGES.items():
        if name != "UntypedStorage":
            assert getattr(torch, name)._dtype == getattr(torch, kind)
    for name, code in DTYPES.items():
        assert getattr(torch, name).itemsize == np.dtype(code).itemsize


def test_formats_are_told_by_their_first_bytes(tmp_path: Path):
    heads = {}
    for name, write in (("safetensors", save_file), ("zip", torch.save)):
        write({"w": torch.ones(2)}, tmp_path / name)
        heads[name] = (tmp_path / name).read_bytes()[:16]
    assert is_safetensors(heads["safetensors"]) and not is_safetensors(heads["zip"])
    assert is_torch_zip(heads["zip"]) and not is_torch_zip(heads["safetensors"])


def test_an_unknown_class_is_opaque_with_what_is_put_into_it():
    from collections import defaultdict, deque

    made = {"d": deque([1, 2]), "s": {1}, "f": frozenset([2]), "m": defaultdict(list, a=1), "n": 3}
    found = CheckpointMachine(memoryview(pickle.dumps(made, 4))).run()
    assert found == {"d": Opaque("collections.deque"), "s": Opaque("set"), "n": 3,
                     "f": Opaque("frozenset"), "m": Opaque("collections.defaultdict")}  # fmt: skip


def test_an_array_of_another_kind_stays_an_array(tmp_path: Path):
    (tmp_path / "w").write_bytes(pickle.dumps({"w": np.array(["a", "b"])}, 4))
    found = read_paddle_file(tmp_path / "w")
    assert isinstance(found, dict) and found["w"].tolist() == ["a", "b"]


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
    span = FileSpan(tmp_path, 0, 8)
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
        assert "needs the slice big, which is missing, used twice" in refused(
            cut(path, info, big=part)
        )
    shared = [f"s{n}" for n in range(20_000)]  # one list, forty times
    info = {f"w{n}": {"OriginShape": (20_000,), "slices": shared} for n in range(40)}
    rows = {name: part[:1] for name in shared[:50]}
    assert "needs the slice s50, which is missing, used twice" in refused(cut(path, info, **rows))


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
