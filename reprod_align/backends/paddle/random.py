"""Paddle's random draws from a shared stream. `backends.torch.random` does the same for PyTorch.

Paddle's Python functions and tensor methods look their operator up in one module at every call:
an operator replaced there is replaced however the function was imported. Four Python functions are
replaced by name as well: they compute a mask of their own in float32, or draw in another order.

Shared: dropout of every kind, rrelu, gumbel_softmax, the dropouts of scaled_dot_product_attention and
nn.MultiHeadAttention, rand, randn, randint (and their _like), randperm, bernoulli, multinomial, normal,
uniform_, normal_, log_normal_, exponential_, random_, and everything built from them. The dropouts between
the layers of nn.LSTM, GRU and SimpleRNN are drawn as PyTorch's are: (T, B, C), or packed, (sum of
lengths, C), where the sequences' lengths are given. `topk` takes the lower index where values are equal up
to rounding.
In eval mode Paddle's RNN operator keeps nothing for the backward pass, which then raises. In the block it
runs as in training, without dropout: the same outputs, and gradients too.
Refused with UnsharedDrawError: poisson, binomial, gamma, Dirichlet, complex numbers.
Not seen: static graphs, fused operators (paddle.incubate, GPUs' attention), graph samplers, worker
processes. `Tensor.cauchy_` and `geometric_` draw, but from other distributions than PyTorch's.
Not repeated: the second forward pass of recompute draws new numbers. With `dropout` and `bernoulli_`
imported by name, an `axis` or a probability is compared in float32, as in Paddle.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from inspect import signature
from typing import Any, NamedTuple

from reprod_align.backends import replace_attribute
from reprod_align.backends.paddle.private import ALPHA_DROPOUT, MISSING_DRAWS, NAMES, OPERATORS
from reprod_align.backends.versions import look_up
from reprod_align.base.blocks import Array
from reprod_align.randomness import (
    TIED,
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
from paddle.nn.functional import common
from paddle.nn.layer.rnn import RNNBase

Tensor = Any
Function = Callable[..., Any]
Arguments = dict[str, Any]  # an operator's arguments by their names

_own_dropout = look_up(OPERATORS, "dropout")
_own_dropout_ = look_up(OPERATORS, "dropout_")
_own_dropout_function = common.dropout
_TAKES_INPLACE = "inplace" in signature(common.dropout).parameters
"""Paddle 3.3 and later"""
_own_alpha_dropout = look_up(*ALPHA_DROPOUT)
_own_rnn = look_up(OPERATORS, "rnn")
_own_forward = RNNBase.forward


@contextmanager
def shared_random(draws: Draws) -> Iterator[None]:
    """Take every random draw of Paddle in the block from `draws`: the other framework takes the same.

    One call of `draws` per operator, of its output's shape, (N, C, 1, ...) where a dropout drops whole
    features; none where nothing is random (eval mode, p = 0 or 1). Raises UnsharedDrawError at a
    distribution that cannot be shared; MissingNameError at the end of a block that drew where this
    version of Paddle lacks an operator that is replaced here.
    """
    state = fingerprint_stream() if MISSING_DRAWS else ""
    with ExitStack() as stack:
        for owner, name, function in _REPLACEMENTS:
            stack.enter_context(replace_attribute(owner, name, _bind(function, draws)))
        yield
    if MISSING_DRAWS and state != fingerprint_stream():
        NAMES.fail(MISSING_DRAWS[0])


def fingerprint_stream() -> str:
    """Return a fingerprint of the random stream now in force: equal for streams in equal states."""
    words = str(paddle.get_rng_state()[0]).split()
    numbers = [word for word in words if not word.startswith("0x")]  # an address in this process
    return hashlib.blake2b(" ".join(numbers).encode(), digest_size=8).hexdigest()


def _bind(function: Function, draws: Draws) -> Function:
    def replacement(*args: Any, **kwargs: Any) -> Any:  # a function: a class makes it a method
        return function(draws, *args, **kwargs)

    return replacement


def _refuse(name: str, *args: Any, **kwargs: Any) -> Any:
    raise UnsharedDrawError(f"{name}: its draws cannot be shared with the other framework")


# ---------------------------------------------------------------------- operators that only draw


def _draw(name: str, draws: Draws, *args: Any, **kwargs: Any) -> Tensor:
    names, function = _VALUES[name]
    given = dict(zip(names.split(), args, strict=False)) | kwargs
    return _give(name, given, function(draws, given))


def _give(name: str, given: Arguments, values: Array) -> Tensor:
    """Return the values in the dtype that the operator's arguments ask for; `name_` changes x in place."""
    if name.endswith("_"):
        x = given["x"]
        return x.fill_(0).add_(create(values, x.dtype))  # assign would keep x's gradient alive
    dtype = given.get("dtype") or (paddle.int64 if name == "multinomial" else given["x"].dtype)
    tensor = create(values, dtype, given.get("place"))
    return tensor if given.get("out") is None else paddle.assign(tensor, given["out"])


