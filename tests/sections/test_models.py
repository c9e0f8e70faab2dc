"""A section that is hidden holds nothing; its values come from files."""

from pathlib import Path

from reprod_align.backends import torch as torch_init
from reprod_align.errors import WeightsError
from reprod_align.pair import torch_side
from reprod_align.sections.models import ConvertedValues, FileValues, FillableTensors, Shell
from reprod_align.weights.reading import open_checkpoint
from tests.sections.small import LIMIT, TorchNet, divide, write_weights

import numpy as np
import pytest
import torch
from safetensors.torch import save_file


def test_a_shown_section_has_its_values_and_a_hidden_one_nothing(tmp_path: Path) -> None:
    pair = divide(tmp_path, LIMIT)
    shell = pair.reference.shells["layers.0"]
    assert not [*shell.module.parameters()]
    with shell.filled():
        assert len([*shell.module.parameters()]) == 8
        assert shell.module.mix.weight.abs().sum() > 0
        kept = shell.module.mix.weight
    assert not [*shell.module.parameters()] and not shell.side.fw.has_values(kept)
    pair.show()
    assert len([*shell.module.parameters()]) == 8
    assert "forward" not in vars(shell.module)


def test_a_forward_of_the_module_s_own_is_given_back() -> None:
    model = TorchNet()
    own = model.norm.__dict__["forward"] = lambda hidden: hidden
    held = FillableTensors(torch_side(model), torch_init)
    shell = Shell(held, "norm")
    shell.hide(lambda hidden: hidden + 1)
    shell.show()
    assert model.norm.__dict__["forward"] is own
    assert np.asarray(held.read("norm.weight")).shape == (16,)


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
