"""The questions follow from the terms and the seed; moved weights keep their ties."""

from pathlib import Path

from reprod_align.contract.answers import Questions, list_calls
from reprod_align.contract.terms import read_terms
from reprod_align.model.trace import Trace
from tests.contract.made import PORT, write_contract

import numpy as np


def test_questions(tmp_path: Path) -> None:
    terms = read_terms(write_contract(tmp_path, {"port.py": PORT}))
    asked, other = Questions(terms, 1), Questions(terms, 2)
    batches = asked.list_batches()
    assert len(batches) == 3 and batches[0]["input_ids"].shape == batches[1]["input_ids"].shape
    assert not np.array_equal(batches[0]["input_ids"][0], other.list_batches()[0]["input_ids"][0])
    assert len(asked.list_training_batches(4)) == 4
    assert terms.tokens and asked.draw_prompt(terms.tokens)["input_ids"].shape[0] == 2


def test_weights_are_moved_and_ties_kept(tmp_path: Path) -> None:
    asked = Questions(read_terms(write_contract(tmp_path, {"port.py": PORT})), 1)
    held = {"a": np.ones((2, 3)), "b": np.ones((2, 3)), "n": np.arange(3), "mean": np.ones(2)}
    moved = asked.move(held, {"a": "a", "b": "a", "n": "n"})
    assert moved["a"] is moved["b"] and not np.any(moved["a"] == held["a"])
    assert moved["n"] is held["n"] and moved["mean"] is held["mean"]
    assert list_calls(Trace()) == []
