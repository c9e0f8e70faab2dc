"""What is written is read by the frameworks themselves, bit for bit, and is there whole or not at all."""

import json
import os
import pickle
import pickletools
import signal
import zipfile
from pathlib import Path

from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError, WeightsError
from reprod_align.weights.opcodes import push, push_bytes
from reprod_align.weights.paddle_file import write_paddle_file
from reprod_align.weights.reading import open_checkpoint
from reprod_align.weights.safetensors_file import write_safetensors
from reprod_align.weights.stored import DTYPES, TensorEntry, read_chunks
from reprod_align.weights.torch_file import write_torch_zip
from reprod_align.weights.writing import SyncedFile, find_kind, split_entries, write_checkpoint
from tests.conftest import run_python

import numpy as np
import paddle
import pytest
import safetensors.torch
import torch

SHAPES = ((3, 4), (), (0, 3), (1,), (2, 1, 5))
NOT_IN = {"pdparams": {"uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"},
          "safetensors": {"complex128"}, "bin": set()}  # fmt: skip


def make_entries(kind: str) -> list[TensorEntry]:
    """Return entries of every dtype and shape, and a tied one."""
    entries = [TensorEntry(f"{dtype}{shape}", dtype, shape)
               for dtype in DTYPES if dtype not in NOT_IN[kind] for shape in SHAPES]  # fmt: skip
    return [*entries, TensorEntry("tied", "float32", (3, 4), "float32(3, 4)")]


def load(name: str) -> Array:
    """Return random bits, the same for the same name; booleans are 0 and 1."""
    dtype, _, rest = name.partition("(")
    shape = tuple(int(n) for n in rest.strip(")").split(",") if n.strip())
    code = np.dtype(DTYPES[dtype])
    source = np.random.default_rng(len(name))
    data = source.integers(
        0, 2 if dtype == "bool" else 256, (*shape, code.itemsize), dtype=np.uint8
    )
    return data.view(code).reshape(shape)


def write(
    path: Path, entries: list[TensorEntry], framework: str = "torch", size: int = 10**9
) -> None:
    with write_checkpoint(path, framework, entries, load, size):
        assert not path.exists()


@pytest.mark.parametrize("mapped", [False, True])
def test_torch_reads_every_dtype_with_weights_only(tmp_path: Path, mapped: bool):
    entries = make_entries("bin")
    write(tmp_path / "w.bin", entries)
    state = torch.load(tmp_path / "w.bin", weights_only=True, mmap=mapped)
    assert list(state) == [entry.name for entry in entries]
    for entry in entries[:-1]:
        tensor = state[entry.name]
        assert (tensor.dtype, tuple(tensor.shape)) == (getattr(torch, entry.dtype), entry.shape)
        found = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        assert found == load(entry.name).tobytes()
        assert mapped or tensor.data_ptr() % 64 == 0
    assert state["tied"].data_ptr() == state["float32(3, 4)"].data_ptr()
    with zipfile.ZipFile(tmp_path / "w.bin") as archive:
        assert archive.testzip() is None  # every checksum holds


@pytest.mark.parametrize("as_numpy", [False, True])
def test_paddle_reads_every_dtype(tmp_path: Path, as_numpy: bool):
    entries = make_entries("pdparams")
    write(tmp_path / "w.pdparams", entries, "paddle")
    state = paddle.load(str(tmp_path / "w.pdparams"), return_numpy=as_numpy)
    assert list(state) == [entry.name for entry in entries]
    for entry in entries[:-1]:
        tensor = state[entry.name]
        if not as_numpy:
            assert tensor.dtype == getattr(paddle, entry.dtype)
        array = tensor if as_numpy else tensor.numpy()
        assert array.shape == entry.shape
        assert array.tobytes() == load(entry.name).tobytes()


def test_safetensors_reads_every_dtype(tmp_path: Path):
    entries = make_entries("safetensors")
    write(tmp_path / "w.safetensors", entries)
    state = safetensors.torch.load_file(tmp_path / "w.safetensors")
    assert set(state) == {entry.name for entry in entries} - {"tied"}
    for name, tensor in state.items():
        found = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        assert found == load(name).tobytes()


