"""Rules are exact inverses, whatever the shapes; maps survive their file and refuse what is wrong."""

import json
from pathlib import Path
from typing import Any

from reprod_align.conversion.plan import Loader, list_departures, make_plan
from reprod_align.conversion.weight_map import (
    WeightMap,
    derive_map,
    describe_state,
    find_contradiction,
    find_shapes,
    read_map,
    work_with,
    write_map,
)
from reprod_align.errors import MissingInputError, WeightsError
from reprod_align.match.tensor_pair import TensorPair, find_turns
from reprod_align.weights.stored import MemoryBytes, Stored
from tests.conversion.pairs import make_pair

import numpy as np
import pytest

Shapes = list[tuple[int, ...]]


def one(torch: tuple[int, ...], paddle: tuple[int, ...], axes: tuple[str, str]) -> TensorPair:
    turned = find_turns(torch, paddle, *axes)[:1]
    return TensorPair(("t",), ("p",), tuple(turned), torch_shapes=(torch,), paddle_shapes=(paddle,))


def fused(torch: str, paddle: str, ours: Shapes, theirs: Shapes, turn: bool, parts: tuple[int, ...],
          **more: Any) -> TensorPair:  # fmt: skip
    """Return the pair of tensors of which one side holds several, each named by one letter."""
    shapes = {"torch_shapes": tuple(ours), "paddle_shapes": tuple(theirs)}
    return TensorPair(tuple(torch), tuple(paddle), (turn,) * len(paddle), parts, **shapes, **more)


PAIRS = {
    "as it is": one((3, 4), (3, 4), ("", "")),
    "transposed": one((3, 4), (4, 3), ("oi", "io")),
    "one row": one((1, 4), (4, 1), ("oi", "io")),
    "a convolution as a Linear": one((5, 3, 1, 1), (3, 5), ("oi", "io")),
    "patches": one((5, 3, 2, 2), (12, 5), ("oi", "io")),
    "flat": one((2, 3), (6,), ("", "")),
    "merged heads": one((4, 2, 3), (4, 6), ("", "")),
    "cut": fused("t", "qk", [(6, 4)], [(4, 3)] * 2, True, (3, 3)),
    "cut, uneven": fused("t", "qk", [(8, 4)], [(4, 6), (4, 2)], True, (6, 2)),
    "cut by heads": fused("t", "qk", [(12, 4)], [(6, 4)] * 2, False, (6, 6), groups=3),
    "joined": fused("qk", "p", [(3, 4)] * 2, [(4, 6)], True, (3, 3)),
    "joined, turned": fused("qk", "p", [(4, 3)] * 2, [(4, 6)], True, (3, 3), turned=True),
    "cut, turned": fused("t", "qk", [(4, 6)], [(4, 3)] * 2, True, (3, 3), turned=True),
    "biases": fused("t", "qkv", [(6,)], [(2,)] * 3, False, (2, 2, 2)),
}


@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("dtype", ["u2", "f4", "f8"])
def test_a_rule_does_what_align_loads_and_back(tmp_path: Path, case: str, dtype: str):
    pair = PAIRS[case]
    rule, ours, theirs = pair.drop_shapes(), list(pair.torch_shapes), list(pair.paddle_shapes)
    source = np.random.default_rng(1)
    arrays = [source.integers(0, 60000, shape).astype(dtype) for shape in ours]
    expected = pair.to_paddle(dict(zip(pair.torch, arrays, strict=True)))
    made = rule.make(arrays, "paddle")
    for array, name, shape in zip(made, pair.paddle, theirs, strict=True):
        assert array.shape == shape and array.dtype == dtype
        assert array.tobytes() == expected[name].tobytes()
    for back in (rule.make(made, "torch"), pair.to_torch(expected).values()):
        for array, given in zip(back, arrays, strict=True):
            assert array.shape == given.shape and array.tobytes() == given.tobytes()
    assert find_shapes(rule, ours, "paddle") == theirs
    assert find_shapes(rule, theirs, "torch") == ours
    found = WeightMap((rule,), {"torch": {"second": pair.torch[0]}, "paddle": {}})
    write_map(tmp_path / "map", found)
    assert read_map(tmp_path / "map") == found


def test_a_rule_of_a_small_model_fits_a_large_one_where_shapes_do_not_matter():
    rule = PAIRS["cut"].drop_shapes()
    assert find_shapes(rule, [(60, 7)], "paddle") == [(7, 30)] * 2
    with pytest.raises(WeightsError, match="61 rows can't be cut into 2 equal parts"):
        find_shapes(rule, [(61, 7)], "paddle")
    for case in ("cut, uneven", "cut by heads", "merged heads"):
        rule = PAIRS[case].drop_shapes()
        larger = [(2 * shape[0], *shape[1:]) for shape in rule.torch_shapes]
        with pytest.raises(WeightsError, match="the map holds for models of that shape alone"):
            find_shapes(rule, larger, "paddle")


