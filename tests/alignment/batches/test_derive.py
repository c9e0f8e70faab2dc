"""The batches that are made of inputs, as far as a reference accepts them."""

from collections.abc import Callable

from reprod_align.alignment.batches.derive import Batch, derive_batches
from reprod_align.model.side import Inputs

import numpy as np

IDS = np.arange(24).reshape(4, 6)
MASK = np.ones((4, 1, 6, 6), bool)
BOTH = {"ids": IDS, "mask": MASK}


def derive(inputs: Inputs, accepts: Callable[[Inputs], bool] = lambda inputs: True) -> dict:
    """Return the batches by what is different in them."""
    made = derive_batches(inputs, lambda batch: accepts(batch.inputs))
    return {batch.words: batch for batch in made}


def shapes(batch: Batch) -> list:
    values = batch.inputs.values() if isinstance(batch.inputs, dict) else batch.inputs
    return [array.shape for array in values]


def test_all_kinds_of_batches_in_their_order() -> None:
    made = derive(BOTH)
    assert {words: shapes(batch)[0] for words, batch in made.items()} == {
        "with the first example alone": (1, 6),
        "with length 3 in place of 6": (2, 3),
        "with length 12 in place of 6": (2, 12),
        "with the inputs moved": (2, 6),
        "with the inputs rearranged": (2, 6),
        "with another mask": (2, 6),
        "with int32 in place of int64": (2, 6),
        "in a second call": (2, 6),
        "in a second call, after one with length 3 in place of 6": (2, 12),
        "under no_grad": (2, 6),
    }
    assert shapes(made["with length 3 in place of 6"])[1] == (2, 1, 3, 3)
    assert [words for words, batch in made.items() if not batch.graded] == ["under no_grad"]
    assert [words for words, b in made.items() if b.other_dtype] == ["with int32 in place of int64"]
    assert {words for words, b in made.items() if b.before} == {w for w in made if "second" in w}


def test_a_tuple_stays_a_tuple() -> None:
    assert all(isinstance(batch.inputs, tuple) for batch in derive((IDS,)).values())
    assert shapes(derive((IDS,))["with length 12 in place of 6"]) == [(2, 12)]


def test_a_fixed_length_gives_no_other_length() -> None:
    made = derive((IDS,), lambda inputs: inputs[0].shape[1] == 6)
    assert not [words for words in made if "length" in words]
    assert "with the first example alone" in made and "in a second call" in made


def test_a_length_that_has_a_limit_is_made_as_long_as_it_may_be() -> None:
    made = derive((IDS,), lambda inputs: inputs[0].shape[1] < 8)
    assert "with length 7 in place of 6" in made


def test_a_fixed_number_of_examples_is_kept() -> None:
    made = derive((IDS,), lambda inputs: len(inputs[0]) == 4)
    assert "with the first example alone" not in made
    assert {len(batch.inputs[0]) for batch in made.values()} == {4}
    assert {batch.note for batch in made.values()} == {""}


def test_not_all_examples_is_said() -> None:
    made = derive((IDS,))
    assert made["with the first example alone"].note == ""
    assert made["with the inputs moved"].note == " (the first 2 examples)"


def test_one_example_gets_a_second_one() -> None:
    batch = derive((IDS[:1],))["with a second example"]
    assert shapes(batch) == [(2, 6)] and (batch.inputs[0][0] != batch.inputs[0][1]).any()


def test_a_feature_axis_that_the_reference_refuses_to_cut_stays() -> None:
    x = np.random.default_rng(0).normal(size=(4, 6, 6))
    made = derive((x,), lambda inputs: inputs[0].shape[2] == 6)
    assert shapes(made["with length 3 in place of 6"]) == [(2, 3, 6)]


def test_a_lone_number_is_given_as_it_is() -> None:
    assert set(derive((np.array(3.5),))) == {"in a second call", "under no_grad"}
