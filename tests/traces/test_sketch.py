"""A sketch shows every difference and tells its size."""

import subprocess
import sys

from reprod_align.traces.sketch import BINS, WHOLE, backward_order, sketch

import numpy as np
import pytest


def test_small_arrays_are_kept_whole() -> None:
    array = np.arange(WHOLE, dtype=np.float64)
    assert sketch(array) is array
    assert sketch(np.arange(WHOLE + 1.0)).shape == (BINS,)


@pytest.mark.parametrize("where", [0, 12345, 99_999])
def test_one_changed_element_changes_the_sketch(where: int) -> None:
    array = np.random.default_rng(0).normal(size=(100, 1000))
    changed = array.copy()
    changed.flat[where] += 1e-6
    gap = np.abs(sketch(changed) - sketch(array))
    assert np.count_nonzero(gap > 1e-9) == 1
    assert gap.max() == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("fault", [np.transpose, lambda a: a[::-1], lambda a: -a])
def test_permutations_and_signs_are_seen(fault) -> None:
    array = np.random.default_rng(0).normal(size=(300, 300))
    assert np.abs(sketch(fault(array)) - sketch(array)).max() > 1


def test_the_length_of_a_difference_can_be_read_off() -> None:
    """Over 200 seeds, the estimate of |difference| lies within 20 % of the truth."""
    base = np.zeros(50_000)
    for seed in range(200):
        gap = np.random.default_rng(seed).normal(size=base.size)
        estimate = np.linalg.norm(sketch(base + gap) - sketch(base))
        assert estimate == pytest.approx(np.linalg.norm(gap), rel=0.2)


def test_nan_stays_visible() -> None:
    array = np.zeros(10_000)
    array[77] = np.nan
    assert np.isnan(sketch(array)).sum() == 1


def test_another_process_makes_the_same_sketch() -> None:
    code = "import numpy as np; from reprod_align.traces.sketch import sketch;"
    code += "print(sketch(np.arange(1e5)).tobytes().hex())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == sketch(np.arange(1e5)).tobytes().hex()


def test_backward_order() -> None:
    named = [("first", np.zeros(2)), ("last", np.ones(2))]
    assert list(backward_order("gradient_0", named)) == ["gradient_0.last", "gradient_0.first"]
