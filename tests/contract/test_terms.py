"""A contract is read word for word: what is missing, unknown or of another type is one line."""

from pathlib import Path

from reprod_align.contract.terms import ContractError, draw_batch, read_terms
from reprod_align.errors import MissingInputError
from tests.contract.made import PORT, write_contract

import numpy as np
import pytest

WRONG = {
    'name = "small"': ("name = 3", "name: expected a text"),
    "batches = 2": ("batches = 0", "batches: expected a whole number"),
    "round_trip = true": ('round_trip = "yes"', "round_trip: expected true or false"),
    'file = "port.py"': ('file = "../port.py"', "expected a file below"),
    "count = 3": ("cuont = 3", "tokens.cuont is unknown"),
    'loss = "cross_entropy"': ('loss = "mine"', "loss: expected one of"),
    "labels = 20": ("labels = 1", "number of classes"),
    'kind = "int64"': ('kind = "text"', "inputs.input_ids: kind"),
    'shape = [2, "4-7"]': ('shape = [2, "7-4"]', "inputs.input_ids: shape"),
    "high = 20": ("high = -1", "low below high"),
    "steps = 3": ("steps = 3\nstpes = 4", "training.stpes is unknown"),
    '"reference.py" =': ('"other.py" =', "expected the SHA-256 of reference.py"),
    "[tokens]": ('[tokens]\ninput = "ids"', "there is no input 'ids'"),
    "[training]": ("[training", "cannot be read as TOML"),
}


@pytest.mark.parametrize("old", WRONG)
def test_what_is_wrong_is_said(old: str, tmp_path: Path) -> None:
    new, words = WRONG[old]
    path = write_contract(tmp_path, {"port.py": PORT}, **{old: new})
    with pytest.raises(ContractError, match=words):
        read_terms(path)


def test_a_contract(tmp_path: Path) -> None:
    path = write_contract(tmp_path, {"port.py": PORT, "layers.py": ""})
    terms = read_terms(path)
    assert [one.name for one in terms.port_files] == ["port.py", "layers.py"]
    assert terms.tokens and terms.training and terms.round_trip
    elsewhere = read_terms(path, tmp_path)
    assert elsewhere.port == tmp_path / "port.py"
    with pytest.raises(MissingInputError):
        read_terms(tmp_path / "none.toml")


def test_batches_follow_from_the_seed(tmp_path: Path) -> None:
    rules = read_terms(write_contract(tmp_path, {"port.py": PORT})).inputs
    one, same, twin = (draw_batch(rules, 7, 0, n)["input_ids"] for n in (0, 0, 1))
    assert np.array_equal(one, same) and one.shape == twin.shape and not np.array_equal(one, twin)
    lengths = {draw_batch(rules, seed, 0)["input_ids"].shape[1] for seed in range(40)}
    assert lengths == {4, 5, 6, 7}
    assert 0 <= one.min() and one.max() < 20 and one.dtype == np.int64
