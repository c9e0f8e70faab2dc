"""One call on a user's own pair: is the port faithful, and if not, where and why does it part?

Both models are brought to float64 where they stand and given the same weights; then they are run in
eval mode, in train mode with shared random draws, and through optimizer steps. Where two numbers
differ, `locate` finds the module that makes the difference. Afterwards the models are as before.
"""

import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from reprod_align.bench import Bench
from reprod_align.errors import ReprodError
from reprod_align.judge import judged
from reprod_align.report import Report
from reprod_align.side import Inputs, ModelFailure, Side

import numpy as np

Function = Callable[[Any], Any]


def align(
    torch_model: Any,
    paddle_model: Any,
    inputs: Inputs,
    torch_loss: Function | None = None,
    paddle_loss: Function | None = None,
    torch_optimizer: Function | None = None,
    paddle_optimizer: Function | None = None,
    torch_scheduler: Function | None = None,
    paddle_scheduler: Function | None = None,
    steps: int = 3,
    name_map: Mapping[str, str] | None = None,
    copy_weights: bool = True,
) -> Report:
    """Compare a PyTorch model with its Paddle port, and say where they part and why.

    inputs: arrays given to both models, by keyword (a dict) or by position (a tuple).
    torch_loss, paddle_loss: from the model's output to a scalar tensor.
    torch_optimizer, paddle_optimizer: from the model to an optimizer; `steps` steps are taken.
    torch_scheduler, paddle_scheduler: from the optimizer to a scheduler, stepped after each step.
    name_map: {PyTorch name or prefix: Paddle name or prefix}, where names can't be paired without.
    copy_weights: True: the converted PyTorch weights are loaded into the Paddle model first;
    False: the weights that it holds are compared.

    Both models are given back as they came. Raises ReprodError if an argument can't be what it
    should be, or if the PyTorch side itself fails.
    """
    from reprod_align.pair import paddle_side, torch_side

    reference = torch_side(torch_model, torch_loss, torch_optimizer, torch_scheduler)
    port = paddle_side(paddle_model, paddle_loss, paddle_optimizer, paddle_scheduler)
    return compare_sides(reference, port, inputs, steps, name_map, copy_weights)


def compare_sides(
    reference: Side,
    port: Side,
    inputs: Inputs,
    steps: int = 3,
    name_map: Mapping[str, str] | None = None,
    copy_weights: bool = True,
) -> Report:
    """Do what `align` does, for two sides that are already made."""
    check_inputs(inputs)
    _check(steps, name_map, copy_weights, reference, port)
    try:
        return _judged(reference, port, inputs, steps, name_map, copy_weights, "float64")
    except ModelFailure as error:
        report = _judged(reference, port, inputs, steps, name_map, copy_weights, "float32")
        report.remarks.insert(0, f"judged in float32, since float64 does not run: {error}")
        return report


def _judged(
    reference: Side,
    port: Side,
    inputs: Inputs,
    steps: int,
    name_map: Mapping[str, str] | None,
    copy_weights: bool,
    dtype: str,
) -> Report:
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter(
            "ignore"
        )  # of libraries about themselves, and errors where -W says so
        stack.enter_context(reference.working(dtype))
        stack.enter_context(port.working(dtype))
        bench = Bench(reference, port, inputs, steps, dtype)
        return judged(bench, name_map, copy_weights)


def check_inputs(inputs: object) -> None:
    """Raise ReprodError unless `inputs` are arrays, by name or by position."""
    if not isinstance(inputs, (Mapping, tuple, list)) or not inputs:
        raise ReprodError(
            "inputs must be a dict of arrays (keywords) or a tuple of arrays (by position), not empty"
        )
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    for name, value in named:
        if isinstance(inputs, Mapping) and not isinstance(name, str):
            raise ReprodError(f"inputs: {name!r} is no name of an argument")
        if not isinstance(value, np.ndarray):
            advice = ": give its .numpy()" if hasattr(value, "numpy") else ""
            raise ReprodError(
                f"inputs: {name!r} is no array of numbers but {_class_of(value)}{advice}"
            )
        if value.dtype.kind not in "biufc":
            raise ReprodError(f"inputs: {name!r} is no array of numbers but one of {value.dtype}")


def _class_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")


def _check(
    steps: object, name_map: object, copy_weights: object, reference: Side, port: Side
) -> None:
    """Raise ReprodError for arguments that can't be meant."""
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ReprodError(f"steps must be a whole number above 0, not {str(steps)[:50]!r}")
    if not isinstance(copy_weights, bool):
        raise ReprodError(f"copy_weights must be True or False, not {str(copy_weights)[:50]!r}")
    named = name_map if isinstance(name_map, Mapping) else {None: None} if name_map else {}
    if not all(isinstance(name, str) for pair in named.items() for name in pair):
        raise ReprodError("name_map must be a dict from name to name")
    for what in ("loss", "optimizer"):
        first, second = getattr(reference, what), getattr(port, what)
        if (first is None) != (second is None):
            raise ReprodError(f"torch_{what} and paddle_{what} go together: give both or neither")
    if reference.optimizer is None and (reference.scheduler or port.scheduler):
        raise ReprodError(
            "a scheduler needs an optimizer: give torch_optimizer and paddle_optimizer"
        )
