"""Paddle's random draws from a shared stream. `backends.torch_random` has the same for PyTorch.

Paddle's Python functions and tensor methods look their operator up in `paddle._C_ops` at every call:
an operator replaced there is replaced however the function was imported. Four Python functions are
replaced by name as well: they compute a mask of their own in float32, or draw in another order.

Shared: dropout of every kind, rrelu, gumbel_softmax, the dropouts of scaled_dot_product_attention and
nn.MultiHeadAttention, rand, randn, randint (and their _like), randperm, bernoulli, multinomial, normal,
uniform_, normal_, log_normal_, exponential_, random_, and all that is made of them. The dropouts between
the layers of nn.LSTM, GRU and SimpleRNN are drawn as PyTorch's are: (T, B, C), or packed, (sum of
lengths, C), where the sequences' lengths are given. `topk` takes the lower index where values are equal up
to rounding.
In eval mode Paddle's RNN operator keeps nothing for the backward pass, which then raises. In the block it
runs as in training, without dropout: the same outputs, and gradients too.
Refused with UnsharedDrawError: poisson, binomial, gamma, Dirichlet, complex numbers.
Not seen: static graphs, fused operators (paddle.incubate, GPUs' attention), graph samplers, worker
processes. `Tensor.cauchy_` and `geometric_` draw, but not from the distributions PyTorch draws from.
Not repeated: the second forward pass of recompute draws new numbers. With `dropout` and `bernoulli_`
imported by name, an `axis` or a probability is compared in float32, as in Paddle.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from reprod_align.randomness import (
    Draws,
    Float64,
    Shape,
    UnsharedDrawError,
    bernoulli,
    exponential,
    leading,
    multinomial,
)

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle.nn.functional import common
from paddle.nn.layer.rnn import RNNBase

Array = NDArray[np.generic]
Tensor = Any
Function = Callable[..., Any]


@contextmanager
def shared_random(draws: Draws) -> Iterator[None]:
    """Take every random draw of Paddle in the block from `draws`: the other framework takes the same.

    One call of `draws` per operator, of its output's shape, (N, C, 1, ...) where a dropout drops whole
    features; none where nothing is random (eval mode, p = 0 or 1). Raises UnsharedDrawError at a
    distribution that cannot be shared.
    """
    with ExitStack() as stack:
        for owners, name, function in _REPLACEMENTS:
            for owner in owners:
                stack.enter_context(_replaced(owner, name, _bound(function, draws)))
        yield


@contextmanager
def _replaced(owner: Any, name: str, replacement: Function) -> Iterator[None]:
    own = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, own)


def _bound(function: Function, draws: Draws) -> Function:
    def replacement(*args: Any, **kwargs: Any) -> Any:  # a function: a class makes it a method
        return function(draws, *args, **kwargs)

    return replacement


def _created(values: Array, dtype: Any, place: Any = None, out: Tensor | None = None) -> Tensor:
    if dtype in (paddle.complex64, paddle.complex128):
        raise UnsharedDrawError(f"draws of {dtype} cannot be shared with the other framework")
    tensor = paddle.to_tensor(np.asarray(values), place=place).astype(dtype)
    return tensor if out is None else paddle.assign(tensor, out)


def _filled(x: Tensor, values: Array) -> Tensor:
    return x.fill_(0).add_(_created(values, x.dtype))  # assign would keep x's gradient alive


def _shape(x: Tensor) -> Shape:
    return tuple(x.shape)


def _float64(x: float | Tensor) -> Float64:
    return np.asarray(x.astype("float64") if isinstance(x, paddle.Tensor) else x, np.float64)


def _uniform(
    draws: Draws,
    shape: list[int],
    dtype: Any,
    low: float,
    high: float,
    seed: int,
    place: Any,
    out: Tensor | None = None,
) -> Tensor:
    return _created(low + (high - low) * draws.uniform(tuple(shape)), dtype, place, out)


def _uniform_(draws: Draws, x: Tensor, low: float, high: float, *options: Any) -> Tensor:
    return _filled(x, low + (high - low) * draws.uniform(_shape(x)))


def _normal(
    draws: Draws,
    shape: list[int],
    mean: float,
    std: float,
    seed: int,
    dtype: Any,
    place: Any,
    out: Tensor | None = None,
) -> Tensor:
    return _created(draws.normal(tuple(shape)) * std + mean, dtype, place, out)


def _normal_(draws: Draws, x: Tensor, mean: float, std: float, *options: Any) -> Tensor:
    return _filled(x, draws.normal(_shape(x)) * std + mean)


def _exponential_(draws: Draws, x: Tensor, rate: float) -> Tensor:
    return _filled(x, exponential(draws.uniform(_shape(x)), rate))


def _bernoulli(draws: Draws, x: Tensor) -> Tensor:
    return _created(bernoulli(draws.uniform(_shape(x)), _float64(x)), x.dtype)


def _bernoulli_(
    draws: Draws, x: Tensor, p: float | Tensor = 0.5, name: str | None = None
) -> Tensor:
    return _filled(x, bernoulli(draws.uniform(_shape(x)), _float64(p)))


def _integers(
    draws: Draws, low: int, high: int, shape: list[int], dtype: Any, place: Any
) -> Tensor:
    return _created(draws.integers(low, high, tuple(shape)), dtype, place)


def _integers_(draws: Draws, x: Tensor, low: int, high: int) -> Tensor:
    return _filled(x, draws.integers(low, high, _shape(x)))


def _permutation(draws: Draws, n: int, dtype: Any, place: Any, out: Tensor | None = None) -> Tensor:
    return _created(draws.permutation(n), dtype, place, out)


def _multinomial(
    draws: Draws, x: Tensor, samples: int, replacement: bool, out: Tensor | None = None
) -> Tensor:
    indices = multinomial(draws, _float64(x), samples, replacement)
    return _created(indices, paddle.int64, out=out)


def _topk(
    draws: Draws,
    x: Tensor,
    k: int | Tensor,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
    out: Any = None,
) -> tuple[Tensor, Tensor]:
    values = _float64(x.detach())
    floating = x.dtype in _EPSILONS and x.ndim > 0 and int(k) > 0 and out is None
    if not floating or np.isnan(values).any():
        return _own_topk(x, k, axis, largest, sorted, out=out)  # type: ignore[no-any-return]
    tied = 2.0**-30 if x.dtype == paddle.float64 else 8 * _EPSILONS[x.dtype]
    indices = paddle.to_tensor(leading(values, int(k), axis, largest, tied), place=x.place)
    return paddle.take_along_axis(x, indices, axis, broadcast=False), indices


def _rrelu(draws: Draws, x: Tensor, low: float, high: float, is_test: bool) -> Tensor:
    if is_test:
        return paddle.where(x < 0, x * ((low + high) / 2), x)  # Paddle's own rounds to float32
    slope = _created(low + (high - low) * draws.uniform(_shape(x)), x.dtype)
    return paddle.where(x < 0, x * slope, x)


def _gumbel_softmax(draws: Draws, x: Tensor, temperature: float, hard: bool, axis: int) -> Tensor:
    gumbel = -np.log(exponential(draws.uniform(_shape(x))))
    soft = paddle.nn.functional.softmax((x + _created(gumbel, x.dtype)) / temperature, axis)
    if not hard:
        return soft
    largest = paddle.argmax(soft, axis, keepdim=True)
    ones = paddle.ones(largest.shape, soft.dtype)
    one_hot = paddle.put_along_axis(paddle.zeros_like(soft), largest, ones, axis)
    return one_hot - soft.detach() + soft  # the gradient is that of the soft samples


def _dropout(
    draws: Draws, x: Tensor, seed: Any, p: float, is_test: bool, mode: str, *options: Any
) -> Tensor:
    if x.size == 0 or (is_test and mode == "upscale_in_train"):
        return _own_dropout(x, seed, p, is_test, mode, *options)
    return x * _factor(draws, x, float(p), is_test, mode)


def _dropout_(
    draws: Draws, x: Tensor, seed: Any, p: float, is_test: bool, mode: str, *options: Any
) -> Tensor:
    if x.size == 0 or (is_test and mode == "upscale_in_train"):
        return _own_dropout_(x, seed, p, is_test, mode, *options)
    return x.multiply_(_factor(draws, x, float(p), is_test, mode))


def _factor(draws: Draws, x: Tensor, p: float, is_test: bool, mode: str) -> Tensor:
    if is_test:  # downscale_in_infer, where Paddle's own rounds 1 - p to float32
        return paddle.full([], 1.0 - p, x.dtype)
    return _mask(draws, _shape(x), p, mode, x.dtype)


def _mask(draws: Draws, shape: Shape, p: float, mode: str, dtype: Any) -> Tensor:
    if p in (0.0, 1.0):
        return paddle.full(shape, 1.0 - p, dtype)
    return _scaled(bernoulli(draws.uniform(shape), 1.0 - p), p, mode, dtype)


def _scaled(keep: Array, p: float, mode: str, dtype: Any) -> Tensor:
    mask = _created(keep, dtype)
    return mask / (1.0 - p) if mode == "upscale_in_train" else mask


def _dropout_function(
    draws: Draws,
    x: Tensor,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    inplace: bool = False,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """Paddle's F.dropout, whose mask is drawn in float32 where it has an `axis`."""
    axes = [axis] if isinstance(axis, int) else list(axis or ())
    if x.size == 0:
        return x
    own = not axes or not training or inplace or p == 0
    if own or not all(0 <= one < x.ndim for one in axes):
        return _own_dropout_function(x, p, axis, training, inplace, mode, name)
    shape = tuple(size if one in axes else 1 for one, size in enumerate(x.shape))
    return x * _mask(draws, shape, float(p), mode, x.dtype)


