"""The reference's numbers in place of the port's."""

from reprod_align.alignment.locating.pinning import EndPins, differ_in_effect
from reprod_align.model.trace import Call, Leaf
from reprod_align.model.watch import Pin
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet

import numpy as np


def test_every_module_gets_the_references_inputs_and_hands_on_its_outputs() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: 3 * x)) as (runner, done, run, _):
        (second,) = [calls for calls in run.calls if calls.paths[0] == "second"]
        (at,) = second.theirs.inputs
        handed = second.theirs.inputs[at].array  # what the faulty code made of right numbers
        assert np.allclose(handed, 3 * next(iter(second.ours.inputs.values())).array)
        made = next(iter(second.theirs.outputs.values())).array  # from the right ones, all the same
        assert np.allclose(made, next(iter(second.ours.outputs.values())).array)
        assert not done.outputs_ok


def test_a_loss_is_judged_on_the_references_outputs() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: 3 * x)) as (runner, done, run, _):
        pins = EndPins(done.reference)
        model, first, _ = run.port.calls
        assert pins.inputs(model) == {} and pins.outputs(first) == {}
        (pin,) = pins.outputs(model).values()
        assert np.array_equal(pin.array, next(iter(done.reference.outputs.values())).array)


def test_pins_of_masks_matter_where_the_port_makes_others() -> None:
    class Leaves:
        """Pins an input of a call to a value."""

        def __init__(self, values: dict) -> None:
            self._pins = {at: Pin(array, None) for at, array in values.items()}

        def inputs(self, call: Call) -> dict:
            return self._pins

        def outputs(self, call: Call) -> dict:
            return {}

    shown = np.array([True, False])
    call = Call("", 0, None, {"x": Leaf(np.ones(2), True), "mask": Leaf(shown, False)})
    none, same, other = (Leaves(one) for one in ({}, {"mask": shown}, {"mask": ~shown}))
    assert not differ_in_effect(call, none, same) and differ_in_effect(call, none, other)
    assert not differ_in_effect(call, other, other)
    assert differ_in_effect(call, none, Leaves({"x": np.ones(2)}))  # its gradient would be another
