"""Which module is the counterpart of which."""

from reprod_align.match import Match
from reprod_align.match.modules import (
    are_same_kind,
    find_built_in,
    is_same_activation,
    join_activation,
    list_bare_leaves,
    pair_by_value,
    pair_modules,
)
from reprod_align.model.settings import ModuleSettings
from reprod_align.model.trace import Call, Leaf, Trace
from tests.match.made import Module, linear, make_both, make_info

import numpy as np
import pytest

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
    assert list_bare_leaves(info) == {"drop", "block.act"}
    assert are_same_kind(info, "drop", info, "drop")
    assert not are_same_kind(info, "drop", info, "block.act")
    assert are_same_kind(info, "", info, "block")  # both of a class named Own


A, B = np.array([1.0, 2.0]), np.array([3.0, -4.0])


def trace(**outputs: np.ndarray) -> Trace:
    """Return one call of each module, in this order; `__` stands for a dot."""
    return Trace(
        [
            Call(path.replace("__", "."), 0, None, outputs={"": Leaf(array, True)})
            for path, array in outputs.items()
        ]
    )


def correct(
    pairs: dict[str, str],
    ours: dict[str, Module],
    theirs: dict[str, Module],
    expected: Trace,
    actual: Trace,
) -> dict[str, str]:
    """Return the pairs after correction."""
    corrected = dict(pairs)
    pair_by_value(corrected, *make_both(ours, theirs), expected, actual)
    return corrected


def test_layers_with_equal_outputs_are_the_same_in_whatever_order() -> None:
    ours, theirs = {"one": RELU, "two": RELU}, {"x": RELU, "y": RELU}
    wrong = {"": "", "one": "x", "two": "y"}
    pairs = correct(wrong, ours, theirs, trace(one=A, two=B), trace(x=B, y=A))
    assert pairs == {"": "", "one": "y", "two": "x"}


def test_outputs_that_fit_two_layers_or_another_kind_decide_nothing() -> None:
    before = {"": ""}
    two = {"x": RELU, "y": RELU}
    assert correct(before, {"one": RELU}, two, trace(one=A), trace(x=A, y=A)) == before
    both = {"one": RELU, "two": RELU}
    assert correct(before, both, {"x": RELU}, trace(one=A, two=A), trace(x=A)) == before
    other = {"x": ("Dropout", {})}
    assert correct(before, {"one": RELU}, other, trace(one=A), trace(x=A)) == before
    assert correct(before, {"one": RELU}, {"x": RELU}, trace(one=A), trace(x=B)) == before
    assert correct(before, {"one": RELU}, {"x": RELU}, trace(one=A), trace(x=A))["one"] == "x"


def test_of_nested_modules_the_one_with_equal_outputs_is_taken() -> None:
    ours, theirs = {"outer.inner.fc": linear(2, 2)}, {"block.fc": linear(2, 2)}
    wrong = {"": "", "outer": "block", "outer.inner.fc": "block.fc"}
    expected = trace(outer=A + B, outer__inner=A, outer__inner__fc=A)
    pairs = correct(wrong, ours, theirs, expected, trace(block=A, block__fc=A))
    assert pairs == {"": "", "outer.inner": "block", "outer.inner.fc": "block.fc"}
    faulty = correct(wrong, ours, theirs, expected, trace(block=B, block__fc=A))
    assert faulty == wrong  # a fault in the block: nothing else is its counterpart


def test_what_returns_the_same_and_holds_less_is_no_counterpart() -> None:
    ours: dict[str, Module] = {"h.norm": linear(2, 2), "h.mlp.fc": linear(2, 2)}
    theirs = {"block.norm": linear(2, 2), "block.fc": linear(2, 2)}
    right = {"": "", "h": "block", "h.norm": "block.norm", "h.mlp.fc": "block.fc"}
    expected = trace(h__norm=A, h__mlp__fc=B, h__mlp=B, h=A + B)
    found = correct(right, ours, theirs, expected, trace(block__norm=A, block__fc=B, block=B))
    assert found == right  # the block lacks a summand


GIVEN, NORMED = np.array([3.0, 4.0]), np.array([-1.0, 1.0])
KEPT = np.maximum(NORMED, 0)
OURS: dict[str, Module] = {
    **{"bn": ("BatchNorm2d", {}), "drop": ("Dropout", {}), "act": ("ReLU", {})},
    **{"fc": linear(2, 2), "block.act": ("ReLU", {})},
}


def run(*steps: tuple[str, np.ndarray, np.ndarray]) -> Trace:
    """Return a call of each module on an array, which gives another."""
    return Trace([
        Call(path, 0, None, {"": Leaf(taken, True)}, {"": Leaf(given, True)}, 2 * at, 2 * at + 1)
        for at, (path, taken, given) in enumerate(steps)
    ])  # fmt: skip


def built_in(
    *steps: tuple[str, np.ndarray, np.ndarray], act: str | None = "relu"
) -> dict[str, str]:
    """Return what is found for a batch norm of that activation, called before these steps."""
    ours, theirs = make_both(OURS, {"bn": OURS["bn"]})
    theirs.info.modules["bn"] = ModuleSettings("BatchNorm", "BatchNorm", {"act": act})  # type: ignore[index]
    return find_built_in({"bn": "bn"}, ours, theirs, run(("bn", GIVEN, NORMED), *steps))


def test_the_module_that_takes_the_norm_s_output_is_the_activation() -> None:
    assert built_in(("act", NORMED, KEPT)) == {"bn": "act"}
    assert built_in(("drop", NORMED, NORMED), ("act", NORMED, KEPT)) == {"bn": "act"}
    assert built_in(("act", NORMED, KEPT), act=None) == {}


def test_a_function_may_apply_it_unless_a_layer_takes_the_output_as_it_is() -> None:
    assert built_in(("fc", KEPT, GIVEN)) == {"bn": ""}
    assert built_in(("block", NORMED, GIVEN)) == {"bn": ""}
    assert built_in(("fc", NORMED, GIVEN)) == {}


def test_the_joined_call_gives_what_the_activation_gives() -> None:
    trace = run(("bn", GIVEN, NORMED), ("fc", GIVEN, GIVEN), ("act", NORMED, KEPT))
    joined = join_activation(trace.calls[0], "act", trace)
    assert joined.key == ("bn", 0) and joined.finished == trace.calls[2].finished
    assert joined.outputs[""].array is KEPT and joined.inputs[""].array is GIVEN
    assert join_activation(trace.calls[0], "other", trace) == trace.calls[0]


@pytest.mark.parametrize("class_name, name", [("ReLU", "relu"), ("ReLU6", "relu6"), ("SiLU", "swish"),
                         ("SiLU", "silu"), ("Hardswish", "hard_swish"), ("GELU", "gelu")])  # fmt: skip
def test_names_of_one_activation(class_name: str, name: str) -> None:
    assert is_same_activation(class_name, name)
    assert not is_same_activation(class_name, "sigmoid")
