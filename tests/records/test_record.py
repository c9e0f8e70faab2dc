"""Records: what may be recorded, and that no file, however damaged or hostile, does harm."""

import io
import os
import pickle
import struct
import time
import tracemalloc
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

from reprod_align import Recorder, ReprodError, load_record, save_record
from reprod_align.base.atomic import whole_file
from reprod_align.errors import MissingInputError, RecordError
from reprod_align.records.safe_pickle import restricted_loads

import numpy as np
import pytest

HEADER = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }"
SAMPLE = {
    "logits": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "ids": np.arange(4),
    "mask": np.array([True, False]),
    "words": np.array(["ab", "é"]),
    "spectrum": np.array([1 + 2j]),
    "loss": np.float64(0.5),
}


def npy(body: bytes, header: bytes = HEADER) -> bytes:
    """A .npy file of one object, whose pickle is `body`."""
    text = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def boxed(content: object, protocol: int = 4) -> bytes:
    """`content` pickled as np.save does: in an object array of no dimensions."""
    box = np.empty((), dtype=object)
    box[()] = content
    return pickle.dumps(box, protocol=protocol)


def assert_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert list(first) == list(second)
    for key, array in first.items():
        assert np.asarray(array).dtype == np.asarray(second[key]).dtype
        np.testing.assert_array_equal(array, second[key])


def refused(path: Path, data: bytes) -> str:
    """Write `data`, see it refused in one line that names the file, return the line."""
    path.write_bytes(data)
    with pytest.raises(RecordError) as caught:
        load_record(path)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


# What is written and read


def test_round_trip_and_numpy_reads_it(tmp_path: Path) -> None:
    path = save_record(tmp_path / "deep" / "er" / "r.npy", SAMPLE)
    assert_same(load_record(path), SAMPLE)
    assert_same(np.load(path, allow_pickle=True).tolist(), SAMPLE)


def test_loaded_arrays_are_writable(tmp_path: Path) -> None:
    loaded = load_record(save_record(tmp_path / "r.npy", SAMPLE))
    for array in loaded.values():
        assert array.flags.writeable and array.flags.aligned
    loaded["ids"][0] = 7


@pytest.mark.parametrize("name", ["r", "r.npy", "r.v2", "r.NPY"])
def test_npy_is_appended_as_np_save_does(tmp_path: Path, name: str) -> None:
    np.save(tmp_path / name, np.zeros(1))
    wanted = {path.name for path in tmp_path.iterdir()}
    (tmp_path / wanted.copy().pop()).unlink()
    save_record(tmp_path / name, SAMPLE)
    assert {path.name for path in tmp_path.iterdir()} == wanted


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_pickle_protocol_is_read(tmp_path: Path, protocol: int) -> None:
    record = SAMPLE | {
        "fortran": np.asfortranarray(SAMPLE["logits"]),
        "sliced": np.arange(24.0).reshape(2, 3, 4)[:, ::2],
        "big_endian": np.arange(3, dtype=">i4"),
        "half": np.ones(2, np.float16),
        "bytes": np.array([b"ab", b"c"]),
        "none": np.zeros((0, 3)),
        "scalar_text": np.str_("x"),
    }
    path = tmp_path / "r.npy"
    path.write_bytes(npy(boxed(record, protocol)))
    assert_same(load_record(path), record)


def test_module_names_of_numpy_1(tmp_path: Path) -> None:
    path = tmp_path / "r.npy"
    body = boxed(SAMPLE, protocol=3).replace(b"numpy._core.", b"numpy.core.")
    assert b"numpy.core.multiarray" in body and b"_core" not in body
    path.write_bytes(npy(body))
    assert_same(load_record(path), SAMPLE)


def test_plain_numbers_become_arrays_and_an_ordered_dict_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "r.npy"
    path.write_bytes(npy(boxed(OrderedDict(a=3, b=0.5, c=True, d=2j))))
    loaded = load_record(path)
    assert [loaded[key].dtype.kind for key in "abcd"] == ["i", "f", "b", "c"]
    assert all(array.shape == () for array in loaded.values())


