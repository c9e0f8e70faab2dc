"""The search on calls made by hand: which call of the port is the first to give something else."""

from collections.abc import Sequence
from dataclasses import replace

from reprod_align.alignment.lines.divergence import (
    Difference,
    find_cut,
    find_difference,
    find_places,
    tell_the_same,
)
from reprod_align.alignment.lines.graph import KnownValues, are_alike, are_equal, name_of
from reprod_align.alignment.lines.origin import describe_difference, find_origin
from reprod_align.model.source import RETURN, Operation, SourceLine

import numpy as np
import pytest

X = np.random.default_rng(0).normal(size=(3, 4))
Array = np.ndarray


def call(
    name: str, line: int, inputs: Sequence[Array], output: Array, flows: bool = True
) -> Operation:
    return Operation(name, SourceLine("x.py", line, f"{name}()"), ("", 0), inputs, [output], flows)


def returned(line: int, value: Array) -> Operation:
    return Operation(RETURN, SourceLine("x.py", line, "return y"), ("", 0), [value], [value])


def search(ours: list[Operation], theirs: list[Operation]) -> Difference | None:
    ends = ours[-1], theirs[-1]
    return find_difference(ours, theirs, ends[0].inputs, ends[1].inputs[0], ends, 1e-9)


def test_the_first_call_that_differs_is_found_not_the_later_ones() -> None:
    ours = [call("exp", 1, [X], np.exp(X)), call("add", 2, [np.exp(X)], np.exp(X) + 1),
            returned(3, np.exp(X) + 1)]  # fmt: skip
    theirs = [call("sin", 1, [X], np.sin(X)), call("add", 2, [np.sin(X)], np.sin(X) + 1),
              returned(3, np.sin(X) + 1)]  # fmt: skip
    found = search(ours, theirs)
    assert found is not None and (found.ours, found.theirs) == (ours[0], theirs[0])
    assert found.is_sure


def test_another_way_to_the_same_value_is_no_difference() -> None:
    """Paddle takes two steps where PyTorch takes one; the fault comes after them."""
    y = X * X + X
    ours = [call("f", 1, [X], y), call("exp", 2, [y], np.exp(y)), returned(3, np.exp(y))]
    theirs = [call("mul", 1, [X], X * X), call("add", 2, [X * X, X], y),
              call("cos", 3, [y], np.cos(y)), returned(4, np.cos(y))]  # fmt: skip
    found = search(ours, theirs)
    assert found is not None and found.theirs is theirs[2] and found.ours is ours[1]


def test_a_missing_and_an_extra_call_are_told_apart() -> None:
    with_call = [call("exp", 1, [X], np.exp(X)), returned(2, np.exp(X))]
    without = [call("clone", 1, [X], X), returned(2, X)]
    lacking, extra = search(with_call, without), search(without, with_call)
    assert lacking is not None and (lacking.how, lacking.ours) == ("lacking", with_call[0])
    assert extra is not None and (extra.how, extra.theirs) == ("extra", with_call[0])


def test_a_layout_is_blamed_before_the_call_that_uses_it() -> None:
    right, wrong = X.reshape(2, 2, 3).transpose(0, 2, 1), X.reshape(2, 3, 2)
    ours = [call("permute", 1, [X], right), call("exp", 2, [right], np.exp(right).cumsum(1)),
            returned(3, np.exp(right).cumsum(1))]  # fmt: skip
    theirs = [call("reshape", 1, [X], wrong), call("exp", 2, [wrong], np.exp(wrong).cumsum(1)),
              returned(3, np.exp(wrong).cumsum(1))]  # fmt: skip
    found = search(ours, theirs)
    assert found is not None and (found.how, found.theirs) == ("layout", theirs[0])


def test_the_call_that_stops_the_gradient_is_found_on_either_side() -> None:
    flowing = [call("exp", 1, [X], np.exp(X)), call("add", 2, [np.exp(X)], np.exp(X) + 1)]
    stopped = [flowing[0], call("detach", 2, [np.exp(X)], np.exp(X), False), flowing[1]]
    assert find_cut(flowing, flowing, 1e-9) is None
    there, here = find_cut(flowing, stopped, 1e-9), find_cut(stopped, flowing, 1e-9)
    assert there is not None and there.theirs is stopped[1]
    assert here is not None and here.ours is stopped[1]
    assert describe_difference(here) == "the gradient stops at `detach()` in PyTorch"
    only = [call("exp", 1, [X], np.exp(X), False)]
    found = find_cut(flowing, only, 1e-9)
    assert found is not None and found.how == "cut"
    assert describe_difference(found) == "the gradient stops at `exp()` in Paddle"


