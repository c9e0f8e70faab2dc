"""The page of two logs: the verdict, the curves that diverge first, a table."""

from reprod_align.curves import compare_curves
from reprod_align.curves.page import MOST_CURVES, choose_curves, make_page
from reprod_align.curves.report import Explanation, Replay, Swapped
from reprod_align.page.html import render_page

STEPS = [1.0, 0.5, 0.25, 0.2, 0.15, 0.1, 0.1, 0.1]


def test_the_curve_that_parts_is_drawn_with_its_step() -> None:
    report = compare_curves(
        {"lr": STEPS, "loss": STEPS}, {"lr": STEPS, "loss": [*STEPS[:2], *[9.0] * 6]}
    )
    page = make_page(report)
    assert (page.verdict, page.passed) == ("parts", False)
    assert page.sentence == "loss leaves the noise band at step 3"
    assert [(curve.name, curve.first) for curve in page.curves] == [("loss", 3), ("lr", None)]
    assert page.tables[0].failed == {1} and any("parts at step 3" in text for text in page.remarks)
    assert "第 3 步" in render_page(page)


def test_of_many_curves_the_first_to_diverge_are_drawn() -> None:
    first = {f"c{n}": STEPS for n in range(MOST_CURVES + 3)}
    report = compare_curves(first, first | {"c14": [5.0] * 8})
    assert [one.name for one in choose_curves(report)][0] == "c14"
    page = make_page(report)
    assert len(page.curves) == MOST_CURVES
    assert f"{MOST_CURVES} of 15 curves are drawn, those that diverge first" in page.remarks


def test_who_makes_the_gap_is_a_table() -> None:
    swapped = (Swapped("data", 1.0, 0.0), Swapped("optimizer", 0.0, 1.0))
    replays = (Replay("PyTorch", None), Replay("Paddle", None))
    explanation = Explanation(
        "loss", 3, 1.0, 0, 0, 3, replays, 1.0, 0.0, 1.0, 1e-9, swapped, None, (), ()
    )
    page = make_page(compare_curves({"loss": STEPS}, {"loss": STEPS}), explanation)
    table = page.tables[1]
    assert table.title == "Which part of a step makes loss differ at step 3" and table.failed == {1}
    assert table.rows[1] == ("optimizer", "0.0e+00", "1.0e+00")