def test_reprod_log_and_we_read_each_other(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import reprod_log
    theirs = reprod_log.ReprodLogger()
    for key, value in SAMPLE.items():
        theirs.add(key, np.asarray(value))
    theirs.save(str(tmp_path / "theirs.npy"))
    assert_same(load_record(tmp_path / "theirs.npy"), SAMPLE)
    save_record(tmp_path / "ours.npy", SAMPLE)
    helper = reprod_log.ReprodDiffHelper()
    assert_same(helper.load_info(str(tmp_path / "ours.npy")), SAMPLE)


def test_paddle_save_is_read_without_paddle_reading_it(tmp_path: Path) -> None:
    paddle = pytest.importorskip("paddle")
    layer = paddle.nn.Linear(2, 3)
    wanted = {name: tensor.numpy() for name, tensor in layer.state_dict().items()}
    for protocol in (2, 3, 4):
        path = tmp_path / f"{protocol}.pdparams"
        paddle.save(layer.state_dict(), str(path), protocol=protocol)
        state = restricted_loads(path.read_bytes(), where=str(path))
        assert isinstance(state, dict)
        assert set(state.pop("StructuredToParameterName@@")) == set(wanted)
        assert_same(state, wanted)
    path = tmp_path / "nested.pd"
    paddle.save([paddle.ones([2]), {"step": 3}], str(path))
    (name, array), rest = restricted_loads(path.read_bytes(), where=str(path))  # type: ignore[misc]
    assert isinstance(name, str) and array.tolist() == [1, 1] and rest == {"step": 3}


# The recorder


def test_recorder_is_a_drop_in(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    record = Recorder()
    record.add("a", np.ones(2))
    record.add("b", np.zeros(2))
    record.remove("b")
    record.remove("c")
    assert capsys.readouterr().out == "c is not in dict_keys(['a'])\n"
    assert list(record.data) == ["a"]
    record.save(tmp_path / "r")
    record.clear()
    assert record.data == {}
    assert_same(load_record(tmp_path / "r.npy"), {"a": np.ones(2)})


def test_recorder_copies(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    array, tensor = np.zeros(2), torch.zeros(2)
    record = Recorder(tmp_path / "r.npy")
    record.add_all({"array": array, "tensor": tensor})
    array += 1
    tensor += 1
    assert not record.data["array"].any() and not record.data["tensor"].any()
    assert record.save() == tmp_path / "r.npy"


@pytest.mark.parametrize(
    ("value", "kind", "shape"),
    [
        (3, "i", ()),
        (0.5, "f", ()),
        (True, "b", ()),
        ("text", "U", ()),
        (1j, "c", ()),
        (np.float32(1), "f", ()),
        ([1, 2.5], "f", (2,)),
        ([[1], [2]], "i", (2, 1)),
        ([], "f", (0,)),
    ],
)
def test_recorder_takes_numbers_and_lists(value: object, kind: str, shape: tuple[int]) -> None:
    record = Recorder()
    record.add("x", value)
    assert (record.data["x"].dtype.kind, record.data["x"].shape) == (kind, shape)


def test_recorder_takes_tensors_of_both_frameworks() -> None:
    torch, paddle = pytest.importorskip("torch"), pytest.importorskip("paddle")
    values = [1.0, 2.5, -3.0]
    record = Recorder()
    record.add("torch", torch.tensor(values, requires_grad=True) * 1)
    record.add("torch_bf16", torch.tensor(values, dtype=torch.bfloat16))
    record.add("torch_f8", torch.tensor(values, dtype=torch.float8_e4m3fn))
    record.add("torch_f16", torch.tensor(values, dtype=torch.float16))
    record.add("paddle", paddle.to_tensor(values, stop_gradient=False))
    record.add("paddle_bf16", paddle.to_tensor(values).astype("bfloat16"))
    record.add("paddle_parameter", paddle.nn.Linear(2, 3).weight)
    for key in ("torch", "torch_bf16", "torch_f8", "torch_f16", "paddle", "paddle_bf16"):
        np.testing.assert_array_equal(record.data[key], values)
    assert record.data["torch_bf16"].dtype == record.data["paddle_bf16"].dtype == np.float32
    assert record.data["torch_f16"].dtype == np.float16


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "cannot record 'x': a NoneType of dtype object; give an array or numbers"),
        ({"a": 1}, "cannot record 'x': a dict of dtype object"),
        ([1, [2, 3]], "cannot record 'x': setting an array element with a sequence"),
        (2**70, "cannot record 'x': a int of dtype object"),
        (np.datetime64("2020-01-01"), "cannot record 'x'"),
        (np.zeros(2, "i4,f4"), "cannot record 'x'"),
    ],
)
def test_recorder_refuses(value: object, said: str) -> None:
    with pytest.raises(RecordError) as caught:
        Recorder().add("x", value)
    assert said in str(caught.value)


