"""A section that is hidden holds nothing, and is itself again when it is shown."""

from pathlib import Path

from reprod_align.backends.torch import init as torch_init
from reprod_align.pair.sides import torch_side
from reprod_align.sections.models import FillableTensors, Shell
from tests.sections.small import LIMIT, TorchNet, divide

import numpy as np


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
