"""What is pasted: verdict, layers in both precisions, losses, versions and command; no text is markup."""

import math

from reprod_align.page import CurvePlot, Figures, Layer, Page, Table
from reprod_align.page.outputs import escape, make_table, quote, render_markdown, show_cells
from tests.page.pages import HOSTILE, make_layers, make_page


def test_every_part_is_in_the_text() -> None:
    page = make_page()
    page.layers = [Layer("fc", "fc", forward=Figures(1e-17, 2e-16, 3e-16), rounded=Figures(1e-8, 2e-7, 1e-7),
                         backward=Figures(math.nan, 4e-15, 1e-15))]  # fmt: skip
    page.tables = [Table("Values", ("name", "PyTorch"), [("acc", "0.5")], paste=True), *page.tables]
    page.facts = [("date", "today"), ("torch", "2.13"), ("command", "reprod-align pair a.py")]
    text = render_markdown(page)
    for line in (
        "### ❌ `mine.py`: diverges",
        "**First difference**: forward: `layers.3.norm`: its inputs agree and its output does not",
        "- PyTorch `net.py:1`: `one(x)`",
        "- Paddle `net.py:2`: `two(x)`",
        "- output: 3 of 8 predictions flip",
        "| 1 forward | passed | failed | `logits` | 1.0e-02 |",
        "| stage | layer | mean (float64) | max (float64) | mean (float32) | max (float32) |",
        "| forward | `fc` | 1.0e-17 | 2.0e-16 | 1.0e-08 | 2.0e-07 |",
        "| backward | `fc` |  | 4.0e-15 |  |  |",
        "| step | loss, PyTorch | Paddle | difference |",
        "| 1 | 0.5 | 0.5 | 0.0e+00 |",
        "| acc | 0.5 |",
        "**Not judged**:",
        "- an output",
        "date today, torch 2.13",
        "Command: `reprod-align pair a.py`",
    ):
        assert line in text.splitlines(), line
    assert "w0" not in text  # of tables only those that belong there


def test_a_page_that_passed() -> None:
    text = render_markdown(Page("a.py", "faithful", True, "1 comparison, all within tolerance"))
    assert text == "### ✅ `a.py`: faithful\n\n1 comparison, all within tolerance\n"


def test_a_large_model_keeps_what_differs() -> None:
    page = Page("a", "diverges", False, layers=make_layers(1000, 998))
    text = render_markdown(page)
    assert len(text.encode()) < 60_000  # a comment of GitHub's takes 65,536 characters
    assert "`layers.998.norm`" in text and "by layer (4001 rows)" in text and "rows more" in text


def test_long_curves_are_thinned() -> None:
    steps = list(range(500))
    page = Page("a", "b", True, curves=[CurvePlot("loss", steps, steps, steps)])
    assert render_markdown(page).count("\n| ") <= 24


def test_hostile_text_is_no_markup() -> None:
    said = escape(f"{HOSTILE}@team [a](b) |")
    assert "<script" not in said.replace("\\<", "") and "@" not in said and "\x1b" not in said
    assert "\\[a\\](b) \\|" in said and "\n" not in said
    assert quote("a`b|c\n") == "`a'b\\|c\\n`" and quote("") == ""


def test_tables_and_numbers() -> None:
    assert make_table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert show_cells(Figures(math.nan, math.inf, 0.0)) == ["", "inf"]
    assert (show_cells(Figures(0.5, 1.0, 0.0)), show_cells(None)) == (
        ["5.0e-01", "1.0e+00"],
        ["", ""],
    )
