"""What is read of an output beside its tensors."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from reprod_align.model.watch import read_values

import numpy as np
import torch


class Kind(Enum):
    WORD = 1


class Scores(NamedTuple):
    best: float
    names: list[str]


@dataclass
class Output:
    logits: torch.Tensor
    scores: Scores
    aux: Any = None


def test_every_value_is_read_at_its_path() -> None:
    output = Output(torch.ones(2), Scores(0.5, ["a", "b"]), {"kind": Kind.WORD, "raw": b"\1"})
    values, objects = read_values(output, torch.is_tensor)
    assert {at: None if one is None else one.item() for at, one in values.items()} == {
        "scores[0]": 0.5, "scores[1][0]": "a", "scores[1][1]": "b", "aux.kind": "Kind.WORD", "aux.raw": "01",
    }  # fmt: skip
    assert objects == {}


def test_none_is_kept_and_objects_are_named() -> None:
    values, objects = read_values([None, object(), torch.ones(1), {1}], torch.is_tensor)
    assert values["[0]"] is None and values["[3]"] == "['1']"
    assert objects == {"[1]": "object"}


def test_arrays_are_copies() -> None:
    array = np.zeros(3)
    values, _ = read_values((array,), torch.is_tensor)
    array[:] = 1
    assert values["[0]"] is not None and not values["[0]"].any()
