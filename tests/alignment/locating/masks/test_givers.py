"""Who is to blame for a mask: the module that made it, or did not hand it on."""

from typing import Any

from reprod_align.alignment.locating.faults import find_forward_faults
from reprod_align.alignment.locating.masks import find_makers
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import X

import numpy as np
import paddle
import pytest
import torch

MASK = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 1]])


class TorchGate(torch.nn.Module):
    def forward(self, x: Any, mask: Any = None) -> Any:
        return torch.sin(x) if mask is None else torch.sin(x) * mask


class TorchMasked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.gate = torch.nn.Linear(3, 3), TorchGate()

    def forward(self, x: Any, mask: Any) -> Any:
        return self.gate(self.first(x), mask)


class PaddleGate(paddle.nn.Layer):
    def forward(self, x: Any, mask: Any = None) -> Any:
        return paddle.sin(x) if mask is None else paddle.sin(x) * mask.astype(x.dtype)


class PaddleMasked(paddle.nn.Layer):
    def __init__(self, change: Any) -> None:
        super().__init__()
        self.first, self.gate, self.change = paddle.nn.Linear(3, 3), PaddleGate(), change

    def forward(self, x: Any, mask: Any) -> Any:
        return self.gate(self.first(x), *self.change(mask))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda mask: [mask], ""),
        (lambda mask: [1 - mask], "the mask or index it hands to gate"),
        (lambda mask: [], "it has a mask or index that it does not hand to gate"),
    ],
)
def test_the_module_that_hands_on_the_mask_is_at_fault(change: Any, words: str) -> None:
    with pinned(TorchMasked(), PaddleMasked(change), (X, MASK)) as (_, _, free, given):
        faults = find_forward_faults(free, given, masks_agree=False)
        makers = find_makers(free)
    assert [fault.place for fault in faults] == [("", "")] * bool(words)
    assert [words in fault.where for fault in faults] == [True] * bool(words)
    assert [fault.kind for fault in makers] == ["mask"] * (
        "hands to gate" in words and "has a" not in words
    )
