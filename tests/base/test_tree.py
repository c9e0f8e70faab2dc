"""Tensors inside whatever a module returns, by the paths at which they stand."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

from reprod_align.base.tree import leaves, replace


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Output:
    logits: Any
    states: Any = None


def is_tensor(value: object) -> bool:
    return isinstance(value, float)


NESTED = OrderedDict(out=Output(1.0, [Pair(2.0, "text"), (3.0, None)]), count=5)


def test_every_tensor_is_found_by_its_path_in_order() -> None:
    found = leaves(NESTED, is_tensor)
    assert list(found.items()) == [
        ("out.logits", 1.0),
        ("out.states[0][0]", 2.0),
        ("out.states[1][0]", 3.0),
    ]
    assert leaves(1.0, is_tensor) == {"": 1.0} and leaves("text", is_tensor) == {}


def test_tensors_are_replaced_in_copies_of_the_same_kind() -> None:
    changed = replace(NESTED, is_tensor, lambda path, value: -value if "states" in path else value)
    assert changed == OrderedDict(out=Output(1.0, [Pair(-2.0, "text"), (-3.0, None)]), count=5)
    assert type(changed) is OrderedDict and type(changed["out"].states[0]) is Pair
    assert NESTED["out"].states[0].first == 2.0  # the caller's own is as it was


def test_without_a_change_the_container_itself_comes_back() -> None:
    assert replace(NESTED, is_tensor, lambda path, value: value) is NESTED


def test_a_container_that_holds_itself_ends() -> None:
    ring: list[Any] = [1.0]
    ring.append(ring)
    assert leaves(ring, is_tensor) == {"[0]": 1.0}
