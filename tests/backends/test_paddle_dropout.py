"""Paddle's masks from a shared stream, and its recurrent operator run one layer at a time."""

from reprod_align.backends.paddle.random import create, draw_mask, scale, shared_random
from reprod_align.randomness import SharedRandom, UnsharedDrawError

import numpy as np
import paddle
import pytest


def test_a_mask_drops_and_scales_in_the_wanted_dtype():
    mask = draw_mask(SharedRandom(0, 0, 0), (1000,), 0.25, "upscale_in_train", "float64").numpy()
    assert mask.dtype == np.float64 and set(mask) == {0.0, 1 / 0.75}
    assert abs((mask == 0).mean() - 0.25) < 0.05


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_mask_without_chance_draws_nothing(p):
    assert draw_mask(None, (2,), p, "upscale_in_train", "float32").numpy().tolist() == [1 - p] * 2


def test_only_the_mode_that_scales_up_divides():
    keep = np.array([True, False])
    assert scale(keep, 0.5, "upscale_in_train", "float32").numpy().tolist() == [2.0, 0.0]
    assert scale(keep, 0.5, "downscale_in_infer", "float32").numpy().tolist() == [1.0, 0.0]


def test_complex_draws_are_refused():
    with pytest.raises(UnsharedDrawError, match="complex64"):
        create(np.ones(2), paddle.complex64)


@pytest.mark.parametrize("lengths", [None, [4, 2]])
def test_layers_run_one_by_one_give_what_the_operator_gives(lengths):
    lstm = paddle.nn.LSTM(3, 5, num_layers=3, direction="bidirect", dropout=0.5)
    lstm.eval()
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32"))
    given = None if lengths is None else paddle.to_tensor(lengths)
    output, (h, c) = lstm(x, sequence_length=given)
    with shared_random(SharedRandom(0, 0, 0)):
        again, (h_again, c_again) = lstm(x, sequence_length=given)
        again.sum().backward()  # Paddle's own operator has no backward pass in eval mode
    for expected, actual in ((output, again), (h, h_again), (c, c_again)):
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
