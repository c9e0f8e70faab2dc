"""The steps inside attention, norms, products and linear, held against the function itself."""

from reprod_align.alignment.lines.composites import write_out
from reprod_align.alignment.lines.divergence import find_mask_maker
from reprod_align.model.source import Operation, SourceLine

import numpy as np
import pytest
import torch

RANDOM = np.random.default_rng(0)


def operate(
    name: str, inputs: list[np.ndarray], output: np.ndarray, **keywords: object
) -> Operation:
    return Operation(name, SourceLine("x.py", 1), ("", 0), inputs, [output], keywords=keywords)


@pytest.mark.parametrize("causal", [False, True])
def test_the_last_step_of_attention_is_its_result(causal: bool) -> None:
    query, key, value = (RANDOM.normal(size=(2, 3, 5, 4)) for _ in range(3))
    tensors = map(torch.from_numpy, (query, key, value))
    made = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal).numpy()
    name = "scaled_dot_product_attention"
    steps = write_out([operate(name, [query, key, value], made, is_causal=causal)])
    assert steps[-1].name == name and steps[-2].whole is steps[-1]
    assert np.allclose(steps[-2].outputs[0], made, rtol=1e-12, atol=1e-14)
    assert {"matmul", "multiply", "softmax"} <= {step.name for step in steps}


def test_the_last_step_of_a_norm_and_of_a_linear_is_its_result() -> None:
    x, gain, bias = RANDOM.normal(size=(2, 3, 8)), RANDOM.normal(size=8), RANDOM.normal(size=8)
    made = torch.nn.functional.layer_norm(*map(torch.from_numpy, (x,)), (8,), torch.from_numpy(gain),
                                          torch.from_numpy(bias), 1e-3).numpy()  # fmt: skip
    steps = write_out([operate("layer_norm", [x, gain, bias], made, eps=1e-3)])
    assert np.allclose(steps[-2].outputs[0], made, rtol=1e-12, atol=1e-14)
    made = torch.nn.functional.batch_norm(
        torch.from_numpy(x), None, None, training=True, eps=1e-3
    ).numpy()
    steps = write_out([operate("batch_norm", [x], made, training=True, eps=1e-3)])
    assert np.allclose(steps[-2].outputs[0], made, rtol=1e-12, atol=1e-14)
    assert len(write_out([operate("batch_norm", [x], made, eps=1e-3)])) == 1  # by kept statistics
    weight = RANDOM.normal(size=(5, 8))
    steps = write_out([operate("linear", [x, weight], x @ weight.T)])
    assert np.allclose(steps[-2].outputs[0], x @ weight.T)


WRITTEN_OUT = {
    "addmm": ([(3, 5), (3, 4), (4, 5)], {"beta": 0.5, "alpha": 2.0}),
    "baddbmm": ([(2, 1, 5), (2, 3, 4), (2, 4, 5)], {"beta": 0.0, "alpha": 0.25}),
    "rms_norm": ([(2, 3, 8), (8,)], {"eps": 1e-3}),
    "silu": ([(2, 8)], {}),
}


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_the_last_step_is_the_result(name: str) -> None:
    shapes, numbers = WRITTEN_OUT[name]
    inputs = [RANDOM.normal(size=shape) for shape in shapes]
    tensors = [torch.from_numpy(one) for one in inputs]
    apply = getattr(torch, name) if hasattr(torch, name) else getattr(torch.nn.functional, name)
    made = (
        apply(tensors[0], (8,), *tensors[1:], **numbers)
        if name == "rms_norm"
        else apply(*tensors, **numbers)
    )
    steps = write_out([operate(name, inputs, made.numpy(), **numbers)])
    assert len(steps) > 2
    assert np.allclose(steps[-2].outputs[0], made.numpy(), rtol=1e-12, atol=1e-14)


def test_the_call_that_makes_another_mask_is_found() -> None:
    ones = np.ones((4, 4))
    right, wrong = np.tril(ones), np.triu(ones)
    due = [right.astype(bool)]
    made = operate("ones", [], ones)
    turned = operate("triu", [ones], wrong)
    added = operate("multiply", [wrong], (1 - wrong) * -1e4)
    assert find_mask_maker([made, turned, added], added.outputs[0], due) is turned
    kept = operate("tril", [ones], right)
    divided = operate("divide", [right], (1 - right) / -1e4)
    assert find_mask_maker([made, kept, divided], divided.outputs[0], due) is divided
    assert find_mask_maker([], added.outputs[0], due) is None
