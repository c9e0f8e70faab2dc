"""Another value of an attribute is in force in a block, and gone after it."""

from reprod_align.model.source import Switch, list_plain_attributes, switched

import pytest


class Module:
    def __init__(self) -> None:
        self.doubled, self.rate, self.name, self.size = True, 0.5, "x", 3
        self._own, self.training, self.parts = 1, True, [1]

    def forward(self, x: int) -> int:
        return 2 * x if self.doubled else x


def test_a_switch_is_given_back_also_after_an_error() -> None:
    made = Module()
    with (
        pytest.raises(ZeroDivisionError),
        switched({"a": made}, Switch("a", "doubled", True, False)),
    ):
        assert made.forward(3) == 3
        raise ZeroDivisionError
    assert made.forward(3) == 6
    with switched({"a": made}, Switch("b", "doubled", True, False)):
        assert made.forward(3) == 6
    with switched({"a": made}, None):
        assert made.forward(3) == 6


def test_plain_attributes_are_those_of_the_user() -> None:
    assert list_plain_attributes(Module()) == {
        "doubled": True, "rate": 0.5, "name": "x", "size": 3,
    }  # fmt: skip