def test_what_a_rule_refuses():
    turned = TensorPair(("t",), ("p",), (True,))
    with pytest.raises(WeightsError, match="only a matrix can be transposed"):
        turned.make([np.zeros((2, 2, 2))], "paddle")
    joined = WeightMap((TensorPair(("q", "k"), ("p",), (False,), (1, 1)),))
    double = Stored("float64", (1,), MemoryBytes(np.ones(1).tobytes()))
    plan = make_plan(joined, {"q": keep([1]), "k": double}, "paddle")
    assert plan.faults == ["wrong dtype: q + k are float32, float64"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"torch": "a"}, 'expected {"torch": name or names'),
        ({"torch": "a", "paddle": 3}, "names must be texts"),
        ({"torch": [], "paddle": []}, "names must be texts"),
        ({"torch": "a", "paddle": "b", "transpose": True}, "'transpose' is unknown; known: groups"),
        ({"torch": "a", "paddle": "b", "transposed": "yes"}, '"transposed" must be true, false'),
        ({"torch": "a", "paddle": ["b", "c"]}, "needs \"parts\""),
        ({"torch": "a", "paddle": ["b", "c"], "parts": [0, 1]}, "whole numbers above 0"),
        ({"torch": "a", "paddle": ["b", "c"], "parts": [2, 3], "groups": 2}, "divide every part"),
        ({"torch": "a", "paddle": "b", "torch_shapes": [[2]]}, "both sides"),
        ({"torch": "a", "paddle": "b", "value": 3}, "a counter without a counterpart"),
        ([], "expected"),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_named(tmp_path: Path, rule: object, message: str):
    good = {"torch": "x", "paddle": "x"}
    (tmp_path / "map").write_text(json.dumps({"format": 1, "rules": [good, rule]}))
    with pytest.raises(WeightsError) as raised:
        read_map(tmp_path / "map")
    assert "rule 2" in str(raised.value) and message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read as JSON"), ("[]", 'with "format": 1'), ('{"a": "b"}', 'with "format": 1'),
        ('{"format": 1, "rules": []}', "expected a list of rules"),
        ('{"format": 1, "rules": [1], "tied": {"torch": [1]}}', '"tied" must be'),
    ],
)  # fmt: skip
def test_a_wrong_map_is_named(tmp_path: Path, text: str, message: str):
    (tmp_path / "map").write_text(text)
    with pytest.raises(WeightsError, match=message):
        read_map(tmp_path / "map")
    with pytest.raises(MissingInputError):
        read_map(tmp_path / "other")


def test_counters_and_departures(tmp_path: Path):
    rules = (TensorPair(("n",), ()), TensorPair(("a",), ("b",), (True,)))
    found = WeightMap(rules, counters={"n": 7})
    write_map(tmp_path / "map", found)
    assert read_map(tmp_path / "map") == found
    other = WeightMap((TensorPair(("a",), ("b",), (False,)),))
    assert list(list_departures(other, found)) == [
        "the map says a -> b (as it is), the models a -> b (transposed)"
    ]


def test_a_plan_reads_one_rule_at_a_time():
    held = Stored("float32", (2, 3), MemoryBytes(np.arange(6, dtype="f4").tobytes()))
    found = WeightMap(
        (TensorPair(("a",), ("b",), (True,)), TensorPair((), ("own",))),
        {"torch": {}, "paddle": {"b2": "b"}},
    )
    plan = make_plan(found, {"a": held}, "paddle", own={"own": np.array([1, 2])})
    assert [(e.name, e.shape, e.tied_to) for e in plan.entries] == [
        ("b", (3, 2), ""), ("own", (2,), ""), ("b2", (3, 2), "b")]  # fmt: skip
    load = Loader(plan)
    assert load("b").tolist() == [[0, 3], [1, 4], [2, 5]]
    assert load("own").tolist() == [1, 2]


def test_what_a_pair_yields():
    with work_with(make_pair("three to qkv")) as models:
        found, lacking = models.derive()
        saved = describe_state(models.pair.torch)
        again = derive_map(models._pair().pairing, saved, describe_state(models.pair.paddle))
    assert lacking == {} and again[0] == found
    assert set(found.names("torch")) == set(saved.names)
    assert {rule.words for rule in found.rules} == {"transposed, 3 joined", "3 joined"}


def keep(numbers: list[float]) -> Stored:
    return Stored("float32", (len(numbers),), MemoryBytes(np.array(numbers, "f4").tobytes()))


@pytest.mark.parametrize(
    ("rules", "source", "passes"),
    [
        ([TensorPair(("a",), ("x",), (False,)), TensorPair(("b",), ("x",), (False,))],
         {"a": keep([1, 2]), "b": keep([1, 2])}, True),
        ([TensorPair(("a",), ("x",), (False,)), TensorPair(("b",), ("x",), (False,))],
         {"a": keep([1, 2]), "b": keep([1, 3])}, False),
        ([TensorPair(("a",), ("x", "x"), (False,) * 2, (1, 1))], {"a": keep([1, 1])}, True),
        ([TensorPair(("a",), ("x", "x"), (False,) * 2, (1, 1))], {"a": keep([1, 2])}, False),
        ([TensorPair(("a",), ("x",), (False,)), TensorPair(("a",), ("x", "y"), (False,) * 2, (1, 1))],
         {"a": keep([1, 1])}, False),
    ],
)  # fmt: skip
def test_what_two_parts_make_of_one_tensor_must_be_the_same(
    rules: list[TensorPair], source: dict[str, Stored], passes: bool
):
    plan = make_plan(WeightMap(tuple(rules)), source, "paddle")
    assert (plan.faults == []) is passes, plan.faults
    if not passes:
        assert "is one tensor in the other model" in plan.faults[0]
    assert len({entry.name for entry in plan.entries}) == len(plan.entries)


def test_a_rule_that_does_not_fit_is_a_fault():
    rule = TensorPair(("a",), ("b",), (False,), torch_shapes=((6,),), paddle_shapes=((2, 2),))
    plan = make_plan(WeightMap((rule,)), {"a": keep([1] * 6)}, "paddle")
    assert plan.faults == ["misshapen: a: the map's rule does not fit (6,)"]


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
    rules = [
        TensorPair(("a",), ("x",)),
        TensorPair(("b",), ("x",)),
        TensorPair(("a",), ("y",)),
        TensorPair(("n",), ()),
    ]
    assert find_contradiction(rules, {"torch": {"second": "a"}}) == ""