@pytest.mark.parametrize("kind", ["bin", "pdparams", "safetensors"])
def test_what_is_written_is_what_is_read(tmp_path: Path, kind: str):
    entries = make_entries(kind)
    for name in (f"w.{kind}", f"s.{kind}.index.json"):
        write(tmp_path / name, entries, "paddle" if kind == "pdparams" else "torch", 300)
        tensors = open_checkpoint(tmp_path / name).tensors
        for entry in entries[:-1]:
            held = tensors[entry.name]
            assert (held.dtype, held.shape) == (entry.dtype, entry.shape)
            assert held.read().tobytes() == load(entry.name).tobytes()
        assert kind == "safetensors" or tensors["tied"] == tensors["float32(3, 4)"]


@pytest.mark.parametrize("kind", ["pdparams", "safetensors"])
def test_a_dtype_that_the_format_lacks_is_refused(tmp_path: Path, kind: str):
    dtype = min(NOT_IN[kind])
    with pytest.raises(WeightsError, match=f"w is {dtype}, which"):
        write(tmp_path / f"w.{kind}", [TensorEntry("w", dtype, (2,))], "paddle")
    assert list(tmp_path.iterdir()) == []


def test_more_than_four_gib_has_its_own_instruction():
    head = push_bytes(5 * 2**30)
    assert head[:1] == pickletools.code2op["\x8e"].code.encode("latin1")
    assert int.from_bytes(head[1:], "little") == 5 * 2**30
    assert push_bytes(2**32 - 1)[:1] == b"B"


@pytest.mark.parametrize("value", [0, 255, 256, -1, 2**31 - 1, 2**31, -(2**40), 2**70])
def test_numbers_of_any_size(value: int):
    assert pickle.loads(b"\x80\x02" + push(value) + b".") == value


def test_entries_and_bytes():
    assert TensorEntry("w", "bfloat16", (3, 5)).nbytes == 30
    turned = np.arange(6, dtype=np.int16).reshape(2, 3).T
    assert b"".join(read_chunks(turned)) == turned.tobytes()
    assert b"".join(read_chunks(np.empty((0, 3)))) == b""


@pytest.mark.parametrize("shape", [(3, 5), (700, 300), (1, 9), (9, 1), (5000, 900)])
def test_a_transposed_matrix_is_laid_strip_by_strip(shape: tuple[int, int]):
    matrix = np.random.default_rng(0).integers(0, 60000, shape).astype(np.float32).T
    data = b"".join(bytes(chunk) for chunk in read_chunks(matrix))
    assert data == matrix.tobytes()


def test_a_file_is_synced_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []
    monkeypatch.setattr("reprod_align.weights.writing._AT_ONCE", 10)
    monkeypatch.setattr("os.fdatasync", asked.append)
    with (tmp_path / "w").open("wb") as handle, SyncedFile(handle) as synced:
        for _ in range(50):
            synced.write(b"0123456")
        assert synced.tell() == 350
    assert asked and (tmp_path / "w").read_bytes() == 50 * b"0123456"


def test_room_is_reserved_where_the_file_system_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for code in (95, 22):  # EOPNOTSUPP, EINVAL

        def refuse(*words: int, code: int = code) -> None:
            raise OSError(code, "planted")

        monkeypatch.setattr("os.posix_fallocate", refuse)
        with (tmp_path / "w").open("wb") as handle, SyncedFile(handle, 9) as synced:
            synced.write(b"abc")
        assert (tmp_path / "w").read_bytes() == b"abc"
    monkeypatch.undo()
    with (tmp_path / "w").open("wb") as handle, pytest.raises(OSError, match="[Nn]o space|large"):
        SyncedFile(handle, 2**60)


def test_a_full_disk_ends_the_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reprod_align.weights.writing._AT_ONCE", 10)
    monkeypatch.setattr("os.fdatasync", fail)
    with (tmp_path / "w").open("wb") as handle, pytest.raises(OSError, match="No space"):
        with SyncedFile(handle) as synced:
            synced.write(b"0123456789a")


def test_the_writers_need_a_handle_alone(tmp_path: Path):
    entries = [TensorEntry("float32(2,)", "float32", (2,))]
    for name, write_file in (("a", write_torch_zip), ("b", write_paddle_file)):
        with (tmp_path / name).open("wb") as handle:
            write_file(handle, entries, load)
    with (tmp_path / "c").open("wb") as handle:
        write_safetensors(handle, entries, load, {"format": "pt"})
    for name in "abc":
        assert list(open_checkpoint(tmp_path / name).tensors) == ["float32(2,)"]


