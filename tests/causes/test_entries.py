"""A cause cites the entry of the table of APIs that describes it, and no other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import reprod_align.causes
from reprod_align.api import find_entry, list_entries
from reprod_align.causes import explain_forward
from reprod_align.causes.functions import FUNCTIONS, explain_function
from reprod_align.causes.mismatch import Mismatch, cite

import numpy as np
import pytest

X, Y = np.random.default_rng(0).standard_normal((2, 3, 6, 12))
SOURCES = sorted(Path(reprod_align.causes.__file__).parent.glob("*.py"))


def list_cited() -> Iterator[str]:
    """Yield each text in the causes' code that is an entry, or is handed to `cite`."""
    slugs = {entry.slug for entry in list_entries()}
    for node in (one for file in SOURCES for one in ast.walk(ast.parse(file.read_text()))):
        if isinstance(node, ast.Constant) and node.value in slugs:
            yield node.value
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "cite"
        ):
            yield from (one.value for one in node.args[1:] if isinstance(one, ast.Constant))


def test_every_entry_exists() -> None:
    cited = set(list_cited())
    assert len(cited) > 20
    for slug in cited:
        assert find_entry(slug).slug == slug


def test_a_cause_is_followed_by_its_entry() -> None:
    assert cite("words", "triu") == "words (see `reprod-align api triu`)"
    assert cite("", "triu") == ""


def test_a_function_leads_to_its_own_entry() -> None:
    for name, entry in (("SELU", " (see `reprod-align api selu`)"), ("tanh", "")):
        words = explain_function(Mismatch(FUNCTIONS[name](X), X))
        assert words == f"{name}: PyTorch applies it here, Paddle does not{entry}"


@pytest.mark.parametrize("name", ["the output of dropout", "the output of transpose"])
def test_a_cause_that_only_names_a_module_cites_nothing(name: str) -> None:
    for actual in (X, X - Y, X + 2 * Y):  # a residual that is missing, or of the other sign
        words = explain_forward(X + Y, actual, [X, Y], names=["x", name])
        assert words and "reprod-align api" not in words, words
