"""A cause cites the entry of the table of APIs that describes it, and no other."""

from reprod_align.api.table import find_entry
from reprod_align.causes import explain_forward
from reprod_align.causes.entries import ENTRIES, cite, cite_function

import numpy as np
import pytest

X, Y = np.random.default_rng(0).standard_normal((2, 3, 6, 12))


def test_every_entry_exists() -> None:
    for slug in ENTRIES:
        assert find_entry(slug).slug == slug
    with pytest.raises(KeyError):
        cite("words", "no-such-entry")


def test_a_cause_is_followed_by_its_entry() -> None:
    assert cite("words", "triu") == "words (see `reprod-align api triu`)"
    assert cite("", "triu") == ""
    assert cite_function("SELU: missing").endswith("(see `reprod-align api selu`)")
    assert cite_function("tanh: missing") == "tanh: missing"


@pytest.mark.parametrize("name", ["the output of dropout", "the output of transpose"])
def test_a_cause_that_only_names_a_module_cites_nothing(name: str) -> None:
    for actual in (X, X - Y, X + 2 * Y):  # a residual that is missing, or of the other sign
        words = explain_forward(X + Y, actual, [X, Y], names=["x", name])
        assert words and "reprod-align api" not in words, words
