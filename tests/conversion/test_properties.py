"""Any bits of any dtype come back as they were, and any fault of a conversion is named: every kind."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from reprod_align.conversion import Conversion, convert, verify
from reprod_align.conversion.weight_map import WeightMap
from reprod_align.weights.reading import open_checkpoint
from tests.conversion.pairs import KINDS, make_pair, make_state

import numpy as np
import paddle
import pytest
import torch

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import assume, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

# Derandomised: the same examples each time, so that the tests fail or pass by the code alone.
properties = settings(max_examples=8, deadline=None, derandomize=True, database=None)
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
SEEDS = st.integers(0, 2**32 - 1)
Arrays = dict[str, np.ndarray]


@cache
def find_map(kind: str) -> WeightMap:
    """Return the map of a kind of layer, as the pairing of the models yields it."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "a.bin"), Path(folder, "b.pdparams")
        torch.save(make_state(kind, torch.float32), source)
        done = convert(Conversion(source, target), make_pair(kind))
    assert done.passed and done.map is not None, done.summary()
    return done.map


def fill_with_bits(state: dict[str, torch.Tensor], seed: int) -> None:
    """Fill the floats with random bits in place: NaN, inf and denormal numbers among them."""
    source = np.random.default_rng(seed)
    for tensor in state.values():
        if tensor.is_floating_point() and tensor.numel():
            size = tensor.numel() * tensor.element_size()
            raw = torch.frombuffer(bytearray(source.bytes(size)), dtype=tensor.dtype)
            tensor.data.copy_(raw.reshape(tensor.shape))


def read_bits(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    tensors = open_checkpoint(path).tensors
    return {name: (held.dtype, held.shape, held.read().tobytes()) for name, held in tensors.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_any_bits_come_back(kind: str) -> None:
    found = find_map(kind)

    @properties
    @given(SEEDS, st.sampled_from(DTYPES))
    def check(seed: int, dtype: torch.dtype) -> None:
        state = make_state(kind, dtype)
        fill_with_bits(state, seed)
        with TemporaryDirectory() as folder:
            a, b, c = (Path(folder, name) for name in ("a.bin", "b.pdparams", "c.bin"))
            torch.save(state, a)
            for source, target in ((a, b), (b, c)):
                done = convert(Conversion(source, target, check=False), None, found)
                assert done.passed and done.written == target, done.summary()
            before, after = read_bits(a), read_bits(c)
            assert {name: before[name] for name in after} == after
            assert before.keys() - after.keys() <= {"positions"}  # a buffer of one side alone

    check()


FAULTS: dict[str, Callable[[Arrays, str, str], None]] = {
    "missing": lambda state, name, other: state.__delitem__(name),
    "extra": lambda state, name, other: state.update({f"{name}_more": state[name]}),
    "transposed": lambda state, name, other: state.update({name: state[name].T.copy()}),
    "swapped": lambda state, name, other: state.update(
        {name: state[other], other: state[name]}
    ),
    "wrong dtype": lambda state, name, other: state.update({name: state[name].astype("float16")}),
    "truncated": lambda state, name, other: state.update({name: state[name][:-1]}),
    "one element": lambda state, name, other: state.update({name: change_one(state[name])}),
}  # fmt: skip


def change_one(array: np.ndarray) -> np.ndarray:
    """Return the array with its last element changed."""
    changed = array.copy()
    changed.flat[-1] += 1
    return changed


def plant(state: Arrays, data: st.DataObject, tied: set[str]) -> str:
    """Plant a fault into one of the floats; return the tensor's name."""
    name = data.draw(
        st.sampled_from([one for one, held in state.items() if held.dtype.kind == "f"])
    )
    alike = [one for one, held in state.items() if held.shape == state[name].shape
             and held.dtype == state[name].dtype and not np.array_equal(held, state[name])]  # fmt: skip
    fault = data.draw(st.sampled_from(sorted(FAULTS)))
    assume(fault != "missing" or (len(state) > 1 and name not in tied))  # a tie has the other name
    assume(fault != "transposed" or state[name].ndim > 1)
    assume(fault != "swapped" or alike)
    FAULTS[fault](state, name, data.draw(st.sampled_from(alike)) if alike else "")
    return name


@pytest.mark.parametrize("kind", KINDS)
def test_any_fault_is_named_with_its_tensor(kind: str) -> None:
    found = find_map(kind)
    tied = {*found.tied["paddle"], *found.tied["paddle"].values()}

    @properties
    @given(SEEDS, st.data())
    def check(seed: int, data: st.DataObject) -> None:
        with TemporaryDirectory() as folder:
            a, b = Path(folder, "a.bin"), Path(folder, "b.pdparams")
            torch.save(make_state(kind, torch.float32, seed), a)
            convert(Conversion(a, b, check=False), None, found)
            state = dict(paddle.load(str(b), return_numpy=True))
            name = plant(state, data, tied)
            paddle.save({key: paddle.to_tensor(held) for key, held in state.items()}, str(b))
            done = verify(Conversion(a, b, check=False), None, found)
            assert any(name in text for text in done.faults), done.summary()

    check()
