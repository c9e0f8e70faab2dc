"""A small Paddle model, observed; and what a planted fault changes in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reprod_align.pair import paddle_side
from reprod_align.selftest.plant import NoPlace, PlantedFault, View, observe

import numpy as np
import paddle
import pytest

X = np.random.default_rng(0).standard_normal((3, 4))
IMAGES = np.random.default_rng(1).standard_normal((2, 3, 6, 6))


@contextmanager
def observed(model: Any, *inputs: Any, **functions: Any) -> Iterator[View]:
    """Yield the view of a model; `functions`: loss, optimizer, scheduler. Parameters are random."""
    generator = np.random.default_rng(2)
    for parameter in model.parameters():
        if not parameter.stop_gradient:  # a batch norm's statistics stay
            parameter.set_value(generator.standard_normal(parameter.shape).astype("float32"))
    side = paddle_side(model, **functions)
    with side.working("float64"):
        yield observe(side, inputs, 2)


def run(view: View, training: bool = False) -> np.ndarray:
    """Return the model's output, with the same random draws each time."""
    model = view.side.model
    model.train() if training else model.eval()
    paddle.seed(0)
    return np.asarray(model(*map(paddle.to_tensor, view.inputs)).numpy())


def changes_output(view: View, fault: PlantedFault, training: bool = False) -> bool:
    """Tell whether the output is another with the fault; it must be the same again without it."""
    assert fault.plant is not None
    before = run(view, training)
    with fault.plant(view.side):
        planted = run(view, training)
    np.testing.assert_array_equal(run(view, training), before)
    return planted.shape != before.shape or bool((planted != before).any())


def gradients(view: View, fault: PlantedFault) -> dict[str, bool]:
    """Return which parameters get a gradient while the fault is planted."""
    assert fault.plant is not None
    model = view.side.model
    with fault.plant(view.side):
        (model(*map(paddle.to_tensor, view.inputs)) ** 2).sum().backward()
        found = {
            name: parameter.grad is not None and bool((parameter.grad != 0).any())
            for name, parameter in model.named_parameters()
        }
    model.clear_gradients()
    return found


def tell_why_not(find: Any, *given: Any) -> str:
    """Return why a model has no place for a kind of fault."""
    with pytest.raises(NoPlace) as found:
        find(*given)
    return str(found.value)