def _find_shape(given: Arguments) -> Shape:
    return tuple(given["shape"] if "shape" in given else given["x"].shape)


def _to_float64(x: float | Tensor) -> Float64:
    return np.asarray(
        x.detach().astype("float64") if isinstance(x, paddle.Tensor) else x, np.float64
    )


def _draw_uniform(draws: Draws, given: Arguments) -> Float64:
    low, high = given["low"], given["high"]
    return low + (high - low) * draws.uniform(_find_shape(given))  # type: ignore[no-any-return]


def _draw_normal(draws: Draws, given: Arguments) -> Float64:
    return draws.normal(_find_shape(given)) * given["std"] + given["mean"]  # type: ignore[no-any-return]


def _exponential(draws: Draws, given: Arguments) -> Float64:
    return exponential(draws.uniform(_find_shape(given)), given["rate"])


def _bernoulli(draws: Draws, given: Arguments) -> Array:
    probability = _to_float64(given.get("p", given["x"]))
    return bernoulli(draws.uniform(_find_shape(given)), probability)


def _draw_integers(draws: Draws, given: Arguments) -> Array:
    return draws.integers(given["low"], given["high"], _find_shape(given))


def _draw_permutation(draws: Draws, given: Arguments) -> Array:
    return draws.permutation(given["n"])


def _multinomial(draws: Draws, given: Arguments) -> Array:
    return multinomial(draws, _to_float64(given["x"]), given["samples"], given["replacement"])


def _bernoulli_(
    draws: Draws, x: Tensor, p: float | Tensor = 0.5, name: str | None = None
) -> Tensor:
    """Paddle's own takes the probability as float32."""
    given = {"x": x, "p": p}
    return _give("bernoulli_", given, _bernoulli(draws, given))


# ---------------------------------------------------------------------- operators that draw and compute


def _rrelu(draws: Draws, x: Tensor, low: float, high: float, is_test: bool) -> Tensor:
    if is_test:
        return paddle.where(x < 0, x * ((low + high) / 2), x)  # Paddle's own rounds to float32
    slope = create(low + (high - low) * draws.uniform(tuple(x.shape)), x.dtype)
    return paddle.where(x < 0, x * slope, x)


def _gumbel_softmax(draws: Draws, x: Tensor, temperature: float, hard: bool, axis: int) -> Tensor:
    gumbel = -np.log(exponential(draws.uniform(tuple(x.shape))))
    soft = paddle.nn.functional.softmax((x + create(gumbel, x.dtype)) / temperature, axis)
    if not hard:
        return soft
    largest = paddle.argmax(soft, axis, keepdim=True)
    ones = paddle.ones(largest.shape, soft.dtype)
    one_hot = paddle.put_along_axis(paddle.zeros_like(soft), largest, ones, axis)
    return one_hot - soft.detach() + soft  # the gradient is that of the soft samples


def _topk(
    draws: Draws,
    x: Tensor,
    k: int | Tensor,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
    out: Any = None,
) -> tuple[Tensor, Tensor]:
    values = _to_float64(x.detach())
    floating = x.dtype in _EPSILONS and x.ndim > 0 and int(k) > 0 and out is None
    if not floating or np.isnan(values).any():
        return _own_topk(x, k, axis, largest, sorted, out=out)  # type: ignore[no-any-return]
    tied = TIED if x.dtype == paddle.float64 else 8 * _EPSILONS[x.dtype]
    indices = paddle.to_tensor(leading(values, int(k), axis, largest, tied), place=x.place)
    return paddle.take_along_axis(x, indices, axis, broadcast=False), indices


# ---------------------------------------------------------------------- dropout
# Computed anew: Paddle's own draws its masks in float32, or rounds 1 - p to it.


def dropout(
    draws: Draws, x: Tensor, seed: Any, p: float, is_test: bool, mode: str, *options: Any
) -> Tensor:
    """Do what Paddle's operator does, out of place."""
    if x.size == 0 or (is_test and mode == "upscale_in_train"):
        return _own_dropout(x, seed, p, is_test, mode, *options)
    factor = _draw_factor(draws, x, float(p), is_test, mode)
    return (x * factor, factor) if _gives_mask() else x * factor


@cache
def _gives_mask() -> bool:
    """Tell whether Paddle's operator returns the mask too: 2.6 does."""
    one = paddle.ones([1])
    return isinstance(_own_dropout(one, None, 0.5, True, "upscale_in_train", 0, False), tuple)


def dropout_(
    draws: Draws, x: Tensor, seed: Any, p: float, is_test: bool, mode: str, *options: Any
) -> Tensor:
    """Do what Paddle's operator does, in place."""
    if x.size == 0 or (is_test and mode == "upscale_in_train"):
        return _own_dropout_(x, seed, p, is_test, mode, *options)
    return x.multiply_(_draw_factor(draws, x, float(p), is_test, mode))


