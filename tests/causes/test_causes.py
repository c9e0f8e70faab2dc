"""Every known porting mistake is named on numbers where it was made, and on no others."""

import math
import sys

from reprod_align.causes import explain_forward, explain_gradient, explain_loss, explain_mask
from reprod_align.causes.functions import FUNCTIONS, softmax
from reprod_align.causes.mismatch import name_number

import numpy as np
import pytest

RANDOM = np.random.default_rng(0)
B, L, D, H = 3, 6, 12, 3
X = RANDOM.standard_normal((B, L, D))
Y = RANDOM.standard_normal((B, L, D))
Z = RANDOM.standard_normal((B, L, D))
KEEP = np.ones((B, L))
KEEP[1, 4:] = KEEP[2, 3:] = 0
HEADS = X.reshape(B, L, H, -1).transpose(0, 2, 1, 3)


def cause(expected, actual, *inputs):
    names = ("x", "y", "z", "w")[: len(inputs)]
    return explain_forward(expected, actual, inputs, names)


def rounded(x, kind):
    return x.astype(kind).astype(np.float64)


def bfloat16(x):
    bits = x.astype(np.float32).view(np.uint32)
    return (
        ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000)
        .astype(np.uint32)
        .view(np.float32)
        .astype(float)
    )


SPOT = RANDOM.standard_normal((B, 4, 5, 6))
ROLLED = np.roll(X, 1, axis=1)