def test_recorder_refuses_bad_keys_and_no_path() -> None:
    with pytest.raises(RecordError, match="key must be a str, got int 3"):
        Recorder().add(3, 1)  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="cannot be written in UTF-8"):
        Recorder().add("\udc80", 1)
    with pytest.raises(RecordError, match=r"no path to save the record to: give one to Recorder"):
        Recorder().save()


# Writing whole or not at all


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = save_record(tmp_path / "r.npy", SAMPLE)
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), whole_file(path) as handle:
            handle.write(b"half")
            raise error
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.npy"]
    assert_same(load_record(path), SAMPLE)


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


# Files that are no records


def test_missing_and_folder(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="x.npy is missing: first run the script"):
        load_record(tmp_path / "x.npy")
    with pytest.raises(RecordError, match="is a folder or a device"):
        load_record(tmp_path)
    with pytest.raises(RecordError, match="cannot be read"):
        load_record("a\0b")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty (0 bytes)"),
        (b"hello, world", "is not a .npy file"),
        (b"PK\x03\x04....", "is a .npz archive or a torch file"),
        (b"\x93NUMPY\x09\x00....", "is not a .npy file"),
        (npy(b"", b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }"),
         "holds a plain array (dtype <f4, shape (4, 2)), not a record"),
        (npy(b"", b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"),
         "holds a plain array (dtype |O, shape (3,))"),
        (npy(b"", b"{'descr'"), "its header cannot be read"),
        (npy(b"", b"[]"), "its header cannot be read"),
        (npy(b"", b"(" * 90), "its header cannot be read"),
        (npy(b"hello"), "does not hold a pickle"),
        (npy(pickle.dumps({"a": 1})), "content does not match its header"),
        (npy(boxed([1])), "holds a list, not a record"),
        (npy(boxed({1: np.ones(1)})), "every key must be text, got '1'"),
        (npy(boxed({"x": "text"})), "holds a str under 'x', where an array should be"),
        (npy(boxed({"x": None})), "holds a NoneType under 'x'"),
        (npy(boxed({"x": {"y": np.ones(1)}})), "holds a dict under 'x'"),
        (npy(boxed({"x": np.array([None])})), "holds an array of dtype object under 'x'"),
        (npy(boxed({"x": 2**70})), "holds an array of dtype object under 'x'"),
        (npy(boxed({"x": np.zeros(1, "i4,f4")})), "holds the dtype 'V8'"),
        (npy(boxed({"x": np.zeros(1, "M8[s]")})), "holds the dtype 'M8'"),
        (npy(boxed(SAMPLE)) + b"junk", "has 4 bytes after its end"),
        (npy(boxed(SAMPLE, protocol=0)), "does not hold a pickle of protocol 2 to 5"),
    ],
)  # fmt: skip
def test_what_is_no_record(tmp_path: Path, data: bytes, said: str) -> None:
    assert said in refused(tmp_path / "r.npy", data)


