"""Gradients of calls: what gives the recorded result and another gradient is not proven, and is exchanged."""

import ast

from reprod_align.porting.calls import draft, parts, record, trial, values
from tests.porting.conftest import PortSource, WriteSource
from tests.porting.drafts import NUMBERS

import numpy as np
import paddle
import pytest
import torch


def call_in(text: str) -> ast.Call:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


@pytest.mark.parametrize(
    ("text", "graded", "same"),
    [
        ("paddle.tanh(a0)", True, True),
        ("paddle.tanh(a0.detach())", True, False),
        ("paddle.tanh(a0.detach())", False, True),
        ("paddle.tanh(a0) + 0.5 * (a0 - a0.detach())", True, False),
    ],
)
def test_a_candidate_with_another_gradient_is_not_proven(
    text: str, graded: bool, same: bool
) -> None:
    x = torch.linspace(-1, 1, 5, dtype=torch.float64).requires_grad_(True)
    fact = record.Fact({"torch.tanh"}, [values.RecordedCall((x,), {}, torch.tanh(x).detach())])
    found = trial.prove(call_in("f(x)"), text, "torch.tanh", fact, {}, graded=graded)
    assert found is same


@pytest.mark.parametrize(
    ("text", "same"),
    [("a0.detach().astype(k_dtype)", False), ("a0.astype(k_dtype)", True)],
)
def test_a_request_for_float32_hides_no_gradient(text: str, same: bool) -> None:
    """The recorded run answered it with float64, and so is the call that is repeated for its gradient."""
    x = torch.linspace(-1, 1, 5, dtype=torch.float64).requires_grad_(True)
    call = values.RecordedCall((x,), {"dtype": torch.float32}, x.detach())
    call.default_dtype, call.widened = torch.float64, True
    fact = record.Fact({"torch.as_tensor"}, [call])
    node = call_in("f(x, dtype=d)")
    assert trial.prove(node, text, "torch.as_tensor", fact, {}) is same


def test_what_ended_a_process_is_not_tried_in_other_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(trial, "note_attempt", lambda text, _: tried.append(text))
    x = torch.ones(2)
    fact = record.Fact({"torch.tanh"}, [values.RecordedCall((x,), {}, x)])
    for text in ("paddle.tanh(a0)", "paddle.tanh(a0.clone())", "paddle.sin(a0)"):
        trial.prove(call_in("f(x)"), text, "torch.tanh", fact, {})
    assert len(set(tried)) == 2 and len(tried) == 3


def test_an_operator_that_raises_in_pytorch_is_left() -> None:
    call = values.RecordedCall((torch.ones(2), torch.ones(3)), {}, None)
    assert trial.operates(record.Fact(calls=[call]), "+")


def test_what_a_call_changes_hands_its_gradient_on() -> None:
    x, value = torch.zeros(2, 3).double(), torch.ones(3).double().requires_grad_(True)
    after = x.clone()
    after[1] = value.detach()
    fact = record.Fact(calls=[values.RecordedCall((1, value), {}, None, x, after)])
    assert trial.stores(fact, "self.__setitem__(index, value)", {})
    assert not trial.stores(fact, "self.__setitem__(index, value.detach())", {})
    assert not trial.stores(fact, "self.__setitem__(0, value)", {})


def test_memory_that_is_not_written_is_no_zero_by_chance() -> None:
    one = paddle.zeros([64, 8], "float64")
    values._litter([one])
    made = [paddle.empty([64, 8], "float64") for _ in range(50)]
    assert any(np.isnan(one.numpy()).any() for one in made)


