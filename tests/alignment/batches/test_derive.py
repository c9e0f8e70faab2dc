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


def parts(batch: Batch) -> list:
    return [part.words for part in batch.parts]


SECOND, AFTER = "in a second call, on other values", "in a second call, after one with length 3"
LONGER = f"{AFTER} in place of 6"
BARE = "with int32 in place of int64 under no_grad"


def test_all_kinds_of_batches_in_their_order() -> None:
    made = derive(BOTH)
    assert {words: shapes(batch) for words, batch in made.items()} == {
        "with the first example alone": [(1, 6), (1, 1, 6, 6)],
        "with the inputs moved": [(2, 6), (2, 1, 6, 6)],
        SECOND: [(2, 6), (2, 1, 6, 6)],
        "with length 3 in place of 6": [(2, 3), (2, 1, 3, 3)],
        LONGER: [(2, 12), (2, 1, 12, 12)],
        BARE: [(2, 6), (2, 1, 6, 6)],
    }
    assert [words for words, batch in made.items() if not batch.graded] == [BARE]
    assert {words for words, batch in made.items() if batch.before} == {SECOND, LONGER}


def test_what_a_batch_combines_is_known_part_by_part() -> None:
    made = derive(BOTH)
    again = ["with another mask", "in a second call"]
    assert parts(made[SECOND]) == [*["with the inputs rearranged"] * 2, *again]
    assert parts(made[LONGER]) == ["with length 12 in place of 6"]
    assert parts(made[BARE]) == ["with int32 in place of int64", "under no_grad"]
    before = made["with the inputs moved"], made["with length 3 in place of 6"]
    for words, first in zip((SECOND, LONGER), before, strict=True):
        assert made[words].before[0] is first.inputs


def test_parts_stand_for_a_batch_that_is_refused() -> None:
    made = derive({"ids": IDS}, lambda inputs: inputs["ids"].dtype == np.int64)
    assert (
        BARE not in made and "with int32 in place of int64" not in made and "under no_grad" in made
    )


def test_a_tuple_stays_a_tuple() -> None:
    assert all(isinstance(batch.inputs, tuple) for batch in derive((IDS,)).values())
    assert shapes(derive((IDS,))[LONGER]) == [(2, 12)]


def test_a_fixed_length_gives_no_other_length() -> None:
    made = derive((IDS,), lambda inputs: inputs[0].shape[1] == 6)
    assert not [words for words in made if "length" in words]
    assert "with the first example alone" in made and SECOND in made


def test_a_length_that_has_a_limit_is_made_as_long_as_it_may_be() -> None:
    made = derive((IDS,), lambda inputs: inputs[0].shape[1] < 8)
    assert shapes(made[LONGER])[0][1] == 7
    made = derive((IDS,), lambda inputs: inputs[0].shape[1] < 7)
    assert shapes(made[LONGER]) == [(2, 6)] and not made[LONGER].parts


def test_two_lengths_are_changed_at_most() -> None:
    made = derive((np.ones((2, 3, 4, 5, 6)),))
    assert sum(words.startswith("with length") for words in made) == 2


def test_a_fixed_number_of_examples_is_kept() -> None:
    made = derive((IDS,), lambda inputs: len(inputs[0]) == 4)
    assert "with the first example alone" not in made
    assert {len(batch.inputs[0]) for batch in made.values()} == {4}
    assert {batch.note for batch in made.values()} == {""}


def test_not_all_examples_is_said() -> None:
    made = derive((IDS,))
    assert made["with the first example alone"].note == ""
    assert made["with the inputs moved"].note == " (the first 2 examples)"


SHORT = "with the first example alone, its inputs moved, with length 3 in place of 6"
LATER = "in a later call, after one with length 3 in place of 6"


def derive_short(accepts: Callable[[Batch], bool] = lambda batch: True) -> dict:
    return {batch.words: batch for batch in derive_batches((IDS,), accepts, 1)}


