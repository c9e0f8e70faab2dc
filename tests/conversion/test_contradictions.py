"""A map that contradicts itself is refused, in one line that names the rules."""

import json
from pathlib import Path
from typing import Any

from reprod_align.conversion.weight_map import Rule, find_contradiction, read_map
from reprod_align.errors import WeightsError

import pytest

A: dict[str, Any] = {"torch": "a", "paddle": "a"}
B: dict[str, Any] = {"torch": "b", "paddle": "b"}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([A, B, A], "rules 1 and 3 are both for a -> a: keep one"),
        ([A, A | {"transposed": True}], "rules 1 and 2 are both for a -> a: keep one"),
        ([A, {"torch": "a", "paddle": []}], "rule 2 says that a has no counterpart, and rule 1"),
        ([{"torch": [], "paddle": "a"}, A], "rule 1 says that a has no counterpart, and rule 2"),
        ([{"torch": [], "paddle": ["a", "b"], "parts": [1, 1]}], "has a rule of its own"),
        ([{"torch": ["a", "b"], "paddle": []}], "has a rule of its own"),
        ([A | {"torch_shapes": [[6, 4]], "paddle_shapes": [[5, 5]]}], "hold 24 elements in PyTorch and 25"),
        ([A | {"torch_shapes": [[6, 4]], "paddle_shapes": [[-1, 4]]}], "lists of whole numbers"),
        ([A | {"torch_shapes": [[6, 4]], "paddle_shapes": [[10**30]]}], "lists of whole numbers"),
    ],
)  # fmt: skip
def test_rules_that_contradict_each_other(tmp_path: Path, rules: list[Any], message: str) -> None:
    (tmp_path / "map").write_text(json.dumps({"format": 1, "rules": rules}))
    with pytest.raises(WeightsError, match=message):
        read_map(tmp_path / "map")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tide": {}}, "'tide' is unknown; known: format, rules, tied"),
        ({"tied": {"pytorch": {"x": "a"}}}, '"tied" must be'),
        ({"tied": {"torch": {"x": "z"}}}, "x is the second name of z, which no rule has"),
        ({"tied": {"paddle": {"b": "a"}}}, "b is the second name of a, and a rule has it too"),
        ({"tied": {"paddle": {"a": "a"}}}, "a is the second name of a, and a rule has it too"),
        ({"tied": {"paddle": {"x": "a", "y": "x"}}}, "y is the second name of x, which no rule has"),
    ],
)  # fmt: skip
def test_second_names_that_stand_for_nothing(
    tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    (tmp_path / "map").write_text(json.dumps({"format": 1, "rules": [A, B]} | more))
    with pytest.raises(WeightsError, match=message):
        read_map(tmp_path / "map")


def test_two_rules_may_share_a_tensor() -> None:
    rules = [Rule(("a",), ("x",)), Rule(("b",), ("x",)), Rule(("a",), ("y",)), Rule(("n",), ())]
    assert find_contradiction(rules, {"torch": {"second": "a"}}) == ""
