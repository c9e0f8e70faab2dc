"""A module is made once more with the arguments that it was made with, as far as these can be told."""

from dataclasses import dataclass
from typing import Any

from reprod_align.alignment.locating import remaking
from reprod_align.alignment.locating.remaking import NotRemadeError, remake
from reprod_align.pair import paddle_side

import numpy as np
import paddle
import pytest
from paddle import nn


@dataclass
class Config:
    rows: int = 3
    width: int = 4


class Table(nn.Layer):
    def __init__(self, rows: int, width: int, factor: float = 1.0, number: int = 0) -> None:
        super().__init__()
        self.table = paddle.arange(float(rows * width)).reshape([rows, width]) * factor + number
        self.number = number
        self.noise = paddle.rand([2])

    def forward(self, x: Any) -> Any:
        return x + self.table[: x.shape[0]]


class Block(nn.Layer):
    def __init__(
        self, config: Config, factor: float, given: dict[str, int], shift: float = 0.25
    ) -> None:
        super().__init__()
        rows = config.rows + 1
        self.local = Table(rows, width=config.width)
        self.held = Table(config.rows, config.width, factor)
        self.factor = factor
        self.listed = nn.LayerList([Table(2, config.width, number=i) for i in range(2)])
        self.unpacked = Table(**given)
        self.lost = Table(2, given["width"])
        self.handed = Table(2, 4, shift)

    def forward(self, x: Any) -> Any:
        return self.held(x)


class Model(nn.Layer):
    def __init__(self, config: Config, given: dict[str, int]) -> None:
        super().__init__()
        self.config = config
        self.block = Block(config, 0.5, given, shift=0.75)

    def forward(self, x: Any) -> Any:
        return self.block(x)


def make_model() -> Model:
    return Model(Config(), {"rows": 2, "width": 4})


@pytest.mark.parametrize("path", ["block.local", "block.held", "block.listed.1", "block.handed"])
def test_it_holds_what_the_first_one_holds(path: str) -> None:
    side = paddle_side(make_model())
    first = dict(side.fw.modules(side.model))[path]
    again = remake(side, side.describe(), path)
    assert again is not first and type(again) is type(first)
    np.testing.assert_array_equal(again.table.numpy(), first.table.numpy())


def test_the_random_numbers_go_on_as_they_would_have() -> None:
    side = paddle_side(make_model())
    drawn = []
    for again in (False, True):
        paddle.seed(0)
        if again:
            remake(side, side.describe(), "block.held")
        drawn.append(paddle.rand([3]).numpy())
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize(
    ("path", "words"),
    [("block.unpacked", "unpacked"), ("block.lost", "given"), ("", "no call that makes")],
)
def test_what_cannot_be_told_is_said(path: str, words: str) -> None:
    side = paddle_side(make_model())
    with pytest.raises(NotRemadeError, match=words):
        remake(side, side.describe(), path)


def test_a_large_module_is_not_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    side = paddle_side(make_model())
    monkeypatch.setattr(remaking, "_LARGEST", 2)
    with pytest.raises(NotRemadeError, match="too large"):
        remake(side, side.describe(), "block.held")
