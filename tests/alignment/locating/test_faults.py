"""Faults of the forward pass: in own code, in a layer, and where they do not matter."""

from typing import Any

from reprod_align.alignment.locating.counterparts import (
    CallPair,
    Counterparts,
    PinnedRun,
    find_code_with,
)
from reprod_align.alignment.locating.faults import find_backward_faults, find_forward_faults
from reprod_align.model.trace import Call, Leaf, Trace
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet, TorchNet

import numpy as np
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


MASK = Leaf(np.array([1, 0, 1]), False)
OTHER = Leaf(np.array([0, 1, 0]), False)


def trace(block: Leaf, layer: Leaf, outputs: Leaf = OTHER) -> Trace:
    """The model calls a block, which calls a layer; each with its input and output."""
    return Trace([
        Call("", 0, None, {"x": OTHER}, {"": OTHER}),
        Call("block", 0, 0, {"x": block}, {"": outputs}),
        Call("block.layer", 0, 1, {"x": layer}, {"": MASK}),
    ])  # fmt: skip


class Known(Counterparts):
    """The modules in `paired` are counterparts; nothing is computed."""

    def __init__(self, reference: Trace, *paired: str) -> None:
        self._by_path = {call.path: call for call in reference.calls if call.path in paired}

    def of(self, call: Call) -> CallPair | None:
        ours = self._by_path.get(call.path)
        return None if ours is None else CallPair(ours, call)


def find(ours: Trace, theirs: Trace, *paired: str, which: Any = "inputs") -> tuple[str, str]:
    run = PinnedRun(ours, theirs, Known(ours, *paired))
    return find_code_with(run, CallPair(ours.calls[2], theirs.calls[2]), MASK, MASK, which)


def test_a_pair_that_both_pass_the_value_into_is_left() -> None:
    given, made = trace(block=MASK, layer=MASK), trace(block=OTHER, layer=MASK)
    assert find(given, given, "block") == ("", "")
    assert find(made, made, "block") == ("block", "block")
    assert find(given, made, "block") == ("block", "block")  # Paddle's block makes it itself


def test_a_module_without_a_counterpart_passes_on_by_itself() -> None:
    given, made = trace(block=MASK, layer=MASK), trace(block=OTHER, layer=MASK)
    assert find(given, made) == ("", "block")
    assert find(made, given) == ("block", "")


def test_what_a_pair_gives_is_used_by_its_own_code() -> None:
    gives = trace(block=OTHER, layer=OTHER, outputs=MASK)
    assert find(gives, gives, "block", which="outputs") == ("block", "block")
    assert find(gives, gives, which="outputs") == ("", "")


def test_a_float_of_the_same_values_is_another_value() -> None:
    floats = trace(block=Leaf(MASK.array, True), layer=MASK)
    assert find(floats, floats, "block") == ("block", "block")
