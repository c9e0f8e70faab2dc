"""A tensor of more than 4 GiB goes through every format: sizes that 32 bits cannot hold."""

from pathlib import Path

from reprod_align.conversion import Conversion, convert
from reprod_align.conversion.weight_map import WeightMap
from reprod_align.match import TensorPair
from reprod_align.weights.reading import open_checkpoint
from reprod_align.weights.stored import TensorEntry
from reprod_align.weights.writing import write_checkpoint

import numpy as np
import pytest

LENGTH = 2**32 + 2**27  # bytes
MARKS = {0: 1, 2**31: 2, 2**32 - 1: 3, 2**32: 4, LENGTH - 1: 5}
MAP = WeightMap(
    (TensorPair(("w",), ("w",), (False,)), TensorPair(("after",), ("after",), (False,)))
)


def load(name: str) -> np.ndarray:
    if name == "after":
        return np.arange(3, dtype=np.uint8)
    array = np.zeros(LENGTH, np.uint8)
    for place, value in MARKS.items():
        array[place] = value
    return array


@pytest.mark.longer
def test_a_tensor_of_more_than_4_gib(tmp_path: Path) -> None:
    entries = [TensorEntry("w", "uint8", (LENGTH,)), TensorEntry("after", "uint8", (3,))]
    source = tmp_path / "0.safetensors"
    with write_checkpoint(source, "torch", entries, load, 2**40):
        pass
    for number, (suffix, before) in enumerate(
        ((".pdparams", "torch"), (".bin", "paddle"), (".safetensors", "torch"))
    ):
        target = tmp_path / f"{number + 1}{suffix}"
        convert(Conversion(source, target, source_framework=before, check=False), None, MAP)
        source.unlink()
        tensors = open_checkpoint(target).tensors
        held = tensors["w"].map()
        assert held.shape == (LENGTH,) and {at: held[at] for at in MARKS} == MARKS
        assert sum(map(np.count_nonzero, np.array_split(held, 64))) == len(MARKS)
        assert tensors["after"].read().tolist() == [0, 1, 2]
        source = target
