"""What a pickled record may hold: arrays are built, everything else is refused."""

import pickle
import struct
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

from reprod_align.errors import RecordError
from reprod_align.records.pickled import (
    KNOWN_NAMES,
    REDUCERS,
    Account,
    Builder,
    Dtype,
    Name,
    Pending,
    Refused,
)
from reprod_align.records.safe_pickle import Machine, restricted_loads
from reprod_align.weights.stored import FileSpan
from reprod_align.weights.torch_file import _TorchMachine
from tests.records.npy import boxed
from tests.records.steps import count_steps

import numpy as np
import pytest

ONE = memoryview(np.array([1.0, 2.0]).tobytes())
FLOAT = Dtype("f8", "<")


def test_an_array_is_built_from_its_bytes() -> None:
    array = Builder(100).array(FLOAT, (2,), ONE)
    assert array.tolist() == [1.0, 2.0]
    array[0] = 3  # a copy, to be written to
    turned = REDUCERS["_frombuffer"](Builder(100), ONE, FLOAT, (1, 2), "F")
    assert turned.shape == (1, 2)
    turned = REDUCERS["_frombuffer"](Builder(100), ONE, FLOAT, (1, 2), "K", (1, 0))
    assert turned.shape == (2, 1)
    with pytest.raises(Refused, match="unknown memory order"):  # "K" is nothing without its axes
        REDUCERS["_frombuffer"](Builder(100), ONE, FLOAT, (1, 2), "K")
    assert REDUCERS["scalar"](Builder(100), FLOAT, ONE[:8]) == 1.0


@pytest.mark.parametrize(("dtype", "shape", "data"), [
    (FLOAT, (3,), ONE),
    (FLOAT, (-1,), ONE),
    (FLOAT, [2], ONE),
    ("f8", (2,), ONE),
    (Dtype("O"), (2,), ONE),
    (Dtype("b1"), (16,), memoryview(b"\x02" * 16)),
    (Dtype("U1"), (1,), memoryview(b"\xff" * 4)),
])  # fmt: skip
def test_an_array_that_does_not_fit_is_refused(dtype: object, shape: object, data: object) -> None:
    with pytest.raises(Refused, match="is damaged"):
        Builder(1000).array(dtype, shape, data)


def test_the_last_that_fits_is_taken() -> None:
    builder = Builder(1000)
    assert builder.array(FLOAT, (1,) * 64, ONE[:8]).ndim == 64
    with pytest.raises(Refused, match="no proper shape"):
        builder.array(FLOAT, (1,) * 65, ONE[:8])
    for letter in ("\ud7ff", "\ue000", "\U0010ffff"):
        data = memoryview(np.array([letter]).tobytes())
        assert builder.array(Dtype("U1"), (1,), data).tolist() == [letter]


@pytest.mark.parametrize(("name", "arguments", "said"), [
    ("array", (FLOAT, (2**63, 0), ONE[:0]), "is damaged: an array in it has no proper shape and dtype"),
    ("array", (FLOAT, (3,), ONE),
     "is damaged: an array in it of shape (3,) has too little or too much data"),
    ("array", (Dtype("b1"), (1,), memoryview(b"\x02")),
     "is damaged: a boolean in it is neither true nor false"),
    ("array", (Dtype("U1"), (1,), memoryview(b"\xff" * 4)),
     "is damaged: a text in it has letters that do not exist"),
    ("_reconstruct", (Name("dtype"), (0,), b"b"),
     "asks for an array type that a record never needs"),
    ("dtype", ("V" * 50, False, True),
     f"holds the dtype '{'V' * 40}', which a record never needs"),
    ("_frombuffer", (ONE, FLOAT, (2,), "A"),
     "is damaged: an array in it has an unknown memory order"),
    ("encode", ("text", "rot13"),
     "asks to run _codecs.encode on something other than the bytes of an array"),
    ("tuple", ([1],), "is damaged: a tuple in it is made of something else"),
])  # fmt: skip
def test_the_whole_message(name: str, arguments: tuple[Any, ...], said: str) -> None:
    builder = Builder(1000)
    make = builder.array if name == "array" else partial(REDUCERS[name], builder)
    with pytest.raises(Refused) as caught:
        make(*arguments)
    assert str(caught.value) == said


def test_fortran_order_is_kept() -> None:
    data = memoryview(np.arange(6.0).tobytes())
    turned = REDUCERS["_frombuffer"](Builder(100), data, FLOAT, (2, 3), "F")
    assert turned.flags.f_contiguous and turned[:, 0].tolist() == [0, 1]
    assert Builder(100).array(FLOAT, (2, 3), data).flags.c_contiguous


def test_memory_is_accounted_for() -> None:
    builder = Builder(10)
    builder.array(FLOAT, (2,), ONE)
    with pytest.raises(Refused, match="more memory"):
        builder.array(FLOAT, (2,), ONE)


