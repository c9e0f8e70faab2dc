"""Faults of the forward pass: in own code, in a layer, and where they do not matter."""

from typing import Any

from reprod_align.alignment.locating.faults import find_forward_faults
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet, TorchNet

import paddle
import pytest
import torch


@pytest.mark.parametrize("factor", [1.0, 1.0 + 1e-6])
def test_own_code_between_layers_is_at_fault(factor: float) -> None:
    with pinned(paddle_model=PaddleNet(lambda x: factor * x)) as (_, _, free, given):
        faults = find_forward_faults(free, given, masks_agree=False)
    assert [fault.place for fault in faults] == [("", "")] * (factor != 1.0)
    if faults:
        assert faults[0].own_code and faults[0].where.startswith("the value it hands to second: ")


def test_a_layer_is_at_fault_and_not_what_follows_it() -> None:
    sides = torch.nn.Softplus(), paddle.nn.Softplus(beta=2)
    with pinned(TorchNet(sides[0]), PaddleNet(sides[1])) as (_, _, free, given):
        (fault,) = find_forward_faults(free, given, masks_agree=False)
    assert fault.place == ("between", "between") and fault.stock and not fault.own_code


def test_a_difference_that_the_outputs_do_not_depend_on_is_no_fault() -> None:
    def padded(x: Any) -> Any:
        return x + paddle.to_tensor([0.0, 0.0, 0.0, 0.0, 1.0], x.dtype)

    nets = TorchNet(), PaddleNet(padded)
    with torch.no_grad():
        nets[0].second.weight[:, 4] = 0
    with pinned(*nets) as (_, done, free, given):
        assert done.outputs_ok
        assert find_forward_faults(free, given, masks_agree=False) == []