PLANTED = {
    "factor": (X, X / math.sqrt(4), (), "times 0.5 = 1/2 = 1/sqrt(4)"),
    "factor of a width": (X, X * D, (), "times 12 = the size of an axis (12)"),
    "sign": (X, -X, (), "opposite sign"),
    "added constant": (X, X + 0.25, (), "plus the constant 0.25"),
    "zeros": (X, X * 0, (), "all zero"),
    "transposed": (
        SPOT[:, :, :, :5],
        SPOT[:, :, :, :5].swapaxes(2, 3),
        (),
        "permuted by (0, 1, 3, 2)",
    ),
    "transposed to another shape": (X, X.swapaxes(1, 2), (), "permuted by (0, 2, 1)"),
    "reshaped for transposed": (X, X.swapaxes(1, 2).reshape(X.shape), (), "transpose first"),
    "heads merged": (X, HEADS.reshape(B, L, D), (), "without the transpose"),
    "reversed": (X, X[:, ::-1], (), "axis 1 is reversed"),
    "offset": (X, ROLLED, (), "rolled forward by 1 along axis 1"),
    "blocks": (X, np.concatenate(np.split(X, 3, -1)[::-1], -1), (), "order (2, 1, 0)"),
    "interleaved": (
        X,
        X.reshape(B, L, 2, -1).swapaxes(2, 3).reshape(X.shape),
        (),
        "without the transpose",
    ),
    "activation left out": (FUNCTIONS["tanh"](X), X, (), "tanh: PyTorch applies it"),
    "activation too many": (X, FUNCTIONS["SiLU"](X), (), "SiLU: Paddle applies it"),
    "softmax too many": (X, softmax(X, -1), (), "softmax over axis 2: Paddle applies it"),
    "activation of the input": (
        FUNCTIONS["gelu (erf)"](X),
        X,
        (X,),
        "gelu (erf): PyTorch applies it",
    ),
    "another activation": (
        FUNCTIONS["gelu (erf)"](X),
        FUNCTIONS["gelu (approximate='tanh')"](X),
        (X,),
        "gelu (approximate='tanh') in Paddle and gelu (erf) in PyTorch",
    ),
    "leaky slope": (
        FUNCTIONS["LeakyReLU (slope 0.01)"](X),
        FUNCTIONS["LeakyReLU (slope 0.2)"](X),
        (X,),
        "slope 0.2) in Paddle",
    ),
    "leaky slope of any size": (
        np.where(X < 0, 0.033 * X, X),
        np.maximum(X, 0),
        (X,),
        "ReLU (or ReLU6: the same here) in Paddle and LeakyReLU (slope 0.033)",
    ),
    "ELU's alpha": (
        np.where(X < 0, np.expm1(X), X),
        np.where(X < 0, 0.7 * np.expm1(X), X),
        (X,),
        "ELU (alpha 0.7) in Paddle and ELU",
    ),
    "softmax axis": (
        softmax(X, -1),
        softmax(X, 1),
        (X,),
        "softmax over axis 1 instead of axis 2: set axis=2",
    ),
    "softmax axis, unseen scores": (
        softmax(X, -1),
        softmax(X, 1),
        (),
        "over axis 1 instead of axis 2",
    ),
    "log softmax": (
        softmax(X, -1),
        np.log(softmax(X, -1)),
        (X,),
        "log_softmax over axis 2 in Paddle",
    ),
    "scores unscaled": (
        softmax(X / 2, -1),
        softmax(X, -1),
        (),
        "scaled differently: Paddle's are PyTorch's times 2",
    ),
    "residual missing": (X + Y, Y, (X, Y), "PyTorch computes y + x, Paddle y"),
    "residual twice": (X + Y, X + Y + X, (X, Y), "2 times x"),
    "residual from elsewhere": (X + Y, Z + Y, (X, Y, Z), "Paddle z + y"),
    "residual of something unknown": (
        np.tanh(X @ Y[0].T) @ Y + X,
        np.tanh(X @ Y[0].T) @ Y,
        (X,),
        "does not add x",
    ),
    "words scaled": (X + Y[0], 12**0.5 * X + Y[0], (X, Y[0]), "3.4641 = sqrt(12) times x"),
    "other input": (X, Y, (X, Y), "PyTorch passes on x here, Paddle y"),
    "mean for sum": (
        X.mean(1),
        X.sum(1),
        (X,),
        "the mean over axis 1 of x, Paddle the sum over axis 1",
    ),
    "max for mean": (X.mean(1), X.max(1), (X,), "Paddle the maximum over axis 1"),
    "last token for first": (
        X[:, 0],
        X[:, -1],
        (X,),
        "the first along axis 1 of x, Paddle the last",
    ),
    "mean counts padding": (
        (X * KEEP[..., None]).sum(1) / KEEP.sum(1)[:, None],
        X.mean(1),
        (X, KEEP),
        "without padding of x",
    ),
    "mean counts padding, by ids": (
        (X * KEEP[..., None]).sum(1) / KEEP.sum(1)[:, None],
        X.mean(1),
        (X, KEEP.astype(int) * 7),
        "without padding",
    ),
    "dropout scaled in eval": (X, X * 0.85, (), "1 - p for dropout p = 0.15"),
    "float32": (X, rounded(X, np.float32), (), "rounded to float32"),
    "float16": (X, rounded(X, np.float16), (), "rounded to float16"),
    "bfloat16": (X, bfloat16(X), (), "rounded to bfloat16"),
    "float16 in PyTorch": (rounded(X, np.float16), X, (), "lacks a cast to float16"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name):
    expected, actual, inputs, words = PLANTED[name]
    assert words in cause(expected, actual, *inputs)


def split(x, heads=H):
    return x.reshape(B, L, heads, -1).transpose(0, 2, 1, 3)


HIDE = np.where(KEEP == 0, -1e30, 0.0)[:, None, None]
CAUSAL = np.where(np.tri(L, dtype=bool), 0.0, -1e30)


def probabilities(q=X, k=Y, scale=0.5, mask=HIDE, axis=-1, heads=H):
    return softmax(split(q, heads) @ split(k, heads).swapaxes(-1, -2) * scale + mask, axis)


PROBABILITIES = {
    "mask missing": (probabilities(mask=0), probabilities(), "whole keys (padding)"),
    "mask inverted": (probabilities(mask=-1e30 - HIDE), probabilities(), "the mask is inverted"),
    "causal off by one": (
        probabilities(mask=np.where(np.tri(L, k=1, dtype=bool), 0.0, -1e30)),
        probabilities(mask=CAUSAL),
        "one token ahead: the causal mask is shifted by one",
    ),
    "causal missing": (
        probabilities(mask=0),
        probabilities(mask=CAUSAL),
        "the causal mask is missing in Paddle",
    ),
}


@pytest.mark.parametrize("name", PROBABILITIES)
def test_probabilities(name):
    actual, expected, words = PROBABILITIES[name]
    assert words in cause(expected, actual, X, Y, KEEP)


PAST = np.broadcast_to(np.tri(L, dtype=bool), (B, 1, L, L)) & (KEEP[:, None, None] > 0)
IDS = np.arange(L)[None].repeat(B, 0)
MASKS = {
    "inverted": (PAST, ~PAST, "the mask is inverted"),
    "inverted, additive": (PAST * -1e9, ~PAST * -1e9, "the mask is inverted"),
    "weak": (~PAST * -1e9, ~PAST * -1.0, "adds -1 where PyTorch adds -1e+09"),
    "sign": (~PAST * -1e9, ~PAST * 1e9, "opposite sign"),
    "one ahead": (
        PAST,
        np.tril(np.ones((L, L)), 1).astype(bool) & (KEEP[:, None, None] > 0),
        "one token ahead",
    ),
    "not itself": (
        PAST,
        np.tril(np.ones((L, L)), -1).astype(bool) & (KEEP[:, None, None] > 0),
        "each token itself: the causal mask is shifted",
    ),
    "no causal": (
        PAST,
        (KEEP[:, None, None] > 0) & np.ones_like(PAST),
        "the causal mask is missing",
    ),
    "padding": (
        PAST,
        np.tri(L, dtype=bool) & np.ones_like(PAST),
        "the padding mask is missing in Paddle",
    ),
    "nothing": (~PAST * -1e9, PAST * 0.0, "nothing is masked"),
    "off by one": (IDS, IDS + 1, "off by +1 in Paddle: they start at 1, PyTorch's at 0"),
    "ids backwards": (IDS, IDS[:, ::-1], "reverse order along axis 1"),
    "ids constant": (IDS, IDS * 0 + 2, "all 2 in Paddle"),
    "kinds left out": ((KEEP > 0).astype(int), KEEP.astype(int) * 0, "0 everywhere in Paddle"),
}


@pytest.mark.parametrize("name", MASKS)
def test_mask(name):
    expected, actual, words = MASKS[name]
    assert words in explain_mask(expected, actual)


def test_gradient():
    assert "zero in Paddle" in explain_gradient(X, None)
    assert "zero in Paddle" in explain_gradient(X, X * 0)
    assert "zero in PyTorch" in explain_gradient(None, X)
    assert "opposite sign" in explain_gradient(X, -X)
    assert (
        explain_gradient(X, X / 2) == "Paddle's gradient is PyTorch's times 0.5 = 1/2 = 1/sqrt(4)"
    )
    assert explain_gradient(X, Y) == explain_gradient(None, None) == explain_gradient(X, X) == ""


def test_loss():
    assert "times 3 (the batch size): perhaps reduction='sum' instead of 'mean'" in explain_loss(
        0.7, 2.1, [X]
    )
    assert "Paddle's times 216 (the number of elements): perhaps reduction='mean'" in explain_loss(
        216.0, 1.0, [X]
    )
    assert "only one side has a factor 1/2" in explain_loss(0.7, 1.4, [X])
    assert "opposite sign" in explain_loss(0.7, -0.7, [X])
    assert "to base 2" in explain_loss(0.7, 0.7 / math.log(2), [X])
    assert (
        explain_loss(0.7, 0.71, [X])
        == explain_loss(0.7, 0.7, [X])
        == explain_loss(math.nan, 1.0, [X])
        == ""
    )


NOTHING = {
    "unrelated": (X, Y, (Z,)),
    "nearly a factor": (X, X * 2 + 1e-6 * Y, ()),
    "nearly permuted": (X, HEADS.reshape(B, L, D) + 1e-6 * Y, (X,)),
    "nearly another activation": (np.tanh(X), np.maximum(X, 0) + 1e-6 * Y, (X,)),
    "nearly a residual": (X + Y, Y + 1e-6 * Z, (X, Y)),
    "products": (X @ Y[0].T, Y @ X[0].T, (X, Y)),
    "equal": (X, X + 1e-13, (X, Y)),
    "constants": (np.ones((4, 5)), np.full((4, 5), 3.0), (np.ones((4, 5)),)),
    "one number": (np.array([1.0]), np.array([2.0]), (np.array([2.0]),)),
    "a number without axes": (np.array(1.0), np.array(2.0), (X, Y, Z)),
    "a row": (X[0, 0], Y[0, 0], (X[0, 0], X, Y, Z)),
    "three numbers": (np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.0]), ()),
    "empty": (np.zeros((0, 3)), np.zeros((0, 3)), ()),
    "not finite": (X, X * np.nan, (X,)),
    "integers": (IDS, IDS + 1, ()),
}


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_is_explained(name):
    expected, actual, inputs = NOTHING[name]
    assert cause(expected, actual, *inputs) == ""


