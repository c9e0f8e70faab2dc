"""Records: what may be recorded, written and read."""

import pickle
import warnings
from collections import OrderedDict
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

from reprod_align.base.blocks import Array
from reprod_align.base.files import whole_file
from reprod_align.errors import MissingInputError, RecordError
from reprod_align.records import Recorder, load_record, on_host, save_record, unread_items
from reprod_align.records.safe_pickle import restricted_loads
from tests.records.npy import HEADER, SAMPLE, assert_same, boxed, npy, refused

import numpy as np
import pytest

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


def test_every_version_of_the_header(tmp_path: Path) -> None:
    box = np.empty((), dtype=object)
    box[()] = SAMPLE
    path = tmp_path / "r.npy"
    for version in (1, 2, 3):
        with open(path, "wb") as handle:
            np.lib.format.write_array(handle, box, version=(version, 0))
        assert_same(load_record(path), SAMPLE)
    known = path.read_bytes()
    for version in (0, 4):
        assert "is not a .npy file" in refused(path, known[:6] + bytes([version]) + known[7:])


def test_the_longest_header(tmp_path: Path) -> None:
    path = tmp_path / "r.npy"
    path.write_bytes(npy(boxed(SAMPLE), HEADER.ljust(9_999)))
    assert_same(load_record(path), SAMPLE)
    said = refused(path, npy(boxed(SAMPLE), HEADER.ljust(10_000)))
    assert said == f"{path} is damaged: its header is 10001 bytes long"


def test_arrays_from_a_mebibyte_on_stay_in_the_file(tmp_path: Path) -> None:
    sizes = {"below": 2**20 - 1, "at": 2**20}
    record = {name: np.zeros(size, np.uint8) for name, size in sizes.items()}
    read = dict(unread_items(load_record(save_record(tmp_path / "r.npy", record))))
    assert {name: array.flags.writeable for name, array in read.items()} == {
        "below": True, "at": False
    }  # fmt: skip


def test_items_of_a_mapping_that_is_no_dict() -> None:
    assert dict(unread_items(MappingProxyType({"x": 1}))) == {"x": 1}


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
    assert list(record.data) == ["a"] and record.data is record.data, "what it holds, not a copy"
    record.save(tmp_path / "r")
    record.clear()
    assert record.data == {}
    assert_same(load_record(tmp_path / "r.npy"), {"a": np.ones(2)})


class Wordless:
    def __array__(self, dtype: object = None, copy: object = None) -> None:
        raise ValueError


def test_recorder_stores_in_c_order(tmp_path: Path) -> None:
    record = Recorder(tmp_path / "r.npy")
    record.add("turned", np.arange(6.0).reshape(2, 3).T)
    assert record.data["turned"].flags.c_contiguous


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
        (np.uint8(1), "u", ()),
        (b"bytes", "S", ()),
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


class OldPaddle:
    """A bfloat16 tensor as Paddle's once were: widened by `astype` alone."""

    dtype = "paddle.bfloat16"

    def detach(self) -> "OldPaddle":
        return self

    cpu = detach

    def astype(self, name: str) -> "OldPaddle":
        self.dtype = name
        return self

    def numpy(self) -> Array:
        return np.ones(2, self.dtype)


def test_a_tensor_without_float_is_widened_by_astype() -> None:
    assert on_host(OldPaddle()).dtype == np.float32


@pytest.mark.parametrize("method", ["detach", "numpy"])
def test_a_value_with_one_method_of_a_tensor_is_left_as_it_is(method: str) -> None:
    value = SimpleNamespace(**{method: lambda: None})
    assert on_host(value) is value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "cannot record 'x': a NoneType of dtype object; give an array or numbers"),
        ({"a": 1}, "cannot record 'x': a dict of dtype object"),
        ([1, [2, 3]], "cannot record 'x': setting an array element with a sequence"),
        (2**70, "cannot record 'x': a int of dtype object"),
        (np.datetime64("2020-01-01"), "cannot record 'x'"),
        (np.timedelta64(1, "s"), "cannot record 'x'"),
        (np.zeros(2, "i4,f4"), "cannot record 'x'"),
        (Wordless(), "cannot record 'x': ValueError"),
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
    with pytest.raises(RecordError, match="cannot record 'x': a NoneType"):
        save_record("never.npy", {"x": None})
    with pytest.raises(RecordError, match=r"^no path to save .* to Recorder\(\) or to save\(\)$"):
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


# Files that are no records


def test_missing_and_folder(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="x.npy is missing: first run the script"):
        load_record(tmp_path / "x.npy")
    with pytest.raises(RecordError, match="is a folder or a device"):
        load_record(tmp_path)
    with pytest.raises(RecordError, match="cannot be read"):
        load_record("a\0b")


def test_more_than_memory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(self: Path) -> bytes:
        raise MemoryError

    path = save_record(tmp_path / "r.npy", SAMPLE)
    monkeypatch.setattr(Path, "read_bytes", too_much)
    with pytest.raises(RecordError) as caught:
        load_record(path)
    size = path.stat().st_size
    assert str(caught.value) == f"{path} has {size} bytes, more than fit into memory"


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
        (npy(b"", b"{'descr': '" + b"f" * 200 + b"', 'shape': (), }"),
         f"holds a plain array (dtype {'f' * 74}), not a record"),
        (npy(b"", b"{'descr'"), "its header cannot be read"),
        (npy(b"", b"[]"), "its header cannot be read"),
        (npy(b"", b"(" * 90), "its header cannot be read"),
        (npy(b"hello"), "does not hold a pickle"),
        (npy(pickle.dumps({"a": 1})), "content does not match its header"),
        (npy(pickle.dumps(np.float64(1))), "content does not match its header"),
        (npy(pickle.dumps(np.ones(()))), "content does not match its header"),
        (npy(pickle.dumps(np.array([{}, {}]))), "content does not match its header"),
        (npy(boxed([1])), "holds a list, not a record"),
        (npy(boxed({1: np.ones(1)})), "every key must be text, got '1'"),
        (npy(boxed({b"y" * 99: np.ones(1)})), f"text, got \"b'{'y' * 38}\""),
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
    for _ in range(1000):
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


@pytest.mark.parametrize(
    "content", [{10**9000: np.ones(1)}, {"x": 10**9000}, {"x": [10**9000]}, {1: 1.0}]
)
def test_integers_without_end_are_one_line(tmp_path: Path, content: object) -> None:
    path = tmp_path / "r.npy"
    path.write_bytes(npy(boxed(content)))
    with pytest.raises(RecordError) as caught:
        load_record(path)
    assert "\n" not in str(caught.value) and "9000" not in str(caught.value)[-20:]