def test_rings_and_deep_nests_are_refused() -> None:
    builder, inner = Builder(100), [1]
    outer = [inner]
    builder.place(inner, [1])
    builder.place(outer, [inner])
    with pytest.raises(Refused, match="contains itself"):
        builder.place(inner, [outer])
    builder, nest = Builder(100), [1]
    with pytest.raises(Refused, match="more than 64 deep"):
        for _ in range(70):
            nest, before = [nest], nest
            builder.place(nest, [before])


def test_a_dtype_takes_its_byte_order_and_nothing_else() -> None:
    dtype = REDUCERS["dtype"](Builder(0), "f8", False, True)
    dtype.build((3, ">", None, None, None, -1, -1, 0))
    assert dtype.to_numpy() == np.dtype(">f8")
    for order in "<=|":
        dtype.build((3, order, None, None, None, 8, 8, 0))
        assert dtype.to_numpy() == np.dtype("<f8" if order == "<" else "f8")
    for state, said in (
        ((), "holds a dtype with metadata, which a record never needs"),
        ([3, "<", None, None, None, 8, 8, 0], "holds a dtype with metadata, which a record never needs"),
        ((2, "<", None, None, None, 8, 8, 0), "holds a structured dtype, which a record never needs"),
        ((3, "<", None, ("a",), {}, 8, 8, 0), "holds a structured dtype, which a record never needs"),
        ((3, "?", None, None, None, 8, 8, 0), "is damaged: a dtype f8 in it is not well formed"),
        ((3, "<", None, None, None, 4, 8, 0), "is damaged: a dtype f8 in it is not well formed"),
    ):  # fmt: skip
        with pytest.raises(Refused) as caught:
            dtype.build(state)
        assert str(caught.value) == said
    for code, shown in (("V8", "'V8'"), ("m8", "'m8'"), (8, "of type int")):
        with pytest.raises(Refused, match=f"holds the dtype {shown}"):
            REDUCERS["dtype"](Builder(0), code, False, True)


def test_the_dtypes_that_a_record_may_hold() -> None:
    def take(code: str) -> object:
        return REDUCERS["dtype"](Builder(0), code, False, True)

    for code in ("b1", "i8", "u2", "f4", "f16", "c8", "S1", "U10", "S987654321", "O", "O4", "O8"):
        assert take(code) == Dtype(code)
    for code in ("b", "S", "U", "S0", "U01", "f100", "S1234567890", "g16", "V8", "m8", "O9", "O16"):
        with pytest.raises(Refused, match=f"holds the dtype '{code}'"):
            take(code)


def test_names_stand_for_functions_of_our_own() -> None:
    modules: dict[str, list[str]] = {}
    for module, name in sorted(KNOWN_NAMES):
        assert KNOWN_NAMES[module, name] == name
        modules.setdefault(name, []).append(module)
    multiarray = ["numpy._core.multiarray", "numpy.core.multiarray"]
    builtins = ["__builtin__", "builtins"]
    assert modules == {
        "ndarray": ["numpy"], "dtype": ["numpy"], "_reconstruct": multiarray, "scalar": multiarray,
        "_frombuffer": ["numpy._core.numeric", "numpy.core.numeric"], "encode": ["_codecs"],
        "OrderedDict": ["collections"], "bytes": builtins, "complex": builtins, "tuple": builtins,
    }  # fmt: skip
    assert set(REDUCERS) == set(modules) - {"ndarray"}
    make = REDUCERS["_reconstruct"]
    for code in (b"b", "b"):
        assert make(Builder(0), Name("ndarray"), (0,), code) == Pending()
    for asked in ((Name("dtype"), (0,), b"b"), (Name("ndarray"), (1,), b"b"),
                  (Name("ndarray"), (0,), b"d")):  # fmt: skip
        with pytest.raises(Refused, match="array type"):
            make(Builder(0), *asked)


def test_an_array_inside_itself_is_refused() -> None:
    ring = np.empty(1, dtype=object)
    ring[0] = ring
    with pytest.raises(RecordError, match="a value in it is only half built"):
        restricted_loads(pickle.dumps(ring), where="x")


def test_what_protocol_2_writes_as_calls() -> None:
    assert Builder(0).array(FLOAT, (0,), REDUCERS["bytes"](Builder(0))).size == 0
    assert REDUCERS["complex"](Builder(0), 1.0, -2.0) == 1 - 2j
    for value in (b"", 1 - 2j, (b"", b"x")):
        assert restricted_loads(pickle.dumps(value, 2), where="x") == value


def test_arguments_are_what_a_writer_gives() -> None:
    for name in ("latin1", "latin-1"):
        assert bytes(REDUCERS["encode"](Builder(9), "é", name)) == b"\xe9"
    assert REDUCERS["tuple"](Builder(0), (1, 2)) == (1, 2)


