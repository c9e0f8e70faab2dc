"""The remedies, in the order in which they are tried."""

from collections.abc import Sequence
from typing import Final

from reprod_align.porting.remedies import layers, names, tensors
from reprod_align.porting.remedy import Remedy

REMEDIES: Final[Sequence[Remedy]] = (
    names.LostTorchName(),
    names.LoadingHook(),
    names.OtherCase(),
    tensors.IndexTransposed(),
    layers.PadRowFunction(),
    layers.PadRowLayer(),
)