NETS = """
import torch
from torch import nn


def make(kind, channels):
    return kind(2, channels, affine=False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.utils.parametrizations.weight_norm(nn.Linear(6, 8))
        self.norm = nn.LayerNorm(8)
        self.table = nn.Parameter(torch.rand(2, 8, 8))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.free = make(nn.GroupNorm, 4)
        for one in self.norm.parameters():
            one.requires_grad_(False)

    def forward(self, x):
        x = self.norm(self.first(x).relu() + x[:, :1])
        x = (x.reshape(2, 1, 2, 8) @ self.table).mean(1).reshape(4, 8)
        kept = torch.zeros(4, 8, dtype=x.dtype)
        kept[torch.arange(3).unsqueeze(-1), torch.tensor([[0, 2], [1, 3], [7, 4]])] = x[:3, :2]
        kept[:, [5, 6]] = x[:, 3:5]
        kept[torch.tensor([True, False, True, False])] += self.table[0, 0]
        x = self.free((x + kept).reshape(2, 4, 4)).tanh()
        return x + self.pool(x[None, :, :, :3])[0]
"""


def test_layers_and_items_whose_gradient_is_another_one_in_paddle(port_source: PortSource) -> None:
    result, text = port_source(NETS, NUMBERS)
    assert result.passed and not result.course.steps, result.left
    assert "@ self.table.expand([*paddle.broadcast_shape(" in text
    assert "self.pool = OwnAdaptiveAvgPool2D(1)" in text
    assert "class OwnLayerNorm(nn.LayerNorm)" in text
    assert "class TorchGroupNorm(GroupNorm)" in text
    assert "kept.index_put_((paddle.arange(3)" in text
    assert "kept.index_put_((paddle.to_tensor([True, False, True, False]),), kept[" in text
    assert "set_items(kept, (slice(None, None, None), [5, 6]), x[:, 3:5])" in text


PARTS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.held = {}

    def forward(self, x):
        x = self.first(x)
        boxes = x * 2
        boxes[..., 0::2].clamp_(-1, 0.5)
        boxes[:, 1:3].mul_(3).add_(1)
        boxes[:, 5].zero_()
        boxes[1].copy_(x[0])
        boxes[[0, 2]].mul_(7)
        self.held["x"] = x + boxes
        self.held["x"].mul_(2)
        pair = [x * 3, boxes]
        pair[0].add_(1)
        count = torch.zeros(3)
        count[1].fill_(4.0)
        return self.held.pop("x"), pair[0], count
"""


def test_a_part_that_is_changed_in_place_is_set(port_source: PortSource) -> None:
    result, text = port_source(PARTS, NUMBERS)
    assert result.passed and not result.course.steps, result.left
    for line in (
        "boxes[..., 0::2] = boxes[..., 0::2].clamp(-1, 0.5)",
        "boxes[:, 1:3] = boxes[:, 1:3] * 3 + 1",
        "boxes[:, 5] = 0",
        "boxes[1] = x[0]",
    ):
        assert line in text
    assert "boxes[[0, 2]] =" not in text and 'held["x"] = self.held["x"]' not in text
    assert "pair[0] =" not in text and "count[1] =" not in text


@pytest.mark.parametrize(
    ("statement", "is_one"),
    [
        ("x[0].mul_(2)", True),
        ("self.x[i + 1, :].mul_(2).add_(1)", True),
        ("x[0].mul_(2).view(-1)", False),
        ("x[0].__iadd__(1)", False),
        ("x[next(i)].mul_(2)", False),
        ("x()[0].mul_(2)", False),
        ("x[0][1].mul_(2)", False),
        ("x.mul_(2)", False),
        ("mul_(x[0])", False),
    ],
)
def test_what_counts_as_a_part(statement: str, is_one: bool) -> None:
    node = ast.parse(statement).body[0]
    assert isinstance(node, ast.Expr)
    assert (parts.find_part(node) is not None) is is_one


AFTERWARDS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm1d(6) for _ in range(3))
        for m in self.modules():
            t = type(m)
            if t is nn.BatchNorm1d:
                m.eps = 1e-3
                m.momentum = 0.03

    def forward(self, x):
        x = x * 1e-2
        for norm in self.norms:
            x = norm(x) * 1e-2
        return x
"""


