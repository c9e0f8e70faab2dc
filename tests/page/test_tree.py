"""The tree: in call order, with names that are no modules between, and marks that reach the top."""

import math

from reprod_align.page import Figures, Layer
from reprod_align.page.html import flatten_tree
from tests.page.pages import APART, EXACT


def test_modules_stand_in_call_order_under_their_parents() -> None:
    layers = [Layer("", ""), Layer("b", "b"), Layer("a.0", "x.0"), Layer("b.c", "b.c")]
    rows = flatten_tree(layers, 1e-9)
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (0, "", ""), (1, "b", ""), (2, "b.c", ""), (1, "a", ""), (2, "a.0", "x.0"),
    ]  # fmt: skip


def test_what_differs_inside_shows_outside() -> None:
    layers = [
        Layer("", "", forward=EXACT),
        Layer("a.0", "a.0", forward=APART),
        Layer("b", "b", forward=EXACT),
    ]
    assert [row[-1] for row in flatten_tree(layers, 1e-9)] == [1, 1, 1, 0]
    layers[1].failed = True
    assert [row[-1] for row in flatten_tree(layers, 1e-9)] == [1, 1, 2, 0]


def test_nan_differs_and_is_told_as_text() -> None:
    (row,) = flatten_tree([Layer("", "", forward=Figures(math.nan, math.nan, math.nan))], 1e-9)
    assert row[8] == "nan" and row[-1] == 1


def test_nothing_is_marked_without_a_limit() -> None:
    assert flatten_tree([Layer("", "", forward=APART)], math.inf)[0][-1] == 0


def test_names_are_printable() -> None:
    rows = flatten_tree([Layer("a\x1b", "b\u202e")], 1e-9)
    assert rows[1][1:4] == ["a\\x1b", "a\\x1b", "b\\u202e"]
