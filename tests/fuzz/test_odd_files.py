"""What a stranger's files do to the commands: one clear line and exit code 2, whatever is in them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reprod_align.base.files import parse_json, read_json
from reprod_align.commands import main
from reprod_align.curves.log import pair_names
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.weights.reading import open_checkpoint
from tests.alignment.test_robustness import only_line
from tests.records.steps import count_steps

import numpy as np
import pytest

ENTRY: dict[str, Any] = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
RULE: dict[str, Any] = {"torch": "a", "paddle": "a"}
CONVERT = ("to.pdparams", "--no-check", "--from", "torch", "--map", "map.json")
PORT = ("--out", "out", "--torch", "a:b", "--inputs", "a:c")
COMMANDS: dict[str, tuple[str, ...]] = {
    "compare": ("good",), "diff": ("good",), "curves": ("good",), "verify": (), "submit": (),
    "convert": CONVERT, "pair": (), "selftest": (), "port": PORT,
}  # fmt: skip


def tensors(header: object, size: int = 8) -> bytes:
    """Return a .safetensors file with this header and `size` bytes of numbers."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(size)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("map.json").write_text(json.dumps({"format": 1, "rules": [RULE]}))
    Path("a.safetensors").write_bytes(tensors({"a": ENTRY}))
    return tmp_path


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