START = b"\x80\x04"


def text(length: int) -> bytes:
    return b"X" + struct.pack("<I", length) + b"a" * length + b"\x94"


def wide(length: int) -> bytes:
    """A tuple of `length` values, memoized; further uses of it take two bytes."""
    return b"(" + b"N" * length + b"t\x94"


RAW_TUPLE = b"(C\x01a" + b"N" * 2000 + b"t\x94"  # it is finished anew where it is used
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "a wide tuple wrapped again and again": lambda n: b"](" + wide(n) + b"h\x00\x85" * n + b"e.",
    "a wide tuple appended again and again": lambda n: b"](" + wide(n) + b"e" + b"h\x00a" * n + b".",
    "a raw tuple appended again and again": lambda n: b"](" + RAW_TUPLE + b"e" + b"h\x00a" * n + b".",
    "a wide tuple as arguments": lambda n: wide(n) + b"ccollections\nOrderedDict\n\x94"
    + b"h\x01h\x00R" * n + b".",
    "tuples of one": lambda n: b"N" + b"N\x85" * n + b".",
    "lists": lambda n: b"]" * n + b".",
    "dicts": lambda n: b"}" * n + b".",
    "groups": lambda n: b"(" * n + b".",
    "memos": lambda n: b"N" + b"\x94" * n + b".",
    "views": lambda n: b"C\x00" * n + b".",
    "a long text as key": lambda n: text(n) + text(n) + b"](" + b"}h\x00Nsh\x01\x94" * n + b"e.",
    "arrays of one list": lambda n: b"](" + b"N" * n + b"e\x94" + b"h\x00" * n + b".",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_steps_and_memory_are_linear_in_the_file(name: str) -> None:
    few, many = (START + HOSTILE[name](n) for n in (2_000, 8_000))
    steps = [count_steps(Machine(memoryview(body)).run) for body in (few, many)]
    assert steps[1] <= 1.1 * len(many) / len(few) * steps[0] + 1000
    tracemalloc.start()
    with pytest.raises(RecordError) if name != "memos" else tracemalloc_only():
        restricted_loads(START + HOSTILE[name](60_000), where="x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * len(START + HOSTILE[name](60_000)) + 2**22


def tracemalloc_only() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"}\x8a\x09" + b"\x7f" * 9 + b"Ns.", "an integer key of 71 bits"),
        (b"}(K\x01NK\x01Nu.", "the same key twice: 1"),
        (b"}K\x01NsK\x01Ns.", "the same key twice: 1"),
        (text(300) + text(300) + b"\x93.", "names a function with 600 letters"),
        (b"Nq\x01.", "numbers its values out of order"),
        (b"cnumpy\ndtype\n)" + b"".join(b"\x94h" + bytes([k]) + b"\x86" for k in range(40))
         + b"\x89\x88\x87R.", "repeats its containers more often"),
        (b"cnumpy\ndtype\n]\x89\x88\x87R.", "holds the dtype of type list"),
    ],
)  # fmt: skip
def test_what_would_take_long_is_refused(body: bytes, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        restricted_loads(START + body, where="x")


@pytest.mark.parametrize("depth", [63, 66])
def test_a_finished_tuple_keeps_its_depth(depth: int) -> None:
    body = START + b"C\x00\x85" + b"C\x00\x86" * depth + b"."
    if depth < 64:
        restricted_loads(body, where="x")
    else:
        with pytest.raises(RecordError, match="more than 64 deep"):
            restricted_loads(body, where="x")


SMALL: dict[str, Any] = {
    "0-d arrays": {f"loss_{i}": np.array(1.5 * i) for i in range(8_000)},
    "numbers": {f"loss_{i}": np.float64(i) for i in range(8_000)},
    "texts": {f"t{i}": np.array("ab") for i in range(8_000)},
    "a vocabulary": {"words": [{"id": i, "word": f"w{i}"} for i in range(8_000)]},
    "pairs": {"x": [[i, (i, i)] for i in range(8_000)]},
    "small dicts": {"x": [{"id": i % 200} for i in range(12_000)]},
    "tensors in a list": {"x": [(f"a{i}", np.zeros(1, np.float32)) for i in range(8_000)]},
}


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("name", SMALL)
def test_many_small_values_are_read(name: str, protocol: int) -> None:
    loaded: Any = restricted_loads(boxed(SMALL[name], protocol), where="x")
    assert loaded[()].keys() == SMALL[name].keys()


def test_what_is_paid_counts_the_bytes() -> None:
    account = Account(1000)
    account.pay(100)
    assert account.paid == 100
    with pytest.raises(Refused, match="more memory"):
        account.pay(2**20 + 40 * 1000)
    with pytest.raises(Refused, match="more memory"):
        Account(10).spend(21)


# ------------------------------------------------------------------ checkpoints: names, views, views of views


def find(key: str, dtype: str, count: int) -> FileSpan:
    raise Refused("finds nothing")


@pytest.mark.parametrize(
    "make",
    [
        lambda n: b"(" + b"N" * n + b"\x8f" + b"Na" * n + b"t.",
        lambda n: b"(" + wide(n) + b"ctorch\ndevice\n\x94" + b"h\x01h\x00R" * n + b"t.",
        lambda n: b"(" + wide(n) + b"cmine\nClass\n\x94" + b"h\x01h\x00R" * n + b"t.",
        lambda n: b"(" + wide(n) + b"ctorch\nSize\n\x94" + b"h\x01h\x00R" * n + b"t.",
    ],
)
def test_opaque_things_take_linear_memory(make: Callable[[int], bytes]) -> None:
    def run(n: int) -> None:
        _TorchMachine(memoryview(START + make(n)), find).run()

    few, many = count_steps(lambda: run(2000)), count_steps(lambda: run(8000))
    assert many <= 4.4 * few + 1000


def test_a_stack_is_not_copied_for_what_is_dropped() -> None:
    """Each of these appends to an opaque object: the values below it stay where they are."""
    machine = _TorchMachine(memoryview(START + b"(" + b"N" * 9 + b"\x8f" + b"Na" * 9 + b"t."), find)
    seen: set[int] = set()
    handlers = dict(machine.handlers)
    append = handlers[b"a"]

    def hear(own: Any) -> None:
        append(own)
        seen.add(id(own.stack))

    machine.handlers = handlers | {b"a": hear}
    machine.run()
    assert len(seen) == 1


def test_pickles_are_as_before() -> None:
    content = {"x": [1, 2.5, "é", b"ab", (1, (2, 3)), {"y": None}, True, 10**18, -(2**70)]}
    for protocol in (2, 3, 4, 5):
        assert restricted_loads(pickle.dumps(content, protocol), where="x") == content


def test_what_is_allowed_may_be_spent_to_the_last_byte() -> None:
    account = Account(10)
    account.spend(20)
    account.pay(2**20 + 400)
    with pytest.raises(Refused, match="^asks for more memory"):
        account.spend(1)
    with pytest.raises(Refused, match="^asks for more memory"):
        account.pay(1)


def nested(depth: int, inner: Any) -> None:
    account = Account(10**6)
    for _ in range(depth):
        outer = [inner]
        account.place(outer, [inner])
        inner = outer


@pytest.mark.parametrize("inner", [[1], (1,), {1: 1}, np.array([1, "a"], object)])
def test_each_container_counts_for_the_depth(inner: Any) -> None:
    nested(63, inner)
    with pytest.raises(Refused, match="^nests containers more than 64 deep"):
        nested(64, inner)


@pytest.mark.parametrize(
    "first", [list(range(1000)), tuple(range(1000)), np.arange(1000).astype(object)]
)
def test_values_are_counted_as_often_as_they_are_reached(first: Any) -> None:
    """1000 values, twice in each list: 2**11 lists deep are 2 million, above 2**20 and a little."""
    account, inner = Account(0), first
    account.pay(-(2**30))  # the price is another test's
    doubled = 0
    with pytest.raises(Refused, match="^repeats its containers"):
        for _ in range(12):
            outer: list[Any] = [0]
            account.place(outer, [0])
            for _ in range(2):  # one by one, as APPEND does
                outer.append(inner)
                account.place(outer, [inner])
            inner = outer
            doubled += 1
    assert doubled == 10  # 1000 * 2**10 and the lists themselves are allowed, twice that is not


def test_looks_are_paid_for() -> None:
    account = Account(100)
    account.place([1] * 50, [1] * 50)
    assert account.paid == 400
    account.place([()], [()])  # an empty tuple is no container
    assert account.paid == 408
    inner = [1]
    account.place([inner], [inner])
    assert account.paid == 408 + 8 + 200


@pytest.mark.parametrize(
    "body",
    [
        b"]\x94]\x94h\x00ah\x00h\x01a.",  # a = []; b = [a]; a.append(b)
        b"]\x94}\x94K\x00h\x00sh\x00h\x01a.",
        b"}\x94]\x94h\x00ah\x00K\x00h\x01s.",
        b"}\x94h\x00\x85\x94h\x00K\x00h\x01s.",
        b"]\x94h\x00h\x00a.",
    ],
)  # fmt: skip
def test_what_was_empty_when_it_was_placed_stays_empty(body: bytes) -> None:
    with pytest.raises(RecordError, match="holds a container that contains itself"):
        restricted_loads(START + body, where="x")
