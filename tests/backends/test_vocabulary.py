"""The table of settings, and how a setting is read from a layer or a parameter group."""

from types import SimpleNamespace

from reprod_align.backends import replace_attribute
from reprod_align.model.settings import (
    always,
    function_name,
    is_given,
    layer_kinds,
    read_group,
    read_layer,
)

import pytest


def read(kind, usual=None, own=None, **attributes):
    return read_layer(kind, SimpleNamespace(**attributes), usual or {}, own or {})


def test_a_row_with_a_number_sign_stands_for_three_kinds():
    kinds = list(layer_kinds())
    assert {"Conv1d", "Conv2d", "Conv3d", "Linear"} <= set(kinds) and "Conv#d" not in kinds
    assert len(kinds) == len(set(kinds))


def test_an_attribute_is_found_with_and_without_an_underscore():
    class Layer(SimpleNamespace):
        def alpha(self):
            raise AssertionError

    assert read("ELU", alpha=2, _alpha=3) == {"alpha": 2}
    assert read_layer("ELU", Layer(_alpha=2), {}, {}) == {"alpha": 2}


def test_a_reader_of_the_kind_comes_before_a_usual_one():
    usual, own = {"alpha": always(1)}, {"CELU": {"alpha": "inner.value"}}
    inner = SimpleNamespace(value=[1, 2])
    assert read("ELU", usual, own, inner=inner) == {"alpha": 1}
    assert read("CELU", usual, own, inner=inner) == {"alpha": (1, 2)}


def test_sizes_are_written_in_one_way():
    pool = {"kernel_size": 3, "stride": [2], "padding": (1, 2)}
    assert read("MaxUnpool2d", **pool) == {
        "kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 2)
    }  # fmt: skip
    window = dict.fromkeys(("kernel_size", "dilation", "padding", "stride"), [2, 2])
    assert set(read("Unfold", **window).values()) == {2}


@pytest.mark.parametrize(("p", "found"), [(0.0, {"p"}), (0.5, {"p", "mode", "axis"})])
def test_a_setting_without_effect_is_left_out(p, found):
    assert read("Dropout", p=p, mode="upscale_in_train", axis=None).keys() == found


def test_a_group_holds_floats():
    group = {"betas": [1, 0.5], "eps": 1, "amsgrad": True, "maximize": False}
    found = read_group("Adam", group, {}, {})
    assert found == {"betas": (1.0, 0.5), "eps": 1.0, "amsgrad": True, "maximize": False}
    assert isinstance(found["eps"], float) and found["amsgrad"] is True
    assert read_group("", group, {}, {}) == {}


def test_readers():
    given = is_given("bias")
    answers = [given(SimpleNamespace(bias=value)) for value in (None, False, True, 0.0)]
    assert answers == [False, False, True, True]
    assert function_name(len) == "len" and function_name(SimpleNamespace()) == "simplenamespace"


def test_an_attribute_comes_back_after_an_error():
    owner = SimpleNamespace(name=1)
    with pytest.raises(ZeroDivisionError), replace_attribute(owner, "name", 2):
        assert owner.name == 2
        raise ZeroDivisionError
    assert owner.name == 1
