"""The values of a model's tensors, read from files as they are needed."""

from collections.abc import Mapping, Sequence

from reprod_align.base.text import shorten
from reprod_align.errors import WeightsError
from reprod_align.model.side import ModelInfo
from reprod_align.model.tensor_pair import TensorPair
from reprod_align.model.trace import Array
from reprod_align.weights.stored import Stored

import numpy as np


class FileValues:
    """What a checkpoint holds of a model's tensors."""

    def __init__(self, info: ModelInfo, stored: Mapping[str, Stored], name: str) -> None:
        """Take the checkpoint's tensors. Raises WeightsError if a parameter is missing or misfits."""
        self._info, self._stored = info, stored
        missing = [t.name for t in info.tensors.values()
                   if t.is_parameter and t.is_persistent and self._find(t.name) is None]  # fmt: skip
        misfits = [f"{t.name}: {found.shape} where the model has {t.shape}"
                   for t in info.tensors.values()
                   if (found := self._find(t.name)) is not None and found.shape != t.shape]  # fmt: skip
        if missing or misfits:
            faults = [*(f"missing {one}" for one in missing), *misfits]
            raise WeightsError(f"{name} does not fit the model: {shorten(faults, 6, '; ')}")
        known = {other for tensor in info.tensors for other in info.other_names(tensor)}
        self.extra = [one for one in stored if one not in known]
        """what the checkpoint holds and the model does not"""

    def _find(self, name: str) -> Stored | None:
        known: Stored | None = self._info.find(self._stored, name)
        return known

    def __call__(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the values of those of the named tensors that the checkpoint holds."""
        found = ((name, self._find(name)) for name in names)
        return {name: stored.values() for name, stored in found if stored is not None}


class ConvertedValues:
    """PyTorch's values as Paddle's tensors hold them."""

    def __init__(self, info: ModelInfo, pairs: Sequence[TensorPair], read: FileValues) -> None:
        """Take Paddle's side, and how its tensors are paired with PyTorch's."""
        self._info, self._read = info, read
        self._pairs = {info.tensors[name].tie: pair for pair in pairs for name in pair.paddle}

    def __call__(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the values of those of the named tensors that are paired."""
        made: dict[str, Array] = {}
        for name in names:
            tie = self._info.tensors[name].tie
            pair = self._pairs.get(tie)
            if pair is None or tie in made:
                continue
            values = self._read(pair.torch)
            if len(values) == len(pair.torch):
                converted = pair.to_paddle(values)
                made |= {self._info.tensors[n].tie: np.ascontiguousarray(a)
                         for n, a in converted.items()}  # fmt: skip
        return {name: made[tie] for name in names if (tie := self._info.tensors[name].tie) in made}
