"""What crosses the border of a section, and what of it the port is given."""

from reprod_align.model.trace import Leaf
from reprod_align.pair.sides import torch_side
from reprod_align.sections.crossing import (
    Crossing,
    note_inputs,
    note_outputs,
    translate,
    translate_all,
)

import numpy as np
import torch


def test_inputs_are_kept_as_they_were_before_the_call() -> None:
    fw = torch_side(torch.nn.Linear(1, 1)).fw
    given = torch.ones(2)
    call = note_inputs(fw, ((given,), {}))
    given += 1
    note_outputs(fw, call, (given, None))
    assert call.inputs["[0][0]"].array.tolist() == [1, 1]
    assert call.outputs["[0]"].array.tolist() == [2, 2]
    assert call.returned[1] is None and call.returned[0].shape == ()


def test_the_port_gets_the_reference_s_values_and_keeps_its_own_masks() -> None:
    hidden, mask = np.arange(6.0).reshape(2, 3), np.array([True, False])
    ours = Crossing({"x": Leaf(hidden, True, -hidden), "m": Leaf(mask, False)}, {}, None)
    other = np.array([0.0, -1e9])
    theirs = Crossing({"h": Leaf(hidden + 1, True), "bias": Leaf(other, False)}, {}, None)
    given = translate(ours, theirs).inputs
    assert np.array_equal(given["h"].array, hidden) and given["h"].differentiable
    assert np.array_equal(given["h"].gradient, -hidden)
    assert np.array_equal(given["bias"].array, other) and not given["bias"].differentiable


def test_a_call_of_the_port_alone_keeps_its_values() -> None:
    call = Crossing({"h": Leaf(np.ones(2), True)}, {}, None)
    (alone,) = translate_all([], [call])
    assert not alone.inputs["h"].differentiable
    assert translate_all([call], []) == []
