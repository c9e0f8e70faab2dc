"""Values that are zero, scaled, shifted, rounded or clipped are told apart."""

from dataclasses import replace

from reprod_align.causes.mismatch import cite
from reprod_align.causes.values import (
    explain_clipping,
    explain_factor,
    explain_rounding,
    explain_sameness,
    explain_zeros,
)
from tests.causes.numbers import X, Y, mismatch

import numpy as np


def test_zeros() -> None:
    assert explain_zeros(mismatch(X, X * 0)) == "Paddle's values are all zero"
    assert explain_zeros(mismatch(X, X)) == ""
    assert explain_zeros(mismatch(X * 0, X * 0)) == ""


def test_a_factor_a_sign_and_a_constant() -> None:
    assert "PyTorch's times 0.5" in explain_factor(mismatch(X, X / 2))
    assert "opposite sign" in explain_factor(mismatch(X, -X))
    assert "plus the constant 0.25" in explain_factor(mismatch(X, X + 0.25))


def test_a_dropout_that_scales_in_eval_mode_is_named_by_its_setting() -> None:
    scaled = replace(mismatch(X, X / 2), kept=[0.9, 0.5])
    assert "downscale_in_infer" in explain_factor(scaled)
    assert "downscale_in_infer" not in explain_factor(replace(scaled, kept=[0.9]))


def test_a_single_wrong_value_is_not_a_factor() -> None:
    spoilt = X / 2
    spoilt[0, 0, 0] += 1e-3
    assert explain_factor(mismatch(X, spoilt)) == ""
    assert explain_factor(mismatch(X, Y)) == ""


def test_a_cast_on_either_side() -> None:
    narrow = X.astype(np.float16).astype(np.float64)
    assert "Paddle's values are PyTorch's rounded to float16" in explain_rounding(
        mismatch(X, narrow)
    )
    assert "the port lacks a cast to float16" in explain_rounding(mismatch(narrow, X))
    upper = (X.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)  # cut, not rounded
    assert explain_rounding(mismatch(X, upper.astype(np.float64))) == ""


def test_a_clip_names_its_bounds() -> None:
    expected = "Paddle clips the values to at least -1, PyTorch does not"
    assert explain_clipping(mismatch(X, np.maximum(X, -1))) == cite(expected, "clamp")
    both = explain_clipping(mismatch(np.clip(X, -1, 0.5), X))
    expected = "PyTorch clips the values to at least -1 and at most 0.5, Paddle does not"
    assert both == cite(expected, "clamp")
    assert explain_clipping(mismatch(X, Y)) == ""


def test_values_that_do_not_change_along_an_axis() -> None:
    flat = np.broadcast_to(X[:, :1], X.shape).copy()
    words = explain_sameness(mismatch(X, flat))
    assert words == "Paddle's values are the same all along axis 1: one index or place for all"
    assert explain_sameness(mismatch(flat, X)).startswith("PyTorch's values are the same")
    assert explain_sameness(mismatch(X, Y)) == explain_sameness(mismatch(flat, 2 * flat)) == ""
