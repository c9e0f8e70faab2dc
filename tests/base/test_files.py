"""A file or folder is there whole or not at all; JSON is strict.

`.safetensors` files are as the package reads them.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reprod_align.base import files as ours
from reprod_align.base.files import (
    as_json,
    require_new,
    require_writable,
    to_plain,
    whole_file,
    whole_folder,
    write_json,
    write_tensors,
    write_text,
)
from reprod_align.errors import ReprodError
from reprod_align.weights import read_tensors

import numpy as np
import pytest
from safetensors.numpy import load_file


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_write_that_stops_leaves_the_old_file_and_nothing_else(
    error: type[BaseException], tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(error):
        with whole_file(path) as handle:
            handle.write(b"new")
            raise error
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a"]


def test_folders_are_made_and_links_stay_links(tmp_path: Path) -> None:
    target, link = tmp_path / "new" / "folder" / "a", tmp_path / "link"
    write_text(target, "é\ud800\n")
    assert target.read_bytes() == b"\xc3\xa9\\ud800\n"
    link.symlink_to(target)
    write_text(link, "b")
    assert link.is_symlink() and target.read_text() == "b"


def test_files_have_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with whole_file(tmp_path / "ours") as handle:
        handle.write(b"x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "target")
    with whole_file(tmp_path / "link") as handle:
        handle.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere" / "target").read_bytes() == b"x"


@pytest.mark.parametrize("kind", ["folder", "file/x", "pipe"])
def test_what_cannot_be_written(tmp_path: Path, kind: str) -> None:
    """The pipe stands for /dev/null: a guard that fails must not cost the machine its own."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / kind
    with pytest.raises(ReprodError, match=f"cannot write {path}: "), whole_file(path) as handle:
        handle.write(b"x")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_that_cannot_be_written_in_is_told_before_the_work(tmp_path: Path) -> None:
    require_writable(tmp_path / "not" / "there" / "yet")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file" / "below", Path("/proc/self/below")):
        with pytest.raises(ReprodError, match="cannot write in"):
            require_writable(folder)


def test_a_folder_is_there_when_the_block_ended_well(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        with whole_folder(tmp_path / name) as made:
            (made / "a").write_text("1")
            assert not (tmp_path / name / "a").exists()
        assert (tmp_path / name / "a").read_text() == "1"
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "other") as made:
        (made / "a").write_text("1")
        raise KeyboardInterrupt
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "new"]


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("1")
    (tmp_path / "file").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, message in {"full": "holds files already", "file": "is not a folder",
                          "link": "is not a folder", "absent/x": "absent is missing"}.items():  # fmt: skip
        with pytest.raises(ReprodError, match=message):
            require_new(tmp_path / name)


@dataclass(frozen=True)
class Result:
    worst: float
    shape: tuple[int, ...]
    inner: Any = None


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (float("nan"), "nan"),
        (-float("inf"), "-inf"),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.longdouble("inf"), "inf"),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array([[1.5, np.nan]]), [[1.5, "nan"]]),
        (np.array(2), 2),
        (1 + 2j, "(1+2j)"),
        (b"\xff", "b'\\xff'"),
        (Path("a") / "b", "a/b"),
        ({1: (None, "x")}, {"1": [None, "x"]}),
        (Result(1.0, (2, 3), Result(0.0, ())),
         {"worst": 1.0, "shape": [2, 3], "inner": {"worst": 0.0, "shape": [], "inner": None}}),
    ],
)  # fmt: skip
def test_every_value_of_a_result_becomes_plain(value: Any, plain: Any) -> None:
    assert to_plain(value) == plain
    assert json.loads(as_json(value)) == plain


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="object cannot be written as JSON"):
        to_plain({"a": object()})
    with pytest.raises(TypeError, match="type cannot be written"):
        to_plain(Result)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "result.json"
    write_json(path, {"loss": np.float64("nan")})
    assert path.read_text() == '{\n "loss": "nan"\n}\n'
    with pytest.raises(TypeError):
        write_json(path, object())
    assert json.loads(path.read_text()) == {"loss": "nan"}
    with pytest.raises(ReprodError, match="cannot write"):
        write_json(path.parent, {})


MATRIX = np.arange(12.0).reshape(3, 4)
ARRAYS = {
    "plain": MATRIX,
    "transposed": MATRIX.T,
    "strided": MATRIX[:, ::2],
    "big endian": MATRIX.astype(">f4"),
    "half": np.float16([1.5]),
    "flags": np.array([[True], [False]]),
    "bytes": np.array([255], np.uint8),
    "number": np.array(-(2**62)),
    "empty": np.zeros((0, 3), np.float32),
}


def test_the_package_reads_every_layout(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.safetensors"
    write_tensors(path, ARRAYS, {"step": "3", "é": "\n"})
    for found in (load_file(path), read_tensors(path)[0]):
        assert found.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[name], array, strict=False)
            assert found[name].shape == array.shape, name
            assert found[name].dtype == array.dtype.newbyteorder("="), name
    assert read_tensors(path)[1] == {"step": "3", "é": "\n"}
    start = int.from_bytes(path.read_bytes()[:8], "little")
    assert start % 8 == 0


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"a": MATRIX}, {})
    old = path.read_bytes()

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ours.np, "ascontiguousarray", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_tensors(path, {"a": MATRIX + 1}, {})
    assert path.read_bytes() == old and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("length", [0, 7, 40, -1])
def test_a_file_that_was_cut_is_refused(length: int, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"a": MATRIX}, {})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ReprodError, match=r"a\.safetensors is (damaged|truncated)"):
        read_tensors(path)
