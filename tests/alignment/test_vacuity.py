"""Where a comparison that passed shows little."""

from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.unjudged import doubt_gradients, doubts, nothing_finite
from tests.alignment.small import PaddleNet, TorchNet, X, at_work

import numpy as np
import torch


def test_constant_inputs_and_uncalled_modules_are_doubtful() -> None:
    ours = TorchNet()
    ours.idle = torch.nn.Linear(2, 2)
    with at_work(ours, PaddleNet(), inputs=(np.ones((4, 3)),)) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        said = list(doubts(done, runner.inputs, runner.pairing.torch))
        said += doubt_gradients(done, runner.pairing.torch)
    assert said[0].startswith("every element of the input 0 is 1")
    assert "zero gradient on this batch, so not tested: idle.weight, idle.bias" in said
    assert "never called as a module (unused, or used from outside): idle" in said
    assert not nothing_finite(done)


def test_a_varied_input_raises_no_doubt_and_outputs_without_numbers_do() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        assert list(doubts(done, runner.inputs, runner.pairing.torch)) == []
    with at_work(TorchNet(), PaddleNet(), inputs=(X * np.nan,)) as (runner, _):
        assert nothing_finite(compare_pass(runner, runner.expected, training=False))


def test_a_constant_output_and_missing_gradients_are_doubtful() -> None:
    nets = TorchNet(lambda x: x * 0), PaddleNet(lambda x: x * 0)
    with at_work(*nets, inputs=(X[:, :3],)) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        said = " ".join(doubt_gradients(done, runner.pairing.torch))
    assert "zero gradient on this batch, so not tested: first.weight, first.bias" in said


def test_nan_on_both_sides_is_said() -> None:
    inputs = X.copy()
    inputs[1] = np.nan
    with at_work(TorchNet(), PaddleNet(), inputs=(inputs,)) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        said = list(doubts(done, runner.inputs, runner.pairing.torch))
    assert done.outputs_ok
    assert "the output is NaN on both sides in 2 of 8 places: they show nothing" in said
