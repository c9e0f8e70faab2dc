"""The settings of layers and optimizers, in words that both frameworks share."""

from reprod_align.errors import ReprodError
from reprod_align.model.settings import (
    MAY_COINCIDE,
    SYNONYMS,
    is_simple,
    one_if_equal,
    own_values,
    pad_amounts,
    per_dimension,
    plain,
    require_optimizer,
    same_pad,
)

import pytest


class HasStep:
    def step(self) -> None: ...


def test_an_optimizer_is_known_by_what_it_has() -> None:
    require_optimizer(HasStep(), "torch.optim.Optimizer", ["step"])
    said = "torch_optimizer must be a function that returns a torch.optim.Optimizer, not a list"
    with pytest.raises(ReprodError, match=said):
        require_optimizer([], "torch.optim.Optimizer", ["step"])
    with pytest.raises(ReprodError, match="HasStep"):
        require_optimizer(HasStep(), "paddle.optimizer.Optimizer", ["step", "minimize"])


def test_a_users_layer_has_its_simple_attributes() -> None:
    own = {
        "heads": 2, "_scale": 0.5, "sizes": [1, (2,)],
        "training": True, "__private": 1, "known": 3, "layer": HasStep(),
    }  # fmt: skip
    assert own_values(own, ["known"]) == {"heads": 2, "scale": 0.5, "sizes": (1, (2,))}


@pytest.mark.parametrize("value", [1, 0.5, "same", True, None, [1, (2, "x")], []])
def test_plain_values_are_simple(value: object) -> None:
    assert is_simple(value)


def test_objects_and_lists_that_hold_themselves_are_not_simple() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert not is_simple(endless)
    assert not is_simple([1, HasStep()])
    assert not is_simple({"a": 1})


def test_numbers_for_all_dimensions_are_told_from_one_for_each() -> None:
    assert plain([1, [2, 3]]) == (1, (2, 3))
    assert per_dimension(3, 2) == per_dimension([3], 2) == (3, 3)
    assert per_dimension([3, 4], 2) == (3, 4)
    assert one_if_equal((2, 2)) == one_if_equal([2]) == one_if_equal(2) == 2
    assert one_if_equal([2, 3]) == (2, 3)


def test_padding_stays_in_pairs_where_its_ends_differ() -> None:
    assert pad_amounts([(1, 1), (2, 2)]) == (1, 2)
    assert pad_amounts([(1, 1), (1, 2)]) == ((1, 1), (1, 2))
    assert same_pad([3, 4], [1, 1]) == [(1, 1), (1, 2)]
    assert same_pad([3], [2]) == [(2, 2)]


def test_a_word_means_one_setting_and_different_layers_stay_different() -> None:
    words = [word for group in SYNONYMS.values() for word in group]
    assert len(words) == len(set(words))
    assert frozenset({"Linear", "Conv1d"}) in MAY_COINCIDE
    assert not any({"Dropout", "Linear"} <= kinds for kinds in MAY_COINCIDE)
