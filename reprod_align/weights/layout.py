"""What a set of named weights must satisfy before a model takes it. Knows numpy only."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from reprod_align.base.text import shorten
from reprod_align.errors import WeightsError

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Layout:
    """What converting needs to know of a model: its tensors' shapes, and which a Linear layer owns."""

    shapes: Mapping[str, tuple[int, ...]]
    linears: Set[str]


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
