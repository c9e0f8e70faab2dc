"""An independent float64 judgement of a pair, which knows nothing of `align`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.pairs.case import Case, Pair

import numpy as np
import paddle
import torch
from paddle.base.framework import EagerParamBase

Arrays = Iterable[tuple[np.ndarray, np.ndarray]]

PADDLE_LEAVES = {"running_mean": "_mean", "running_var": "_variance"}
OTHER_LEAVES = ("_weight", "scale")  # what PReLU and InstanceNorm call their weight in Paddle

# A gradient below this part of the model's largest is rounding noise around an exact zero.
NOISE = 1e-4


def difference(case: Case, names: Mapping[str, str] | None = None) -> float:
    """Return the worst relative difference between the two sides of `case`; inf: not comparable.

    `names` maps dotted torch names, of modules or of tensors, to Paddle's where they differ and
    the pair itself has no `name_map`.
    """
    with float64():
        pair = case.build()
        _round_settings(pair.torch_model)
        names = names or pair.options.get("name_map") or {}
        if pair.options.get("copy_weights", True):
            copy_weights(pair.torch_model, pair.paddle_model, names)
        return max(_stages(pair, _Tensors(pair.torch_model, pair.paddle_model, names)))


def copy_weights(
    torch_model: Any, paddle_model: Any, names: Mapping[str, str] | None = None
) -> None:
    """Give the Paddle model the torch model's tensors, those excepted that fit nothing there."""
    tensors = _Tensors(torch_model, paddle_model, names or {})
    for torch_name, paddle_name in tensors.pairs():
        array = tensors.to_paddle(_array(tensors.torch[torch_name]), torch_name)
        partner = tensors.paddle[paddle_name]
        if tuple(partner.shape) == array.shape:
            partner.set_value(np.ascontiguousarray(array.astype(_dtype_name(partner))))


@contextmanager
def float64() -> Iterator[None]:
    """Build every parameter in the block as float64."""
    before = torch.get_default_dtype(), paddle.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    paddle.set_default_dtype("float64")
    try:
        yield
    finally:
        torch.set_default_dtype(before[0])
        paddle.set_default_dtype(before[1])


@contextmanager
def numbered_dropout() -> Iterator[None]:
    """Replace both frameworks' dropout: the n-th call draws the same numbers on either side."""
    modules = {torch.nn.functional: _TorchDropout(), paddle.nn.functional: _PaddleDropout()}
    own = {module: (module.dropout, module.dropout2d) for module in modules}
    for module, numbered in modules.items():
        module.dropout, module.dropout2d = numbered.dropout, numbered.dropout2d
    try:
        yield
    finally:
        for module, (dropout, dropout2d) in own.items():
            module.dropout, module.dropout2d = dropout, dropout2d


