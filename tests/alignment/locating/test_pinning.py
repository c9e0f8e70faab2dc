"""The reference's numbers in place of the port's."""

from unittest import mock

from reprod_align.alignment.locating import pinning
from reprod_align.alignment.locating.pinning import (
    EndPins,
    differ_in_effect,
    find_gradients,
    find_moved,
    find_values,
)
from reprod_align.model.trace import Call, Leaf
from reprod_align.model.watch import Pin
from tests.alignment.locating.pinned import pinned
from tests.alignment.restructured import BATCH, make_paddle, make_torch
from tests.alignment.small import PaddleNet, TorchNet

import numpy as np
import pytest


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


def test_a_wrong_value_shows_where_it_is_handed_on() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: 1.5 * x)) as (_, _, free, _given):
        (place,) = find_values(free).values()
        assert place.boundary[:2] == ("second", "inputs") and place.is_felt and not place.may_move
        assert [path for path, *_ in find_gradients(free)] == ["first"]


def test_rounding_and_a_faithful_pair_show_nowhere() -> None:
    for factor in (1.0, 1 + 1e-6):
        with pinned(TorchNet(), PaddleNet(lambda x, by=factor: by * x)) as (_, _, free, _given):
            assert not find_values(free) and not find_gradients(free)


MOVED = ["fc norm", "fc tanh()"], ["fc", "norm fc tanh()"]
Found = tuple[set[tuple[str, str]], int]


def find(ours: list[str], theirs: list[str]) -> Found:
    """Return the modules at whose boundaries the port keeps its own numbers, and how many runs it took."""
    found, runs = set[tuple[str, str, str]](), 0

    def note(first, rerun, find_places):
        def count(boundaries):
            nonlocal runs
            runs += 1
            return rerun(boundaries)

        moved = find_moved(first, count, find_places)
        found.update(moved)
        return moved

    with mock.patch.object(pinning, "find_moved", note):
        with pinned(make_torch(ours, 1), make_paddle(theirs, times=1), BATCH):
            pass
    return {(path, which) for path, which, _ in found}, runs


def test_a_norm_in_the_next_module_moves_what_lies_between() -> None:
    assert find(*MOVED)[0] == {("2", "inputs")}


def test_a_faithful_pair_and_one_fault_take_no_further_run() -> None:
    assert find(MOVED[0], MOVED[0]) == (set(), 0)
    assert find(MOVED[0], ["fc norm", "fc"]) == (set(), 0)


@pytest.mark.parametrize("wrong", ["fc", "fc gelu()"], ids=["missing", "another"])
def test_faults_are_not_taken_for_it(wrong: str) -> None:
    ours = ["fc tanh()", "fc tanh()"]
    moved, runs = find(ours, [wrong, wrong])
    assert moved == set() and runs <= 4


def test_a_fault_beside_it_stays_one() -> None:
    moved, runs = find([*MOVED[0], "fc tanh()", "fc tanh()"], [*MOVED[1], "fc", "fc tanh()"])
    assert moved == {("2", "inputs")} and runs <= 4
