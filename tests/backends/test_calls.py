"""Each framework's own way to hear every call: the outermost ones, by the names that users know."""

from contextlib import nullcontext
from types import ModuleType
from typing import Any

from reprod_align.backends.paddle import calls as paddle_calls
from reprod_align.backends.paddle.random import shared_random
from reprod_align.backends.torch import calls as torch_calls
from reprod_align.randomness import KeyedDraws

import paddle
import pytest
import torch


class Names:
    """Stands for a recorder: notes the names, and lets the calls through."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.inside = False

    def record(self, name: str, function: Any, args: Any, kwargs: Any) -> Any:
        if self.inside:
            return function(*args, **kwargs)
        self.names.append(name)
        self.inside = True
        result = function(*args, **kwargs)
        self.inside = False
        return result


@pytest.mark.parametrize(
    ("framework", "calls", "names"),
    [
        (torch, torch_calls, ["ones", "gelu", "add", "__getitem__", "T", "softmax"]),
        (paddle, paddle_calls, ["ones", "gelu", "__add__", "__getitem__", "T", "softmax"]),
    ],
)
def test_functions_operators_indices_and_attributes_are_heard(
    framework: ModuleType, calls: ModuleType, names: list[str]
) -> None:
    heard = Names()
    with calls.intercept_calls(heard), nullcontext():
        x = framework.ones([2, 3])
        y = framework.nn.functional.gelu(x) + 1
        y = y[:1].T
        framework.nn.functional.softmax(y, 0)
    framework.ones([2])
    if torch.__version__ < "2.3" and framework is torch:  # it tells no mode of an index
        names = [name for name in names if name != "__getitem__"]
    assert heard.names == names


def test_what_paddle_tensor_holds_is_heard_by_either_way_to_it() -> None:
    from paddle import tensor
    from paddle.nn.layer import transformer

    heard = Names()
    with paddle_calls.intercept_calls(heard), nullcontext():
        x = paddle.ones([2, 2])
        for place in (paddle.tensor, tensor, transformer.tensor, paddle):
            place.triu(place.matmul(x, x))
    assert heard.names == ["ones", *["matmul", "triu"] * 4]


def test_what_hears_a_function_is_made_once_but_that_of_a_draw_anew() -> None:
    own, found = paddle.nn.functional.gelu, []
    for _ in range(2):
        heard = Names()
        with shared_random(KeyedDraws(1, {})), paddle_calls.intercept_calls(heard), nullcontext():
            found.append((paddle.nn.functional.gelu, paddle.nn.functional.dropout))
            paddle.nn.functional.gelu(paddle.ones([2]))
        assert heard.names == ["ones", "gelu"]
    (gelu, dropout), (again, other) = found
    assert gelu is again is not own and dropout is not other
    assert paddle.nn.functional.gelu is own
