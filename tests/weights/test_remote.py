"""Weights at an address: the header first, then each tensor that is used, once."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from reprod_align import align_sections
from reprod_align.commands import main
from reprod_align.errors import MissingInputError, ReprodError, WeightsError
from reprod_align.weights import Stored, open_checkpoint, remote
from tests.sections.small import IDS, LIMIT, PaddleNet, TorchNet, write_weights
from tests.weights.server import Files, serve

import numpy as np
import pytest
from safetensors.numpy import save_file

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.arange(5, dtype=np.int64),
    "c": np.zeros((0, 3), np.float64),
}
FILE = "model.safetensors"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    """A server of a folder with one file of weights; what is read goes to a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    served = tmp_path / "served"
    served.mkdir()
    save_file(ARRAYS, served / FILE, {"format": "pt"})
    remote._open.cache_clear()
    with serve(served) as files:
        yield files
    remote._open.cache_clear()


def test_what_is_used_is_read_once(files: Files, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(files / FILE)
    local = open_checkpoint(files.folder / FILE)
    assert checkpoint.framework == "torch" and checkpoint.tensors.keys() == ARRAYS.keys()
    begin = 8 + int.from_bytes((files.folder / FILE).read_bytes()[:8], "little")
    assert files.ranges == [(FILE, 0, 16), (FILE, 8, begin)], "the header alone"
    read = checkpoint.tensors["b"].read()
    assert (read == ARRAYS["b"]).all()
    span = local.tensors["b"].source
    assert files.ranges[2:] == [(FILE, span.offset, span.offset + span.size)]  # type: ignore[union-attr]
    assert (checkpoint.tensors["b"].map() == ARRAYS["b"]).all()
    assert len(files.ranges) == 3
    assert checkpoint.tensors["c"].read().shape == (0, 3) and len(files.ranges) == 3
    # another process finds what was read, and asks the server for the version alone
    remote._open.cache_clear()
    again = open_checkpoint(files / FILE)
    assert (again.tensors["b"].read() == ARRAYS["b"]).all() and len(files.ranges) == 3
    # another version is another file
    save_file({"b": ARRAYS["b"] + 1}, files.folder / FILE)
    remote._open.cache_clear()
    assert open_checkpoint(files / FILE).tensors["b"].read()[0] == 1


def test_large_tensors_come_in_parts(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = open_checkpoint(files / FILE).tensors["b"]
    monkeypatch.setattr(remote, "_AT_ONCE", 16)
    assert (tensor.read() == ARRAYS["b"]).all()
    assert [end - start for _, start, end in files.ranges[2:]] == [16, 16, 8]


def test_a_sharded_checkpoint_is_found_by_its_index(files: Files) -> None:
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (files.folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for name, shard in index["weight_map"].items():
        save_file({name: ARRAYS[name]}, files.folder / shard, {"format": "pt"})
    checkpoint = open_checkpoint(f"{files.address}/model.safetensors.index.json?token=secret")
    assert (checkpoint.tensors["a"].values() == ARRAYS["a"]).all()
    assert {name for name, _, _ in files.ranges} == {
        "model.safetensors.index.json", "one.safetensors", "two.safetensors",
    }  # fmt: skip
    (files.folder / "two.safetensors").unlink()
    remote._open.cache_clear()
    with pytest.raises(
        MissingInputError, match="two.safetensors is missing: model.safetensors.index"
    ):
        open_checkpoint(files / "model.safetensors.index.json")


def read_all(address: str) -> None:
    for tensor in open_checkpoint(address).content.values():
        assert isinstance(tensor, Stored)
        tensor.read()


def test_what_a_server_cannot_is_one_line(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(words: str, kind: type[ReprodError] = WeightsError, name: str = FILE) -> None:
        remote._open.cache_clear()
        with pytest.raises(kind, match=words) as caught:
            read_all(f"{files.address}/{name}?token=secret")
        assert "secret" not in str(caught.value) and f"{files.address}/{name}" in str(caught.value)

    fails("none.safetensors is missing$", MissingInputError, "none.safetensors")
    files.status = 403
    fails(f"^cannot read {files.address}/{FILE}: 403 Forbidden$")
    files.status, files.sends_ranges = 200, False
    fails(": its server sends no ranges of it: download the file, and name that$")
    files.sends_ranges = True
    (files.folder / "model.bin").write_bytes(b"PK\x03\x04" + bytes(100))
    fails(
        "model.bin is neither a .safetensors file nor an index of such files: download it",
        name="model.bin",
    )
    whole = (files.folder / FILE).read_bytes()
    (files.folder / FILE).write_bytes(whole[:-4])
    fails(f"{FILE} is truncated: . ends behind the file")
    (files.folder / FILE).write_bytes(whole[:30])
    fails(f"{FILE} is truncated: its header ends behind the file")
    (files.folder / FILE).write_bytes(whole)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    fails(r"needs the package fsspec: .*reprod-align\[cluster\]")


def test_nothing_is_kept_of_an_answer_that_breaks_off(files: Files) -> None:
    checkpoint = open_checkpoint(files / FILE)
    files.cut = 3
    with pytest.raises(WeightsError, match=f"^cannot read {files.address}/{FILE}: "):
        checkpoint.tensors["b"].read()
    files.cut = 0
    assert (checkpoint.tensors["b"].read() == ARRAYS["b"]).all()


def test_no_server_is_one_line(files: Files) -> None:
    with pytest.raises(WeightsError, match="^cannot read http://127.0.0.1:1/m.safetensors: Client"):
        open_checkpoint("http://127.0.0.1:1/m.safetensors")


def test_a_file_without_a_version_is_kept_by_no_one(files: Files, tmp_path: Path) -> None:
    files.sends_version = False
    assert (open_checkpoint(files / FILE).tensors["b"].read() == ARRAYS["b"]).all()
    assert not (tmp_path / "cache").exists()
    write_weights(files.folder)
    remote._open.cache_clear()
    with pytest.raises(ReprodError, match="its server names no version"):
        align_sections(TorchNet, PaddleNet, IDS, files / FILE, state=tmp_path / "state")


def test_sections_are_judged_with_weights_at_an_address(files: Files, tmp_path: Path) -> None:
    write_weights(files.folder)
    given = {"section_size": LIMIT, "state": tmp_path / "state"}
    assert align_sections(TorchNet, PaddleNet, IDS, files / FILE, **given).passed  # type: ignore[arg-type]
    assert len(files.ranges) == len(set(files.ranges)), "nothing was asked for twice"
    assert len(files.ranges) == 2 + len(open_checkpoint(files / FILE).tensors)


PAIR = """
from tests.sections.small import IDS as inputs, PaddleNet as paddle_model, TorchNet as torch_model

torch_weights = {address!r}
"""


def test_the_commands_take_an_address(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_weights(files.folder)
    (tmp_path / "mine.py").write_text(PAIR.format(address=files / FILE))
    assert main(["pair", str(tmp_path / "mine.py"), "--sections", str(LIMIT)]) == 0
    target = tmp_path / "model.pdparams"
    words = ["--from", "torch", "--pair", str(tmp_path / "mine.py")]
    assert main(["convert", files / FILE, str(target), *words]) == 0, capsys.readouterr()
    assert target.is_file()
    capsys.readouterr()
    assert main(["convert", files / "none.safetensors", str(target), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"reprod-align: {files.address}/none.safetensors is missing"
