"""Hooks that record each call, and put given values in place of the model's."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from reprod_align.backends.paddle import side as paddle_framework
from reprod_align.backends.torch import side as torch_framework
from reprod_align.model.trace import Call
from reprod_align.model.watch import NO_PINS, Keep, Pin, Pins, Watch, read_values

import numpy as np
import paddle
import pytest
import torch

BACKENDS = pytest.mark.parametrize("fw", [torch_framework, paddle_framework], ids=lambda f: f.NAME)
X = np.array([1.0, -2.0, 3.0])


class TorchChain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act = torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x) * 2


class PaddleChain(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.act = paddle.nn.ReLU()

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.act(x) * 2


class PinOutput:
    """Pins the output of one module."""

    def __init__(self, path: str, pin: Pin) -> None:
        self.path, self.pin = path, pin

    def inputs(self, call: Call) -> Mapping[str, Pin]:
        return {}

    def outputs(self, call: Call) -> Mapping[str, Pin]:
        return {"": self.pin} if call.path == self.path else {}


def run(fw: Any, keep: Keep, pins: Pins = NO_PINS) -> tuple[Watch, Any]:
    """Return the watch, and the output of the chain after its backward pass."""
    model = TorchChain() if fw is torch_framework else PaddleChain()
    watch = Watch(fw, keep, pins)
    x = fw.make_differentiable(fw.constant(X))
    with watch.on(fw.modules(model)):
        output = model(x)
        watch.include_pinned(output.sum()).backward()
    return watch, output


@BACKENDS
def test_each_call_is_recorded_with_its_gradients(fw) -> None:
    watch, _ = run(fw, "all")
    assert [call.key for call in watch.trace.calls] == [("", 0), ("act", 0)]
    act = watch.trace.by_key()["act", 0]
    (taken,), (returned,) = act.inputs.values(), act.outputs.values()
    assert np.array_equal(taken.array, X)
    assert np.array_equal(returned.array, [1, 0, 3])
    assert np.array_equal(returned.gradient, [2, 2, 2])
    assert np.array_equal(taken.gradient, [2, 0, 2])


@BACKENDS
@pytest.mark.parametrize(
    ("keep", "kept"),
    [("none", {}), ("ends", {""}), ("outputs", {"", "act"}), ("all", {"", "act"})],
)
def test_no_more_is_kept_than_was_asked_for(fw, keep: Keep, kept: set[str]) -> None:
    calls = run(fw, keep)[0].trace.calls
    assert {call.path for call in calls if call.outputs} == set(kept)
    assert any(call.inputs for call in calls) is (keep == "all")


@BACKENDS
def test_pinned_values_and_gradients_take_the_models_place(fw) -> None:
    pin = Pin(np.array([5.0, 6.0, 7.0]), np.array([1.0, 1.0, 0.0]))
    watch, output = run(fw, "all", PinOutput("act", pin))
    assert np.array_equal(fw.array(output), [10, 12, 14])
    calls = watch.trace.by_key()
    assert np.array_equal(calls["act", 0].outputs[""].array, [1, 0, 3])  # the model's own
    (taken,) = calls["act", 0].inputs.values()
    assert np.array_equal(taken.gradient, [1, 0, 0])
    other, _ = run(fw, "all", PinOutput("elsewhere", pin))
    assert np.array_equal(other.trace.outputs[""].array, [2, 0, 6])


@BACKENDS
def test_a_pinned_tensor_that_the_scalar_does_not_reach_gets_gradient_zero(fw) -> None:
    model = TorchChain() if fw is torch_framework else PaddleChain()
    for pins, expected in ((PinOutput("act", Pin(None, X)), [0, 0, 0]), (NO_PINS, None)):
        watch = Watch(fw, "all", pins)
        x = fw.make_differentiable(fw.constant(X))
        with watch.on(fw.modules(model)):
            model(x)
            watch.include_pinned(x.sum()).backward()
        gradient = watch.trace.by_key()["act", 0].outputs[""].gradient
        assert gradient is None if expected is None else np.array_equal(gradient, expected)


@BACKENDS
def test_an_error_is_placed_and_the_hooks_come_off(fw) -> None:
    model = TorchChain() if fw is torch_framework else PaddleChain()
    watch = Watch(fw, "all")
    with pytest.raises(TypeError), watch.on(fw.modules(model)):
        model.act(fw.constant(X), "one argument too many")
    assert (watch.inside(), watch.place()) == ("act", [("act", 0)])
    model(fw.constant(X))
    assert len(watch.trace.calls) == 1


class Kind(Enum):
    WORD = 1


class Scores(NamedTuple):
    best: float
    names: list[str]


@dataclass
class Output:
    logits: torch.Tensor
    scores: Scores
    aux: Any = None


def test_every_value_is_read_at_its_path() -> None:
    output = Output(torch.ones(2), Scores(0.5, ["a", "b"]), {"kind": Kind.WORD, "raw": b"\1"})
    values, objects = read_values(output, torch.is_tensor)
    assert {at: None if one is None else one.item() for at, one in values.items()} == {
        "scores[0]": 0.5, "scores[1][0]": "a", "scores[1][1]": "b", "aux.kind": "Kind.WORD", "aux.raw": "01",
    }  # fmt: skip
    assert objects == {}


def test_none_is_kept_and_objects_are_named() -> None:
    values, objects = read_values([None, object(), torch.ones(1), {1}], torch.is_tensor)
    assert values["[0]"] is None and values["[3]"] == "['1']"
    assert objects == {"[1]": "object"}


def test_arrays_are_copies() -> None:
    array = np.zeros(3)
    values, _ = read_values((array,), torch.is_tensor)
    array[:] = 1
    assert values["[0]"] is not None and not values["[0]"].any()
