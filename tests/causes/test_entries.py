"""A cause leads to the entry of the table of APIs that describes it."""

import re

from reprod_align.api.table import find_entry
from reprod_align.causes.entries import ENTRIES, add_entry
from reprod_align.errors import ReprodError

import pytest


def test_every_pattern_leads_to_an_entry() -> None:
    for pattern, slug in ENTRIES:
        assert find_entry(slug)
        re.compile(pattern)
    with pytest.raises(ReprodError):
        find_entry("no-such-entry")


def test_the_first_pattern_decides() -> None:
    cause = "the causal mask is shifted by one: the padding mask"
    assert add_entry(cause).startswith(cause)
    assert "triu" in add_entry(cause)
    assert "attention-boolean-mask" not in add_entry(cause)


def test_a_cause_without_an_entry_stays_as_it_is() -> None:
    assert add_entry("Paddle's values are all zero") == "Paddle's values are all zero"
