"""Which equal formulation of each operator is fastest in Paddle on a CPU, beside PyTorch's operator?

    OMP_NUM_THREADS=1 python benchmarks/bench_paddle_ops.py             # the operators of one BERT layer
    OMP_NUM_THREADS=1 python benchmarks/bench_paddle_ops.py --steps     # whole training steps

MiniLM's shape, batch 32 x 64, float32. All candidates run in turns in one process; the table has medians of
the processor time, which others on the machine disturb least, and their ratios to PyTorch's. More than one
thread's time adds up: leave OMP_NUM_THREADS at 1.
"""

import argparse
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Any

import pipeline  # noqa: F401  (quietens what follows)
from models import pd_bert, pt_bert
from models.bert_config import BertConfig
from pipeline.pd import optimizer as pd_optimizer
from pipeline.pd.fast_layers import FastLinear, contiguous_tensors, faster
from pipeline.pd.native_layers import (
    NativeDropout,
    NativeGELU,
    NativeLayerNorm,
    NativeLinear,
    masked_softmax,
    native,
)
from pipeline.pt import optimizer as pt_optimizer

import numpy as np
import paddle
import paddle.nn.functional as F
import torch
from paddle import Tensor, nn
from paddle.autograd import PyLayer

B, L, D, H, I = 32, 64, 384, 12, 1536  # noqa: E741  (as in models/)
K = D // H
Times = tuple[float, ...]  # processor seconds of each part
Timed = Callable[[], Times]


