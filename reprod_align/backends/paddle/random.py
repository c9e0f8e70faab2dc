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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from reprod_align.backends.paddle import dropout, rnn
from reprod_align.backends.paddle.dropout import create
from reprod_align.backends.paddle.private import ALPHA_DROPOUT, MISSING_DRAWS, NAMES, OPERATORS
from reprod_align.backends.private_names import look_up
from reprod_align.backends.replacing import replace_attribute
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
from numpy.typing import NDArray
from paddle.nn.functional import common
from paddle.nn.layer.rnn import RNNBase

Array = NDArray[np.generic]
Tensor = Any
Function = Callable[..., Any]
Given = dict[str, Any]  # an operator's arguments by their names


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
    """Return what tells the state of the random stream now in force from another's."""
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


def _give(name: str, given: Given, values: Array) -> Tensor:
    """Return the values in the dtype that the operator's arguments ask for; in x for `name_`."""
    if name.endswith("_"):
        x = given["x"]
        return x.fill_(0).add_(create(values, x.dtype))  # assign would keep x's gradient alive
    dtype = given.get("dtype") or (paddle.int64 if name == "multinomial" else given["x"].dtype)
    tensor = create(values, dtype, given.get("place"))
    return tensor if given.get("out") is None else paddle.assign(tensor, given["out"])


def _shape(given: Given) -> Shape:
    return tuple(given["shape"] if "shape" in given else given["x"].shape)


def _float64(x: float | Tensor) -> Float64:
    return np.asarray(x.astype("float64") if isinstance(x, paddle.Tensor) else x, np.float64)


def _uniform(draws: Draws, given: Given) -> Float64:
    low, high = given["low"], given["high"]
    return low + (high - low) * draws.uniform(_shape(given))  # type: ignore[no-any-return]


def _normal(draws: Draws, given: Given) -> Float64:
    return draws.normal(_shape(given)) * given["std"] + given["mean"]  # type: ignore[no-any-return]


def _exponential(draws: Draws, given: Given) -> Float64:
    return exponential(draws.uniform(_shape(given)), given["rate"])


def _bernoulli(draws: Draws, given: Given) -> Array:
    probability = _float64(given.get("p", given["x"]))
    return bernoulli(draws.uniform(_shape(given)), probability)


def _integers(draws: Draws, given: Given) -> Array:
    return draws.integers(given["low"], given["high"], _shape(given))


def _permutation(draws: Draws, given: Given) -> Array:
    return draws.permutation(given["n"])


def _multinomial(draws: Draws, given: Given) -> Array:
    return multinomial(draws, _float64(given["x"]), given["samples"], given["replacement"])


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
    values = _float64(x.detach())
    floating = x.dtype in _EPSILONS and x.ndim > 0 and int(k) > 0 and out is None
    if not floating or np.isnan(values).any():
        return _own_topk(x, k, axis, largest, sorted, out=out)  # type: ignore[no-any-return]
    tied = TIED if x.dtype == paddle.float64 else 8 * _EPSILONS[x.dtype]
    indices = paddle.to_tensor(leading(values, int(k), axis, largest, tied), place=x.place)
    return paddle.take_along_axis(x, indices, axis, broadcast=False), indices


_own_topk = look_up(OPERATORS, "topk")
_EPSILONS = {
    dtype: float(paddle.finfo(dtype).eps)
    for dtype in (paddle.float64, paddle.float32, paddle.float16, paddle.bfloat16)
}
_VALUES: dict[str, tuple[str, Callable[[Draws, Given], Array]]] = {  # with the arguments' names
    "uniform": ("shape dtype low high seed place", _uniform),
    "uniform_inplace_": ("x low high", _uniform),
    "gaussian": ("shape mean std seed dtype place", _normal),
    "gaussian_inplace_": ("x mean std", _normal),
    "exponential_": ("x rate", _exponential),
    "bernoulli": ("x", _bernoulli),
    "randint": ("low high shape dtype place", _integers),
    "random_": ("x low high", _integers),
    "randperm": ("n dtype place", _permutation),
    "multinomial": ("x samples replacement", _multinomial),
}
_OPERATORS: dict[str, Function] = {
    "topk": _topk,
    "rrelu": _rrelu,
    "gumbel_softmax": _gumbel_softmax,
    "dropout": dropout.dropout,
    "dropout_": dropout.dropout_,
    "rnn": rnn.run_rnn,
}
_REFUSED = ("poisson", "binomial", "standard_gamma", "dirichlet")
_WANTED: list[tuple[Any, str, Function]] = [
    *((OPERATORS, name, partial(_draw, name)) for name in _VALUES),
    *((OPERATORS, name, function) for name, function in _OPERATORS.items()),
    *((OPERATORS, name, partial(_refuse, name)) for name in _REFUSED),
    *((owner, "dropout", dropout.dropout_function) for owner in (paddle.nn.functional, common)),
    (*ALPHA_DROPOUT, dropout.alpha_dropout),
    *(
        (owner, "bernoulli_", _bernoulli_)
        for owner in (paddle, paddle.tensor, paddle.tensor.random, paddle.Tensor)
    ),
    (RNNBase, "forward", rnn.run_forward),
]
_REPLACEMENTS = [one for one in _WANTED if look_up(*one[:2]) is not None]
"""those that this version of Paddle has"""