def test_a_norm_that_is_set_afterwards_is_proven_as_it_ran(port_source: PortSource) -> None:
    result, text = port_source(AFTERWARDS, NUMBERS)
    assert result.verdict == "faithful", result.left
    assert not any("BatchNorm" in one for one in result.draft.unproven)
    assert "OwnBatchNorm1D(6)" in text and "if t is OwnBatchNorm1D:" in text


CONSTANTS = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, act=nn.Hardtanh):
        super().__init__()
        self.first, self.pool = nn.Conv2d(2, 3, 1), nn.AvgPool2d(3)
        self.acts = nn.Sequential(act(-0.7, 0.3), nn.SELU(), nn.ELU(1.3), nn.Softshrink(0.01))

    def forward(self, x):
        x = self.first(x.reshape(-1, 2, 3, 3))
        x = self.acts(x) + F.hardtanh(x, -0.3, 0.6) + F.softshrink(x, 0.01) + F.elu(x, 1.3) + F.selu(x)
        x = self.pool(x + torch.pow(x.abs() + 1, 0.3)).flatten(1)
        even = torch.arange(len(x)) % 3 - 1
        return F.cross_entropy(x, even, ignore_index=-1, label_smoothing=0.1), x
"""


def test_constants_that_a_kernel_holds_in_float32_are_written_otherwise(
    port_source: PortSource,
) -> None:
    inputs = (np.random.default_rng(0).standard_normal((5, 18)),)
    result, text = port_source(CONSTANTS, inputs)
    assert result.passed and not result.draft.rounded, (result.left, result.draft.rounded)
    assert "paddle.clip(x, -0.3, 0.6)" in text and "OwnSELU()" in text
    assert "class ELU(" not in text  # nothing calls it


ROUNDED = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm, self.rows = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.LayerNorm(6)

    def forward(self, x):
        return self.rows(self.norm(self.layer(x)) * FACTOR)
"""


@pytest.mark.parametrize("factor", [1.0, 1e-3])
def test_norms_of_small_variance_compute_in_their_input_s_dtype(
    port_source: PortSource, factor: float
) -> None:
    result, text = port_source(ROUNDED.replace("FACTOR", str(factor)), NUMBERS)
    assert result.verdict == "faithful" and not result.draft.rounded, result.left
    for norm in ("LayerNorm(6)", "BatchNorm1D(6)"):
        assert (f"Own{norm}" in text) is (factor < 1) and (f" nn.{norm}" in text) is (factor == 1)


FUNCTIONAL = """
import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.BatchNorm1d):
    def forward(self, x):
        kept = self.running_mean, self.running_var
        return F.batch_norm(
            x, kept[0], kept[1], self.weight, self.bias, self.training, self.momentum, self.eps
        )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(6, 6), Norm(6)

    def forward(self, x):
        assert "Half" not in x.type()
        return self.norm(1e-3 * self.layer(x)) * F.hardsigmoid(x)
"""


def test_a_derived_batch_norm_computes_in_its_input_s_dtype(port_source: PortSource) -> None:
    result, text = port_source(FUNCTIONAL, NUMBERS)
    assert result.verdict == "faithful", result.left
    assert "return batch_norm_in_dtype(x, " in text
    assert '"Half" not in name_type(x)' in text and "* hardsigmoid_in_dtype(x)" in text


TIED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.cell, self.last = nn.Linear(6, 6), nn.GRUCell(6, 6), nn.Linear(6, 6)
        self.last.weight = self.first.weight
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        x = self.first(x)
        return self.last(self.norm(self.cell(x.tanh(), x)))
"""


def test_a_layer_s_gradients_are_those_of_its_call_alone(write_source: WriteSource) -> None:
    made = draft.write_draft(write_source(TIED), NUMBERS, TIED)
    assert made.unproven == ()
