"""An entry as text and as data, without running it."""

from reprod_align.api import find_entry
from reprod_align.api.entry import DIFFERS, EQUAL, NOT_RUN, OUT_OF_DATE, EntryOutcome
from reprod_align.api.pages import (
    as_data,
    as_list,
    as_text,
    choose_exit_code,
    describe_outcome,
    describe_versions,
    list_parts,
)

import pytest

TRAP, SAME = find_entry("batch-norm-momentum"), find_entry("leaky-relu-at-zero")


@pytest.mark.parametrize(
    ("result", "code"), [(EQUAL, 0), (DIFFERS, 0), (OUT_OF_DATE, 1), (NOT_RUN, 2)]
)
def test_the_result_decides_the_exit_code(result: str, code: int) -> None:
    assert choose_exit_code(EntryOutcome(result, "")) == code


def test_a_trap_shows_the_plain_call_too() -> None:
    assert list(list_parts(TRAP)) == ["torch_side", "paddle_side", "plain"]
    text = as_text(TRAP, EntryOutcome(DIFFERS, "visible"))
    assert TRAP.differs in text and "result: differs as described: visible (torch" in text
    assert f"    {TRAP.code('plain').splitlines()[0]}" in text


def test_data_has_the_outcome_of_an_entry_that_was_run() -> None:
    assert "result" not in as_data(SAME)
    data = as_data(SAME, EntryOutcome(EQUAL, ""))
    assert data["name"] == "leaky-relu-at-zero" and data["result"] == EQUAL
    assert data["versions"].keys() == {"torch", "paddlepaddle"}


def test_short_forms() -> None:
    assert describe_outcome(EntryOutcome(EQUAL, "")) == "equal"
    assert "torch " in describe_versions() and "paddlepaddle " in describe_versions()
    lines = as_list([TRAP, SAME]).splitlines()
    assert [line.index("  ") > 0 for line in lines] == [True, True] and as_list([]) == ""
