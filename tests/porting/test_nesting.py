"""Inputs of any form become arrays by name, and the models get them back as they were."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from reprod_align.errors import ReprodError
from reprod_align.porting import nesting
from tests.porting.conftest import PortSource

import numpy as np
import pytest
import torch


@dataclass
class Batch:
    values: np.ndarray[Any, Any]
    scale: float


class Two(NamedTuple):
    first: np.ndarray[Any, Any]
    second: None


ONES = np.ones((2, 3))


@pytest.mark.parametrize(
    "inputs",
    [
        ({"a": [ONES, 2], "b": None},),
        {"past": {"values": (ONES, "x")}, "flag": True},
        (Batch(ONES, 0.5), Two(ONES, None)),
    ],
)
def test_nested_inputs_come_back_as_they_were(inputs: Any) -> None:
    arrays, code = nesting.flatten_inputs(inputs)
    positional, named = nesting.compile_arrange(code)(arrays)  # type: ignore[arg-type]
    if isinstance(inputs, dict):
        assert (positional, named) == ((), inputs)
    else:
        assert repr(positional) == repr(inputs) and named == {}


def test_plain_arrays_stay_and_what_has_no_literal_is_refused() -> None:
    assert nesting.flatten_inputs((ONES,)) == ((ONES,), "")
    with pytest.raises(ReprodError, match="inputs\\['0'\\]"):
        nesting.flatten_inputs((object(), ONES))
    with pytest.raises(ReprodError, match="at least one array"):
        nesting.flatten_inputs(({"a": 1},))


def test_tensors_are_the_arrays_that_they_hold_and_one_alone_is_the_only_argument() -> None:
    held = torch.tensor(ONES, requires_grad=True)
    for given in (held, (held,), {"x": held}, {"x": {"y": [held]}}):
        arrays, _ = nesting.flatten_inputs(given)
        [array] = arrays.values() if isinstance(arrays, dict) else arrays
        assert isinstance(array, np.ndarray) and np.array_equal(array, ONES)
    assert nesting.flatten_inputs(ONES) == ((ONES,), "")
    for nested in ({"x": held.bfloat16()}, {"x": [held.bfloat16()]}):
        with pytest.raises(
            ReprodError, match="inputs\\['x(_0)?'\\]: .*BFloat16; give a NumPy array"
        ):
            nesting.flatten_inputs(nested)


TEXT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, past, marks=None):
        x = past["values"] * past["extra"][1]
        y = self.layer(x + past["extra"][0])
        return {"out": y if marks is None else y + marks}
"""


def test_a_model_of_nested_inputs_is_ported(tmp_path: Path, port_source: PortSource) -> None:
    inputs = {"past": {"values": ONES, "extra": [np.array(0.5), 2]}, "marks": np.ones((2, 2))}
    made, _ = port_source(TEXT, inputs)
    assert made.passed and (tmp_path / "out" / "weights.pdparams").is_file()
    assert "def arrange(arrays)" in (tmp_path / "out" / "pair.py").read_text()
