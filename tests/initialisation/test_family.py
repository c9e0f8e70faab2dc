"""An initialiser is recognised from what it drew."""

import math

from reprod_align.initialisation.family import describe, guess_family, write_remedy
from tests.initialisation.draws import (
    Draw,
    constant,
    normal,
    orthogonal,
    sampled,
    table,
    truncated,
    uniform,
)

import numpy as np
import pytest

KAIMING = 1 / math.sqrt(96)


@pytest.mark.parametrize(
    ("draw", "words", "code"),
    [
        (
            uniform(KAIMING, 160, 96),
            "uniform on +-0.102 (Kaiming a=sqrt(5)",
            "Uniform(-0.102062, 0.102062)",
        ),
        (normal(0.02, 160, 96), "normal, std 0.02", "Normal(0, 0.02)"),
        (normal(0.02, 160, 96, mean=1.0), "normal, std 0.02 around 1", "Normal(1, 0.02)"),
        (
            truncated(0.02, 160, 96),
            "truncated normal, std 0.02, cut at 2 std",
            "TruncatedNormal(0, 0.02, -0.04, 0.04)",
        ),
        (orthogonal(96, 96), "orthogonal, gain 1", "Orthogonal(1)"),
        (lambda draw: draw.uniform(1, 3, (160, 96)), "uniform from 1 to 3", "Uniform(1, 3)"),
        (lambda draw: draw.exponential(1.0, (160, 96)), "of an unknown family", ""),
    ],
)
def test_the_family(draw: Draw, words: str, code: str) -> None:
    sample = sampled(1, w=draw)["w"]
    assert describe(sample).startswith(words)
    assert guess_family(sample).paddle.endswith(code) and bool(guess_family(sample).paddle) == bool(
        code
    )


def test_a_bias_is_drawn_by_its_weights_fan_in() -> None:
    side = sampled(1, weight=uniform(KAIMING, 160, 96), bias=uniform(KAIMING, 160))
    assert "1/sqrt(fan_in) of its weight" in describe(side["bias"], side["weight"])
    assert "of its weight" not in describe(side["bias"])


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (constant(0.0, 9), "bias_attr=paddle.ParamAttr(initializer=nn.initializer.Constant(0))"),
        (table(0, 100, 96), "then zeros in row 0"),
        (lambda draw: np.arange(9.0), "convert PyTorch's initial weights"),
        (lambda draw: draw.exponential(1.0, (90, 9)), "convert PyTorch's initial weights"),
    ],
)
def test_the_remedy(draw: Draw, words: str) -> None:
    assert words in write_remedy("layer.bias", sampled(1, w=draw)["w"])