def test_values_are_found_in_order_and_in_any_order() -> None:
    known = KnownValues([X, X > 0], 1e-9)
    assert known.find_equal(X + 1e-15) == [0] and known.find_equal((X > 0).astype(np.int64)) == [1]
    assert known.find_equal(X.T) == [] and known.find_alike(X.T) == [0]
    assert known.knows(X.reshape(-1)) and not known.knows(2 * X)
    assert are_alike(X, X[::-1], 1e-9) and not are_equal(X, X[::-1], 1e-9)


def test_a_constant_that_differs_leads_to_where_it_was_set(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "x.py"
    file.write_text("def f(x):\n    scale = 3.0\n    y = x\n    return y * scale\n")
    line = SourceLine(str(file), 4, "y * scale")
    theirs = Operation("mul", line, ("", 0), [X], [3 * X], True, [3.0], {"scale": 3.0})
    ours = Operation("mul", SourceLine("t.py", 9, "y * 2"), ("", 0), [X], [2 * X], True, [2.0])
    places = find_origin(Difference("call", ours, theirs, True))
    assert [place.line for place in places if place] == [9, 2]
    assert (
        describe_difference(Difference("call", ours, theirs, True))
        == "`y * scale` in Paddle, `y * 2` in PyTorch"
    )


def test_masks_of_every_convention_and_scores_under_them_are_equal() -> None:
    hidden = X > 0
    masks = [np.where(hidden, value, 0.0) for value in (-1e4, np.finfo(np.float64).min, -np.inf)]
    for mask in masks[1:]:
        assert are_equal(masks[0], mask, 1e-9) and are_equal(X + masks[0], X + mask, 1e-9)
        assert KnownValues([X + masks[0]], 1e-9).find_equal(X + mask)
    weak = np.where(hidden, -1.0, 0.0)
    assert not are_equal(masks[0], weak, 1e-9) and not are_equal(X + masks[0], X + weak, 1e-9)


def test_one_name_stands_for_both_frameworks() -> None:
    names = [
        name_of(call(name, 1, [X], X)) for name in ("__rsub__", "sub", "subtract", "cat", "concat")
    ]
    assert names == ["subtract"] * 3 + ["concat"] * 2


def test_another_part_of_what_a_call_returned_is_followed_through_calls_that_change_nothing() -> (
    None
):
    parts = X[:1], X[1:]
    given = Operation(
        "encoder", SourceLine("x.py", 1), ("", 0), [X], parts, True, child=("encoder", 0)
    )
    ours = [given, call("dropout", 3, [parts[1]], parts[1]), returned(4, parts[1])]
    theirs = [given, call("dropout", 3, [parts[0]], parts[0]), returned(4, parts[0])]
    found = search(ours, theirs)
    assert found is not None and (found.how, found.used, found.made) == ("value", theirs[1], given)


def test_a_call_before_one_that_the_reference_makes_of_the_same_is_extra() -> None:
    """Unless the reference makes such a call somewhere else, as a scale after a product."""
    w = X.T
    ours = [call("matmul", 1, [X, w], X @ w), call("exp", 2, [X @ w], np.exp(X @ w)),
            returned(3, np.exp(X @ w))]  # fmt: skip
    y = 0.3 * X
    theirs = [call("mul", 1, [X], y), call("matmul", 2, [y, w], y @ w),
              call("exp", 3, [y @ w], np.exp(y @ w)), returned(4, np.exp(y @ w))]  # fmt: skip
    found = search(ours, theirs)
    assert found is not None and (found.how, found.theirs) == ("extra", theirs[0])
    assert found.is_sure
    z = 0.5 * (X @ w)
    scaled = [
        ours[0],
        call("div", 2, [X @ w], z),
        call("exp", 3, [z], np.exp(z)),
        returned(4, np.exp(z)),
    ]
    other = search(scaled, theirs)
    assert other is None or not (other.how == "extra" and other.is_sure)


HIDDEN_PLACES = np.triu(np.ones((2, 1, 5, 5)), 1) * -1e9
HIDDEN_PLACES[1, 0, :, 4] = -1e9


@pytest.mark.parametrize("shape", [(2, 1, 5, 5), (2, 5, 5), (2, 3, 5, 5), (6, 5, 5)])
@pytest.mark.parametrize("is_same", [True, False])
def test_masks_are_the_same_with_heads_in_an_axis_of_their_own_or_in_the_first(
    shape: tuple[int, ...], is_same: bool
) -> None:
    heads = (
        np.broadcast_to(HIDDEN_PLACES, (2, 3, 5, 5)) if 3 in shape or 6 in shape else HIDDEN_PLACES
    )
    found, due = find_places(heads.reshape(shape)), find_places(HIDDEN_PLACES)
    assert found is not None and due is not None
    if not is_same:
        found = replace(found, low=~found.low)
    assert tell_the_same(found, due) is is_same
