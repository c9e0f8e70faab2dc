"""Which module is the counterpart of which."""

from reprod_align.match.modules import leaves_without_tensors, pair_modules, same_kind
from reprod_align.model.tensor_pair import Match
from tests.match.made import Module, linear, make_both, make_info

DROPOUT: Module = ("Dropout", {})
RELU: Module = ("ReLU", {})


def pair(
    ours: dict[str, Module], theirs: dict[str, Module], owners: dict[str, str]
) -> dict[str, str]:
    return pair_modules(Match(owners=owners), *make_both(ours, theirs))


def test_a_module_around_paired_ones_is_paired_by_what_it_holds() -> None:
    ours = {"body.fc1": linear(2, 2), "body.fc2": linear(2, 2), "head.fc": linear(2, 2)}
    theirs = {"top.out": linear(2, 2), "stem.a": linear(2, 2), "stem.b": linear(2, 2)}
    owners = {"body.fc1": "stem.a", "body.fc2": "stem.b", "head.fc": "top.out"}
    assert pair(ours, theirs, owners) == {"": "", "body": "stem", "head": "top", **owners}


def test_what_modules_hold_counts_more_than_their_order() -> None:
    ours = {"body.fc1": linear(2, 2), "other.fc2": linear(2, 2)}
    theirs = {"one.a": linear(2, 2), "two.b": linear(2, 2)}
    pairs = pair(ours, theirs, {"body.fc1": "two.b", "other.fc2": "one.a"})
    assert (pairs["body"], pairs["other"]) == ("two", "one")


def test_a_layer_without_tensors_is_paired_by_kind_and_place() -> None:
    ours = {"fc": linear(2, 2), "drop": DROPOUT, "act": RELU}
    theirs = {"fc": linear(2, 2), "added": RELU, "p": DROPOUT, "gelu": RELU}
    pairs = pair(ours, theirs, {"fc": "fc"})
    assert pairs == {"": "", "fc": "fc", "drop": "p", "act": "gelu"}


def test_layers_of_another_kind_are_not_counterparts() -> None:
    pairs = pair(
        {"fc": linear(2, 2), "drop": DROPOUT}, {"fc": linear(2, 2), "act": RELU}, {"fc": "fc"}
    )
    assert "drop" not in pairs


def test_equal_numbers_in_lists_of_other_lengths_say_nothing() -> None:
    ours = {"0": linear(2, 2), "1": RELU}
    theirs = {"0": DROPOUT, "1": RELU, "2": linear(2, 2)}
    assert pair(ours, theirs, {"0": "2"}) == {"": "", "0": "2", "1": "1"}
    moved = {"0": linear(2, 2), "1": DROPOUT, "2": RELU}
    assert pair(ours, moved, {"0": "0"})["1"] == "2"


def test_kinds_and_leaves() -> None:
    info = make_info({"fc": linear(2, 2), "drop": DROPOUT, "block.act": RELU})
    assert leaves_without_tensors(info) == {"drop", "block.act"}
    assert same_kind(info, "drop", info, "drop")
    assert not same_kind(info, "drop", info, "block.act")
    assert same_kind(info, "", info, "block")  # both of a class named Own
