"""Paddle's recurrent layers, run one layer at a time with a shared dropout between them."""

from functools import partial
from typing import Any

from reprod_align.backends import replace_attribute
from reprod_align.backends.paddle.random import run_forward, run_rnn

import numpy as np
import paddle
import pytest

X = paddle.to_tensor(np.random.default_rng(0).standard_normal((2, 5, 3)).astype("float32"))


class Uniform:
    """Gives one number for every draw, and keeps the shapes that were asked for."""

    def __init__(self, number: float) -> None:
        self.number, self.shapes = number, list[Any]()

    def uniform(self, shape: tuple[int, ...]) -> np.ndarray:
        self.shapes.append(tuple(shape))
        return np.full(shape, self.number)


def lstm(**settings: Any) -> Any:
    paddle.seed(0)
    return paddle.nn.LSTM(3, 4, num_layers=2, dropout=0.5, **settings)


def run(layer: Any, draws: Uniform, x: Any = X, **lengths: Any) -> np.ndarray:
    with replace_attribute(paddle._C_ops, "rnn", partial(run_rnn, draws)):
        output, _ = layer(x, **lengths)
    return np.asarray(output.numpy())


@pytest.mark.parametrize("direction", ["forward", "bidirect"])
def test_without_dropout_it_is_paddles_own(direction: str) -> None:
    layer, draws = lstm(direction=direction), Uniform(0.0)
    layer.eval()
    np.testing.assert_allclose(run(layer, draws), layer(X)[0].numpy(), rtol=1e-5, atol=1e-6)
    assert draws.shapes == []


def test_dropout_is_drawn_between_the_layers() -> None:
    layer, kept, dropped = lstm(), Uniform(0.99), Uniform(0.0)
    assert (run(layer, kept) != run(layer, kept, X * 2)).any()
    np.testing.assert_array_equal(run(layer, dropped), run(layer, dropped, X * 2))
    assert set(kept.shapes) == {(5, 2, 4)}  # time first, as PyTorch draws it
    assert len(kept.shapes) == 2


def test_padded_sequences_draw_for_their_own_length() -> None:
    draws = Uniform(0.0)
    run(lstm(), draws, sequence_length=paddle.to_tensor([5, 2]))
    assert draws.shapes == [(7, 4)]


def test_a_layer_in_python_draws_the_same() -> None:
    layer, draws = lstm(), Uniform(0.0)
    with replace_attribute(paddle._C_ops, "rnn", partial(run_rnn, draws)):
        run_forward(draws, layer, X)
    assert draws.shapes == [(5, 2, 4)]
