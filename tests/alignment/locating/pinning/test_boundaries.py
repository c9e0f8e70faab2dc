"""Boundaries that a port draws elsewhere, and what it costs to tell them from faults."""

from unittest import mock

from reprod_align.alignment.locating import pinning
from reprod_align.alignment.locating.pinning import find_moved
from tests.alignment.locating.pinned import pinned
from tests.alignment.restructured import BATCH, make_paddle, make_torch

import pytest

MOVED = ["fc norm", "fc tanh()"], ["fc", "norm fc tanh()"]
Found = tuple[set[tuple[str, str]], int]


def find(ours: list[str], theirs: list[str]) -> Found:
    """Return the modules at whose boundaries the port keeps its own numbers, and how many runs it took."""
    found, runs = set[tuple[str, str, str]](), 0

    def note(first, rerun, find_places):
        def count(boundaries):
            nonlocal runs
            runs += 1
            return rerun(boundaries)

        moved = find_moved(first, count, find_places)
        found.update(moved)
        return moved

    with mock.patch.object(pinning, "find_moved", note):
        with pinned(make_torch(ours, 1), make_paddle(theirs, times=1), BATCH):
            pass
    return {(path, which) for path, which, _ in found}, runs


def test_a_norm_in_the_next_module_moves_what_lies_between() -> None:
    assert find(*MOVED)[0] == {("2", "inputs")}


def test_a_faithful_pair_and_one_fault_take_no_further_run() -> None:
    assert find(MOVED[0], MOVED[0]) == (set(), 0)
    assert find(MOVED[0], ["fc norm", "fc"]) == (set(), 0)


@pytest.mark.parametrize("wrong", ["fc", "fc gelu()"], ids=["missing", "another"])
def test_faults_are_not_taken_for_it(wrong: str) -> None:
    ours = ["fc tanh()", "fc tanh()"]
    moved, runs = find(ours, [wrong, wrong])
    assert moved == set() and runs <= 4


def test_a_fault_beside_it_stays_one() -> None:
    moved, runs = find([*MOVED[0], "fc tanh()", "fc tanh()"], [*MOVED[1], "fc", "fc tanh()"])
    assert moved == {("2", "inputs")} and runs <= 4
