"""The calls that both sides make: the same names, the same meaning, everything put back."""

import inspect
from importlib import import_module
from pathlib import Path

from reprod_align import align
from reprod_align.backends.paddle import side as paddle_side
from reprod_align.backends.paddle import training as paddle_state
from reprod_align.backends.torch import side as torch_side
from reprod_align.backends.torch import training as torch_state

import numpy as np
import paddle
import pytest
import torch
from paddle.jit.dy2static.program_translator import ProgramTranslator

SIDES = [pytest.param(torch_side, id="torch"), pytest.param(paddle_side, id="paddle")]
STATES = {torch_side: torch_state, paddle_side: paddle_state}


def linear(side):
    return torch.nn.Linear(3, 2) if side is torch_side else paddle.nn.Linear(3, 2)


def adam(side, model):
    if side is torch_side:
        return torch.optim.Adam(model.parameters(), lr=0.1, betas=(0.5, 0.75))
    return paddle.optimizer.Adam(0.1, 0.5, 0.75, parameters=model.parameters())


TWINS = ["__init__", "calls", "settings", "side", "trace", "training"]


@pytest.mark.parametrize("name", TWINS)
def test_twins_have_the_same_functions_in_the_same_order(name):
    modules = [
        import_module(f"reprod_align.backends.{side}.{name}".removesuffix(".__init__"))
        for side in ("torch", "paddle")
    ]
    listed = []
    for module in modules:
        own = inspect.getmembers(module, inspect.isfunction)
        own = [f for name, f in own if f.__module__ == module.__name__ and name[0] != "_"]
        own.sort(key=lambda function: inspect.unwrap(function).__code__.co_firstlineno)
        listed.append([(f.__name__, list(inspect.signature(f).parameters)) for f in own])
    assert listed[0] == listed[1] and listed[0]


def test_the_two_backends_have_the_same_modules():
    ours, theirs = ({path.stem for path in Path(side.__file__).parent.glob("*.py")}
                    for side in (torch_side, paddle_side))  # fmt: skip
    assert {*TWINS, "kernels", "private", "random"} == ours & theirs
    assert not ours - theirs and theirs - ours == {"parallel"}


@pytest.mark.parametrize("side", SIDES)
def test_a_pinned_value_lets_the_gradient_through_but_no_nan(side):
    x = side.make_differentiable(side.constant(np.array([1.0, np.nan], "float32")))
    pinned = side.pin(x, side.constant(np.array([5.0, 6.0], "float32")))
    assert side.array(pinned).tolist() == [5.0, 6.0]
    side.weighted_sum([pinned], [np.array([2.0, 3.0], "float32")]).backward()
    assert side.gradient(x).tolist()[0] == 2.0


@pytest.mark.parametrize("side", SIDES)
def test_tensors_come_back_in_their_own_precision(side):
    model = linear(side)
    tensors = [tensor for _, tensor, _ in side.own_tensors(model)]
    before = [side.array(tensor) for tensor in tensors]
    with side.change_precision(tensors, "float64"):
        assert {side.view(tensor).dtype.name for tensor in tensors} == {"float64"}
        side.set_values(tensors[0], np.zeros(before[0].shape))
    for tensor, values in zip(tensors, before, strict=True):
        np.testing.assert_array_equal(side.view(tensor), values, strict=True)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("given", ["int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("held", ["int32", "float32", "float64", "bfloat16"])
def test_values_are_given_in_the_tensors_own_dtype(side, held, given):
    values = np.array([[1, 2, 3], [4, 5, 1e40 if given == "float64" != held else 6]], given)
    tensor = side.constant(np.zeros((3, 2))).to(
        getattr(torch if side is torch_side else paddle, held)
    )
    side.set_values(tensor, values.T)
    assert side.view(tensor).tolist()[:2] == [[1, 4], [2, 5]] and held in str(tensor.dtype)


@pytest.mark.parametrize("side", SIDES)
def test_values_of_another_shape_are_refused(side):
    with pytest.raises((RuntimeError, ValueError, AssertionError)):
        side.set_values(side.constant(np.zeros((3, 2))), np.zeros((2, 3)))


@pytest.mark.parametrize("side", SIDES)
def test_a_model_without_obstacle(side):
    model = linear(side)
    assert side.find_obstacle(model) == "" and side.is_module(model)
    assert [name for name, _ in side.modules(model)] == [""]
    assert side.is_persistent(model, "weight")


def test_a_model_that_cannot_be_compared_says_why():
    assert "device meta" in torch_side.find_obstacle(torch.nn.Linear(2, 2, device="meta"))
    sparse = paddle.nn.Sequential(paddle.nn.Embedding(3, 2, sparse=True))
    assert "sparse embedding at 0" in paddle_side.find_obstacle(sparse)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("answered", [False, True])
def test_a_request_for_float32_is_noted_and_answered(side, answered):
    noted = []
    x = side.constant(np.ones(2))
    with side.float32_requests(lambda *tensors: noted.append(tensors), answered):
        cast = x.to(torch.float32) if side is torch_side else x.astype("float32")
    assert noted[0][0] is cast and noted[0][1] is x
    assert side.view(cast).dtype.name == ("float64" if answered else "float32")


@pytest.mark.parametrize("side", SIDES)
def test_an_optimizers_state_is_copied_and_given_to_a_new_one(side):
    module, model = STATES[side], linear(side)
    optimizer = adam(side, model)
    for _, parameter, _ in side.own_tensors(model):
        side.set_gradient(parameter, np.ones(tuple(parameter.shape), "float32"))
    optimizer.step()
    state = module.optimizer_state(optimizer, model)
    again = adam(side, model)
    module.set_optimizer_state(again, model, state)
    found = module.optimizer_state(again, model)
    assert found.keys() == state.keys() and module.betas(again) == (0.5, 0.75)
    for kind, arrays in state.items():
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[kind][name], array)
    side.set_rates(again, [0.25])
    assert side.learning_rates(again) == [0.25]


def make_compiled() -> torch.nn.Module:
    """Return a module of a class that is made here: torch.compile imports its compiler for seconds."""

    class TorchCompiled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm = torch.nn.Linear(3, 4), torch.nn.LayerNorm(4)

        @torch.compile
        def forward(self, x):
            return torch.nn.functional.dropout(self.norm(self.first(x)), 0.1, self.training)

    return TorchCompiled()


class PaddleStatic(paddle.nn.Layer):
    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.first, self.norm = paddle.nn.Linear(3, 4), paddle.nn.LayerNorm(4, epsilon)

    @paddle.jit.to_static
    def forward(self, x):  # Paddle asks that `self` be called so
        return paddle.nn.functional.dropout(self.norm(self.first(x)), 0.1, training=self.training)


@pytest.mark.parametrize("epsilon, verdict", [(1e-5, "faithful"), (1e-3, "diverges")])
def test_compiled_models_are_judged_as_they_are_written(capfd, epsilon, verdict):
    x = np.random.default_rng(0).normal(size=(4, 3))
    report = align(make_compiled(), PaddleStatic(epsilon), (x,))
    assert report.verdict == verdict, str(report)
    assert verdict == "faithful" or report.findings[0].torch_name == "norm"
    assert ProgramTranslator().enable_to_static and "to_static" not in capfd.readouterr().err
