"""Where values and gradients differ on the reference's numbers."""

from reprod_align.alignment.locating.pinning import find_gradients, find_values
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet, TorchNet


def test_a_wrong_value_shows_where_it_is_handed_on() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: 1.5 * x)) as (_, _, free, _given):
        (place,) = find_values(free).values()
        assert place.boundary[:2] == ("second", "inputs") and place.is_felt and not place.may_move
        assert [path for path, *_ in find_gradients(free)] == ["first"]


def test_rounding_and_a_faithful_pair_show_nowhere() -> None:
    for factor in (1.0, 1 + 1e-6):
        with pinned(TorchNet(), PaddleNet(lambda x, by=factor: by * x)) as (_, _, free, _given):
            assert not find_values(free) and not find_gradients(free)
