"""Random numbers that one side alone draws are named, with their shapes."""

from reprod_align.causes.values import explain_draws

PLACES = {"": "", "pd_block": "block"}


def drawn(*places: str) -> dict:
    return {((place, 0), number): (2, 3 + number) for number, place in enumerate(places)}


def test_a_missing_dropout_is_named() -> None:
    words = explain_draws("pd_block", drawn("block"), {}, PLACES)
    assert words == "only PyTorch draws random numbers here (dropout, noise), of shape (2, 3)"
    words = explain_draws("pd_block", {}, drawn(*["block"] * 5), PLACES)
    assert words.endswith("of shape (2, 3), (2, 4), (2, 5) and 2 more")
    assert words.startswith("only Paddle draws")


def test_other_shapes_are_named_and_equal_ones_are_not() -> None:
    words = explain_draws("pd_block", drawn("block"), {(("block", 0), 0): (9,)}, PLACES)
    assert words == "PyTorch draws random numbers of shape (2, 3) here, Paddle (9,)"
    assert explain_draws("pd_block", drawn("block"), drawn("block"), PLACES) == ""
    turned = {(("block", 0), 0): (3, 2)}  # sequence first on one side
    assert explain_draws("pd_block", drawn("block"), turned, PLACES) == ""


def test_draws_of_a_deeper_place_do_not_count() -> None:
    assert explain_draws("", drawn("block"), {}, PLACES) == ""
    assert explain_draws("elsewhere", drawn("block"), {}, PLACES) == ""
