"""The remedies, in the order in which they are tried."""

from collections.abc import Sequence
from typing import Final

from reprod_align.porting.remedies import arguments, layers, names, tensors
from reprod_align.porting.remedy import Remedy

REMEDIES: Final[Sequence[Remedy]] = (
    names.LostTorchName(),
    names.LoadingHook(),
    names.UsageRecord(),
    names.TracedAssertion(),
    names.TorchScriptDecorator(),
    names.OtherCase(),
    names.ShadowedName(),
    names.MissingSubmodule(),
    names.PrivateSetting(),
    arguments.InplaceArgument(),
    tensors.IndexTransposed(),
    tensors.ScalarOperand(),
    layers.PadRowFunction(),
    layers.PadRowLayer(),
    layers.SlopeOfGivenInput(),
)
