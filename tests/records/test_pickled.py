"""What a pickled record may hold: arrays are built, everything else is refused."""

import pickle
from functools import partial
from typing import Any

from reprod_align.errors import RecordError
from reprod_align.records.pickled import (
    KNOWN_NAMES,
    REDUCERS,
    Builder,
    Dtype,
    Name,
    Pending,
    Refused,
)
from reprod_align.records.safe_pickle import restricted_loads

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
     "is damaged: an array in it of shape (3,) has not the data for it"),
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
