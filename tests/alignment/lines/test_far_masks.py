"""Masks and indices that one side makes in another module than the other: the line that makes them."""

from reprod_align import align
from reprod_align.alignment.lines.graph import KnownValues
from tests.alignment.lines.paddle_far import (
    PaddleCounted,
    PaddleHeads,
    PaddlePlaced,
    PaddlePositions,
)
from tests.alignment.lines.torch_far import TorchHeads, TorchPlaced

import numpy as np
import pytest

MASK = np.ones((2, 7), "int64")
MASK[1, -3:] = 0
INPUTS = {"x": np.random.default_rng(0).standard_normal((2, 7, 8)), "mask": MASK}


def test_an_index_that_pytorch_is_given_and_the_port_makes_is_blamed_where_it_is_made() -> None:
    assert align(TorchPlaced(), PaddlePlaced(PaddlePositions), INPUTS).verdict == "faithful"
    (first,) = align(TorchPlaced(), PaddlePlaced(PaddleCounted), INPUTS).findings
    assert first.paddle_code.startswith("positions = paddle.cumsum"), str(first)


@pytest.mark.every_edit
def test_a_mask_in_another_order_is_blamed_where_it_is_tiled_and_not_where_it_is_added() -> None:
    assert align(TorchHeads(), PaddleHeads(tiled=False), INPUTS).verdict == "faithful"
    first = align(TorchHeads(), PaddleHeads(tiled=True), INPUTS).findings[0]
    assert "paddle.tile" in first.paddle_code, str(first)
    assert first.edit is not None
    assert first.edit.after == "paddle.repeat_interleave(hidden, HEADS, axis=0)"


def test_values_are_known_in_their_order_in_whatever_shape() -> None:
    known = KnownValues([np.arange(8.0).reshape(2, 4)], 1e-9)
    assert known.knows_order(np.arange(8.0)) and known.knows(np.arange(8.0)[::-1])
    assert not known.knows_order(np.arange(8.0)[::-1])
