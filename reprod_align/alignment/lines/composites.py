"""The steps inside functions that one side calls whole and the other writes out: attention, norms, sums.

They are computed from what the reference's call took, so that each step of a port that writes the
function out finds its counterpart.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reprod_align.alignment.lines.graph import LARGEST
from reprod_align.base.blocks import Array
from reprod_align.model.source import Operation

import numpy as np

Step = tuple[str, Sequence[Array], Array]
"""what is done, with what, and what comes of it"""


def write_out(operations: Sequence[Operation]) -> list[Operation]:
    """Return the calls, each whose steps are known preceded by them, at the same line."""
    found: list[Operation] = []
    for operation in operations:
        steps = _STEPS.get(operation.name)
        if steps is not None and all(array.dtype.kind in "fb" for array in operation.inputs):
            with np.errstate(all="ignore"):
                for name, inputs, output in steps(operation):
                    found.append(replace(operation, name=name, inputs=inputs, outputs=[output],
                                         constants=(), whole=operation))  # fmt: skip
        found.append(operation)
    return found


def _replay_attention(operation: Operation) -> Iterator[Step]:
    """softmax(q kᵀ scale + mask) v, the scale on the scores or on the query before."""
    query, key, value, *masks = operation.inputs
    if query.ndim < 3 or query.size * key.shape[-2] > LARGEST * query.shape[-1]:
        return
    scale = operation.keywords.get("scale") or 1 / math.sqrt(query.shape[-1])
    turned = key.swapaxes(-1, -2)
    yield "transpose", [key], turned
    yield "multiply", [query], query * scale
    yield "multiply", [key], key * scale
    yield "multiply", [turned], turned * scale
    scores = query @ turned
    yield "matmul", [query, turned], scores
    scaled = scores * scale
    yield "matmul", [query * scale, turned], scaled
    yield "multiply", [scores], scaled
    if operation.keywords.get("is_causal"):
        masks = [np.tril(np.ones(scores.shape[-2:], bool))]
    for mask in masks:
        hidden = np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask
        scaled = scaled + hidden
        yield "add", [scores * scale, hidden], scaled
    grown = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    shares = grown / grown.sum(axis=-1, keepdims=True)
    yield "softmax", [scaled], shares
    yield "matmul", [shares, value], shares @ value


def _layer_norm(operation: Operation) -> Iterator[Step]:
    """Over the last axes: as many as the weight has, or as are given."""
    x, *affine = operation.inputs
    sizes = [one for one in operation.constants if isinstance(one, int)]
    last = max(1, affine[0].ndim if affine else len(sizes))
    yield from _normalise(operation, tuple(range(x.ndim - last, x.ndim)), affine)


def _batch_norm(operation: Operation) -> Iterator[Step]:
    """Over all axes but the second, by the batch's own statistics; weight and bias are left out."""
    x = operation.inputs[0]
    if x.ndim > 1 and operation.keywords.get("training") is True:
        yield from _normalise(operation, (0, *range(2, x.ndim)), ())


def _normalise(
    operation: Operation, axes: tuple[int, ...], affine: Sequence[Array]
) -> Iterator[Step]:
    """(x - mean) / sqrt(var + eps), then times a weight, plus a bias."""
    x = operation.inputs[0]
    numbers = [one for one in operation.constants if isinstance(one, float)]
    eps = float(operation.keywords.get("eps") or (numbers[-1] if numbers else 1e-5))
    mean = x.mean(axis=axes, keepdims=True)
    yield "mean", [x], mean
    moved = x - mean
    yield "subtract", [x, mean], moved
    variance = (moved * moved).mean(axis=axes, keepdims=True)
    yield "pow", [moved], moved * moved
    yield "mean", [moved * moved], variance
    yield "var", [x], variance
    yield "add", [variance], variance + eps
    yield "sqrt", [variance + eps], np.sqrt(variance + eps)
    yield "rsqrt", [variance + eps], 1 / np.sqrt(variance + eps)
    normal = moved / np.sqrt(variance + eps)
    yield "divide", [moved, np.sqrt(variance + eps)], normal
    for name, parameter in zip(("multiply", "add"), affine, strict=False):
        before, normal = normal, normal * parameter if name == "multiply" else normal + parameter
        yield name, [before, parameter], normal


def _replay_linear(operation: Operation) -> Iterator[Step]:
    """X Wᵀ, plus a bias."""
    x, weight, *_ = operation.inputs
    if weight.ndim == 2:
        yield "transpose", [weight], weight.T
        yield "matmul", [x, weight.T], x @ weight.T


def _rms_norm(operation: Operation) -> Iterator[Step]:
    """x / sqrt(mean(x²) + eps), over the last axes, times a weight."""
    x, *gain = operation.inputs
    last = gain[0].ndim if gain else 1
    numbers = [one for one in operation.constants if isinstance(one, float)]
    eps = operation.keywords.get("eps") or (numbers[-1] if numbers else np.finfo(x.dtype).eps)
    variance = (x * x).mean(axis=tuple(range(x.ndim - last, x.ndim)), keepdims=True)
    yield "pow", [x], x * x
    yield "mean", [x * x], variance
    yield "add", [variance], variance + eps
    root = 1 / np.sqrt(variance + eps)
    yield "rsqrt", [variance + eps], root
    yield "multiply", [x, root], x * root
    for weight in gain:
        yield "multiply", [x * root, weight], x * root * weight


def _add_product(operation: Operation) -> Iterator[Step]:
    """Beta summand + alpha a b."""
    if len(operation.inputs) == 3:
        summand, a, b = operation.inputs
        beta, alpha = (float(operation.keywords.get(name, 1)) for name in ("beta", "alpha"))
        product = a @ b
        yield "matmul", [a, b], product
        yield "multiply", [product], alpha * product
        yield "multiply", [summand], beta * summand
        yield "add", [beta * summand, alpha * product], beta * summand + alpha * product


def _replay_silu(operation: Operation) -> Iterator[Step]:
    """X sigmoid(x)."""
    x = operation.inputs[0]
    share = 1 / (1 + np.exp(-x))
    yield "sigmoid", [x], share
    yield "multiply", [x, share], x * share


_STEPS: Final[Mapping[str, Callable[[Operation], Iterator[Step]]]] = {
    "scaled_dot_product_attention": _replay_attention,
    "layer_norm": _layer_norm,
    "batch_norm": _batch_norm,
    "linear": _replay_linear,
    "rms_norm": _rms_norm,
    "addmm": _add_product,
    "baddbmm": _add_product,
    "silu": _replay_silu,
}