PLACES: dict[str, Callable[[Path], object]] = {
    "a pipe": make_pipe,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a ring of links": lambda path: path.symlink_to(path),
    "a folder": Path.mkdir,
    "an empty file": Path.touch,
}


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file(command: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    PLACES[kind](Path("odd"))
    assert main([command, "odd", *COMMANDS[command]]) == 2
    said = only_line(capsys)
    assert "odd" in said or command == "port", said
    assert "not foreseen" not in said and said.count("refused") < 2, said
    if kind in ("a pipe", "a device"):
        assert "missing" not in said, said


BROKEN: dict[str, tuple[bytes, str]] = {
    "two tensors in the same bytes": (tensors({"a": ENTRY, "b": ENTRY}), "shares bytes"),
    "bytes between two tensors":
        (tensors({"a": ENTRY, "b": {**ENTRY, "data_offsets": [9, 17]}}, 17), "b does not follow"),
    "bytes before the first": (tensors({"a": {**ENTRY, "data_offsets": [1, 9]}}, 9), "not follow"),
    "bytes after the last": (tensors({"a": ENTRY}, 9), "1 bytes at its end belong to no tensor"),
    "axes that overflow beside one of length 0":
        (tensors({"a": {**ENTRY, "shape": [0, *[10**9] * 9], "data_offsets": [0, 0]}}, 0), "size"),
    "a format that is a list":
        (tensors({"__metadata__": {"format": ["pt"]}, "a": ENTRY}), "metadata are not texts"),
    "metadata that are a list": (tensors({"__metadata__": [1], "a": ENTRY}), "are not texts"),
    "a name twice": (tensors(b'{"a": 1, "a": 2}'), "has the name 'a' twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_checkpoint_that_its_format_forbids(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data, said = BROKEN[name]
    Path("a.safetensors").write_bytes(data)
    assert main(["convert", "a.safetensors", *CONVERT]) == 2
    assert said in only_line(capsys)
    assert not Path("to.pdparams").exists()


def test_an_empty_tensor_lies_anywhere(folder: Path) -> None:
    empty = {**ENTRY, "shape": [0], "data_offsets": [8, 8]}
    Path("a.safetensors").write_bytes(tensors({"b": empty, "a": ENTRY, "c": empty}))
    assert set(open_checkpoint(folder / "a.safetensors").tensors) == {"a", "b", "c"}


INDEX: dict[str, tuple[str, str]] = {
    "a name that climbs": ('{"weight_map": {"a": "../a.safetensors"}}', "files beside it"),
    "the folder above": ('{"weight_map": {"a": ".."}}', "expected names of files beside it"),
    "no name": ('{"weight_map": {"a": ""}}', "expected names of files beside it, got ''"),
    "a tensor twice": ('{"weight_map": {"a": "b", "a": "a.safetensors"}}', "'a' twice"),
    "a pipe": ('{"weight_map": {"a": "pipe"}}', "pipe is not a file, but a folder, a device"),
}


@pytest.mark.parametrize("name", INDEX)
def test_an_index_of_shards(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    text, said = INDEX[name]
    Path("a.index.json").write_text(text)
    assert main(["convert", "a.index.json", *CONVERT]) == 2
    assert said in only_line(capsys)


MAPS: dict[str, tuple[str, str]] = {
    "a counter beyond int64": (json.dumps(
        {"format": 1, "rules": [RULE, {"torch": [], "paddle": "n", "value": 2**63}]}), "int64"),
    "groups of nothing": (json.dumps({"format": 1, "rules": [{**RULE, "groups": 9}]}), "parts"),
    "a key twice": ('{"format": 1, "rules": [{"torch": "a", "paddle": "a", "torch": "b"}]}',
                    "'torch' twice"),
    "no JSON": ("[" * 100_000, "cannot be read as JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_a_map_of_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, said = MAPS[name]
    Path("map.json").write_text(text)
    assert main(["convert", "a.safetensors", *CONVERT]) == 2
    assert said in only_line(capsys)


def test_json_with_a_mark_of_its_bytes_order(folder: Path) -> None:
    (folder / "windows.json").write_text('\ufeff{"a": [1, "é"]}', encoding="utf-8")
    assert read_json(folder / "windows.json") == {"a": [1, "é"]}


def test_json_that_cannot_be_read(folder: Path) -> None:
    with pytest.raises(MissingInputError):
        read_json(folder / "none.json")
    with pytest.raises(ValueError, match="has the name 'b' twice"):
        parse_json('{"a": {"b": 1, "c": 2, "b": 1}}')
    for data in (b"\xff\xfe{\0}\0", b"9" * 9999, b'{"a": 1', b"[" * 100_000):
        (folder / "odd.json").write_bytes(data)
        with pytest.raises(ReprodError, match=r"odd\.json cannot be read as JSON"):
            read_json(folder / "odd.json")


def test_a_log_line_with_a_name_twice(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps({"step": n, "loss": 1 / n}) for n in range(1, 9)]
    Path("good").write_text("\n".join(lines))
    Path("odd").write_text("\n".join([*lines[:4], '{"step": 5, "loss": 9, "loss": 0.2}', *lines]))
    assert main(["curves", "good", "odd"]) == 2
    assert "line 5 is damaged: not JSON" in (said := only_line(capsys)) and "'loss' twice" in said


def test_names_are_paired_in_linear_time() -> None:
    def pair(count: int) -> Callable[[], object]:
        names = [f"a{n}" for n in range(count)], [f"b{n}" for n in range(count)] + ["a0"]
        return lambda: pair_names(*names)

    few, many = (count_steps(pair(count)) for count in (100, 400))
    assert many < 4.5 * few


def test_a_table_with_too_many_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        columns = ",".join(f"c{n}" for n in range(20_001))
        Path(name).write_text(f"step,{columns}\n1{',1' * 20_001}\n")
    assert main(["curves", "one", "two"]) == 2
    assert "has more than 20,000 curves" in only_line(capsys)


def test_a_record_of_another_byte_order_and_layout(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers decide, however they lie in the file."""
    from reprod_align import save_record

    values = np.random.default_rng(0).standard_normal((3, 4))
    save_record("plain", {"x": values})
    box = np.empty((), object)
    box[()] = {"x": np.asfortranarray(values).astype(">f8")}
    np.save("odd.npy", box, allow_pickle=True)
    assert main(["compare", "plain.npy", "odd.npy"]) == 0
    assert main(["compare", "odd.npy", "plain.npy"]) == 0
