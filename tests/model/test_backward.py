"""The digest of the graph that a backward pass takes, in both frameworks."""

import sys
from types import ModuleType
from typing import Any

from reprod_align.backends.paddle import side as paddle_calls
from reprod_align.backends.torch import side as torch_calls
from reprod_align.model.backward import digest_graph, pair_outputs
from reprod_align.model.trace import Leaf

import numpy as np
import paddle
import pytest
import torch

SIDES = {"torch": torch_calls, "paddle": paddle_calls}


class Made:
    """Leaves of one framework, and its functions."""

    def __init__(self, name: str) -> None:
        self.calls: ModuleType = SIDES[name]
        self.fw: Any = torch if name == "torch" else paddle
        self.x, self.a, self.b = (self.leaf() for _ in range(3))

    def leaf(self) -> Any:
        if self.fw is torch:
            return torch.ones(2, 2, requires_grad=True)
        made = paddle.ones([2, 2])
        made.stop_gradient = False
        return made

    def digest(self, *made: Any, given: Any = ()) -> str | None:
        return digest_graph(self.calls, made, given)


@pytest.fixture(params=SIDES)
def made(request: Any) -> Made:
    return Made(request.param)


def test_what_hands_a_gradient_on_in_another_way_has_another_digest(made: Made) -> None:
    x, a, b, fw = made.x, made.a, made.b, made.fw
    other = [
        fw.matmul(x, a), fw.matmul(x, b), fw.matmul(x.detach(), a), fw.matmul(a, x), fw.tanh(x),
        fw.matmul(x, a) + x, fw.matmul(x, a) + x.detach(), x.detach(), fw.nn.functional.relu(x),
    ]  # fmt: skip
    digests = [made.digest(one) for one in other]
    assert None not in digests and len(set(digests)) == len(digests)
    assert made.digest(other[0], other[4]) != made.digest(other[4], other[0])


def test_a_mask_a_factor_and_a_copy_change_nothing(made: Made) -> None:
    x, a, fw = made.x, made.a, made.fw
    mask = fw.ones([2, 2])
    plain = made.digest(fw.tanh(fw.matmul(x, a)))
    for same in (fw.matmul(x, a) * mask, fw.matmul(x, a) * 2.0, fw.matmul(x, a).clone()):
        assert made.digest(fw.tanh(same)) == plain
    dropped = fw.nn.functional.dropout(fw.matmul(x, a), 0.5, training=True)
    assert made.digest(fw.tanh(dropped)) == plain
    assert made.digest(fw.tanh(fw.matmul(x, a) * x)) != plain


def test_given_leaves_count_as_constants(made: Made) -> None:
    x, a, fw = made.x, made.a, made.fw
    constant = made.digest(fw.matmul(fw.tanh(x.detach()), a))
    assert made.digest(fw.matmul(fw.tanh(x), a), given=[x]) == constant
    assert made.digest(fw.tanh(x), given=[x]) == made.digest(x, given=[x])


def test_statistics_and_functions_of_the_users_own_are_not_told(made: Made) -> None:
    fw = made.fw
    norm: Any = torch.nn.BatchNorm1d(2) if fw is torch else paddle.nn.BatchNorm1D(2)
    base: Any = torch.autograd.Function if fw is torch else paddle.autograd.PyLayer

    class Own(base):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient

    norm.eval()
    assert made.digest(norm(made.x)) is None
    assert made.digest(fw.tanh(Own.apply(made.x))) is None


def test_reading_the_graph_keeps_no_activation_alive() -> None:
    """Paddle's `grad_fn` holds a reference that nobody gives back: the graph would stay."""
    x = SIDES["paddle"].make_differentiable(paddle.ones([2]))
    for _ in range(3):
        made = paddle.tanh(x)
        digest_graph(paddle_calls, [made])
        node = made.grad_fn  # one reference too many, where Paddle keeps it
        kept = sys.getrefcount(node) - 2
        again = paddle_calls.gradient_node(made)
        assert sys.getrefcount(again) - 3 == kept, "reading it once more adds none"
        del again


def test_an_output_of_one_mode_alone_is_paired_beside_those_known() -> None:
    every = {name: Leaf(np.zeros(size), True) for name, size in (("a", 2), ("loss", 1), ("b", 3))}
    known = pair_outputs({"a": every["a"]}, {"a": every["a"]})
    other = {**every, "b": Leaf(np.zeros(4), True)}
    assert [one.expected for one in pair_outputs(every, every, known)] == ["a", "loss", "b"]
    assert [one.expected for one in pair_outputs(every, other, known)] == ["a", "loss"]


def test_fields_of_one_name_are_one_output_where_the_port_returns_more() -> None:
    random = np.random.default_rng(0)
    ours = {name: Leaf(random.normal(size=(2, 2)), True) for name in ("image", "text", "hidden[0]")}
    theirs = {"image": ours["text"], "text": ours["image"], "more": ours["hidden[0]"]}
    theirs["pooled"] = Leaf(random.normal(size=3), True)
    pairs = [(one.expected, one.actual) for one in pair_outputs(ours, theirs)]
    assert pairs == [("image", "image"), ("text", "text"), ("hidden[0]", "more")]
