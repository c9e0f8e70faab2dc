"""Rows of a table that the given batch never reads."""

from reprod_align import align
from reprod_align.alignment.unjudged import note_unread_rows
from tests.alignment.small import PaddleNet, TorchNet, at_work

import numpy as np
import paddle
import torch


class TorchPlaces(torch.nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.places = torch.nn.Embedding(rows, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.places(ids)


class PaddlePlaces(paddle.nn.Layer):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.places = paddle.nn.Embedding(rows, 3)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.places(ids)


def tell(ids: list[int], rows: int) -> list[str]:
    report = align(TorchPlaces(rows), PaddlePlaces(rows), (np.array([ids, ids]),))
    assert report.passed
    return [one.what for one in report.not_judged if one.kind == "batches"]


def test_a_range_that_is_not_the_whole_table_is_named() -> None:
    assert tell([2, 3, 4, 5], 8) == ["the given batch reads rows 2 to 5 of 8 of places only"]


def test_words_and_whole_tables_are_not() -> None:
    assert tell([0, 1, 2, 3], 4) == tell([0, 5, 2, 7], 9) == tell([0, 0, 0, 0], 2) == []


def test_a_model_without_tables_is_told_nothing() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, findings):
        note_unread_rows(runner, findings)
    assert findings.report.not_judged == []