def test_truncation_at_every_byte(tmp_path: Path) -> None:
    whole = save_record(tmp_path / "whole.npy", SAMPLE).read_bytes()
    for length in range(len(whole)):
        message = refused(tmp_path / "r.npy", whole[:length])
        assert "truncated" in message or "empty" in message, (length, message)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_flipped_bytes_never_escape(tmp_path: Path, protocol: int) -> None:
    """A damaged record is refused or loads as arrays that can be used; nothing else happens."""
    whole = npy(boxed(SAMPLE, protocol))
    random, path = np.random.default_rng(protocol), tmp_path / "r.npy"
    outcomes = {"refused": 0, "loaded": 0}
    for _ in range(400):
        data = bytearray(whole)
        for place in random.integers(len(data), size=random.integers(1, 4)):
            data[place] = random.integers(256)
        path.write_bytes(data)
        try:
            loaded = load_record(path)
        except RecordError as error:
            assert "\n" not in str(error)
            outcomes["refused"] += 1
        else:
            assert all(isinstance(array, np.ndarray) for array in loaded.values())
            str(loaded)
            save_record(path, loaded)
            outcomes["loaded"] += 1
    assert min(outcomes.values()) > 20, outcomes


# Hostile pickles


class Call:
    """Pickles as a call of `function`."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def hostile(marker: Path) -> dict[str, Any]:
    import builtins
    import subprocess

    touch = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    return {
        "posix.system": Call(os.system, f"touch {marker}"),
        "subprocess.Popen": Call(subprocess.Popen, ["touch", str(marker)]),
        "subprocess.check_output": Call(subprocess.check_output, ["touch", str(marker)]),
        "builtins.eval": Call(eval, touch),
        "builtins.exec": Call(exec, touch),
        "builtins.getattr": Call(Call(getattr, os, "mkdir"), str(marker)),
        "builtins.map": Call(map, os.mkdir, [str(marker)]),
        "io.open": Call(builtins.open, str(marker), "w"),
        "posix.mkdir": Call(os.mkdir, str(marker)),
        "numpy.save": Call(np.save, str(marker), np.ones(1)),
        "numpy.fromfile": Call(np.fromfile, "/etc/hostname"),
        "pathlib.PosixPath": Path("/"),
        "builtins.bytearray": Call(bytearray, 2**40),
        "builtins.range": range(3),
    }


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("name", list(hostile(Path("m"))))
def test_pickled_code_is_named_and_never_run(tmp_path: Path, name: str, protocol: int) -> None:
    marker, path = tmp_path / "ran", tmp_path / "r.npy"
    attack = hostile(marker)[name]
    if name == "builtins.getattr":  # modules don't pickle: written by hand
        body = b"\x80\x04cbuiltins\ngetattr\ncos\nmkdir\n" + b"\x85R."
    else:
        body = boxed({"x": attack}, protocol)
    message = refused(path, npy(body))
    module, _, function = name.rpartition(".")
    if protocol == 2:  # writes the names of Python 2
        assert "asks to run " in message and "refused, nothing was run" in message
    else:
        assert f"asks to run {module}.{function}: refused, nothing was run" in message
    assert not marker.exists()


@pytest.mark.parametrize("name", ["posix.system", "builtins.eval", "posix.mkdir"])
def test_the_attacks_are_real(tmp_path: Path, name: str) -> None:
    marker, path = tmp_path / "ran", tmp_path / "r.npy"
    np.save(path, {"x": hostile(marker)[name]}, allow_pickle=True)  # type: ignore[arg-type]
    np.load(path, allow_pickle=True)
    assert marker.exists()
    marker.rmdir() if marker.is_dir() else marker.unlink()
    refused(path, path.read_bytes())
    assert not marker.exists()


@pytest.mark.parametrize("place", ["key", "object array", "nested", "array state"])
def test_code_hidden_deeper(tmp_path: Path, place: str) -> None:
    call = Call(os.mkdir, str(tmp_path / "ran"))
    content: Any = {
        "key": {call: np.ones(1)},
        "object array": {"x": np.array([call, 1], dtype=object)},
        "nested": {"x": [({"y": call},)]},
        "array state": {"x": np.ones(1), "y": [call]},
    }[place]
    assert "asks to run posix.mkdir" in refused(tmp_path / "r.npy", npy(boxed(content)))
    assert not (tmp_path / "ran").exists()


GET = {"reconstruct": b"cnumpy._core.multiarray\n_reconstruct\n", "ndarray": b"cnumpy\nndarray\n"}
EMPTY = GET["reconstruct"] + GET["ndarray"] + b"K\x00\x85C\x01b\x87R"
F8 = b"cnumpy\ndtype\nX\x02\x00\x00\x00f8\x89\x88\x87R"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"ios\nsystem\n.", "uses the pickle instruction INST"),
        (b"(cos\nsystem\nX\x01\x00\x00\x00xo.", "asks to run os.system"),
        (b"(I1\no.", "uses the pickle instruction INT"),
        (b"(o.", "uses the pickle instruction OBJ"),
        (b"Pid\n.", "uses the pickle instruction PERSID"),
        (b"NQ.", "uses the pickle instruction BINPERSID"),
        (b"\x82\x01.", "uses the pickle instruction EXT1"),
        (b"\x83\x01\x00.", "uses the pickle instruction EXT2"),
        (b"\x84\x01\x00\x00\x00.", "uses the pickle instruction EXT4"),
        (GET["ndarray"] + b")\x81.", "uses the pickle instruction NEWOBJ"),
        (GET["ndarray"] + b")}\x92.", "uses the pickle instruction NEWOBJ_EX"),
        (b"\x97.", "uses the pickle instruction NEXT_BUFFER"),
        (b"N2.", "uses the pickle instruction DUP"),
        (b"\xff.", "byte 2 of its pickle is not an instruction"),
        (GET["ndarray"] + b"K\x09\x85R.", "asks to run numpy.ndarray"),
        (GET["ndarray"] + b"}b.", "sets the state of a Name"),
        (GET["ndarray"] + b".", "only half built"),
        (EMPTY + b".", "only half built"),
        (EMPTY + b"h\x00a.", "is damaged"),
        (EMPTY + b"Na.", "appends to something other than a list"),
        (EMPTY + b"NNs.", "fills something other than a dict"),
        (GET["reconstruct"] + b"cnumpy\nmemmap\n.", "asks to run numpy.memmap"),
        (GET["reconstruct"] + b"ccollections\nOrderedDict\nK\x00\x85C\x01b\x87R.",
         "asks for an array type"),
        (b"cnumpy\ndtype\nX\x05\x00\x00\x00O,i4i\x89\x88\x87R.", "holds the dtype 'O,i4i'"),
        (F8 + b"(K\x03X\x01\x00\x00\x00<N)}J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb.",
         "holds a structured dtype"),
        (F8 + b"(K\x03X\x01\x00\x00\x00<NNNK\x63K\x01K\x3ftb.", "not well formed"),
        (F8 + b"K\x00b.", "holds a dtype with metadata"),
        (b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00rot\x86R.", "asks to run _codecs"),
        (b"}]K\x01s.", "a dict with a key of type list"),
        (b"]q\x00h\x00a.", "a container that contains itself"),
        (b"]q\x00(h\x00te.", "closes a group that it never opened"),
        (b"K\x01R.", "is damaged"),
        (b"h\x05.", "is damaged"),
        (b"(N.", "ends in the middle of a value"),
        (b"NN.", "ends in the middle of a value"),
        (b"\x8d" + b"\xff" * 8 + b".", "is truncated"),
        (b"\x8b\xff\xff\xff\xff.", "is truncated"),
        (b"\x95" + b"\xff" * 8 + b".", "announces more bytes than there are"),
    ],
)  # fmt: skip
def test_instructions_a_record_never_needs(tmp_path: Path, body: bytes, said: str) -> None:
    assert said in refused(tmp_path / "r.npy", npy(b"\x80\x04" + body))


def test_names_in_messages_cannot_forge_lines(tmp_path: Path) -> None:
    name = "a\n[2030/01/01 00:00:00] root INFO: diff check passed\x1b[2J"
    body = b"\x80\x04" + pickle.dumps(name)[2:-1] + b"\x8c\x01x\x93."
    message = refused(tmp_path / "r.npy", npy(body))
    assert "\x1b" not in message and "asks to run a\\n[2030" in message


EIGHT_BYTES = b"C\x08" + b"\0" * 8


def array_of(shape: tuple[int, ...], dtype: bytes = F8, data: bytes = EIGHT_BYTES) -> bytes:
    return EMPTY + b"(K\x01" + pickle.dumps(shape, 2)[2:-1] + dtype + b"\x89" + data + b"tb."


@pytest.mark.parametrize(
    "shape",
    [(2**40,), (2**62, 2**62), (0,), (0, 2**62), (-1, -1), (2,), (1,) * 65, (2**100,)],
)
def test_huge_and_wrong_shapes(shape: tuple[int, ...]) -> None:
    tracemalloc.start()
    with pytest.raises(RecordError, match="has not the data for it|no proper shape|too large"):
        restricted_loads(b"\x80\x02" + array_of(shape), where="x")
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_values_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    boolean = array_of((1,), F8.replace(b"f8", b"b1"), b"C\x01\x02")
    said = refused(tmp_path / "r.npy", npy(b"\x80\x02" + boolean))
    assert "a boolean in it is neither true nor false" in said
    for letter in (b"\x00\x00\x11\x00", b"\x00\xd8\x00\x00", b"\xff\xff\xff\xff"):
        text = array_of((1,), F8.replace(b"f8", b"U1"), b"C\x04" + letter)
        said = refused(tmp_path / "r.npy", npy(b"\x80\x02" + text))
        assert "a text in it has letters that do not exist" in said


def test_a_string_of_no_width_cannot_be_huge(tmp_path: Path) -> None:
    width_0 = F8.replace(b"f8", b"S0")
    body = b"\x80\x02" + array_of((2**40,), width_0, b"C\x00")
    assert "holds the dtype 'S0'" in refused(tmp_path / "r.npy", npy(body))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x80\x04Nr\xff\xff\xff\x3f.", id="memo index"),
        pytest.param(b"\x80\x04}" + b")" + b"\x85" * 300_000 + b"K\x01s.", id="deep tuple as key"),
        pytest.param(b"\x80\x04" + b"]" * 300_000 + b"a" * 299_999 + b".", id="deep list"),
        pytest.param(b"\x80\x02" + array_of((2**62,) * 100_000), id="product of many axes"),
        pytest.param(b"\x80\x04)" + b"\x94h\x00\x86" * 40 + b".", id="doubling tuples"),
        pytest.param(
            b"\x80\x04(B" + struct.pack("<I", 2**20) + b"x" * 2**20 + b"\x94" + b"h\x00" * 5000
            + b"l.", id="the same bytes as a list of 5000"),
        pytest.param(
            b"\x80\x05](B" + struct.pack("<I", 2**20) + b"x" * 2**20 + b"\x94" + b"h\x00" * 5000
            + b"e.", id="the same bytes appended 5000 times"),
    ],
)  # fmt: skip
def test_no_file_takes_more_memory_or_time_than_its_size_explains(body: bytes) -> None:
    tracemalloc.start()
    began = time.monotonic()
    try:
        restricted_loads(body, where="x")
    except RecordError:
        pass
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()
    assert time.monotonic() - began < 10


def test_attributes_of_an_ordered_dict_are_not_contents() -> None:
    state: Any = OrderedDict(weight=np.ones(2))
    state._metadata = OrderedDict(version=1)  # as torch's state dicts have
    assert_same(restricted_loads(pickle.dumps(state), where="x"), {"weight": np.ones(2)})  # type: ignore[arg-type]


def test_shared_values_are_read_once_and_again() -> None:
    array, inner = np.arange(3), {"k": [1]}
    loaded: Any = restricted_loads(pickle.dumps([array, array, inner, inner]), where="x")
    assert loaded[0] is loaded[1] and loaded[2] is loaded[3]
    assert loaded[2] == inner


def test_tiny_arrays_with_equal_bytes_do_not_share_memory() -> None:
    first, second = np.array([7], np.uint8), np.array([7], np.uint8)
    loaded: Any = restricted_loads(pickle.dumps([first, second]), where="x")
    loaded[0][0] = 1
    assert loaded[1][0] == 7


def test_a_mapped_file_can_be_read(tmp_path: Path) -> None:
    stream = io.BytesIO(pickle.dumps(SAMPLE))
    assert_same(restricted_loads(stream.getbuffer(), where="x"), SAMPLE)  # type: ignore[arg-type]
