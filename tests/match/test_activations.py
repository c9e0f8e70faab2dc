"""PyTorch's activations that Paddle's batch norms have built in."""

from reprod_align.match.modules import find_built_in, is_same_activation, join_activation
from reprod_align.model.settings import ModuleSettings
from reprod_align.model.trace import Call, Leaf, Trace
from tests.match.made import Module, linear, make_both

import numpy as np
import pytest

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
