"""What must hold of a verdict and of every reader: hypothesis looks for a case against it."""

import math
import pickletools
from typing import Any

from reprod_align.base import blocks
from reprod_align.errors import RecordError, ReprodError
from reprod_align.pair.wire import pack, unpack
from reprod_align.records.compare import STRICT, compare_records, official_rule
from reprod_align.records.safe_pickle import restricted_loads

import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis")  # requirements-dev.txt has it
from hypothesis import strategies as st  # noqa: E402

SETTINGS = hypothesis.settings(max_examples=150, deadline=None, derandomize=True, database=None)
RULES = {"strict": STRICT, "official": official_rule(1e-6)}

sizes = st.integers(2, 400)
seeds = st.integers(0, 2**32)
scales = st.sampled_from([1e-6, 1e-3, 1.0, 50.0, 1e6])
dtypes = st.sampled_from(["float64", "float32"])
rules = st.sampled_from(sorted(RULES))


def array(seed: int, size: int, scale: float, dtype: str) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(size) * scale).astype(dtype)


def changed(values: np.ndarray, at: int, by: float) -> np.ndarray:
    other = values.astype("float64")
    other[at % values.size] += by
    return other


@SETTINGS
@hypothesis.given(
    seeds, sizes, scales, dtypes, rules, st.integers(0), st.floats(1.5, 1e9), st.booleans()
)
def test_a_change_beyond_the_tolerance_is_reported(
    seed: int, size: int, scale: float, dtype: str, rule: str, at: int, times: float, down: bool
) -> None:
    values, held = array(seed, size, scale, dtype), RULES[rule]
    tolerance = held.max_rel * float(np.abs(values).max()) + held.floor
    by = times * tolerance * (-1 if down else 1)
    found = compare_records({"x": values}, {"x": changed(values, at, by)}, rule=held)
    assert not found.passed and "x" in found.reason
    back = compare_records({"x": changed(values, at, by)}, {"x": values}, rule=held)
    assert (
        not back.passed or times < 3 or abs(by) > np.abs(values).max() / 2
    )  # the scale is another's


@SETTINGS
@hypothesis.given(seeds, sizes, scales, dtypes, rules, st.integers(0))
def test_equal_data_pass_and_a_small_change_does(
    seed: int, size: int, scale: float, dtype: str, rule: str, at: int
) -> None:
    values, held = array(seed, size, scale, dtype), RULES[rule]
    assert compare_records({"x": values}, {"x": values.copy()}, rule=held).passed
    least = held.max_rel * held.spread * float(np.abs(values).max()) + held.floor
    other = changed(values, at, min(least / 4, held.mean_abs))
    for pair in ((values, other), (other, values)):
        assert compare_records({"x": pair[0]}, {"x": pair[1]}, rule=held).passed


@SETTINGS
@hypothesis.given(
    seeds, sizes, st.sampled_from([math.nan, math.inf, -math.inf]), st.integers(0), st.booleans()
)
def test_what_is_not_finite_never_passes(
    seed: int, size: int, bad: float, at: int, both: bool
) -> None:
    values = array(seed, size, 1.0, "float64")
    other = values.copy()
    other[at % size] = bad
    for rule in RULES.values():
        assert not compare_records({"x": other if both else values}, {"x": other}, rule=rule).passed


@SETTINGS
@hypothesis.given(
    seeds, st.integers(2, 3000), st.sampled_from([0.0, 1e-12, 1e-8, 1e-3]), st.integers(8, 500)
)
def test_a_verdict_does_not_depend_on_blocks_threads_or_layout(
    seed: int, size: int, noise: float, block: int
) -> None:
    values = array(seed, size, 1.0, "float64")
    other = values + noise * array(seed + 1, size, 1.0, "float64")
    whole = compare_records({"x": values}, {"x": other}, rule=STRICT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK", block)
        patch.setattr(blocks, "SPAN", 2 * block)
        patch.setattr(blocks, "count_cores", lambda: 1 + seed % 4)
        parts = compare_records({"x": values}, {"x": other}, rule=STRICT)
    strided = np.repeat(values, 2)[::2], np.repeat(other, 2)[::2]
    laid = compare_records({"x": strided[0]}, {"x": strided[1]}, rule=STRICT)
    for again in (parts, laid):
        assert (again.passed, again.results[0].exceed) == (whole.passed, whole.results[0].exceed)


@SETTINGS
@hypothesis.given(seeds, sizes, st.sampled_from(["int64", "uint8", "bool", "U3"]), st.integers(0))
def test_whole_numbers_and_texts_must_be_equal(seed: int, size: int, dtype: str, at: int) -> None:
    values = np.random.default_rng(seed).integers(0, 2, size).astype(dtype)
    other = values.copy()
    assert compare_records({"x": values}, {"x": other}).passed
    flip = other[at % size]
    other[at % size] = (not flip) if dtype == "bool" else ("z" if dtype == "U3" else flip + 1)
    assert not compare_records({"x": values}, {"x": other}).passed
    assert not compare_records({"x": other}, {"x": values}).passed


# ------------------------------------------------------------------ readers

_CODES = [op.code.encode("latin1") for op in pickletools.opcodes]
_PIECES = [
    b"K\x01", b"h\x00", b"h\x01", b"X\x01\x00\x00\x00a", b"C\x02ab", b"\x8a\x01\x05",
    b"X\x02\x00\x00\x00f8", b"X\x06\x00\x00\x00latin1", b"cnumpy\ndtype\n", b"cnumpy\nndarray\n",
    b"cnumpy._core.multiarray\n_reconstruct\n", b"cos\nsystem\n", b"ccollections\nOrderedDict\n",
    b"c_codecs\nencode\n", b"cbuiltins\ntuple\n",
]  # fmt: skip
programs = st.lists(st.sampled_from([*_CODES, *_PIECES]), max_size=60).map(b"".join)


@SETTINGS
@hypothesis.given(programs)
def test_any_program_is_a_value_or_one_line(program: bytes) -> None:
    try:
        restricted_loads(b"\x80\x04" + program + b".", where="x")
    except RecordError as error:
        assert "\n" not in str(error)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


@SETTINGS
@hypothesis.given(plain)
def test_plain_data_pass_through_a_message(value: Any) -> None:
    header, arrays = pack(value)
    assert arrays == [] and unpack(header, []) == value


@SETTINGS
@hypothesis.given(plain.map(lambda value: [value]))
def test_any_table_is_a_value_or_one_line(table: Any) -> None:
    import json

    try:
        text = json.dumps(table, default=str).encode()
        unpack(text, [np.zeros(8, np.uint8)])
    except ReprodError as error:
        assert "\n" not in str(error)
