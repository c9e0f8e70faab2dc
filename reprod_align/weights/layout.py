"""How weights lie in each framework, by layer type, and whether a state dict fits a model. Knows numpy only.

A weight is transposed if and only if a `Linear` layer owns it on both sides, since `torch.nn.Linear` keeps
(out, in) and `paddle.nn.Linear` (in, out). It is never inferred from shapes (a square weight can't tell) nor
from names (guide, section 4.1.2: a Linear may be called `conv`).
"""

from collections.abc import Mapping
from typing import Final

from reprod_align.base.text import shorten
from reprod_align.errors import WeightsError

import numpy as np
from numpy.typing import NDArray

TRANSPOSED_LAYERS: Final = frozenset({"Linear"})
"""Layers of `torch.nn` and `paddle.nn` whose weight is (out, in) in PyTorch and (in, out) in Paddle."""

AXES_OF_CLASSES: Final = {"Conv1D": "io"}  # the one of GPT-2
"""The order of outputs and inputs in the weights of classes that no framework has, "oi" or "io"."""


def matrix_axes(kind: str, class_name: str, convention: str, is_stock: bool = True) -> str:
    """Return the order of outputs and inputs in a layer's matrices: "oi", "io", or "" if unknown.

    kind: the PyTorch layer that computes the same, "" for a user's own class; class_name: its class;
    convention: the framework whose layout the layer follows. Only a layer of the framework's own
    (is_stock) is certain to follow it: with "?" at its end the order is likely.
    """
    if not kind and class_name in AXES_OF_CLASSES:
        return AXES_OF_CLASSES[class_name]
    if kind in TRANSPOSED_LAYERS or (not kind and class_name.endswith("Linear")):
        likely = "oi" if convention == "PyTorch" else "io"
        return likely if is_stock and kind else f"{likely}?"
    return "oi" if kind.startswith("Conv") and "Transpose" not in kind else ""


def check_names_and_shapes(
    shapes: Mapping[str, tuple[int, ...]], weights: Mapping[str, NDArray[np.generic]]
) -> None:
    """Raise WeightsError naming every missing, extra or wrongly shaped tensor; silence means they fit.

    Neither framework can be trusted with this: Paddle's `set_state_dict` never raises.
    """
    faults = [f"missing {name}" for name in sorted(shapes.keys() - weights.keys())]
    faults += [f"extra {name}" for name in sorted(weights.keys() - shapes.keys())]
    faults += [
        f"{name} has shape {weights[name].shape} where the model has {shape}"
        for name, shape in shapes.items()
        if name in weights and weights[name].shape != shape
    ]
    if faults:
        raise WeightsError(f"the weights do not fit the model: {shorten(faults, 8, '; ')}")