class ClosedGELU(PyLayer):
    """x Phi(x), its derivative Phi(x) + x phi(x) built in one buffer by the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Apply to every element."""
        ctx.save_for_backward(x)
        return F.gelu(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Return the gradient of x."""
        (x,) = ctx.saved_tensor()
        return _gelu_slope(x, paddle.erf(x * math.sqrt(0.5)).scale_(0.5, 0.5)).multiply_(grad)


class SlopeFirstGELU(PyLayer):
    """x Phi(x), its derivative built by the forward pass, which has Phi(x) already."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Apply to every element."""
        share = paddle.erf(x * math.sqrt(0.5)).scale_(0.5, 0.5)  # Phi(x)
        ctx.save_for_backward(_gelu_slope(x, share))
        return share.multiply_(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Return the gradient of x."""
        (slope,) = ctx.saved_tensor()
        return grad * slope


def _gelu_slope(x: Tensor, share: Tensor) -> Tensor:
    bell = paddle.exp(paddle.square(x).scale_(-0.5)).scale_(1 / math.sqrt(2 * math.pi))
    return bell.multiply_(x).add_(share)


class ClosedSoftmax(PyLayer):
    """Softmax of the last axis from its definition, with its closed-form backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return the probabilities."""
        powers = paddle.exp(x - x.max(-1, keepdim=True))
        probs = powers.divide_(powers.sum(-1, keepdim=True))
        ctx.save_for_backward(probs)
        return probs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Return the gradient of x."""
        (probs,) = ctx.saved_tensor()
        product = grad * probs
        return product.subtract_(probs * product.sum(-1, keepdim=True))


class ClosedLayerNorm(PyLayer):
    """Layer normalisation of the last axis with its closed-form backward pass, on (N, D) rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Normalise, scale and shift."""
        ctx.save_for_backward(x, weight)
        return F.layer_norm(x, weight.shape, weight, bias, 1e-12)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of x, weight and bias."""
        x, weight = ctx.saved_tensor()
        rows, grad_rows = x.flatten(0, -2), grad.flatten(0, -2)  # (N, D)
        unit = rows - rows.mean(-1, keepdim=True)
        scale = paddle.rsqrt(paddle.square(unit).mean(-1, keepdim=True) + 1e-12)  # (N, 1)
        product = grad_rows * unit.multiply_(scale)
        share = (weight / len(weight)).unsqueeze(-1)  # (D, 1): a product with it is a row's mean
        inner = (grad_rows * weight).subtract_(paddle.matmul(grad_rows, share))
        inner.subtract_(unit.multiply_(paddle.matmul(product, share))).multiply_(scale)
        return inner.reshape(x.shape), _sum_of_rows(product), _sum_of_rows(grad_rows)


class ClosedLinear(PyLayer):
    """x W + b, with its backward pass written out: the bias's gradient is a product with ones."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Map (..., I) to (..., O)."""
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of x, weight and bias."""
        x, weight = ctx.saved_tensor()
        rows, grad_rows = x.flatten(0, -2), grad.flatten(0, -2)
        to_weight = paddle.matmul(rows, grad_rows, transpose_x=True)
        return paddle.matmul(grad, weight, transpose_y=True), to_weight, _sum_of_rows(grad_rows)


def _sum_of_rows(rows: Tensor) -> Tensor:
    return paddle.matmul(paddle.ones([1, len(rows)], rows.dtype), rows).squeeze(0)


def _whole_number_dropout(x: Tensor) -> Tensor:
    drawn = paddle.randint(0, 2**31 - 1, x.shape, "int32")
    kept = drawn >= paddle.full([], round(0.1 * (2**31 - 1)), "int32")
    return x * kept.astype(x.dtype).scale_(1 / 0.9)


def _product_with_ones(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return FastLinear.forward(_holding(weight, bias), x)


def _native_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    layer = _holding(weight, bias)
    layer._normalized_shape, layer._epsilon = [D], 1e-12
    return NativeLayerNorm.forward(layer, x)


def _holding(weight: Tensor, bias: Tensor) -> nn.Layer:
    layer = nn.Layer()
    layer.weight, layer.bias = weight, bias
    return layer


@dataclass(frozen=True)
class Operator:
    """An operator in PyTorch, its candidates in Paddle, and the shapes of its differentiable inputs."""

    torch: Callable[..., Any]
    paddle: Mapping[str, Callable[..., Any]]
    shapes: tuple[tuple[int, ...], ...]


def operators() -> dict[str, Operator]:
    """Return the operators of a BERT layer."""
    mask, spread = paddle.zeros([B, 1, 1, L]), paddle.zeros([B, H, L, L])
    torch_mask = torch.zeros(B, 1, 1, L)
    linear = {
        "plain": F.linear,
        "product with ones *": _product_with_ones,
        "closed form": ClosedLinear.apply,
        "native": lambda x, w, b: NativeLinear.forward(_holding(w, b), x),
    }

    def torch_linear(x: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.linear(x, weight.t(), bias)

    return {
        "linear D to D": Operator(torch_linear, linear, ((B, L, D), (D, D), (D,))),
        "linear D to I": Operator(torch_linear, linear, ((B, L, D), (D, I), (I,))),
        "linear I to D": Operator(torch_linear, linear, ((B, L, I), (I, D), (D,))),
        "split heads": Operator(
            lambda x: x.reshape(B, L, H, K).transpose(1, 2).contiguous(),
            {
                "plain": lambda x: x.reshape([B, L, H, K]).transpose([0, 2, 1, 3]).contiguous(),
                "contiguous tensors *": lambda x: x.reshape([B, L, H, K]).transpose([0, 2, 1, 3]),
            },
            ((B, L, D),),
        ),
        "add the mask": Operator(
            lambda x: x + torch_mask,
            {"plain": lambda x: x + mask, "spread over the heads *": lambda x: x + spread},
            ((B, H, L, L),),
        ),
        "gelu": Operator(
            torch.nn.functional.gelu,
            {
                "plain *": F.gelu,
                "by erf": lambda x: x * (0.5 * (1 + paddle.erf(x * math.sqrt(0.5)))),
                "closed form": ClosedGELU.apply,
                "slope in the forward": SlopeFirstGELU.apply,
                "native": NativeGELU().forward,
            },
            ((B, L, I),),
        ),
        "softmax": Operator(
            lambda x: torch.softmax(x, -1),
            {
                "plain *": lambda x: F.softmax(x, -1),
                "closed form": ClosedSoftmax.apply,
                "native, with scale and mask": lambda x: masked_softmax(x, mask, K),
            },
            ((B, H, L, L),),
        ),
        "layer norm": Operator(
            lambda x, w, b: torch.nn.functional.layer_norm(x, (D,), w, b, 1e-12),
            {
                "plain *": lambda x, w, b: F.layer_norm(x, D, w, b, 1e-12),
                "closed form": ClosedLayerNorm.apply,
                "native": _native_norm,
            },
            ((B, L, D), (D,), (D,)),
        ),
        "dropout": Operator(
            lambda x: torch.dropout(x, 0.1, True),
            {
                "plain *": lambda x: F.dropout(x, 0.1),
                "whole numbers": _whole_number_dropout,
                "native": NativeDropout(0.1).forward,
            },
            ((B, H, L, L),),
        ),
    }


def torch_operator(function: Callable[..., Any], arrays: list[np.ndarray]) -> Timed:
    """Return what times a forward and a backward pass in PyTorch."""
    inputs = [torch.tensor(array, requires_grad=True) for array in arrays]
    grad = torch.full_like(function(*inputs), 0.1)

    def timed() -> Times:
        start = time.process_time()
        output = function(*inputs)
        middle = time.process_time()
        torch.autograd.grad(output, inputs, grad)
        return middle - start, time.process_time() - middle

    return timed


def paddle_operator(function: Callable[..., Any], arrays: list[np.ndarray], strided: bool) -> Timed:
    """Return what times a forward and a backward pass in Paddle, with or without strided views."""
    inputs = [paddle.to_tensor(array, stop_gradient=False) for array in arrays]
    grad = paddle.full_like(function(*inputs), 0.1)

    def timed() -> Times:
        with nullcontext() if strided else contiguous_tensors():
            start = time.process_time()
            output = function(*inputs)
            middle = time.process_time()
            paddle.grad(output, inputs, grad)
            return middle - start, time.process_time() - middle

    return timed


def operator_candidates(operator: Operator) -> dict[str, Timed]:
    """Return PyTorch's operator first, then Paddle's candidates."""
    source = np.random.default_rng(0)
    arrays = [source.standard_normal(shape).astype("float32") for shape in operator.shapes]
    found = {"torch": torch_operator(operator.torch, arrays)}
    for name, function in operator.paddle.items():
        strided = name == "plain"
        found[name] = paddle_operator(function, arrays, strided)
    return found


CONFIG = BertConfig(hidden_size=D, num_hidden_layers=6, num_attention_heads=H, intermediate_size=I)


def torch_step(fused: bool) -> Timed:
    """Return what times forward, backward and optimizer of a step in PyTorch."""
    ids, labels = (torch.tensor(array) for array in _batch())
    model = pt_bert.BertForSequenceClassification(CONFIG).train()
    optimizer, _ = pt_optimizer.build_optimizer(model, 3e-5, 1000)
    if fused:
        pt_optimizer.fuse_updates(optimizer)

    def timed() -> Times:
        marks = [time.process_time()]
        loss = torch.nn.functional.cross_entropy(model(ids), labels)
        marks.append(time.process_time())
        loss.backward()
        marks.append(time.process_time())
        optimizer.step()
        optimizer.zero_grad()
        return _between([*marks, time.process_time()])

    return timed


def paddle_step(
    change: Callable[[Any], Any], block: Callable[[], AbstractContextManager[None]]
) -> Timed:
    """Return what times forward, backward and optimizer of a step in Paddle, in a `block`."""
    ids, labels = (paddle.to_tensor(array) for array in _batch())
    model = pd_bert.BertForSequenceClassification(CONFIG)
    model.train()
    optimizer, _ = pd_optimizer.build_optimizer(model, 3e-5, 1000)
    changed = change(model)

    def timed() -> Times:
        with block():
            marks = [time.process_time()]
            loss = F.cross_entropy(changed(ids), labels)
            marks.append(time.process_time())
            loss.backward()
            marks.append(time.process_time())
            optimizer.step()
            optimizer.clear_grad()
            return _between([*marks, time.process_time()])

    return timed


def step_candidates() -> dict[str, Timed]:
    """Return PyTorch's step first, then Paddle's candidates, each with one thing more."""

    def changed(change: Callable[[nn.Layer], Any]) -> Callable[[nn.Layer], nn.Layer]:
        return lambda model: (change(model), model)[1]

    return {
        "torch": torch_step(False),
        "torch, fused AdamW": torch_step(True),
        "plain": paddle_step(lambda model: model, nullcontext),
        "to_static": paddle_step(paddle.jit.to_static, nullcontext),
        "contiguous_tensors": paddle_step(lambda model: model, contiguous_tensors),
        "and faster": paddle_step(changed(faster), contiguous_tensors),
        "native": paddle_step(changed(native), contiguous_tensors),
    }


def _batch() -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(0)
    return source.integers(1, CONFIG.vocab_size, (B, L)), np.arange(B) % 2


def _between(marks: list[float]) -> Times:
    return tuple(after - before for before, after in zip(marks, marks[1:], strict=False))


def measure(candidates: Mapping[str, Timed], rounds: int) -> dict[str, list[float]]:
    """Run all candidates in turns; return the median milliseconds of their parts."""
    for timed in candidates.values():
        timed()  # memory and code are made ready
    found: dict[str, list[Times]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, timed in candidates.items():
            found[name].append(timed())
    return {
        name: [1000 * median(part) for part in zip(*times, strict=True)]
        for name, times in found.items()
    }


def print_table(title: str, parts: list[str], results: Mapping[str, list[float]]) -> None:
    """Print a candidate a line: milliseconds and ratio to the first line's, by part and in all."""
    print(f"{title:24}" + "".join(f"{part:>18}" for part in [*parts, "together"]))
    first = _with_sum(next(iter(results.values())))
    for name, milliseconds in results.items():
        pairs = zip(_with_sum(milliseconds), first, strict=True)
        print(
            f"  {name:22}" + "".join(f"{each:9.1f} ({each / base:5.2f}x)" for each, base in pairs)
        )


def _with_sum(milliseconds: list[float]) -> list[float]:
    return [*milliseconds, sum(milliseconds)]


def main() -> None:
    """Measure, and print the tables; * marks what pipeline/pd/fast_layers.py uses."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", action="store_true", help="whole training steps instead")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    paddle.set_device("cpu")
    if options.steps:
        results = measure(step_candidates(), options.rounds)
        print_table("training step", ["forward", "backward", "optimizer"], results)
        return
    for title, operator in operators().items():
        results = measure(operator_candidates(operator), options.rounds)
        print_table(title, ["forward", "backward"], results)


if __name__ == "__main__":
    main()
