"""Values that are read when they are needed, as PyTorch's model and as Paddle's holds them."""

from pathlib import Path

from reprod_align.errors import WeightsError
from reprod_align.pair.sides import torch_side
from reprod_align.sections.models import ConvertedValues, FileValues
from reprod_align.weights.reading import open_checkpoint
from tests.sections.small import LIMIT, TorchNet, divide, write_weights

import numpy as np
import pytest
import torch
from safetensors.torch import save_file


def test_a_tied_weight_is_found_under_either_name(tmp_path: Path) -> None:
    stored = open_checkpoint(write_weights(tmp_path, tied=True)).tensors
    read = FileValues(torch_side(TorchNet(tied=True)).describe(), stored, "w")
    known = read(["head.weight", "embed.table.weight"])
    assert np.array_equal(known["head.weight"], known["embed.table.weight"])
    assert read.extra == []


def test_missing_misfitting_and_extra_tensors_are_named(tmp_path: Path) -> None:
    info = torch_side(torch.nn.Linear(2, 3)).describe()
    path = tmp_path / "w.safetensors"
    save_file({"weight": torch.ones(3, 3), "more": torch.ones(1)}, path)
    with pytest.raises(WeightsError, match=r"missing bias; weight: \(3, 3\) where .* \(3, 2\)"):
        FileValues(info, open_checkpoint(path).tensors, "w")
    save_file({"weight": torch.ones(3, 2), "bias": torch.ones(3), "more": torch.ones(1)}, path)
    assert FileValues(info, open_checkpoint(path).tensors, "w").extra == ["more"]


def test_paddle_s_values_are_converted(tmp_path: Path) -> None:
    pair = divide(tmp_path, LIMIT)
    read = pair.port.rest.source
    assert isinstance(read, ConvertedValues)
    name = "layers.0.up.weight"
    ours = pair.reference.rest.source([name])[name]
    assert np.array_equal(read([name])[name], ours.T)
