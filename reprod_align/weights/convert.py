"""State dict to state dict: from PyTorch's names and layouts to Paddle's. Knows numpy only.

The one layout rule that BERT needs: a weight is transposed if and only if a `Linear` layer owns it
on both sides, since `torch.nn.Linear` keeps (out, in) and `paddle.nn.Linear` (in, out). It is never
inferred from shapes (a square weight can't tell) nor from names (guide, section 4.1.2: a Linear may
be called `conv`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reprod_align.errors import WeightsError
from reprod_align.weights.layout import Layout, check_names_and_shapes

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Row:
    """One converted tensor: how it is called, shaped and distributed on both sides."""

    torch_name: str
    paddle_name: str
    torch: Array
    paddle: Array
    transposed: bool

    HEADERS = ("torch name", "paddle name", "torch shape", "paddle shape", "transposed",
               "torch mean", "paddle mean", "torch std", "paddle std")  # fmt: skip

    def cells(self) -> tuple[str, ...]:
        """Return what stands under HEADERS."""
        means = (f"{side.mean():.3e}" for side in (self.torch, self.paddle))
        stds = (f"{side.std():.3e}" for side in (self.torch, self.paddle))
        shapes = (str(side.shape) for side in (self.torch, self.paddle))
        transposed = "yes" if self.transposed else "no"
        return (self.torch_name, self.paddle_name, *shapes, transposed, *means, *stds)


def convert(
    weights: Mapping[str, Array],
    torch_layout: Layout,
    paddle_layout: Layout,
    paddle_name: Callable[[str], str] = lambda name: name,
) -> list[Row]:
    """Convert a PyTorch state dict for a Paddle model, one row a tensor, in the state dict's order.

    `paddle_name` gives the Paddle name of a PyTorch name. Raises WeightsError naming every tensor
    that is missing, left over, of the wrong shape, or that two names claim.
    """
    check_names_and_shapes(torch_layout.shapes, weights)
    rows = [
        _row(name, paddle_name(name), array, torch_layout, paddle_layout)
        for name, array in weights.items()
    ]
    converted = {row.paddle_name: row.paddle for row in rows}
    if len(converted) < len(rows):
        raise WeightsError("two PyTorch tensors are mapped to the same Paddle name")
    check_names_and_shapes(paddle_layout.shapes, converted)
    return rows


def _row(
    name: str, paddle_name: str, array: Array, torch_layout: Layout, paddle_layout: Layout
) -> Row:
    transposed = name in torch_layout.linears and paddle_name in paddle_layout.linears
    converted = np.ascontiguousarray(array.T) if transposed else array
    return Row(name, paddle_name, array, converted, transposed)