def test_one_short_example_does_where_runs_take_time() -> None:
    made = derive_short()
    assert {words: shapes(batch) for words, batch in made.items()} == {
        SHORT: [(1, 3)],
        SECOND: [(1, 3)],
        f"{LATER}, {BARE}": [(1, 7)],
    }
    alone, moved, half = made[SHORT].parts
    assert [shapes(part)[0] for part in (alone, moved, half)] == [(1, 6), (1, 6), (1, 3)]
    assert (made[SHORT].inputs[0] != half.inputs[0]).any() and not made[SHORT].note
    assert made[SECOND].before == (made[SHORT].inputs,)
    last = made[f"{LATER}, {BARE}"]
    later, bare = last.parts
    assert not last.graded and last.inputs[0].dtype == np.int32
    assert last.before == later.before == (made[SHORT].inputs, made[SECOND].inputs)
    assert later.note == " (the first example)" and parts(later) == ["with length 7 in place of 6"]
    assert bare.words == BARE and shapes(bare) == [(1, 3)] and not bare.before


def test_a_quarter_of_the_length_does_where_the_reference_runs_on_it() -> None:
    ids = np.arange(48).reshape(2, 24)

    def lengths(least: int) -> list[int]:
        made = derive_batches((ids,), lambda batch: batch.inputs[0].shape[1] >= least, 1)
        return [batch.inputs[0].shape[1] for batch in made]

    assert lengths(1) == [6, 6, 25]
    assert lengths(7) == [12, 12, 25]


def test_one_example_does_where_no_length_can_be_cut() -> None:
    made = derive_short(lambda batch: batch.inputs[0].shape[1] == 6)
    assert {shapes(batch)[0] for batch in made.values()} == {(1, 6)}
    both = made["with the first example alone, its inputs moved"]
    assert parts(both) == ["with the first example alone", "with the inputs moved"]
    assert made[SECOND].before[0] is both.inputs and not both.note
    refused = derive_short(lambda batch: len(batch.inputs[0]) == 4)
    assert "with the inputs moved" in refused and both.words not in refused


def test_one_example_gets_a_second_one() -> None:
    batch = derive((IDS[:1],))["with a second example"]
    assert shapes(batch) == [(2, 6)] and (batch.inputs[0][0] != batch.inputs[0][1]).any()


def test_a_feature_axis_that_the_reference_refuses_to_cut_stays() -> None:
    x = np.random.default_rng(0).normal(size=(4, 6, 6))
    made = derive((x,), lambda inputs: inputs[0].shape[2] == 6)
    assert shapes(made["with length 3 in place of 6"]) == [(2, 3, 6)]


def test_a_lone_number_is_given_as_it_is() -> None:
    assert set(derive((np.array(3.5),))) == {SECOND, "under no_grad"}


KINDS = ("float32", "float64", "int64", "int32", "bool", "complex64", "uint8", "float16", "uint64")


def draw_array(source: np.random.Generator) -> np.ndarray:
    """Return an array of any shape and kind, empty and without axes too, with a NaN now and then."""
    shape = source.choice([0, 1, 1, 2, 3, 4, 7], source.integers(0, 5))
    values = np.abs(source.normal(size=shape) * source.choice([0, 1, 5, 100]))
    made = np.asarray(values, source.choice(KINDS))
    if made.dtype.kind == "f" and made.size and source.random() < 0.1:
        made.flat[0] = source.choice([np.nan, np.inf, -np.inf])
    return made


def test_inputs_of_every_shape_and_kind_give_batches_of_as_many_axes() -> None:
    source = np.random.default_rng(0)
    for _ in range(400):
        arrays = [draw_array(source) for _ in range(source.integers(1, 4))]
        names = ("ids", "attention_mask", "x")
        for inputs in (dict(zip(names, arrays, strict=False)), tuple(arrays)):
            for batch in derive_batches(inputs, lambda batch: source.random() < 0.7):
                shown = batch.inputs.values() if isinstance(batch.inputs, dict) else batch.inputs
                kept = [(array.ndim, array.dtype.kind) for array in shown]
                assert kept == [(array.ndim, array.dtype.kind) for array in arrays]
