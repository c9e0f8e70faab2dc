"""The blame moved from a composite to its one unpaired child, and the causes of faults."""

from reprod_align.alignment.locating.explain import find_cause
from reprod_align.alignment.locating.fault import move_closer
from reprod_align.alignment.locating.faults import find_forward_faults
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet

import numpy as np
import paddle
import torch


def test_a_fault_of_own_code_stays_where_all_children_are_paired() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: 3 * x)) as (runner, done, free, given):
        (fault,) = find_forward_faults(free, given, masks_agree=False)
        assert move_closer(fault, runner.pairing, done.reference) is fault


def test_a_fault_in_a_cell_that_stands_for_a_recurrent_layer_is_its() -> None:
    class TorchCells(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.out = torch.nn.GRU(3, 5, batch_first=True), torch.nn.Linear(5, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.out(self.rnn(x)[0])

    class PaddleCells(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.out = paddle.nn.GRUCell(3, 5), paddle.nn.Linear(5, 2)

        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            state, states = None, []
            for step in range(x.shape[1]):
                state = self.cell(x[:, step], state)[1]
                states.append(state * 1.01)
            return self.out(paddle.stack(states, 1))

    inputs = (np.random.default_rng(0).normal(size=(2, 4, 3)),)
    with pinned(TorchCells(), PaddleCells(), inputs) as (runner, done, free, given):
        (fault,) = find_forward_faults(free, given, masks_agree=False)
        moved = move_closer(fault, runner.pairing, done.reference)
    assert fault.place == ("", "") and moved.place == ("rnn", "cell")
    assert "its weights are those of cell in Paddle" in moved.where


def test_a_known_mistake_is_found_from_what_the_code_had_at_hand() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: 3 * x)) as (runner, done, free, given):
        (fault,) = find_forward_faults(free, given, masks_agree=False)
        assert "3" in find_cause(
            fault, done.reference, runner.pairing.torch.modules[""], runner.weights
        )


class TorchOwn(torch.nn.Module):
    """Adds a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 16), torch.nn.Linear(16, 2)
        self.positions = torch.nn.Parameter(torch.randn(4, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x) + self.positions)


class PaddleOwn(paddle.nn.Layer):
    """Adds it to all places but the first."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(3, 16), paddle.nn.Linear(16, 2)
        self.positions = self.create_parameter([4, 16])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        kept = paddle.concat([paddle.zeros([1, 16], self.positions.dtype), self.positions[1:]])
        return self.second(self.first(x) + kept)


def test_a_modules_own_tensors_are_at_hand_too() -> None:
    inputs = (np.random.default_rng(0).normal(size=(2, 4, 3)),)
    with pinned(TorchOwn(), PaddleOwn(), inputs) as (runner, done, free, given):
        (fault,) = find_forward_faults(free, given, masks_agree=False)
        settings = runner.pairing.torch.modules[""]
        cause = find_cause(fault, done.reference, settings, runner.weights)
    assert cause.startswith("only the first along axis 1 differs") and "its positions" in cause