def _draw_factor(draws: Draws, x: Tensor, p: float, is_test: bool, mode: str) -> Tensor:
    if is_test:  # downscale_in_infer, where Paddle's own rounds 1 - p to float32
        return paddle.full([], 1.0 - p, x.dtype)
    return draw_mask(draws, tuple(x.shape), p, mode, x.dtype)


def draw_mask(draws: Draws, shape: Shape, p: float, mode: str, dtype: Any) -> Tensor:
    """Return a mask: 0 where an element is dropped; 1, or 1 / (1 - p), where it is kept."""
    if p in (0.0, 1.0):
        return paddle.full(shape, 1.0 - p, dtype)
    return scale(bernoulli(draws.uniform(shape), 1.0 - p), p, mode, dtype)


def scale(keep: Array, p: float, mode: str, dtype: Any) -> Tensor:
    """Return what to multiply with: `keep` as a tensor, divided by 1 - p to scale up in training."""
    mask = create(keep, dtype)
    return mask / (1.0 - p) if mode == "upscale_in_train" else mask


def dropout_function(
    draws: Draws,
    x: Tensor,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    inplace: bool | str = False,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """Paddle's F.dropout, whose mask is drawn in float32 where it has an `axis`."""
    if isinstance(inplace, str):  # Paddle before 3.3: the mode is its fifth argument
        mode, inplace = inplace, False
    axes = [axis] if isinstance(axis, int) else list(axis or ())
    if x.size == 0:
        return x
    own = not axes or not training or inplace or p == 0
    if own or not all(0 <= one < x.ndim for one in axes):
        options = {"inplace": inplace} if _TAKES_INPLACE else {}
        return _own_dropout_function(x, p, axis, training, mode=mode, name=name, **options)
    shape = tuple(size if one in axes else 1 for one, size in enumerate(x.shape))
    return x * draw_mask(draws, shape, float(p), mode, x.dtype)


def alpha_dropout(
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
    shape = (*x.shape[:2], *(1 for _ in x.shape[2:])) if feature_dropout else tuple(x.shape)
    keep = draw_mask(draws, shape, p, "downscale_in_infer", x.dtype)
    dropped = -1.6732632423543772 * 1.0507009873554805  # SELU's value at minus infinity
    a = ((1.0 - p) * (1.0 + p * dropped**2)) ** -0.5
    return (x * keep + (1.0 - keep) * dropped) * a + -a * dropped * p


def create(values: Array, dtype: Any, place: Any = None) -> Tensor:
    """Return the values as a tensor. Raises UnsharedDrawError for a complex dtype."""
    if dtype in (paddle.complex64, paddle.complex128):
        raise UnsharedDrawError(f"draws of {dtype} cannot be shared with the other framework")
    return paddle.to_tensor(np.asarray(values), place=place).astype(dtype)


# ---------------------------------------------------------------------- recurrent layers
# Paddle's operator runs all layers at once and draws inside. Here it runs one layer at a time.


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


_own_topk = look_up(OPERATORS, "topk")
_EPSILONS = {
    dtype: float(paddle.finfo(dtype).eps)
    for dtype in (paddle.float64, paddle.float32, paddle.float16, paddle.bfloat16)
}
_VALUES: dict[str, tuple[str, Callable[[Draws, Arguments], Array]]] = {  # with the arguments' names
    "uniform": ("shape dtype low high seed place", _draw_uniform),
    "uniform_inplace_": ("x low high", _draw_uniform),
    "gaussian": ("shape mean std seed dtype place", _draw_normal),
    "gaussian_inplace_": ("x mean std", _draw_normal),
    "exponential_": ("x rate", _exponential),
    "bernoulli": ("x", _bernoulli),
    "randint": ("low high shape dtype place", _draw_integers),
    "random_": ("x low high", _draw_integers),
    "randperm": ("n dtype place", _draw_permutation),
    "multinomial": ("x samples replacement", _multinomial),
}
_OPERATORS: dict[str, Function] = {
    "topk": _topk,
    "rrelu": _rrelu,
    "gumbel_softmax": _gumbel_softmax,
    "dropout": dropout,
    "dropout_": dropout_,
    "rnn": run_rnn,
}
_REFUSED = ("poisson", "binomial", "standard_gamma", "dirichlet")
_WANTED: list[tuple[Any, str, Function]] = [
    *((OPERATORS, name, partial(_draw, name)) for name in _VALUES),
    *((OPERATORS, name, function) for name, function in _OPERATORS.items()),
    *((OPERATORS, name, partial(_refuse, name)) for name in _REFUSED),
    *((owner, "dropout", dropout_function) for owner in (paddle.nn.functional, common)),
    (*ALPHA_DROPOUT, alpha_dropout),
    *(
        (owner, "bernoulli_", _bernoulli_)
        for owner in (paddle, paddle.tensor, paddle.tensor.random, paddle.Tensor)
    ),
    (RNNBase, "forward", run_forward),
]
_REPLACEMENTS = [one for one in _WANTED if look_up(*one[:2]) is not None]
"""those that this version of Paddle has"""
