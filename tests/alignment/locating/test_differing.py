"""Which differences the outputs depend on: none in padding, unless it is NaN."""

from typing import Any

from reprod_align import align
from reprod_align.alignment.locating.fault import find_differing, outputs_agree
from tests.alignment.locating.pinned import pinned

import numpy as np
import paddle
import pytest
import torch

MASK = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
BATCH = {"x": np.random.default_rng(0).normal(size=(3, 3, 4)), "mask": MASK}


class TorchPooled(torch.nn.Module):
    """Leaves padding out of its sum by a product with 0."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = torch.nn.Sequential(torch.nn.Linear(4, 4)), torch.nn.Linear(4, 2)

    def forward(self, x: Any, mask: Any) -> Any:
        return self.out((self.inner(x) * mask[..., None]).sum(1))


class PaddlePooled(paddle.nn.Layer):
    def __init__(self, padding: float, product: bool) -> None:
        super().__init__()
        inner = Spoiling(padding)
        self.inner, self.out = paddle.nn.Sequential(inner), paddle.nn.Linear(4, 2)
        self.product = product

    def forward(self, x: Any, mask: Any) -> Any:
        shown = mask.unsqueeze(2).astype(x.dtype)
        self.inner[0].shown = shown
        hidden = self.inner(x)
        if self.product:
            return self.out((hidden * shown).sum(1))
        return self.out(paddle.where(shown > 0, hidden, paddle.zeros_like(hidden)).sum(1))


class Spoiling(paddle.nn.Linear):
    """Puts a number into the padding."""

    def __init__(self, padding: float) -> None:
        super().__init__(4, 4)
        self.padding = padding

    def forward(self, x: Any) -> Any:
        out = super().forward(x)
        return paddle.where(self.shown > 0, out, paddle.full_like(out, self.padding))


@pytest.mark.parametrize("product", [True, False])
def test_nan_in_padding_is_located_where_it_is_felt(product: bool) -> None:
    report = align(TorchPooled(), PaddlePooled(np.nan, product), BATCH)
    assert [finding.torch_name for finding in report.findings] == ["inner.0"] * product, str(report)
    assert align(TorchPooled(), PaddlePooled(7.0, product), BATCH).passed


def test_numbers_in_padding_agree_in_effect() -> None:
    with pinned(TorchPooled(), PaddlePooled(7.0, True), BATCH) as (_, _, free, _):
        calls = next(calls for calls in free.calls if calls.theirs.path == "inner.0")
        assert not list(find_differing(free, calls, "outputs", 0.0)) and outputs_agree(free, calls)


class TorchPair(torch.nn.Module):
    """Returns a second tensor, of which nothing is made."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.dense(x), self.dense(x).sin()


class PaddlePair(paddle.nn.Layer):
    def __init__(self, second: Any) -> None:
        super().__init__()
        self.dense, self.second = paddle.nn.Linear(4, 4), second

    def forward(self, x: Any) -> Any:
        return self.dense(x), self.second(self.dense(x))


class First(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pair, self.norm = TorchPair(), torch.nn.LayerNorm(4)

    def forward(self, x: Any) -> Any:
        return self.norm(self.pair(x)[0])


class PaddleFirst(paddle.nn.Layer):
    def __init__(self, second: Any) -> None:
        super().__init__()
        self.pair, self.norm = PaddlePair(second), paddle.nn.LayerNorm(4, 9e-4)

    def forward(self, x: Any) -> Any:
        return self.norm(self.pair(x)[0])


@pytest.mark.parametrize(
    "second", [lambda x: x.sum(), lambda x: x * 2, lambda x: None, lambda x: x.unsqueeze(0)]
)
def test_an_unused_element_of_a_tuple_is_no_fault(second: Any) -> None:
    report = align(First(), PaddleFirst(second), (BATCH["x"],))
    assert [finding.torch_name for finding in report.findings] == ["norm"], str(report)


def test_an_element_that_the_models_return_is_a_fault_all_the_same() -> None:
    report = align(TorchPair(), PaddlePair(lambda x: x.sum()), (BATCH["x"],))
    assert [finding.torch_name for finding in report.findings] == [""], str(report)
    assert "shape (3, 3, 4) in PyTorch, () in Paddle" in report.findings[0].message
