"""The calls of a module's own code, recorded alike on both sides, and nothing left behind."""

import sys

from reprod_align.backends.paddle import calls as paddle_calls
from reprod_align.backends.torch import calls as torch_calls
from reprod_align.model.local import LocalSide
from reprod_align.model.recorder import OperationRecorder
from reprod_align.model.source import RETURN, Operation, Wanted, Which
from reprod_align.pair import paddle_side, torch_side
from reprod_align.randomness import KeyedDraws
from tests.alignment.lines.paddle_attention import Attention as PaddleAttention
from tests.alignment.lines.torch_attention import Attention as TorchAttention

import numpy as np
import paddle
import pytest

CHILDREN = frozenset({"", "q", "k", "v", "out", "norm"})
X = (np.random.default_rng(0).normal(size=(2, 5, 8)),)


def record(side: LocalSide, calls: frozenset[tuple[str, int]]) -> list[Operation]:
    with side.working("float64"):
        trace = side.run(X, False, KeyedDraws(1, {}), wanted=Wanted(calls, CHILDREN))
    return trace.operations


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_the_code_of_a_module_is_recorded_with_lines(framework: str) -> None:
    torch = framework == "torch"
    side = torch_side(TorchAttention()) if torch else paddle_side(PaddleAttention())
    found = record(side, frozenset({("", 0)}))
    names = [operation.name.strip("_") for operation in found]
    assert [name for name in names if name in CHILDREN] == ["q", "k", "v", "out", "norm"]
    assert {"softmax", "gelu", "add", "matmul"} <= set(names) and names[-1] == RETURN
    softmax = found[names.index("softmax")]
    assert softmax.source.expression.startswith("F.softmax(scores") and -1 in softmax.constants
    assert softmax.inputs[0].shape == softmax.outputs[0].shape == (2, 2, 5, 5)
    scaled = next(one for one in found if "self.scale" in one.names)
    assert scaled.names["self.scale"] == 0.5 and softmax.differentiable


def test_other_modules_and_the_hooks_own_calls_are_left_out() -> None:
    inside = record(torch_side(TorchAttention()), frozenset({("q", 0)}))
    assert [operation.name for operation in inside] == ["linear"]
    assert not {"detach", "cpu", "resolve_neg"} & {
        one.name for one in record(torch_side(TorchAttention()), frozenset({("", 0)}))
    }
    assert record(paddle_side(PaddleAttention()), frozenset()) == []


def test_everything_is_put_back_afterwards() -> None:
    before = paddle.Tensor.__add__, paddle.nn.functional.gelu, paddle._C_ops.softmax, sys.gettrace()
    record(paddle_side(PaddleAttention()), frozenset({("", 0)}))
    after = paddle.Tensor.__add__, paddle.nn.functional.gelu, paddle._C_ops.softmax, sys.gettrace()
    assert before == after


def test_a_function_put_away_in_a_dict_is_heard_too() -> None:
    held = {"act": paddle.nn.functional.gelu}

    class Held(paddle.nn.Layer):
        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            return held["act"](x)

    found = record(paddle_side(Held()), frozenset({("", 0)}))
    assert [one.name for one in found] == ["gelu", RETURN]
    assert found[0].source.expression == 'held["act"](x)'


def test_a_call_knows_who_made_what_it_takes() -> None:
    class Shifted(paddle.nn.Layer):
        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            return self.shift(x) + x

        def shift(self, x: paddle.Tensor) -> paddle.Tensor:
            return x * 2

    side, calls = paddle_side(Shifted()), frozenset({("", 0)})
    twice, added, _ = record(side, calls)
    assert list(added.makers) == [twice, None] and list(twice.makers) == [None]
    assert [line.expression for line in twice.callers[:1]] == ["self.shift(x)"]


def test_a_run_ends_where_no_more_is_wanted_of_it() -> None:
    ran: list[str] = []

    class Noted(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.act = paddle.nn.ReLU()

        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            y = self.act(x + 1) * 2
            ran.append("to the end")
            return y - 1

    side, calls = paddle_side(Noted()), frozenset({("", 0)})
    places: tuple[Which, Which] = ("inputs", "outputs")
    for which in places:
        wanted = Wanted(calls, frozenset({"", "act"}), last=(("act", 0), which))
        with side.working("float64"):
            trace = side.run(X, False, KeyedDraws(1, {}), "all", wanted=wanted)
        assert [one.name for one in trace.operations] == ["__add__"] and not ran
        assert bool(trace.calls[1].outputs) == (which == "outputs")


def test_a_tensor_without_numbers_is_left_out() -> None:
    import torch

    class Mapped(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.vmap(lambda row: row + 1)(x) * 2

    found = record(torch_side(Mapped()), frozenset({("", 0)}))
    assert [one.name for one in found] == ["mul", RETURN]


@pytest.mark.parametrize("framework", [torch_calls, paddle_calls])
def test_an_error_in_the_block_puts_all_back(framework: object) -> None:
    from reprod_align.backends.paddle import side

    recorder = OperationRecorder(side, Wanted(frozenset(), frozenset()))
    own = paddle.Tensor.__mul__
    with pytest.raises(KeyError), framework.intercept_calls(recorder):  # type: ignore[attr-defined]
        raise KeyError
    assert paddle.Tensor.__mul__ is own