def test_shards_are_filled_in_order_and_keep_ties_together():
    sizes = {"a": 60, "b": 50, "c": 500, "d": 10}
    entries = [TensorEntry(name, "int8", (size,)) for name, size in sizes.items()]
    entries.append(TensorEntry("t", "int8", (60,), "a"))
    shards = split_entries(entries, 110)
    assert [[entry.name for entry in shard] for shard in shards] == [["a", "b", "t"], ["c"], ["d"]]


def test_names_tell_the_format():
    for name, kind in (("a.bin", "torch"), ("a.pth", "torch"), ("m.pdparams.index.json", "paddle"),
                       ("m.safetensors.index.json", "safetensors")):  # fmt: skip
        assert find_kind(Path(name)) == kind
    with pytest.raises(WeightsError, match="expected a name that ends with"):
        find_kind(Path("w.npz"))


CHILD = """
import os, resource, signal, sys
import numpy as np
from pathlib import Path
from reprod_align.weights.writing import write_checkpoint
from reprod_align.weights.stored import TensorEntry

path, how = Path(sys.argv[1]), sys.argv[2]
if how == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

def load(name):
    if how == "killed" and name == "w2":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raises" and name == "w2":
        raise KeyboardInterrupt
    return np.zeros(1000, np.float32)

entries = [TensorEntry(f"w{n}", "float32", (1000,)) for n in range(20)]
framework = "paddle" if "pdparams" in path.name else "torch"
with write_checkpoint(path, framework, entries, load, 40_000 if how == "full" else 4000):
    pass
"""


@pytest.mark.parametrize("how", ["full", "killed", "raises"])
@pytest.mark.parametrize("name", ["w.bin", "w.pdparams", "w.safetensors", "w.bin.index.json",
                                  "w.pdparams.index.json", "w.safetensors.index.json"])  # fmt: skip
def test_nothing_half_written_has_a_final_name(tmp_path: Path, name: str, how: str):
    path = tmp_path / name
    path.write_bytes(b"old")
    finished = run_python("-c", CHILD, str(path), how)
    assert finished.returncode == (-signal.SIGKILL if how == "killed" else finished.returncode) != 0
    if how == "full":
        assert "cannot write" in finished.stderr and "too large" in finished.stderr
    left = {held.name for held in tmp_path.iterdir() if not held.name.endswith(".tmp")}
    assert left == {name} and path.read_bytes() == b"old"
    assert how == "killed" or len(list(tmp_path.iterdir())) == 1


def test_an_old_index_never_lists_new_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, entries = (
        tmp_path / "w.bin.index.json",
        [TensorEntry(f"float32({n},)", "float32", (n,)) for n in (3, 4)],
    )
    write(path, entries, size=4)
    renamed, replace = [], os.replace

    def stop(before: Path, after: Path) -> None:
        if renamed:
            raise OSError(5, "planted")
        renamed.append(after)
        replace(before, after)

    monkeypatch.setattr("os.replace", stop)
    more = [*entries, TensorEntry("float32(5,)", "float32", (5,))]
    with pytest.raises(ReprodError, match="planted"):
        with write_checkpoint(path, "torch", more, load, 4):
            pass
    assert renamed and not path.exists()


def test_the_index_lists_files_and_size(tmp_path: Path):
    write(tmp_path / "pytorch_model.bin.index.json", make_entries("bin"), size=1000)
    index = json.loads((tmp_path / "pytorch_model.bin.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(e.nbytes for e in make_entries("bin")[:-1])
    files = sorted(set(index["weight_map"].values()))
    assert files == sorted(held.name for held in tmp_path.glob("*.bin"))
    assert files[0].startswith("pytorch_model-00001-of-")


@pytest.mark.parametrize(
    ("file", "names", "message"),
    [
        ("w.safetensors", ["__metadata__"], "a safetensors file cannot hold a tensor named '__metadata__'"),
        ("w.pdparams", ["UnpackBigParamInfor@@"], "a paddle file cannot hold a tensor named"),
        ("w.pdparams", ["StructuredToParameterName@@"], "a paddle file cannot hold a tensor named"),
        ("w.bin", ["a\ud800"], "a torch file cannot hold a tensor named"),
        ("w.bin.index.json", ["a", "b", "a"], "two tensors would be named a"),
    ],
)  # fmt: skip
def test_names_that_a_format_cannot_hold(
    tmp_path: Path, file: str, names: list[str], message: str
) -> None:
    entries = [TensorEntry(name, "float32", (3,)) for name in names]
    with pytest.raises(WeightsError, match=message):
        write(tmp_path / file, entries)
    assert list(tmp_path.iterdir()) == []
