"""LSTM, GRU and SimpleRNN of Paddle with the dropout between their layers drawn from a shared stream.

Paddle's operator runs all layers at once and draws inside. Here it runs one layer at a time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from reprod_align.backends.paddle.dropout import draw_mask, scale
from reprod_align.backends.paddle.private import OPERATORS
from reprod_align.backends.private_names import look_up
from reprod_align.backends.replacing import replace_attribute
from reprod_align.randomness import Draws, bernoulli

import numpy as np
import paddle
from paddle.nn.layer.rnn import RNNBase

Tensor = Any

_own_rnn = look_up(OPERATORS, "rnn")
_own_forward = RNNBase.forward


class _RnnCall(NamedTuple):
    """The arguments of Paddle's RNN operator, which runs all layers, in its order."""

    x: Tensor
    """(T, B, input_size)"""
    states: Sequence[Tensor]
    """h, of an LSTM also c: (layers * directions, B, hidden_size) each"""
    weights: Sequence[Tensor]
    """the matrices of every layer and direction, then their biases: two each"""
    lengths: Tensor | None
    """(B,) where the sequences are padded"""
    dropout_state: Tensor
    p: float
    bidirectional: bool
    input_size: int
    hidden_size: int
    layers: int
    mode: str
    seed: int
    is_test: bool


def run_rnn(draws: Draws, *args: Any) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Run the operator one layer at a time, with a shared dropout before every layer but the first.

    Each layer runs without dropout of its own, and as in training, so that it keeps its gradients.
    """
    call = _RnnCall(*args)
    half = len(call.weights) // 2
    matrices, biases = (
        _split(call.weights[:half], call.layers),
        _split(call.weights[half:], call.layers),
    )
    states = [_split(state, call.layers) for state in call.states]
    x, dropout_state, finals = call.x, call.dropout_state, []
    for layer in range(call.layers):
        if layer > 0 and not call.is_test:
            x = _drop_between_layers(draws, x, call.p, call.lengths)
        one = call._replace(
            x=x,
            states=[state[layer] for state in states],
            weights=[*matrices[layer], *biases[layer]],
            dropout_state=dropout_state,
            p=0.0,
            input_size=x.shape[-1],
            layers=1,
            is_test=False,
        )
        x, dropout_state, final = _own_rnn(*one)
        finals.append(final)
    return x, dropout_state, [paddle.concat(parts) for parts in zip(*finals, strict=True)]


def _split(sequence: Any, layers: int) -> list[Any]:
    """Return each layer's slice of a list, or of a tensor's first axis."""
    size = len(sequence) // layers
    return [sequence[layer * size : (layer + 1) * size] for layer in range(layers)]


def run_forward(
    draws: Draws,
    layer: Any,
    inputs: Tensor,
    initial_states: Any = None,
    sequence_length: Tensor | None = None,
) -> Any:
    """LSTM, GRU and SimpleRNN: a projected LSTM runs in Python, and calls F.dropout on (B, T, C)."""

    def dropout(x: Tensor, p: float, training: bool, mode: str) -> Tensor:
        if not training:
            return x
        axes = [0, 1, 2] if layer.time_major else [1, 0, 2]
        return _drop_between_layers(draws, x.transpose(axes), p, sequence_length).transpose(axes)

    with replace_attribute(paddle.nn.functional, "dropout", dropout):
        return _own_forward(layer, inputs, initial_states, sequence_length)


def _drop_between_layers(draws: Draws, x: Tensor, p: float, lengths: Tensor | None) -> Tensor:
    """Drop from `x` (T, B, C) what PyTorch drops: with lengths, it draws for a packed sequence."""
    if lengths is None or p in (0.0, 1.0):
        return x * draw_mask(draws, tuple(x.shape), p, "upscale_in_train", x.dtype)
    lengths = lengths.numpy()
    order = np.argsort(-lengths, kind="stable")  # packed: time by time, the longest sequence first
    time, rank = np.nonzero(np.arange(x.shape[0])[:, None] < lengths[order])
    uniform = np.zeros(tuple(x.shape))
    uniform[time, order[rank]] = draws.uniform((len(time), x.shape[2]))
    return x * scale(bernoulli(uniform, 1.0 - p), p, "upscale_in_train", x.dtype)
