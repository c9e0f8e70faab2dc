"""How two values, or two gradients, of a call are compared to find a fault."""

from dataclasses import replace
from typing import Any

from reprod_align import align
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.explain import find_cause
from reprod_align.alignment.locating.fault import (
    FLOOR,
    compare,
    compare_gradients,
    find_differing,
    is_rounding,
    is_rounding_throughout,
    may_round,
    move_closer,
    note_rounding_as_a_whole,
    outputs_agree,
    rounding_of,
)
from reprod_align.alignment.locating.faults import find_forward_faults
from reprod_align.base.difference import Gap
from reprod_align.model.trace import Call, Leaf, LeafPair
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet

import numpy as np
import paddle
import pytest
import torch

ALIKE = LeafPair("[0]", "[0]", None)
TURNED = LeafPair("[0]", "[0]", (1, 0))
X = np.arange(6.0).reshape(2, 3)


def test_values_are_compared_in_the_ports_layout() -> None:
    assert compare(TURNED, X, X.T, 0.0).ok
    assert not compare(ALIKE, X, X + np.eye(2, 3) * 1e-6, 0.0).ok
    assert not compare(ALIKE, X, X * np.nan, 0.0).ok


def test_a_floor_covers_rounding_around_zero() -> None:
    zeros = np.zeros(3)
    assert compare(ALIKE, zeros, zeros + 1e-14, 1e-13).ok
    assert not compare(ALIKE, zeros, zeros + 1e-12, 1e-13).ok


def test_a_gradient_that_never_arrived_is_zero() -> None:
    assert compare_gradients(ALIKE, None, None, 0.0).ok
    assert compare_gradients(TURNED, X * 0, None, 0.0).ok
    assert not compare_gradients(TURNED, X, None, 0.0).ok
    assert not compare_gradients(ALIKE, None, X, 0.0).ok
    assert compare_gradients(TURNED, X, X.T, 0.0).ok


def test_rounding_grows_with_what_a_call_meets() -> None:
    call = Call("fc", 0, None, {"x": Leaf(X, True)}, {"": Leaf(X * -100, True)})
    assert rounding_of(call) == FLOOR * 500
    ids = Call("fc", 0, None, {"ids": Leaf(np.array([10**9]), False)})
    assert rounding_of(ids) == 0.0


MASK = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
BATCH = {"x": np.random.default_rng(0).normal(size=(3, 3, 4)), "mask": MASK}


class TorchPooled(torch.nn.Module):
    """Leaves padding out of its sum by a product with 0."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = torch.nn.Sequential(torch.nn.Linear(4, 4)), torch.nn.Linear(4, 2)

    def forward(self, x: Any, mask: Any) -> Any:
        return self.out((self.inner(x) * mask[..., None]).sum(1))


class PaddlePooled(paddle.nn.Layer):
    def __init__(self, padding: float, product: bool) -> None:
        super().__init__()
        inner = Spoiling(padding)
        self.inner, self.out = paddle.nn.Sequential(inner), paddle.nn.Linear(4, 2)
        self.product = product

    def forward(self, x: Any, mask: Any) -> Any:
        shown = mask.unsqueeze(2).astype(x.dtype)
        self.inner[0].shown = shown
        hidden = self.inner(x)
        if self.product:
            return self.out((hidden * shown).sum(1))
        return self.out(paddle.where(shown > 0, hidden, paddle.zeros_like(hidden)).sum(1))


class Spoiling(paddle.nn.Linear):
    """Puts a number into the padding."""

    def __init__(self, padding: float) -> None:
        super().__init__(4, 4)
        self.padding = padding

    def forward(self, x: Any) -> Any:
        out = super().forward(x)
        return paddle.where(self.shown > 0, out, paddle.full_like(out, self.padding))


@pytest.mark.parametrize("product", [True, False])
def test_nan_in_padding_is_located_where_it_is_felt(product: bool) -> None:
    report = align(TorchPooled(), PaddlePooled(np.nan, product), BATCH)
    assert [finding.torch_name for finding in report.findings] == ["inner.0"] * product, str(report)
    assert align(TorchPooled(), PaddlePooled(7.0, product), BATCH).passed


def test_numbers_in_padding_agree_in_effect() -> None:
    with pinned(TorchPooled(), PaddlePooled(7.0, True), BATCH) as (_, _, free, _):
        calls = next(calls for calls in free.calls if calls.theirs.path == "inner.0")
        assert not list(find_differing(free, calls, "outputs", 0.0)) and outputs_agree(free, calls)


class TorchPair(torch.nn.Module):
    """Returns a second tensor, of which nothing is made."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.dense(x), self.dense(x).sin()


