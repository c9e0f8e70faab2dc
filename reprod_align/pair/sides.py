"""Makes the two sides of a pair; each function imports its framework when it is called.

`announce_work` shows on the terminal what a side is about to do.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

from reprod_align.backends.versions import require
from reprod_align.base.console import tell
from reprod_align.base.text import count
from reprod_align.errors import ReprodError
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Side

Function = Callable[[Any], Any] | None
_TORCH_SIDE = "reprod_align.backends.torch.side"


def torch_side(
    model: Any, loss: Function = None, optimizer: Function = None, scheduler: Function = None
) -> LocalSide:
    """Return the PyTorch side. Raises ReprodError if `model` cannot be compared."""
    require("torch")
    from reprod_align.backends.torch import settings, side
    from reprod_align.backends.torch.random import shared_random

    _check("torch_model", model, side, "torch.nn.Module")
    return LocalSide(side, settings, shared_random, model, loss, optimizer, scheduler)


def paddle_side(
    model: Any, loss: Function = None, optimizer: Function = None, scheduler: Function = None
) -> LocalSide:
    """Return the Paddle side. Raises ReprodError if `model` cannot be compared."""
    require("paddlepaddle")
    from reprod_align.backends.paddle import settings, side
    from reprod_align.backends.paddle.private import is_torch_replaced
    from reprod_align.backends.paddle.random import shared_random

    if is_torch_replaced():
        _refuse_stand_in()
    _check("paddle_model", model, side, "paddle.nn.Layer")
    return LocalSide(side, settings, shared_random, model, loss, optimizer, scheduler)


def _refuse_stand_in() -> None:
    """Raise ReprodError where PyTorch's side is here, and `import torch` gives Paddle's stand-in.

    The two can't share a process: whichever module is imported later has the other framework.
    """
    if _TORCH_SIDE in sys.modules:
        raise ReprodError(
            "paddle.enable_compat() makes `import torch` import Paddle, and this process holds the "
            "PyTorch model too: write a pair file, and give each model a process of its own with "
            f"reprod-align pair FILE.py --paddle-python {sys.executable}"
        )


def _check(name: str, model: Any, framework: ModuleType, wanted: str) -> None:
    """Raise ReprodError unless the model is one of the framework's, and can be compared."""
    if model is None:
        raise ReprodError(f"{name} is None: expected a {wanted}; is a `return` missing?")
    if not framework.is_module(model):
        given = f"{type(model).__module__}.{type(model).__name__}".removeprefix("builtins.")
        raise ReprodError(f"{name} is of type {given}, not a {wanted}")
    obstacle = framework.find_obstacle(model)
    if obstacle:
        raise ReprodError(f"{name} {obstacle}")


def announce_work(side: Any) -> Side:
    """Return a side, of this process or of another; it shows each time what it is about to do."""
    return cast(Side, _Announcing(side))


class _Announcing:
    def __init__(self, side: Any) -> None:
        self._side = side

    def __getattr__(self, name: str) -> Any:
        return getattr(self._side, name)

    def describe(self) -> Any:
        tell(f"{self._side.name}: weights and settings")
        return self._side.describe()

    def run(self, inputs: Any, training: bool, *rest: Any, **options: Any) -> Any:
        mode = "train" if training else "eval"
        tell(f"{self._side.name}: forward and backward, {mode} mode")
        return self._side.run(inputs, training, *rest, **options)

    def train(self, inputs: Any, steps: int, *rest: Any, **options: Any) -> Any:
        tell(f"{self._side.name}: optimizer, {count(steps, 'step')}")
        return self._side.train(inputs, steps, *rest, **options)

    def rates(self, steps: int) -> Any:
        tell(f"{self._side.name}: schedule, {steps} steps")
        return self._side.rates(steps)
