"""Faults of the backward pass: a stopped gradient, a wrong one."""

from typing import Any

from reprod_align.alignment.locating.faults import find_backward_faults
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet

import numpy as np


def test_a_faithful_port_has_no_faults() -> None:
    with pinned() as (_, _, free, _):
        assert find_backward_faults(free) == []


def test_a_gradient_that_one_side_stops() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: x.detach())) as (_, _, free, _):
        faults = find_backward_faults(free)
    assert faults[0].kind == "cut" and faults[0].place == ("", "")
    assert "stopped in Paddle" in faults[0].where


def test_a_gradient_that_is_wrong_by_a_factor() -> None:
    def doubled(x: Any) -> Any:
        return 2 * x - x.detach()

    with pinned(paddle_model=PaddleNet(doubled)) as (_, done, free, _):
        assert done.outputs_ok
        (fault,) = find_backward_faults(free)
    assert fault.kind == "number" and fault.where.startswith("the gradient it gives back to ")
    assert fault.expected is not None and fault.actual is not None
    assert np.allclose(fault.actual, 2 * fault.expected)
