"""Runs: the same draws on both sides, and the weights as they were after each."""

from dataclasses import replace

from reprod_align.alignment.runner import shake
from tests.alignment.small import PaddleNet, TorchNet, X, at_work, mean_square

import numpy as np
import paddle
import torch

LOSSES = mean_square, mean_square
OPTIMIZERS = (
    lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
    lambda model: paddle.optimizer.SGD(0.1, parameters=model.parameters()),
)


def test_both_sides_draw_the_same_dropout_in_train_mode() -> None:
    nets = TorchNet(torch.nn.Dropout(0.5)), PaddleNet(paddle.nn.Dropout(0.5))
    with at_work(*nets) as (runner, _):
        ours, theirs = runner.run_reference(True), runner.run_port(True, "outputs")
        for pair in runner.pairing.output_pairs(ours, theirs):
            expected = ours.outputs[pair.expected].array
            assert np.allclose(expected, theirs.outputs[pair.actual].array, rtol=1e-12)
            assert not np.allclose(expected, runner.expected.outputs[pair.expected].array)


def test_training_leaves_both_sides_as_they_were_and_a_replay_repeats_it() -> None:
    with at_work(TorchNet(), PaddleNet(), LOSSES, OPTIMIZERS) as (runner, _):
        start = runner.port_start()
        taken, natural = runner.train_reference(2), runner.train_port(2)
        replayed = runner.train_port(2, taken)
        assert taken[1].loss < taken[0].loss
        assert np.allclose([s.loss for s in natural], [s.loss for s in taken], rtol=1e-12)
        for name, array in natural[1].tensors.items():
            assert np.allclose(array, replayed[1].tensors[name], rtol=1e-12), name
        step = runner.run_step(1, taken[0].tensors)
        assert step.loss is not None and np.isclose(step.loss, taken[1].loss, rtol=1e-12)
        runner.put_back()
        for name, array in runner.port.values().items():
            assert np.array_equal(array, start[name]), name
        for name, array in runner.reference.values().items():
            assert np.array_equal(array, runner.weights[name]), name


def test_shaken_weights_move_by_a_few_units_in_the_last_place() -> None:
    weights = {"w": X, "ids": np.arange(3)}
    moved = dict(shake(weights, 1e-10, 0))
    assert moved.keys() == {"w"}
    assert 0 < np.abs(moved["w"] / X - 1).max() <= 4.1e-10


def test_train_mode_keeps_what_a_fault_or_a_running_statistic_needs() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        assert runner.kept_in_training == "ends"
        assert replace(runner, differs=True).kept_in_training == "all"
    ours = torch.nn.Sequential(torch.nn.Linear(5, 2), torch.nn.BatchNorm1d(2))
    theirs = paddle.nn.Sequential(paddle.nn.Linear(5, 2), paddle.nn.BatchNorm1D(2))
    with at_work(TorchNet(last=ours), PaddleNet(last=theirs)) as (runner, _):
        assert runner.kept_in_training == "all"
