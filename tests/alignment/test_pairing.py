"""What stands for what: tensors converted, modules and settings compared, ties and frozen parameters."""

from dataclasses import replace

from reprod_align.alignment.pairing import Pairing
from tests.alignment.small import PaddleNet, TorchNet, at_work

import numpy as np
import paddle
import torch


def test_tensors_are_converted_to_paddles_layout() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        pairing = runner.pairing
        made = pairing.convert(runner.weights)
        assert np.array_equal(made["first.weight"], runner.weights["first.weight"].T)
        assert pairing.convert({"first.bias": np.ones(5)}).keys() == {"first.bias"}
        assert pairing.names == {"": "", "first": "first", "second": "second"}
        assert pairing.loaded_names == made.keys()
        assert pairing.compared_outputs == runner.expected.outputs.keys()


def test_a_pair_of_modules_that_is_set_differently() -> None:
    sides = torch.nn.LayerNorm(5, eps=1e-5), paddle.nn.LayerNorm(5, epsilon=1e-12)
    with at_work(TorchNet(last=sides[0]), PaddleNet(last=sides[1])) as (runner, _):
        assert runner.pairing.settings_differ("second", "second")
        assert not runner.pairing.settings_differ("first", "first")
        assert not runner.pairing.settings_differ("nowhere", "first")
        assert [d.name for d in runner.pairing.compare_settings("second", "second")] == ["eps"]


def test_a_parameter_that_one_side_freezes() -> None:
    ours, theirs = TorchNet(), PaddleNet()
    theirs.first.bias.stop_gradient = True
    with at_work(ours, theirs) as (runner, _):
        assert runner.pairing.is_frozen_on_one_side("first.bias", "first.bias")
        assert not runner.pairing.is_frozen_on_one_side("first.weight", "first.weight")


def test_a_parameter_that_only_torch_ties() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        pairing = runner.pairing
    assert isinstance(pairing, Pairing)
    assert pairing.split_ties == [] and pairing.untied == frozenset()
    tensors = dict(pairing.torch.tensors)
    tensors["second.bias"] = replace(tensors["second.bias"], tie="first.bias")
    tied = replace(pairing, torch=replace(pairing.torch, tensors=tensors))
    assert tied.split_ties == [("second.bias", "first.bias", "second.bias")]
    assert tied.untied == {"first.bias", "second.bias"}
    held = dict(reversed(tensors.items()))  # made in the other order
    turned = replace(tied, torch=replace(pairing.torch, tensors=held))
    assert turned.split_ties == [("first.bias", "second.bias", "first.bias")]


def test_outputs_are_unknown_where_the_port_did_not_run() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        pairing = replace(runner.pairing, outputs=None)
        assert pairing.compared_outputs is None
