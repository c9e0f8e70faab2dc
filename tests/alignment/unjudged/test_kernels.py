"""A divergence that PyTorch's own kernels make is not the port's."""

from reprod_align import align
from reprod_align.alignment.unjudged import contradicts_itself
from reprod_align.pair.sides import torch_side
from tests.alignment.small import PaddleNet, TorchNet, X

import numpy as np
import paddle
import pytest
import torch

ROWS = [3, 1, 0, 2]


class TorchTakes(TorchNet):
    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        x = super().forward(x)
        return torch.gather(x, 0, rows[:, None].expand(4, 2))


class PaddleTakes(PaddleNet):
    off = 0

    def forward(self, x: paddle.Tensor, rows: paddle.Tensor) -> paddle.Tensor:
        x = super().forward(x)
        return paddle.take_along_axis(x, ((rows + self.off) % 4)[:, None].expand([4, 2]), 0)


class PaddleTakesOthers(PaddleTakes):
    off = 1


def contradicts() -> bool:
    x, rows = torch.arange(8.0).reshape(4, 2), torch.tensor(ROWS, dtype=torch.int32)[:, None]
    rows = rows.expand(4, 2)
    return not torch.equal(torch.gather(x, 0, rows.long()), torch.gather(x, 0, rows))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_kernel_that_contradicts_itself_is_named_and_the_port_is_not(dtype: str) -> None:
    rows = np.array(ROWS, dtype)
    report = align(TorchTakes(), PaddleTakes(), (X, rows))
    assert report.passed, report.summary()
    said = [one.what for one in report.not_judged if one.kind == "precision"]
    assert bool(said) == contradicts()
    assert all("aten.gather gives other numbers in int32 than in int64" in text for text in said)
    assert not align(TorchTakes(), PaddleTakesOthers(), (X, rows)).passed


def test_another_fault_needs_no_word_about_kernels() -> None:
    report = align(TorchNet(), PaddleNet(lambda x: 1.1 * x), (X,))
    assert not report.passed and not report.not_judged


def test_only_a_model_with_such_a_kernel_contradicts_itself() -> None:
    rows = np.array(ROWS, "int32")
    for model, inputs, expected in (
        (TorchTakes(), (X, rows), contradicts()),
        (TorchTakes(), (X, rows.astype("int64")), contradicts()),
        (TorchNet(), (X,), False),
    ):
        assert contradicts_itself(torch_side(model), inputs) == expected
