"""One description of a pair: what takes it has its arguments, and one place checks them."""

from dataclasses import replace
from inspect import getdoc, signature
from types import SimpleNamespace
from typing import Any

from reprod_align import align, fix
from reprod_align.errors import ReprodError
from reprod_align.pair import SETTINGS, PairSpec, make_pair
from reprod_align.selftest import selftest

import numpy as np
import pytest

SIDE: Any = SimpleNamespace(loss=None, optimizer=None, scheduler=None)
PAIR = PairSpec(SIDE, SIDE, (np.ones(3),))


@pytest.mark.parametrize("function", [align, selftest, fix])
def test_the_arguments_of_align_stand_once_and_show_everywhere(function: Any) -> None:
    known = signature(make_pair).parameters
    assert signature(function).parameters == known
    said = getdoc(function) or ""
    assert "{arguments}" not in said and all(name in said for name in list(known)[2:])
    with pytest.raises(TypeError, match="missing a required argument: 'inputs'"):
        function(None, None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'step'"):
        function(None, None, (), step=3)


@pytest.mark.parametrize(("name", "value"), [
    ("steps", 0), ("steps", True), ("steps", None), ("steps", 2.5), ("name_map", {1: "x"}),
    ("name_map", ["x"]), ("copy_weights", 1), ("copy_weights", None), ("memory", 0),
    ("memory", "8G"), ("memory", True),
])  # fmt: skip
def test_a_setting_that_cannot_be_meant_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ReprodError, match=f"^{name}: expected {SETTINGS[name][0]}, got "):
        replace(PAIR, **{name: value}).check()


@pytest.mark.parametrize("settings", [
    {"steps": np.int64(2)}, {"name_map": {}}, {"name_map": {"a": "b"}}, {"memory": 2**30},
])  # fmt: skip
def test_a_setting_that_can_be_meant_passes(settings: dict[str, Any]) -> None:
    assert replace(PAIR, **settings).check().steps in (2, 3)


@pytest.mark.parametrize(("given", "words"), [
    ({"loss": len}, "torch_loss and paddle_loss go together"),
    ({"optimizer": len}, "torch_optimizer and paddle_optimizer go together"),
    ({"scheduler": len}, "a scheduler needs an optimizer"),
])  # fmt: skip
def test_functions_of_one_side_alone_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ReprodError, match=words):
        replace(PAIR, port=SimpleNamespace(**vars(SIDE) | given)).check()
