"""What is known of tensors by name, where a tensor has several."""

from dataclasses import replace

from reprod_align.model.side import ModelInfo
from tests.match.made import linear, make_info

import pytest


@pytest.fixture
def info() -> ModelInfo:
    info = make_info({"table": linear(4, 3), "head": linear(4, 3, bias=4)})
    head = replace(info.tensors["head.weight"], tie="table.weight")
    return replace(info, tensors={**info.tensors, "head.weight": head})


def test_every_name_of_a_tensor_is_known(info: ModelInfo) -> None:
    for name in ("table.weight", "head.weight"):
        assert list(info.other_names(name)) == ["table.weight", "head.weight"]
    assert list(info.other_names("head.bias")) == ["head.bias"]


def test_what_is_known_under_one_name_is_found_under_each(info: ModelInfo) -> None:
    assert info.find({"head.weight": 2.0}, "table.weight") == 2.0
    assert info.find({"head.weight": 0.0}, "head.weight") == 0.0
    assert info.find({"head.weight": 2.0}, "head.bias") is None
    assert info.spread({"head.weight": 2.0}) == {"table.weight": 2.0, "head.weight": 2.0}