def _alpha_dropout(
    draws: Draws,
    x: Tensor,
    feature_dropout: bool,
    p: float,
    training: bool = True,
    name: str | None = None,
) -> Tensor:
    """Both alpha dropouts of Paddle, whose mask is drawn in float32."""
    if p == 0 or x.size == 0:
        return x
    if not training or not 0 < p < 1 or (feature_dropout and x.ndim < 2):
        return _own_alpha_dropout(x, feature_dropout, p, training, name)
    shape = (*x.shape[:2], *(1 for _ in x.shape[2:])) if feature_dropout else _shape(x)
    keep = _mask(draws, shape, p, "downscale_in_infer", x.dtype)
    dropped = -1.6732632423543772 * 1.0507009873554805  # SELU's value at minus infinity
    a = ((1.0 - p) * (1.0 + p * dropped**2)) ** -0.5
    return (x * keep + (1.0 - keep) * dropped) * a + -a * dropped * p


def _rnn(
    draws: Draws,
    x: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    dropout_state: Tensor,
    p: float,
    bidirectional: bool,
    input_size: int,
    hidden_size: int,
    layers: int,
    mode: str,
    seed: int,
    is_test: bool,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Paddle's RNN operator one layer at a time; `x` is (T, B, input_size)."""
    directions, half = (2 if bidirectional else 1), len(weights) // 2
    finals = []
    for layer in range(layers):
        if layer > 0 and not is_test:
            x = _between_layers(draws, x, p, lengths)
        here = slice(layer * directions, (layer + 1) * directions)
        pairs = slice(2 * here.start, 2 * here.stop)
        x, dropout_state, final = _own_rnn(
            x,
            [state[here] for state in states],
            [*weights[:half][pairs], *weights[half:][pairs]],  # matrices, then biases
            lengths,
            dropout_state,
            0.0,
            bidirectional,
            x.shape[-1],
            hidden_size,
            1,
            mode,
            seed,
            False,
        )
        finals.append(final)
    return x, dropout_state, [paddle.concat(parts) for parts in zip(*finals, strict=True)]


def _rnn_forward(
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
        return _between_layers(draws, x.transpose(axes), p, sequence_length).transpose(axes)

    with _replaced(paddle.nn.functional, "dropout", dropout):
        return _own_rnn_forward(layer, inputs, initial_states, sequence_length)


def _between_layers(draws: Draws, x: Tensor, p: float, lengths: Tensor | None) -> Tensor:
    """Drop from `x` (T, B, C) what PyTorch drops: with lengths, it draws for a packed sequence."""
    if lengths is None or p in (0.0, 1.0):
        return x * _mask(draws, _shape(x), p, "upscale_in_train", x.dtype)
    lengths = lengths.numpy()
    order = np.argsort(-lengths, kind="stable")  # packed: time by time, the longest sequence first
    time, rank = np.nonzero(np.arange(x.shape[0])[:, None] < lengths[order])
    uniform = np.zeros(_shape(x))
    uniform[time, order[rank]] = draws.uniform((len(time), x.shape[2]))
    return x * _scaled(bernoulli(uniform, 1.0 - p), p, "upscale_in_train", x.dtype)


def _refused(name: str) -> Function:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise UnsharedDrawError(f"{name}: its draws cannot be shared with the other framework")

    return refuse


_operators: Any = paddle._C_ops
_own_topk = _operators.topk
_EPSILONS = {
    dtype: float(paddle.finfo(dtype).eps)
    for dtype in (paddle.float64, paddle.float32, paddle.float16, paddle.bfloat16)
}
_own_dropout, _own_dropout_, _own_rnn = _operators.dropout, _operators.dropout_, _operators.rnn
_own_dropout_function = common.dropout
_own_alpha_dropout = common._feature_alpha_dropout_impl
_own_rnn_forward = RNNBase.forward
_DRAWING: dict[str, Function] = {
    "uniform": _uniform,
    "uniform_inplace_": _uniform_,
    "gaussian": _normal,
    "gaussian_inplace_": _normal_,
    "exponential_": _exponential_,
    "bernoulli": _bernoulli,
    "randint": _integers,
    "random_": _integers_,
    "randperm": _permutation,
    "multinomial": _multinomial,
    "topk": _topk,
    "rrelu": _rrelu,
    "gumbel_softmax": _gumbel_softmax,
    "dropout": _dropout,
    "dropout_": _dropout_,
    "rnn": _rnn,
}
_UNSHARED = ("poisson", "binomial", "standard_gamma", "dirichlet")
_REPLACEMENTS: list[tuple[tuple[Any, ...], str, Function]] = [
    *(((_operators,), name, function) for name, function in _DRAWING.items()),
    *(((_operators,), name, _refused(name)) for name in _UNSHARED),
    ((paddle.nn.functional, common), "dropout", _dropout_function),
    ((common,), "_feature_alpha_dropout_impl", _alpha_dropout),
    ((paddle, paddle.tensor, paddle.tensor.random, paddle.Tensor), "bernoulli_", _bernoulli_),
    ((RNNBase,), "forward", _rnn_forward),
]
