"""Constant weights are moved; others, and tables, stay."""

from reprod_align.pair.sides import torch_side
from reprod_align.porting.attempt import stir_weights

import torch


def test_constant_rows_and_statistics_are_moved() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(4, 3, padding_idx=1), torch.nn.BatchNorm1d(3))
    model.register_buffer("mask", torch.ones(2, 2))
    model.register_parameter("none", torch.nn.Parameter(torch.ones(0, 2)))
    model.register_parameter("scalar", torch.nn.Parameter(torch.tensor(1.0)))
    before = {name: held.clone() for name, held in model.state_dict().items()}
    stir_weights(torch_side(model))
    after = model.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {"0.weight", "1.weight", "1.bias", "1.running_mean", "1.running_var", "scalar"}
    rows = before["0.weight"] == after["0.weight"]
    assert rows.all(1).tolist() == [True, False, True, True]
    assert (after["1.running_var"] > 0).all() and after["1.weight"].unique().numel() == 3
