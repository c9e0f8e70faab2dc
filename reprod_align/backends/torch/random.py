"""PyTorch's random draws from a shared stream. `backends.paddle.random` does the same for Paddle.

Every draw of PyTorch ends in one of a few ATen operators, those inside composite C++ functions too:
the dropouts of nn.LSTM, GRU and RNN (packed sequences, projections, both directions), of
scaled_dot_product_attention and nn.MultiheadAttention, of scripted modules. A dispatch mode sees
these operators however the function was imported; all other arithmetic stays PyTorch's own.

Shared: dropout of every kind, rrelu, gumbel_softmax, rand, randn, randint (and their _like), randperm,
bernoulli, multinomial, normal, uniform_, normal_, log_normal_, exponential_, random_, and everything
built from them (nn.init, torch.distributions.Normal, Bernoulli, Categorical, ...). A `generator` argument
is ignored: the stream takes its place. `topk` takes the lower index where values are equal up to rounding.
Refused with UnsharedDrawError: poisson, binomial, gamma, Dirichlet, Cauchy, geometric, complex numbers.
Not seen: kernels that torch.compile has generated, the fused attention and RNN kernels of GPUs, worker
processes. Not repeated: the second forward pass of torch.utils.checkpoint draws new numbers, and the
iterator of a DataLoader draws one: make it outside the block.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reprod_align.backends.torch import private
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
import torch

Arguments = dict[str, Any]  # an operator's arguments by their names, defaults included


@contextmanager
def shared_random(draws: Draws) -> Iterator[None]:
    """Take every random draw of PyTorch in the block from `draws`: the other framework takes the same.

    One call of `draws` per operator, of its output's shape, (N, C, 1, ...) where a dropout drops whole
    features; none where nothing is random (eval mode, p = 0 or 1). Raises UnsharedDrawError at a
    distribution that cannot be shared; MissingNameError at the end of a block that drew where this
    version of PyTorch does not show its operators.
    """
    state = None if private.sees_operators() else torch.get_rng_state()
    with _SharedDraws(draws):
        yield
    if state is not None and not torch.equal(state, torch.get_rng_state()):
        private.refuse_draws()


class _SharedDraws(private.DispatchMode):
    def __init__(self, draws: Draws) -> None:
        super().__init__()
        self._draws = draws

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Arguments | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten.topk.default:
            return _topk(func, _name_arguments(func, args, kwargs))
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        if func.overloadpacket in _VALUES:
            return _draw(self._draws, func, _name_arguments(func, args, kwargs))
        if func.overloadpacket in _OPERATORS:
            return _OPERATORS[func.overloadpacket](
                self._draws, func, _name_arguments(func, args, kwargs)
            )
        if func.overloadpacket in _UNSHARED:
            raise UnsharedDrawError(f"{func}: its draws cannot be shared with the other framework")
        with self:  # inference tensors bring composite operators here whole
            result = func.decompose(*args, **kwargs)
        return func(*args, **kwargs) if result is NotImplemented else result


def _name_arguments(func: Any, args: tuple[Any, ...], kwargs: Arguments) -> Arguments:
    arguments = private.schema(func).arguments
    defaults = {argument.name: argument.default_value for argument in arguments}
    return defaults | dict(zip(defaults, args, strict=False)) | kwargs


def _draw(draws: Draws, func: Any, given: Arguments) -> torch.Tensor:
    like = _find_example(given)
    dtype = given.get("dtype")
    if not isinstance(dtype, torch.dtype):  # not given: None, or the schema's number for int64
        dtype = torch.int64 if func.overloadpacket in _INDICES else like.dtype
    if dtype.is_complex:
        raise UnsharedDrawError(f"{func}: draws of {dtype} cannot be shared")
    values = torch.from_numpy(np.asarray(_VALUES[func.overloadpacket](draws, given)))
    values = values.to(dtype=dtype, device=given.get("device") or like.device)
    if given.get("out") is not None:
        return given["out"].resize_(values.shape).copy_(values)
    return given["self"].copy_(values) if private.schema(func).name.endswith("_") else values


def _find_example(given: Arguments) -> torch.Tensor:
    tensors = (given.get(name) for name in ("out", "self", "mean", "std"))
    return next((each for each in tensors if isinstance(each, torch.Tensor)), torch.empty(0))


def _find_shape(given: Arguments) -> Shape:
    if given.get("size") is not None:
        return tuple(given["size"])
    if "self" in given:
        return tuple(given["self"].shape)
    return np.broadcast_shapes(np.shape(given["mean"]), np.shape(given["std"]))


def _to_float64(x: float | torch.Tensor) -> Float64:
    return np.asarray(x.detach().double().cpu() if isinstance(x, torch.Tensor) else x, np.float64)


def _draw_uniform(draws: Draws, given: Arguments) -> Float64:
    low, high = float(given.get("from", 0.0)), float(given.get("to", 1.0))
    return low + (high - low) * draws.uniform(_find_shape(given))


def _draw_normal(draws: Draws, given: Arguments) -> Float64:
    mean, std = _to_float64(given.get("mean", 0.0)), _to_float64(given.get("std", 1.0))
    return draws.normal(_find_shape(given)) * std + mean


def _log_normal(draws: Draws, given: Arguments) -> Float64:
    return np.exp(_draw_normal(draws, given))


def _exponential(draws: Draws, given: Arguments) -> Float64:
    return exponential(draws.uniform(_find_shape(given)), given["lambd"])


def _bernoulli(draws: Draws, given: Arguments) -> Array:
    probability = _to_float64(given.get("p", given["self"]))
    return bernoulli(draws.uniform(_find_shape(given)), probability)


def _draw_integers(draws: Draws, given: Arguments) -> Array:
    low = given.get("low") or given.get("from") or 0
    high = given.get("high", given.get("to"))
    end = _find_end_of_range(given["self"].dtype) if high is None else int(high)
    return draws.integers(low, end, _find_shape(given))


def _find_end_of_range(dtype: torch.dtype) -> int:
    if dtype.is_floating_point:
        return int(2 / torch.finfo(dtype).eps)
    return int(torch.iinfo(dtype).max)


def _draw_permutation(draws: Draws, given: Arguments) -> Array:
    return draws.permutation(given["n"])


def _multinomial(draws: Draws, given: Arguments) -> Array:
    return multinomial(
        draws, _to_float64(given["self"]), given["num_samples"], given["replacement"]
    )


def _rrelu(draws: Draws, func: Any, given: Arguments) -> torch.Tensor:
    x, noise, low, high = (given[name] for name in ("self", "noise", "lower", "upper"))
    if not given["training"]:
        return func(**given)
    slope = torch.from_numpy(low + (high - low) * draws.uniform(_find_shape(given))).to(x)
    noise.copy_(torch.where(x <= 0, slope, 1.0))  # autograd keeps it for the backward pass
    return x.mul_(noise) if private.schema(func).name.endswith("_") else x * noise


def _native_dropout(draws: Draws, func: Any, given: Arguments) -> Any:
    """F.dropout on a GPU: its output and the mask that its backward pass takes."""
    x, p, train = (given[name] for name in ("input", "p", "train"))
    if train is False or p in (0.0, 1.0) or x.numel() == 0:
        return func(x, p, train)
    keep = torch.from_numpy(bernoulli(draws.uniform(tuple(x.shape)), 1.0 - p)).to(x.device)
    return x * (keep.to(x.dtype) / (1.0 - p)), keep


def _topk(func: Any, given: Arguments) -> Any:
    x, k, axis, largest, _ = given.values()
    values = _to_float64(x.detach())
    if not x.is_floating_point() or x.ndim == 0 or k == 0 or np.isnan(values).any():
        return func(**given)
    tied = TIED if x.dtype == torch.float64 else 8 * torch.finfo(x.dtype).eps
    indices = torch.from_numpy(leading(values, k, axis, largest, tied)).to(x.device)
    return torch.gather(x, axis, indices), indices


_aten = torch.ops.aten
_VALUES: dict[Any, Callable[[Draws, Arguments], Array]] = {
    _aten.rand: _draw_uniform,
    _aten.rand_like: _draw_uniform,
    _aten.uniform_: _draw_uniform,
    _aten.randn: _draw_normal,
    _aten.randn_like: _draw_normal,
    _aten.normal: _draw_normal,
    _aten.normal_: _draw_normal,
    _aten.log_normal_: _log_normal,
    _aten.exponential_: _exponential,
    _aten.bernoulli: _bernoulli,
    _aten.bernoulli_: _bernoulli,
    _aten.randint: _draw_integers,
    _aten.randint_like: _draw_integers,
    _aten.random_: _draw_integers,
    _aten.randperm: _draw_permutation,
    _aten.multinomial: _multinomial,
}
_INDICES = {_aten.randint, _aten.randperm, _aten.multinomial}
_OPERATORS: dict[Any, Callable[[Draws, Any, Arguments], Any]] = {
    _aten.rrelu_with_noise: _rrelu,
    _aten.rrelu_with_noise_: _rrelu,
    _aten.native_dropout: _native_dropout,
}
_UNSHARED = {_aten.poisson, _aten.binomial, _aten.cauchy_, _aten.geometric_, *private.UNSHARED}
