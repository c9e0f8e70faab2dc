"""Single tensors that are left over when whole modules are paired."""

from reprod_align.match.names import pair_single_tensors
from reprod_align.model.tensor_pair import Match, TensorPair
from tests.match.made import Module, linear, make_both, numbers


def pair(ours: dict[str, Module], theirs: dict[str, Module], found: Match | None = None) -> Match:
    found = found or Match()
    pair_single_tensors(found, *make_both(ours, theirs))
    return found


def partners(found: Match) -> dict[str, str]:
    return {pair.torch[0]: pair.paddle[0] for pair in found.pairs}


def test_a_layers_weight_may_be_a_bare_parameter_of_its_name() -> None:
    found = pair({"head_proj": linear(4, 3)}, {"": ("", {"head_proj": numbers(3, 4)})})
    assert partners(found) == {"head_proj.weight": "head_proj"}
    assert found.owners == {"head_proj": ""}
    assert [lay.transposed for lay in found.pairs[0].lay] == [True]


def test_the_most_alike_name_is_taken_first() -> None:
    theirs = {"": ("", {"up_bias": numbers(4), "down_bias": numbers(4)})}
    found = pair({"up": linear(4, 3, bias=4), "down": linear(4, 3, bias=4)}, theirs)
    assert partners(found) == {"up.bias": "up_bias", "down.bias": "down_bias"}


def test_names_that_say_nothing_are_not_guessed() -> None:
    assert pair({"alpha": linear(4, 3)}, {"": ("", {"omega": numbers(3, 4)})}) == Match()


def test_a_shape_or_a_buffer_that_does_not_fit_is_left_over() -> None:
    head = {"head": linear(4, 3)}
    assert pair(head, {"": ("", {"head": numbers(3, 5)})}) == Match()
    parameter, buffer = ({"norm": ("", {role: numbers(4)})} for role in ("mean", "_mean"))
    assert pair(parameter, buffer) == Match()
    assert partners(pair(parameter, parameter)) == {"norm.mean": "norm.mean"}


def test_a_tensor_with_a_partner_is_left_alone() -> None:
    ours, theirs = {"head": linear(4, 3)}, {"": ("", {"head": numbers(3, 4)})}
    taken = TensorPair(("other",), ("head",), ())
    assert pair(ours, theirs, Match([taken])).pairs == [taken]
