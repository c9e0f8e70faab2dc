"""No pickle, however damaged or hostile, runs code or takes more than its size explains."""

import io
import os
import pickle
import struct
import tracemalloc
from collections import OrderedDict
from pathlib import Path
from typing import Any

from reprod_align.errors import RecordError
from reprod_align.records.safe_pickle import restricted_loads
from tests.records.npy import SAMPLE, assert_same, boxed, npy, refused
from tests.records.steps import count_steps

import numpy as np
import pytest


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
    with pytest.raises(
        RecordError, match="has too little or too much data|no proper shape|too large"
    ):
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
def test_no_file_takes_more_memory_or_steps_than_its_size_explains(body: bytes) -> None:
    assert count_steps(lambda: restricted_loads(body, where="x")) < 10 * len(body) + 5_000
    tracemalloc.start()
    try:
        restricted_loads(body, where="x")
    except RecordError:
        pass
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()


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