@pytest.mark.parametrize("seed", range(20))
def test_unrelated_tensors_stay_unexplained(seed):
    random = np.random.default_rng(seed)
    shape = [(4, 5), (3, 6, 8), (2, 4, 3, 3), (4, 16)][seed % 4]
    arrays = random.standard_normal((5, *shape))
    assert cause(arrays[0], arrays[1], *arrays[2:]) == ""
    assert cause(np.abs(arrays[0]), np.abs(arrays[1]), *arrays[2:]) == ""


def test_masks_that_nothing_explains():
    random = np.random.default_rng(1).random((2, 5, 5)) > 0.5
    assert explain_mask(PAST, PAST) == explain_mask(random[0], random[1]) == ""
    assert (
        explain_mask(IDS, np.random.default_rng(2).permutation(IDS.ravel()).reshape(IDS.shape))
        == ""
    )


def test_numbers_have_names():
    assert name_number(1 / math.sqrt(8), (2, 8)) == "0.353553 = 1/sqrt(8)"
    assert name_number(1 / 0.9, (7,)) == "1.11111 = 1/(1 - p) for dropout p = 0.1"
    assert name_number(0.123, (7,)) == "0.123"


def test_the_work_is_bounded():
    random = np.random.default_rng(0)
    arrays = random.standard_normal((5, 8, 128, 96))
    steps: list[str] = []
    sys.setprofile(lambda frame, event, given: steps.append(event))
    try:
        assert cause(arrays[0], arrays[1], *arrays[2:]) == ""
    finally:
        sys.setprofile(None)
    assert len(steps) < 400_000  # calls and returns: it takes 116,000
