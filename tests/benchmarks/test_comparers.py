"""benchmarks/comparers.py: the pages show its pairs, and what two of the comparers say of them."""

from benchmarks.comparers import COMPARERS, ask, ask_ours, ask_reprod_log, make_pairs
from tests.conftest import REPOSITORY

import numpy as np


def read_table(page: str) -> list[list[str]]:
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8").split("<!-- comparers -->")[1]
    lines = text.strip().split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_ours_is_right_on_every_pair() -> None:
    assert all(ask_ours(*pair) == same for _, same, *pair in make_pairs())


def test_the_page_shows_the_pairs_and_the_comparers() -> None:
    head, _, *rows = read_table("comparison.md")
    assert head == ["pair", *COMPARERS]
    with np.errstate(invalid="ignore"):
        for row, (name, same, *pair) in zip(rows, make_pairs(), strict=True):
            assert row[0] == name and row[-1] == ask(ask_ours, (pair[0], pair[1]), same)
            assert row[1] == ask(ask_reprod_log, (pair[0], pair[1]), same), name


def test_both_languages_show_the_same_verdicts() -> None:
    words = {"agree": "一致", "differ": "不同", "**agree**": "**一致**", "**differ**": "**不同**"}
    english, chinese = read_table("comparison.md")[2:], read_table("comparison_cn.md")[2:]
    assert [[words[cell] for cell in row[1:]] for row in english] == [row[1:] for row in chinese]


def test_what_is_not_installed_gets_a_question_mark() -> None:
    def absent(expected: object, actual: object) -> bool:
        raise ImportError

    assert ask(absent, (np.ones(1, np.float32), np.ones(1, np.float32)), True) == "?"