class PaddlePair(paddle.nn.Layer):
    def __init__(self, second: Any) -> None:
        super().__init__()
        self.dense, self.second = paddle.nn.Linear(4, 4), second

    def forward(self, x: Any) -> Any:
        return self.dense(x), self.second(self.dense(x))


class First(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pair, self.norm = TorchPair(), torch.nn.LayerNorm(4)

    def forward(self, x: Any) -> Any:
        return self.norm(self.pair(x)[0])


class PaddleFirst(paddle.nn.Layer):
    def __init__(self, second: Any) -> None:
        super().__init__()
        self.pair, self.norm = PaddlePair(second), paddle.nn.LayerNorm(4, 9e-4)

    def forward(self, x: Any) -> Any:
        return self.norm(self.pair(x)[0])


@pytest.mark.parametrize(
    "second", [lambda x: x.sum(), lambda x: x * 2, lambda x: None, lambda x: x.unsqueeze(0)]
)
def test_an_unused_element_of_a_tuple_is_no_fault(second: Any) -> None:
    report = align(First(), PaddleFirst(second), (BATCH["x"],))
    assert [finding.torch_name for finding in report.findings] == ["norm"], str(report)


def test_an_element_that_the_models_return_is_a_fault_all_the_same() -> None:
    report = align(TorchPair(), PaddlePair(lambda x: x.sum()), (BATCH["x"],))
    assert [finding.torch_name for finding in report.findings] == [""], str(report)
    assert "shape (3, 3, 4) in PyTorch, () in Paddle" in report.findings[0].message


def test_small_differences_of_own_code_are_rounding_and_those_of_products_are_not() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: (1 + 1e-7) * x)) as (runner, done, free, given):
        (fault,) = find_forward_faults(free, given, masks_agree=False)
        assert is_rounding(runner, fault) and is_rounding_throughout(done)
        assert not is_rounding(runner, replace(fault, kind="cut"))
        assert not is_rounding(runner, replace(fault, gap=Gap(1e-3, 1e-9, 1.0)))
        assert may_round(runner, "", "") and not may_round(runner, "second", "second")
        findings = Findings()
        assert not note_rounding_as_a_whole(runner, findings, "the model", fault.gap, False)
        assert not findings.float32_inside
        assert note_rounding_as_a_whole(runner, findings, "the model", fault.gap, True)
    assert findings.float32_inside


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
        assert "3" in find_cause(fault, done.reference, runner.weights)


class TorchOwn(torch.nn.Module):
    """Adds a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 16), torch.nn.Linear(16, 2)
        self.positions = torch.nn.Parameter(torch.randn(4, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x) + self.positions)


class PaddleOwn(paddle.nn.Layer):
    """Does not add it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(3, 16), paddle.nn.Linear(16, 2)
        self.positions = self.create_parameter([4, 16])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.second(self.first(x) + 0 * self.positions)


def test_a_modules_own_tensors_are_at_hand_too() -> None:
    inputs = (np.random.default_rng(0).normal(size=(2, 4, 3)),)
    with pinned(TorchOwn(), PaddleOwn(), inputs) as (runner, done, free, given):
        (fault,) = find_forward_faults(free, given, masks_agree=False)
        cause = find_cause(fault, done.reference, runner.weights)
    assert "its positions" in cause.partition(", Paddle")[0]
