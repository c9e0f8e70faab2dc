"""What layers gave in a run, and whether Paddle's give the same; custom functions under PyLayer's rules."""

from reprod_align.explain.code import Code
from reprod_align.porting.calls import layers, trial
from reprod_align.porting.calls.names import Scope
from reprod_align.porting.calls.values import Built

import paddle
import pytest
import torch


def note(layer: torch.nn.Module) -> Built:
    built = Built((4, 4), (4, 4))
    with trial.note_runs({id(layer): (layer, built)}):
        for training in (False, True, True):
            layer.train(training)(torch.arange(12.0, dtype=torch.float64).reshape(3, 4))
    return built


@pytest.mark.filterwarnings("ignore:When training")
@pytest.mark.parametrize(
    ("settings", "same"),
    [
        ({"epsilon": 0.01, "momentum": 0.7}, True),
        ({"epsilon": 0.02, "momentum": 0.7}, False),
        ({"epsilon": 0.01, "momentum": 0.3}, False),
    ],
)
def test_a_layer_gives_the_same_with_the_same_settings_alone(
    settings: dict[str, float], same: bool
) -> None:
    built = note(torch.nn.BatchNorm1d(4, 0.01, 0.3).double())
    assert [run.training for run in built.runs] == [False, True]
    kept = paddle.get_default_dtype()
    try:
        assert trial.gives_the_same(paddle.nn.BatchNorm1D(4, **settings), built) is same
    finally:
        paddle.set_default_dtype(kept)


def test_only_layers_whose_change_is_read_count() -> None:
    read, unread = torch.nn.ReLU(True), torch.nn.ReLU(True)

    def run() -> dict[str, object]:
        x = torch.tensor([-1.0, 2.0])
        return {"": (read(x) + x + unread(3 * x)).numpy()}

    assert trial.find_inplace({}, run) == set()
    assert trial.find_inplace({7: [unread]}, run) == set()
    assert trial.find_inplace({3: [read], 7: [unread]}, run) == {3} and read.inplace


TEXT = """
import torch

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, size, x, y):
        return x * y

    @staticmethod
    def backward(ctx, grad):
        return None, grad, grad
"""


@pytest.mark.parametrize(
    ("given", "returned"),
    [
        ((False, False), "grad, grad"),
        ((True, True), "None, grad, grad"),
        ((True, False), "None, grad, grad if ctx.needs_input_grad[2] else None"),
    ],
)
def test_a_gradient_is_returned_for_each_tensor_alone(
    given: tuple[bool, bool], returned: str
) -> None:
    code = Code(TEXT)
    first = (given[0], given[0])
    last = (True, given[1] or not given[0])
    calls = {"Own": [(first, (True, True), last)]}
    edits = layers.list_function_edits(code, Scope(code.tree), calls)
    assert f"return {returned}\n" in code.splice(edits)
