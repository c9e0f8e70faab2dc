"""The four tests by hand, and what each of them sees."""

import math

from reprod_align.initialisation import (
    adjust_by_holm,
    compare_spreads,
    compute_p_values,
)
from reprod_align.initialisation.sample import Moments
from tests.initialisation.draws import Draw, constant, normal, sampled, truncated, uniform

import pytest


def p_values(ours: Draw, theirs: Draw) -> dict[str, float]:
    return compute_p_values(sampled(1, w=ours)["w"], sampled(2, w=theirs)["w"])


def test_holm_by_hand() -> None:
    raw = {("a", "x"): 0.01, ("a", "y"): 0.03, ("b", "x"): 0.02, ("b", "y"): 0.9}
    found = adjust_by_holm(raw)
    assert found == pytest.approx(
        {("a", "x"): 0.04, ("b", "x"): 0.06, ("a", "y"): 0.06, ("b", "y"): 0.9}
    )


@pytest.mark.parametrize(
    ("theirs", "test"),
    [
        (normal(0.02, 40, 50, mean=0.002), "mean"),
        (normal(0.023, 40, 50), "spread"),
        (uniform(0.02 * math.sqrt(3), 40, 50), "distribution"),
        (truncated(0.02, 40, 50), "support"),
    ],
)
def test_each_test_sees_its_fault(theirs: Draw, test: str) -> None:
    ours = normal(0.02, 40, 50)
    assert min(p_values(ours, normal(0.02, 40, 50)).values()) > 1e-3
    assert p_values(ours, theirs)[test] < 1e-6


def test_constants_are_not_tested() -> None:
    assert p_values(constant(1.0, 9), normal(1.0, 9)) == {}


def test_values_beyond_the_others_by_hand() -> None:
    """Of 4 and 4 values in random order, the 4 of one side come last in 1 of 70 cases."""
    ours, theirs = Moments(4, 0.0, 1.0, 3.0), Moments(4, 0.0, 1.0, 3.0)
    sample = sampled(1, 4, w=lambda draw: draw.uniform(0, 1, 1))["w"]
    other = sampled(2, 4, w=lambda draw: draw.uniform(2, 3, 1))["w"]
    assert compute_p_values(sample, other)["support"] == pytest.approx(4 / 70)
    assert compare_spreads(ours, theirs, 0.05)[0] is not None


def test_the_ratio_has_its_interval() -> None:
    ratio, seen = compare_spreads(Moments(1001, 0, 1.0, 3.0), Moments(1001, 0, 1.1, 3.0), 0.05)
    assert ratio is not None
    estimate, low, high = ratio
    assert estimate == pytest.approx(1.1) and low * high == pytest.approx(1.1**2)
    error = math.sqrt(2 / (2 * 1000))
    assert math.log(high / estimate) == pytest.approx(1.959964 * error, rel=1e-6)
    assert seen == pytest.approx(math.expm1((1.959964 + 1.644854) * error), rel=1e-6)
    assert compare_spreads(Moments(9, 0, 0.0, 0.0), Moments(9, 0, 1.0, 3.0), 0.05)[0] is None