@contextmanager
def paddle_running_statistics() -> Iterator[None]:
    """Let torch's batch norm keep statistics as Paddle does: biased variance, float32 momentum."""
    own = torch.nn.functional.batch_norm

    def batch_norm(x, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
        momentum = 1 - float(np.float32(1 - momentum))
        kept = var.clone() if training and var is not None else None
        out = own(x, mean, var, weight, bias, training, momentum, eps)
        if kept is not None:
            count = x.numel() / x.shape[1]
            old = kept * (1 - momentum)
            var.data.copy_(old + (var - old) * (count - 1) / count)
        return out

    torch.nn.functional.batch_norm = batch_norm
    try:
        yield
    finally:
        torch.nn.functional.batch_norm = own


class _Dropout:
    """Masks by call number; `keep` is 1 where a value survives."""

    def __init__(self):
        self.calls = 0

    def keep(self, shape: Iterable[int], p: float) -> np.ndarray:
        self.calls += 1
        drawn = np.random.default_rng(self.calls).random(tuple(shape))
        return (drawn >= p).astype("float64")


class _TorchDropout(_Dropout):
    def dropout(self, input, p=0.5, training=True, inplace=False):
        return self._drop(input, p, training, input.shape)

    def dropout2d(self, input, p=0.5, training=True, inplace=False):
        return self._drop(input, p, training, (*input.shape[:2], 1, 1))

    def _drop(self, x, p, training, shape):
        if not training or p == 0.0:
            return x
        return x * torch.from_numpy(self.keep(shape, p)) / (1 - p)


class _PaddleDropout(_Dropout):
    def dropout(self, x, p=0.5, axis=None, training=True, mode="upscale_in_train", **_options):
        kept = range(x.ndim) if axis is None else np.atleast_1d(axis)
        shape = [x.shape[i] if i in kept else 1 for i in range(x.ndim)]
        upscale = mode == "upscale_in_train"
        if p == 0.0:
            return x
        if not training:
            return x if upscale else x * (1 - p)
        return x * paddle.to_tensor(self.keep(shape, p)) / ((1 - p) if upscale else 1.0)

    def dropout2d(self, x, p=0.5, training=True, data_format="NCHW", name=None):
        return self.dropout(x, p, axis=[0, 1], training=training)


class _Tensors:
    """Which tensor of one model is which of the other, by names."""

    def __init__(self, torch_model: Any, paddle_model: Any, names: Mapping[str, str]):
        self.torch = torch_model.state_dict(keep_vars=True)
        self.paddle = paddle_model.state_dict()
        layers = paddle_model.sublayers(include_self=True)
        self.torch_linear = _weights_of(torch_model.modules(), torch.nn.Linear)
        self.paddle_linear = _weights_of(layers, paddle.nn.Linear)
        self.partner = {name: self._partner(name, names) for name in self.torch}

    def pairs(self) -> Iterator[tuple[str, str]]:
        for torch_name, paddle_name in self.partner.items():
            if paddle_name in self.paddle:
                yield torch_name, paddle_name

    def to_paddle(self, array: np.ndarray, torch_name: str) -> np.ndarray:
        """Turn an array in the torch tensor's layout into its Paddle partner's; unfit if it cannot."""
        paddle_name = self.partner[torch_name]
        shape = tuple(self.paddle[paddle_name].shape)
        paddle_linear = id(self.paddle[paddle_name]) in self.paddle_linear
        turned = paddle_linear and id(self.torch[torch_name]) in self.torch_linear
        if array.ndim == 2 and (turned or (array.shape != shape and array.T.shape == shape)):
            return array.T
        if array.ndim != len(shape) and array.size == np.prod(
            shape
        ):  # a 1x1 convolution as a Linear
            flat = array.reshape([size for size in array.shape if size != 1])
            return flat.T.reshape(shape) if paddle_linear else flat.reshape(shape)
        return array

    def gradients(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield both sides' gradient of each parameter; zeros where a side has none of it."""
        yield from self._both(_grad)

    def values(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield both sides' value of each parameter; zeros where a side has none of it."""
        yield from self._both(_array)

    def buffers(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for torch_name, paddle_name in self.pairs():
            if torch_name.rpartition(".")[2] in PADDLE_LEAVES:
                yield _array(self.torch[torch_name]), _array(self.paddle[paddle_name])

    def _partner(self, torch_name: str, names: Mapping[str, str]) -> str:
        name = _renamed(torch_name, names)
        path, _, leaf = name.rpartition(".")
        others = [f"{path}.{other}" for other in OTHER_LEAVES if leaf == "weight"]
        return next((it for it in [name, *others] if it in self.paddle), name)

    def _both(self, value: Callable[[Any], np.ndarray]) -> Arrays:
        seen: set[int] = set()
        for torch_name, paddle_name in self.pairs():
            left, right = self.torch[torch_name], self.paddle[paddle_name]
            if isinstance(left, torch.nn.Parameter) and not {id(left), id(right)} <= seen:
                yield self.to_paddle(value(left), torch_name), value(right)
            seen |= {id(left), id(right)}  # of buffers too: Paddle makes them parameters
        for left in self.torch.values():
            if isinstance(left, torch.nn.Parameter) and id(left) not in seen:
                yield value(left), np.zeros(tuple(left.shape))
        for right in self.paddle.values():
            if isinstance(right, EagerParamBase) and id(right) not in seen:
                yield np.zeros(tuple(right.shape)), value(right)


def _weights_of(modules: Iterable[Any], kind: type) -> set[int]:
    return {id(module.weight) for module in modules if isinstance(module, kind)}


def _renamed(name: str, names: Mapping[str, str]) -> str:
    """Return the Paddle name: the longest mapped prefix replaced, the leaf in Paddle's words."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        if prefix in names:
            parts = [names[prefix], *parts[length:]]
            break
    *path, leaf = (part for part in parts if part)
    return ".".join([*path, PADDLE_LEAVES.get(leaf, leaf)])


def _stages(pair: Pair, tensors: _Tensors) -> Iterator[float]:
    if not pair.options.get("copy_weights", True):
        yield _worst(tensors.values())
        yield _worst(tensors.buffers())
    pair.torch_model.eval()
    pair.paddle_model.eval()
    with numbered_dropout():
        yield _output_difference(_torch_output(pair), _paddle_output(pair))
    pair.torch_model.train()
    pair.paddle_model.train()
    with numbered_dropout(), paddle_running_statistics():
        yield from _training(pair, tensors)


def _training(pair: Pair, tensors: _Tensors) -> Iterator[float]:
    optimizers = _made(pair, "optimizer", pair.torch_model, pair.paddle_model)
    schedulers = _made(pair, "scheduler", *optimizers)
    start = list(tensors.values())
    for step in range(pair.options.get("steps", 3) if optimizers else 1):
        yield from _forward_backward(pair, tensors, first=step == 0)
        if optimizers:
            yield _rate_difference(*optimizers)
        for stepped in (*optimizers, *schedulers):
            stepped.step()
        if optimizers:
            optimizers[0].zero_grad()
            optimizers[1].clear_grad()
    yield _worst(_moved(start, tensors.values()), floor=1.0)


def _forward_backward(pair: Pair, tensors: _Tensors, first: bool) -> Iterator[float]:
    """Run one training pass on each side; only the first, from equal weights, is compared."""
    torch_output, paddle_output = _torch_output(pair), _paddle_output(pair)
    torch_loss = pair.options.get("torch_loss", _weighted_sum)(torch_output)
    paddle_loss = pair.options.get("paddle_loss", _weighted_sum)(paddle_output)
    torch_loss.backward()
    paddle_loss.backward()
    if first:
        yield _output_difference(torch_output, paddle_output)
        yield _output_difference(torch_loss, paddle_loss)
        yield _worst(tensors.gradients(), floor=NOISE)
        yield _worst(tensors.buffers())


def _made(pair: Pair, what: str, *of: Any) -> list[Any]:
    """Build both sides' optimizer from the models, or their scheduler from the optimizers."""
    if f"torch_{what}" not in pair.options:
        return []
    made = [pair.options[f"torch_{what}"](of[0]), pair.options[f"paddle_{what}"](of[1])]
    if what == "optimizer":
        _round_as_paddle(made[0])
    return made


def _round_settings(model: torch.nn.Module) -> None:
    """Round the epsilons that Paddle's kernels take as float32; GroupNorm's takes it as float64."""
    for module in model.modules():
        if isinstance(getattr(module, "eps", None), float) and not isinstance(
            module, torch.nn.GroupNorm
        ):
            module.eps = float(np.float32(module.eps))


def _round_as_paddle(optimizer: torch.optim.Optimizer) -> None:
    """Round the coefficients that Paddle's kernels take as float32, whatever the parameters are."""
    for group in optimizer.param_groups:
        if isinstance(optimizer, torch.optim.AdamW) or group.get("momentum"):
            for key in {"momentum", "weight_decay"} & set(group):
                group[key] = float(np.float32(group[key]))


def _rate_difference(torch_optimizer: Any, paddle_optimizer: Any) -> float:
    """Return how far the rates lie apart; where parameters have their own, the updates tell."""
    rates = {group["lr"] for group in torch_optimizer.param_groups}
    if len(rates) > 1:
        return 0.0
    return _relative(np.array(rates.pop()), np.array(paddle_optimizer.get_lr()))


def _torch_output(pair: Pair) -> Any:
    return _called(pair.torch_model, pair.inputs, torch.tensor)


def _paddle_output(pair: Pair) -> Any:
    return _called(pair.paddle_model, pair.inputs, paddle.to_tensor)


def _called(model: Any, inputs: Any, tensor: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**{name: tensor(_wide(array)) for name, array in inputs.items()})
    return model(*(tensor(_wide(array)) for array in inputs))


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype("float64") if array.dtype.kind == "f" else array


def _leaves(output: Any) -> Iterator[Any]:
    """Yield the tensors of a nested output in their order; None is no tensor."""
    if isinstance(output, torch.Tensor | paddle.Tensor):
        yield output
    elif isinstance(output, Mapping):
        for value in output.values():
            yield from _leaves(value)
    elif isinstance(output, list | tuple):
        for value in output:
            yield from _leaves(value)


def _weighted_sum(output: Any) -> Any:
    """Return a loss in which no two elements of the float outputs weigh the same."""
    total = 0.0
    for leaf in _leaves(output):
        if "float" in str(leaf.dtype):
            weight = np.random.default_rng(leaf.ndim).standard_normal(tuple(leaf.shape))
            tensor = torch.from_numpy if isinstance(leaf, torch.Tensor) else paddle.to_tensor
            total = total + (leaf * tensor(weight)).sum()
    return total


def _output_difference(torch_output: Any, paddle_output: Any) -> float:
    left, right = list(_leaves(torch_output)), list(_leaves(paddle_output))
    if len(left) != len(right):
        return float("inf")
    return _worst((_array(a), _array(b)) for a, b in zip(left, right, strict=True))


def _moved(start: Arrays, end: Arrays) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for (torch_old, paddle_old), (torch_new, paddle_new) in zip(start, end, strict=True):
        yield torch_new - torch_old, paddle_new - paddle_old


def _worst(pairs: Arrays, floor: float = 0.0) -> float:
    """Return the worst relative difference; `floor`: the least scale, in parts of the largest."""
    arrays = list(pairs)
    largest = max((_largest(*both) for both in arrays), default=0.0)
    return max((_relative(*both, least=floor * largest) for both in arrays), default=0.0)


def _relative(left: np.ndarray, right: np.ndarray, least: float = 0.0) -> float:
    if left.shape != right.shape:
        return float("inf")
    scale = max(_largest(left, right), least)
    if not np.isfinite(scale):
        return float("inf")
    return float(np.max(np.abs(left - right), initial=0.0)) / scale if scale else 0.0


def _largest(left: np.ndarray, right: np.ndarray) -> float:
    both = np.concatenate([left.ravel(), right.ravel()])
    return float(np.max(np.abs(both), initial=0.0))  # NaN if there is one


def _array(tensor: Any) -> np.ndarray:
    """Return a copy as float64, of integers and booleans too."""
    return np.array(tensor.detach().numpy(), dtype="float64")


def _grad(parameter: Any) -> np.ndarray:
    if parameter.grad is None:
        return np.zeros(tuple(parameter.shape))
    return _array(parameter.grad)


def _dtype_name(tensor: paddle.Tensor) -> str:
    return str(tensor.dtype).removeprefix("paddle.")
