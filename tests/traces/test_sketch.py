"""A sketch shows every difference and tells its size."""

import math
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from reprod_align.backends.paddle import trace as paddle_trace
from reprod_align.backends.torch import trace as torch_trace
from reprod_align.traces.diff import compare_traces
from reprod_align.traces.sketch import (
    BINS,
    KINDS,
    LENGTH,
    LONG_LENGTH,
    ROWS,
    SLAB,
    STATISTICS,
    WHOLE,
    add_hashes,
    compare_constants,
    count_nan,
    digest_integers,
    distance,
    estimate_from_runs,
    find_kinds,
    find_largest_share,
    find_other_places,
    hash_numbers,
    hash_places,
    sketch,
    sketch_backwards,
    sketch_large,
    statistics,
)
from tests.traces.test_diff import recorded

import numpy as np
import paddle
import pytest
import torch


def test_small_arrays_are_kept_whole() -> None:
    array = np.arange(WHOLE, dtype=np.float64)
    assert sketch_large(array) is array
    assert sketch_large(np.arange(WHOLE + 1.0)).shape == (BINS + ROWS,)


@pytest.mark.parametrize("where", [0, 12345, 99_999])
def test_one_changed_element_changes_the_sketch(where: int) -> None:
    array = np.random.default_rng(0).normal(size=(100, 1000))
    changed = array.copy()
    changed.flat[where] += 1e-6
    gap = np.abs(sketch_large(changed) - sketch_large(array))
    assert np.count_nonzero(gap[:BINS] > 1e-9) == np.count_nonzero(gap[BINS:] > 1e-9) == 1
    assert gap.max() == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("fault", [np.transpose, lambda a: a[::-1], lambda a: -a])
def test_permutations_and_signs_are_seen(fault) -> None:
    array = np.random.default_rng(0).normal(size=(300, 300))
    assert np.abs(sketch_large(fault(array)) - sketch_large(array)).max() > 1


def test_the_length_of_a_difference_can_be_read_off() -> None:
    """Over 200 seeds, the estimate of |difference| lies within 20 % of the truth."""
    base = np.zeros(50_000)
    for seed in range(200):
        gap = np.random.default_rng(seed).normal(size=base.size)
        estimate = np.linalg.norm((sketch_large(base + gap) - sketch_large(base))[:BINS])
        assert estimate == pytest.approx(np.linalg.norm(gap), rel=0.2)


