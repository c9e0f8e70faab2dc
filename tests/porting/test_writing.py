"""The parts of the writer: settings of layers, arguments, trials, layouts, decorators."""

import ast
import sys
from functools import wraps
from pathlib import Path

from reprod_align.explain.code import Code
from reprod_align.porting.calls import layers, record, rows, slots, trial, values
from reprod_align.porting.calls.names import Scope
from reprod_align.porting.gathering import modules, reading

import paddle
import pytest
import torch

_AFFINE = "(self._weight_attr is not False)"


@pytest.mark.parametrize(
    ("theirs", "ours", "name", "values", "text"),
    [
        ("Conv2d", "Conv2D", "stride", [(1, 1)], "self._stride"),
        ("Conv2d", "Conv2D", "weight", [...], ""),
        ("Conv2d", "Conv2D", "mine", [1], ""),
        ("Conv2d", "Conv2D", "transposed", [False, False], "False"),
        ("Linear", "Linear", "in_features", [3, 4], "self.weight.shape[0]"),
        ("BatchNorm2d", "BatchNorm2D", "momentum", [0.1], "(1 - self._momentum)"),
        ("BatchNorm2d", "BatchNorm2D", "num_batches_tracked", [...], "None"),
        ("LayerNorm", "LayerNorm", "elementwise_affine", [True, False], _AFFINE),
        ("BatchNorm2d", "BatchNorm2D", "affine", [True, False], _AFFINE),
        ("GroupNorm", "GroupNorm", "affine", [True, False], _AFFINE),
        ("MaxPool2d", "MaxPool2D", "dilation", [1, 2], ""),
    ],
)
def test_a_setting_is_read_where_paddle_keeps_it(
    theirs: str, ours: str, name: str, values: list[object], text: str
) -> None:
    kinds = getattr(torch.nn, theirs), f"paddle.nn.{ours}", getattr(paddle.nn, ours)
    assert layers.write_setting(name, *kinds, values) == text


def call_in(text: str) -> ast.Call:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


def test_positions_that_are_left_go_to_the_starred_argument() -> None:
    made = slots.Slots(call_in("f(a, *b, indexing='ij')"), None, ast.unparse, ast.unparse)
    row, _ = rows.read_rows()["torch.meshgrid"]
    (found,) = made.fill(row)
    assert (found.text, found.trial) == ("paddle.meshgrid(a, *b)", "paddle.meshgrid(a0, *star)")
    plain = rows.read_rows()["torch.roll"][0]
    assert not list(made.fill(plain))


def test_what_gives_another_result_is_not_proven() -> None:
    node, three = call_in("torch.clamp(x, *r, hi)"), torch.arange(3.0)
    fact = record.Fact(
        {"torch.clamp"}, [values.RecordedCall((three, 0.5, 1.5), {}, three.clamp(0.5, 1.5))]
    )
    assert trial.prove(node, "paddle.clip(a0, *star, a2)", "torch.clamp", fact, {})
    assert trial.prove(node, "paddle.clip(a0, 0.0, a2)", "torch.clamp", fact, {}) is False
    mixed = record.Fact(calls=[values.RecordedCall((torch.arange(3), three), {}, None)])
    assert not trial.operates(mixed, "*")
    assert trial.operates(mixed, "*", "a.astype(b.dtype) * b")


def test_only_a_weight_that_is_read_as_a_matrix_keeps_its_layout() -> None:
    code = Code(
        "import torch\na = torch.nn.Linear(2, 3)\nb = torch.nn.Linear(2, 3)\nc = a.weight @ x\n"
    )
    record.number_nodes(code.tree)
    first, second = (
        node._site
        for node in code.nodes
        if isinstance(node, ast.Call)  # type: ignore[attr-defined]
    )
    (read,) = (
        node._site  # type: ignore[attr-defined]
        for node in code.nodes
        if isinstance(node, ast.Attribute) and node.attr == "weight"
    )
    facts = {site: record.Fact({"torch.nn.Linear"}) for site in (first, second)}
    facts[read] = record.Fact(kinds={"torch.nn.Linear"}, owners={first})
    assert layers.Layouts(code, facts, Scope(code.tree)).exposed == {first}


def note(made: object) -> object:
    return made


def double(function):  # type: ignore[no-untyped-def]
    @wraps(function)
    def inner(*given):  # type: ignore[no-untyped-def]
        return 2 * function(*given)

    return inner


@note
class Noted:
    @note
    @double
    def run(self) -> int:
        return 1


def test_decorators_that_change_nothing_are_found() -> None:
    path = Path(__file__)
    module = modules.Module(__name__, path, Code(path.read_text(encoding="utf-8")))
    (noted,) = (one for one in module.code.tree.body if getattr(one, "name", "") == "Noted")
    found = modules.list_idle(module, noted, reading.Executed())
    assert [ast.unparse(one) for one in found] == ["note", "note"]
    assert sys.modules[__name__].Noted().run() == 2
