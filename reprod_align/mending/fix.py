"""`fix`: the edits of a port's source that make it faithful, as a patch."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from reprod_align.mending.mend import mend_port
from reprod_align.mending.result import Mended
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs
from reprod_align.pair.sides import paddle_side, torch_side

Function = Callable[[Any], Any]


def fix(
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
) -> Mended:
    """Look for the edits of the Paddle model's source with which it is faithful, and prove them.

    The arguments are those of `align`. paddle_model: the port, or a function without arguments that
    makes it: what its constructors say can be edited then. No file is changed: the result holds a
    patch. Raises ReprodError as `align` does.
    """
    reference = torch_side(torch_model, torch_loss, torch_optimizer, torch_scheduler)
    make = paddle_model if _makes_model(paddle_model) else lambda: paddle_model

    def make_port() -> LocalSide:
        return paddle_side(make(), paddle_loss, paddle_optimizer, paddle_scheduler)

    return mend_port(reference, make_port, inputs, steps, name_map, copy_weights)


def _makes_model(value: Any) -> bool:
    """Tell whether a value is a function or a class, not a model."""
    return inspect.isclass(value) or (callable(value) and not hasattr(value, "forward"))
