"""The verdict's sentence never claims more than was shown."""

from dataclasses import replace

from reprod_align.significance import compare_accuracies, compare_runs
from reprod_align.significance.report import EXIT_CODES, Interval, NativeReport
from tests.significance.test_significance import Task

import pytest


def report(**changed: object) -> NativeReport:
    """Return the report on five seeds a side, whose seeds' result is `changed`."""
    found = compare_accuracies([0.88, 0.89, 0.9, 0.87, 0.88], [0.88, 0.9, 0.89, 0.88, 0.87])
    return replace(found, seeds=replace(found.seeds, **changed))


def test_undecided_names_what_is_possible_and_how_many_seeds_would_do() -> None:
    words = report(interval=Interval(-0.0064, 0.011)).words
    assert words.startswith("undecided, 5 and 5 seeds: no difference seen, yet one may exist: ")
    assert "anything from -0.64% to 1.10% is compatible; about " in words
    assert "seeds a side could show 0.15%" in words


def test_a_difference_inside_a_margin() -> None:
    margins = report().seeds.margins
    shown = (margins[0], replace(margins[1], equivalent=True))
    assert report(margins=shown).verdict == "equivalent"
    assert report(margins=shown).words.endswith(
        "the mean accuracies differ by less than 0.25% (TOST)"
    )
    seen = report(margins=shown, p=1e-4)
    assert seen.verdict == "different" and EXIT_CODES[seen.verdict] == 1
    assert seen.words.endswith("a difference was seen, by less than 0.25% on average")


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_single_run_says_so(seeds: int) -> None:
    task = Task(20)
    found = compare_runs(task.labels, task.runs(seeds), task.runs(seeds))
    few = "a single run says nothing about others; for the first pair anything from"
    assert (few in found.words) == (seeds == 1)
    assert ("train at least two seeds a side, and better five" in found.words) == (seeds == 1)
