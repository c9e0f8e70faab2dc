"""One module per framework, the same functions in both: `backends.torch` and `backends.paddle`.

Only the one that is imported needs its framework; this file needs neither. It holds what both use:
functions that replace an attribute while a block lasts, and the rules of how weights lie.

Arrays that leave a backend lie as PyTorch has them, so that both sides' parameters and gradients can
be compared at once. A weight is transposed if and only if a `Linear` layer owns it on both sides, since
`torch.nn.Linear` keeps (out, in) and `paddle.nn.Linear` (in, out). That is never inferred from shapes (a
square weight can't tell) nor from names (guide, section 4.1.2: a Linear may be called `conv`).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.text import shorten
from reprod_align.errors import WeightsError
from reprod_align.weights import Opaque, Stored, open_checkpoint

import numpy as np
from numpy.typing import NDArray


@contextmanager
def replace_attribute(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    """Let `owner` have `replacement` as its attribute `name`; its own comes back after the block."""
    own = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, own)


@contextmanager
def note_construction(kinds: Mapping[str, type], note: Callable[[str], None]) -> Iterator[None]:
    """Call `note` with a kind's name whenever an object of its class is initialised in the block."""
    with ExitStack() as stack:
        for name, kind in kinds.items():
            stack.enter_context(replace_attribute(kind, "__init__", _note_first(name, kind, note)))
        yield


def _note_first(name: str, kind: type, note: Callable[[str], None]) -> Callable[..., None]:
    own = kind.__init__  # type: ignore[misc]

    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        note(name)
        own(self, *args, **kwargs)

    return initialise


@contextmanager
def note_arguments(owner: Any, name: str) -> Iterator[list[Any]]:
    """Yield a list of what a method is given first in the block; the calls are made."""
    own, noted = getattr(owner, name), list[Any]()

    def call(self: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
        noted.append(first)
        return own(self, first, *args, **kwargs)

    with replace_attribute(owner, name, call):
        yield noted


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


def read_state_dict(path: Path, framework: Framework) -> dict[str, NDArray[np.generic]]:
    """Return the tensors of a `.safetensors` file, or of one that the framework has saved, as they lie.

    bfloat16 comes as float32. Raises MissingInputError if there is no such file, WeightsError if it is
    damaged, another framework's, or holds anything but named dense tensors.
    """
    held = open_checkpoint(path)
    if held.kind not in ("safetensors", framework):
        raise WeightsError(f"{path} was written by another framework than {FRAMEWORKS[framework]}")
    for name, value in held.content.items():
        if not isinstance(value, Stored):
            kind = value.name if isinstance(value, Opaque) else type(value).__name__
            raise WeightsError(f"{path}: {name} is a {kind}, not a dense tensor")
    return {name: tensor.values() for name, tensor in held.tensors.items()}


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
