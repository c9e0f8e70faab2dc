"""How each framework hears every call, the outermost by the names that users know; and kernels."""

from contextlib import nullcontext
from types import ModuleType
from typing import Any

from reprod_align.backends.paddle import calls as paddle_calls
from reprod_align.backends.paddle.random import shared_random
from reprod_align.backends.torch import calls as torch_calls
from reprod_align.backends.torch.kernels import mended_kernels
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


ROWS = [3, 1, 0, 2]


def contradicts() -> bool:
    x, rows = torch.arange(8.0).reshape(4, 2), torch.tensor(ROWS, dtype=torch.int32)[:, None]
    rows = rows.expand(4, 2)
    return not torch.equal(torch.gather(x, 0, rows.long()), torch.gather(x, 0, rows))


def test_rounding_and_overflow_are_no_contradiction() -> None:
    noted: list[str] = []
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    with mended_kernels(noted.append):
        torch.exp(100 * x).sum()
        (x @ x).softmax(-1).log().mean()
        (torch.tensor([2**31 - 1], dtype=torch.int32) + 1) * 1.5
        torch.rand(4)
        for _ in range(20):
            torch.empty_like(x).fill_(torch.finfo(torch.float32).max)  # memory that comes back
    assert noted == []


def test_the_wider_result_takes_the_place_of_one_that_is_wrong() -> None:
    noted: list[str] = []
    x, rows = torch.arange(8.0).reshape(4, 2), torch.tensor(ROWS, dtype=torch.int32)[:, None]
    with mended_kernels(noted.append):
        taken = torch.gather(x, 0, rows.expand(4, 2))
    assert (
        torch.equal(taken, torch.gather(x, 0, rows.long().expand(4, 2)))
        and len(noted) == contradicts()
    )
