"""The tensors of a model as they came, read when they are asked for: a copy of all takes memory."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reprod_align.model.store import Array

import numpy as np


@dataclass(frozen=True, eq=False)
class Given(Mapping[str, Array]):
    """What tensors hold that nothing writes to while work goes on in copies of them."""

    view: Callable[[Any], Array]
    tensors: Mapping[str, Any]
    dtype: str | None
    """of floats, real or complex, when they are read; None: each tensor's own"""

    def __getitem__(self, name: str) -> Array:
        """Return a tensor's values. Raises KeyError for a name that the model lacks."""
        values = self.view(self.tensors[name])
        if self.dtype is None or values.dtype.kind not in "fc":
            return values
        wide = np.result_type(self.dtype, np.complex64) if values.dtype.kind == "c" else self.dtype
        return values.astype(wide, copy=False)

    def __contains__(self, name: object) -> bool:
        """Tell whether the model has the tensor, without reading it."""
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self.tensors)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.tensors)


def read_narrow(values: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the same values, each in its tensor's own dtype where that is known: it is widened later."""
    return replace(values, dtype=None) if isinstance(values, Given) else values