@pytest.mark.parametrize("shape", [(10_000,), (BINS, 30), (2 * SLAB + 5,), (BINS, 600)])
def test_nan_and_infinity_stay_visible(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    array.flat[-2], array.flat[1777] = np.nan, np.inf
    sums = sketch_large(array)
    assert np.isnan(sums).sum() == np.isinf(sums).sum() == 2 and sums.dtype == np.float32
    finite = np.zeros(shape, np.float32)
    finite.flat[-2] = 1
    np.testing.assert_array_equal(np.isnan(sums), sketch_large(finite) != 0)  # in its own sum


def test_another_process_makes_the_same_sketch() -> None:
    code = "import numpy as np; from reprod_align.traces.sketch import sketch_large;"
    code += "print(sketch_large(np.arange(1e5)).tobytes().hex())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == sketch_large(np.arange(1e5)).tobytes().hex()


def test_sketch_backwards() -> None:
    named = [("first", np.zeros(2)), ("last", np.ones(2))]
    assert list(sketch_backwards("gradient_0", named)) == ["gradient_0.last", "gradient_0.first"]


# ---------------------------------------------------------------------- differences and frameworks


def changes(values: np.ndarray, source: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield kinds of difference, and `values` with each."""
    rows, columns = values.shape[0], values.shape[-1]
    row, column = source.integers(rows), source.integers(columns)
    changed = {kind: values.copy() for kind in ("element", "row", "column", "head")}
    changed["element"].flat[source.integers(values.size)] += 1
    changed["row"][row] *= 1.1
    changed["column"][..., column] += 0.1
    changed["head"][..., column : column + 16] *= 1.3
    yield from changed.items()
    yield "noise", values + 1e-3 * source.standard_normal(values.shape)
    yield "sign", -values
    yield "scale", values * 1.001
    yield "constant", values + 0.01
    yield "bias", values + source.standard_normal(columns)
    yield "permuted rows", values[source.permutation(rows)]
    yield "permuted columns", values[..., source.permutation(columns)]
    yield "rolled", np.roll(values, 1, axis=0)
    yield "cut off", np.maximum(values, 0.1)


SHAPES = [
    (600,),
    (25, 25),
    (7, 768),
    (256, 768),
    (2, 64, 1536),
    (64, 2 * BINS),
    (3 * SLAB // 768, 768),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("base", ["normal", "positive", "heavy"])
def test_differences_are_estimated_within_a_fifth(shape: tuple[int, ...], base: str) -> None:
    source = np.random.default_rng(len(shape) * 1000 + shape[-1])
    values = source.standard_normal(shape)
    values = {"normal": values, "positive": np.abs(values) + 1, "heavy": values**5}[base]
    own = sketch(values)
    for kind, other in changes(values, source):
        true = float(np.linalg.norm(other - values))
        estimate = distance(own, sketch(other))
        assert abs(estimate - true) <= 0.2 * true, kind
        if kind == "element":
            assert estimate == pytest.approx(true, rel=1e-9)


def test_a_run_of_changed_elements_is_exact() -> None:
    values = np.random.default_rng(0).standard_normal(40_000)
    other = values.copy()
    other[1000 : 1000 + BINS] *= 3
    true = np.linalg.norm(other - values)
    assert distance(sketch(values), sketch(other)) == pytest.approx(true, rel=1e-12)


def test_sketches_never_change() -> None:
    """Files written by one version must be comparable with those of the next."""
    values = np.arange(5 * SLAB + 1000) % 97 - 48.0
    sums = sketch(values)[len(STATISTICS) :]
    assert sums[:4].tolist() == [507.0, -1338.0, -585.0, -350.0]
    assert float(np.abs(sums[:BINS]).sum()) == 559324.0
    assert float(np.abs(sums[BINS : BINS + ROWS]).sum()) == 584216.0


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128"])
@pytest.mark.parametrize("shape", [(600,), (64, 2 * BINS), (300, 1000)])
def test_the_frameworks_compute_the_same_sketch(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.random.default_rng(1).standard_normal(shape) * 9).astype(dtype)
    expected, within = sketch(values), rounding(values)
    made = {
        "torch": sketch(torch.tensor(values), torch_trace),
        "paddle": sketch(paddle.to_tensor(values), paddle_trace),
        "torch on its device": sketch(torch.tensor(values), OnDevice(torch_trace)),
        "paddle on its device": sketch(paddle.to_tensor(values), OnDevice(paddle_trace)),
    }
    for name, actual in made.items():
        assert (np.abs(actual - expected) <= within).all(), name


def rounding(values: np.ndarray) -> np.ndarray:
    """Return how far two sketches of one tensor can be apart, whatever the order of their additions.

    The rounding errors of a sum of n terms x are at most u * sum|x| each, u = eps / 2, and add up to at
    most 6 * sqrt(n) * u * sum|x| with a probability above 1 - 2 * exp(-18) (Higham and Mary, SIAM J.
    Sci. Comput. 41, 2019). Two results may differ by twice that. Extremes and counts are exact.
    """
    eps = np.finfo(values.dtype if values.dtype.kind in "fc" else np.float64).eps
    real = values.reshape(-1).view(values.real.dtype).astype(np.float64)  # complex numbers as pairs
    absolute, squares, size = np.abs(real), np.square(real).mean(), real.size
    whole = 6 * np.sqrt(size) * eps  # of a sum over the tensor, relative to sum|x|
    mean = whole * absolute.mean()
    apart = whole * squares + 2 * abs(real.mean()) * mean  # of squares - mean^2, whose root is std
    std = min(apart / real.std() if real.std() else np.inf, np.sqrt(apart))
    norm = whole / 2 * np.linalg.norm(real)  # of a square root: half as much, relatively
    terms = size // 503 + 2  # of each signed sum; there are 503 or 509
    largest = np.sort(absolute)[-terms:].sum()  # sum|x| of any such terms is at most this
    sums = np.full(BINS, 6 * np.sqrt(terms) * eps * largest)
    runs = np.full(ROWS, 6 * np.sqrt(BINS) * eps * np.sort(absolute)[-BINS:].sum())
    exact = np.zeros(LENGTH - len(STATISTICS) - BINS - ROWS)
    return np.concatenate([[mean, std, 0, 0, 0, norm], sums, runs, exact])


class OnDevice:
    """A backend's operations as they run on an accelerator."""

    def __init__(self, ops: Any) -> None:
        self.ops = ops

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ops, name)

    def flat(self, values: Any) -> Any:
        return self.ops.on_device(values)


def test_channels_last_and_views_do_not_matter() -> None:
    values = torch.randn(2, 8, 16, 16)
    expected = sketch(values, torch_trace)
    last = values.to(memory_format=torch.channels_last)
    np.testing.assert_array_equal(sketch(last, torch_trace), expected)
    turned = values.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    np.testing.assert_array_equal(sketch(turned, torch_trace), expected)


def test_nan_and_infinity_are_counted_and_left_out() -> None:
    values = np.random.default_rng(2).standard_normal((30, 100))
    bad = values.copy()
    bad[3, 4], bad[5, 6], bad[7, 8] = np.nan, np.inf, -np.inf
    found = [
        statistics(sketch(made, ops))
        for made, ops in (
            (torch.tensor(bad), torch_trace),
            (paddle.to_tensor(bad), paddle_trace),
            (torch.tensor(bad), OnDevice(torch_trace)),
            (paddle.to_tensor(bad), OnDevice(paddle_trace)),
        )
    ]
    finite = bad[np.isfinite(bad)]
    for one in found:
        assert one["nonfinite"] == 3
        assert (one["min"], one["max"]) == (finite.min(), finite.max())
        assert one["mean"] == pytest.approx(finite.mean(), rel=1e-9)
        assert one["std"] == pytest.approx(finite.std(), rel=1e-9)
        assert one["norm"] == pytest.approx(np.linalg.norm(finite), rel=1e-12)
    assert distance(sketch(values), sketch(bad)) == math.inf
    everywhere = statistics(sketch(np.full(600, np.nan)))
    assert everywhere["nonfinite"] == 600 and math.isnan(everywhere["mean"])


MASK = np.triu(np.full((40, 40), -np.inf), 1)


@pytest.mark.parametrize(
    "other", [MASK.T, -MASK, np.where(MASK == 0, 0, np.nan), np.zeros((40, 40))]
)
@pytest.mark.parametrize("ops", [None, torch_trace, OnDevice(paddle_trace)])
def test_places_of_what_is_not_finite_are_kept(other: np.ndarray, ops: Any) -> None:
    def made(values: np.ndarray) -> np.ndarray:
        tensor = values if ops is None else torch.tensor(values)
        tensor = paddle.to_tensor(values) if isinstance(ops, OnDevice) else tensor
        return sketch(tensor) if ops is None else sketch(tensor, ops)

    assert distance(made(MASK), made(MASK)) == 0.0
    assert distance(made(MASK), made(other)) == math.inf
    assert find_other_places(made(MASK), made(other)) != ""


def test_places_in_later_slabs_count() -> None:
    values = np.zeros(3 * SLAB)
    values[SLAB + 5] = np.nan
    moved = np.roll(values, SLAB)
    assert count_nan(sketch(values)) == count_nan(sketch(moved)) == 1
    assert find_other_places(sketch(values), sketch(moved)) == "NaN"


@pytest.mark.parametrize("value", [-1e4, -1e9, -3.4028234663852886e38, np.finfo(float).min])
def test_constants_that_stand_apart_leave_the_sums_and_the_scale(value: float) -> None:
    scores = np.random.default_rng(0).standard_normal((60, 40))
    hidden = np.where(MASK[0] < 0, value, scores)
    hidden[:, :20] = scores[:, :20]
    made = sketch(hidden)
    assert made.shape == (LONG_LENGTH,) and statistics(made)["norm"] < 60
    other = hidden.copy()
    other[3, 3] += 1e-6
    assert distance(made, sketch(other)) == pytest.approx(1e-6)
    other[3, 3] = value
    assert find_other_places(made, sketch(other)) == "large negative"
    lower = np.where(hidden == value, value * 0.99, hidden)
    assert compare_constants(made, sketch(lower)) == pytest.approx(0.01)
    assert compare_constants(made, made) == 0.0
    assert compare_constants(made, sketch(scores)) == math.inf


def test_large_integers_are_compared_exactly() -> None:
    ids = np.full(1000, 2**53 + 2**40)
    other = ids.copy()
    other[3] += 1
    assert find_other_places(sketch(ids), sketch(other)) == "integers"
    assert distance(sketch(ids), sketch(ids.astype(np.uint64))) == 0.0
    assert distance(sketch(ids), sketch(torch.tensor(ids), torch_trace)) == 0.0


def test_a_single_element_that_is_far_off_has_a_large_share() -> None:
    values = np.random.default_rng(0).standard_normal(10**6)
    other = values.copy()
    other[7] += 0.08
    assert find_largest_share(sketch(values), sketch(other)) == pytest.approx(
        0.08 * math.sqrt(BINS)
    )


@pytest.mark.parametrize("apart", [1, BINS, 7 * BINS, SLAB, SLAB + BINS, 2 * SLAB])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_exchanged_elements_are_seen(apart: int, dtype: str) -> None:
    """Whatever their distance: in one sum with equal signs they would cancel."""
    values = np.zeros(3 * SLAB, dtype)
    missed = 0
    for first in range(0, 40):
        values[[first, first + apart]] = 1, 2
        before = sketch(values)
        values[[first, first + apart]] = 2, 1
        after = sketch(values)
        values[[first, first + apart]] = 0
        seen = distance(before, after), estimate_from_runs(before, after)
        missed += not max(seen) > 1
    assert missed == 0


def test_an_exchange_within_one_sum_is_reported() -> None:
    values = np.random.default_rng(0).standard_normal((100, 1000))
    found = []
    for first in range(20):  # half of these have equal signs
        other = values.copy()
        other.flat[[first, first + BINS]] = values.flat[[first + BINS, first]]
        found.append(compare_traces(recorded(values, False), recorded(other, False)))
    assert not any(one.passed for one in found)
    assert any("some elements stand in other places" in one.summary() for one in found)


def test_every_kind_is_found_where_it_is() -> None:
    values = np.array([1.0, np.nan, np.inf, -np.inf, 2e9, -2e9, 1e8])
    found = [np.flatnonzero(there).tolist() for there in find_kinds(values, 1e9)]
    assert found == [[1], [2], [3], [4], [5]] and len(KINDS) == 5


def test_places_are_those_of_the_whole_tensor() -> None:
    whole = hash_places(np.array([3, 70]), 0)
    assert whole == (hash_places(np.array([3]), 0) + hash_places(np.array([6]), 64)) % 2**53
    assert 0 < whole < 2**53 and float(whole) == whole
    assert hash_places(np.array([], np.int64), 5) == 0


def test_hashes_are_added_without_loss() -> None:
    hashes = hash_numbers(np.arange(100_000, dtype=np.uint64))
    assert add_hashes(hashes) == sum(int(one) for one in hashes) % 2**53
    assert hashes[0] == 0xE220A8397B1DCDAF  # splitmix64 of 0


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int8, np.bool_])
def test_a_digest_tells_integers_and_their_order_apart(dtype: type) -> None:
    values = np.array([[1, 0, 0], [1, 1, 0]]).astype(dtype)
    assert digest_integers(values) == digest_integers(values.astype(np.int64))
    assert digest_integers(values) != digest_integers(values[::-1])
    assert digest_integers(values) != digest_integers(np.zeros_like(values))
