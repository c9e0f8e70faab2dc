"""Equal but faster layers for Paddle on a CPU, put into a model that is already built.

    undo = faster(model)                # same weights, names and hooks; the same outputs bit for bit
    with contiguous_tensors():          # the larger half of the gain: see there
        train(model)
    undo()

docs/performance.md has what each saves and what did not help, measured by benchmarks/bench_paddle_ops.py.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from models.pd_bert import BertEncoder

import paddle
from paddle import Tensor, nn

__all__ = ["FastBertEncoder", "FastLinear", "change_classes", "contiguous_tensors", "faster"]

_STRIDES = "FLAGS_use_stride_kernel"


def faster(model: nn.Layer) -> Callable[[], None]:
    """Let every nn.Linear and BertEncoder of `model` compute faster, in place.

    Only layers of exactly these classes change, not user-written subclasses; parameters, names,
    hooks and outputs stay, gradients of biases change by rounding alone. Returns the function that
    undoes it.
    """
    return change_classes(model, _FASTER)


def change_classes(model: nn.Layer, classes: Mapping[type, type]) -> Callable[[], None]:
    """Give every layer of exactly a class in `classes` the other one; return what undoes it."""
    layers = model.sublayers(include_self=True)
    before = [(layer, type(layer)) for layer in layers if type(layer) in classes]
    for layer, plain in before:
        layer.__class__ = classes[plain]

    def undo() -> None:
        for layer, plain in before:
            layer.__class__ = plain

    return undo


@contextmanager
def contiguous_tensors() -> Iterator[None]:
    """Let transposes and slices in the block be copies: Paddle's strided views are slow on a CPU.

    For the whole process. A view made before the block raises SystemError when it is used in it,
    and in it, what is written to a slice held by name (`b = a[0]; b[0] = 1`) is not written to `a`.
    """
    before = paddle.get_flags(_STRIDES)
    paddle.set_flags({_STRIDES: False})
    try:
        yield
    finally:
        paddle.set_flags(before)


class FastLinear(nn.Linear):
    """nn.Linear whose bias is spread by a product with ones: Paddle sums a broadcast's gradient slowly."""

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., I) to (..., O); as nn.Linear for no rows, no trained bias, and under auto_cast."""
        trained = self.bias is not None and not self.bias.stop_gradient
        if not trained or 0 in input.shape or paddle.amp.is_autocast_enabled():
            return super().forward(input)
        product = paddle.matmul(input, self.weight)  # (..., O)
        ones = paddle.ones([*product.shape[:-1], 1], product.dtype)  # (..., 1)
        return product + paddle.matmul(ones, self.bias.unsqueeze(0))  # (..., O)


class FastBertEncoder(BertEncoder):
    """BertEncoder that spreads the mask over the heads once, so that no layer's sum broadcasts it."""

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Pass hidden (B, L, D) through every layer under mask (B, 1, 1, L): (B, L, D)."""
        (B, L, _), H = hidden.shape, self.layer[0].attention.self.num_heads
        return super().forward(hidden, mask.expand([B, H, L, L]).contiguous())  # (B, L, D)


_FASTER: dict[type, type] = {nn.Linear: FastLinear, BertEncoder: FastBertEncoder}
