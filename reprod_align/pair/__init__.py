"""One description of a pair: its two sides, their batch, and how they are compared.

A call from Python, a pair file, a command and two other processes all come to a `PairSpec`. `make_pair`
has the arguments of `align`; `with_arguments_of` gives them to the functions that take the same.
`torch_side` and `paddle_side` import their framework when they are called; `announce_work` shows on the
terminal what a side is about to do.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import cleandoc, signature
from types import ModuleType
from typing import Any, Final, ParamSpec, Self, TypeVar, cast

from reprod_align.backends.versions import require
from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.console import tell
from reprod_align.base.text import count
from reprod_align.errors import ReprodError
from reprod_align.model.functions import UserFunction
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs, Side, check_inputs

import numpy as np


def torch_side(
    model: Any,
    loss: UserFunction | None = None,
    optimizer: UserFunction | None = None,
    scheduler: UserFunction | None = None,
) -> LocalSide:
    """Return the PyTorch side. Raises ReprodError if `model` cannot be compared."""
    require("torch")
    from reprod_align.backends.torch import settings, side
    from reprod_align.backends.torch.random import shared_random

    _check("torch_model", model, side, "torch.nn.Module")
    return LocalSide(side, settings, shared_random, model, loss, optimizer, scheduler)


def paddle_side(
    model: Any,
    loss: UserFunction | None = None,
    optimizer: UserFunction | None = None,
    scheduler: UserFunction | None = None,
) -> LocalSide:
    """Return the Paddle side. Raises ReprodError if `model` cannot be compared."""
    require("paddlepaddle")
    from reprod_align.backends.paddle import settings, side
    from reprod_align.backends.paddle.private import is_torch_replaced
    from reprod_align.backends.paddle.random import shared_random

    # whichever module is imported later has the other framework
    if is_torch_replaced() and "reprod_align.backends.torch.side" in sys.modules:
        raise ReprodError(
            "paddle.enable_compat() makes `import torch` import Paddle, and this process holds the "
            "PyTorch model too: write a pair file, and give each model a process of its own with "
            f"reprod-align pair FILE.py --paddle-python {sys.executable}"
        )
    _check("paddle_model", model, side, "paddle.nn.Layer")
    return LocalSide(side, settings, shared_random, model, loss, optimizer, scheduler)


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


_WORK: Final[Mapping[str, Callable[..., str]]] = {
    "describe": lambda: "weights and settings",
    "run": lambda inputs, training, *rest, **options: (
        f"forward and backward, {'train' if training else 'eval'} mode"
    ),
    "train": lambda inputs, steps, *rest, **options: f"optimizer, {count(steps, 'step')}",
    "rates": lambda steps: f"schedule, {steps} steps",
}
"""a method of `Side` -> what a call of it is about to do"""


class _Announcing:
    def __init__(self, side: Any) -> None:
        self._side = side

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._side, name)
        if name not in _WORK:
            return own

        def work(*given: Any, **named: Any) -> Any:
            tell(f"{self._side.name}: {_WORK[name](*given, **named)}")
            return own(*given, **named)

        return work


P = ParamSpec("P")
Result = TypeVar("Result")


@dataclass(frozen=True)
class PairSpec:
    """Two sides, and how they are to be compared."""

    reference: Side
    port: Side
    inputs: Inputs
    steps: int = 3
    """of training"""
    name_map: Mapping[str, str] | None = None
    """{the reference's name or prefix: the port's name or prefix}"""
    copy_weights: bool = True
    """whether the reference's converted weights are loaded into the port first"""
    memory: int | None = None
    """bytes that may be taken before what is kept goes to temporary files; None: what is free"""
    modules: Mapping[str, str] | None = None
    """that are known to stand for each other: the reference's name -> the port's"""
    further: bool = True
    """whether further batches are derived from the inputs"""
    places_only: bool = False
    """whether it is judged up to the stage that shows a difference, without causes and lines"""
    tries_edits: bool = True
    """whether edits of the port's code are tried at a fault, which takes most of the time"""

    @property
    def framework(self) -> Framework:
        """The reference's."""
        return "paddle" if self.reference.name == FRAMEWORKS["paddle"] else "torch"

    @property
    def asked_float32(self) -> bool:
        """Whether either model has asked for float32 while float64 was at work."""
        return self.reference.asked_float32 or self.port.asked_float32

    def check(self) -> Self:
        """Return the pair. Raises ReprodError if something in it cannot be meant."""
        check_inputs(self.inputs)
        for name in ("steps", "name_map", "copy_weights", "memory"):
            check_setting(name, getattr(self, name))
        for what in ("loss", "optimizer"):
            if (getattr(self.reference, what) is None) != (getattr(self.port, what) is None):
                raise ReprodError(
                    f"torch_{what} and paddle_{what} go together: give both or neither"
                )
        if self.reference.optimizer is None and (self.reference.scheduler or self.port.scheduler):
            raise ReprodError(
                "a scheduler needs an optimizer: give torch_optimizer and paddle_optimizer"
            )
        return self


def _is_count(value: Any) -> bool:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return bool(whole and value > 0)


def _is_name_map(value: object) -> bool:
    named = {} if value is None else value
    return isinstance(named, Mapping) and all(
        isinstance(name, str) for pair in named.items() for name in pair
    )


SETTINGS: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "steps": ("a whole number above 0", _is_count),
    "name_map": ("a dict from PyTorch's names to Paddle's", _is_name_map),
    "copy_weights": ("True or False", lambda value: isinstance(value, bool)),
    "memory": ("a number of bytes", lambda value: value is None or _is_count(value)),
    "reference": (" or ".join(map(repr, FRAMEWORKS)), lambda value: value in (*FRAMEWORKS,)),
}
"""what each may be"""


def check_setting(name: str, value: object) -> None:
    """Raise ReprodError if the value is none that the setting may have."""
    expected, holds = SETTINGS[name]
    if not holds(value):
        raise ReprodError(f"{name}: expected {expected}, got {str(value)[:50]!r}")


def make_pair(
    torch_model: Any,
    paddle_model: Any,
    inputs: Inputs,
    torch_loss: UserFunction | None = None,
    paddle_loss: UserFunction | None = None,
    torch_optimizer: UserFunction | None = None,
    paddle_optimizer: UserFunction | None = None,
    torch_scheduler: UserFunction | None = None,
    paddle_scheduler: UserFunction | None = None,
    steps: int = 3,
    name_map: Mapping[str, str] | None = None,
    copy_weights: bool = True,
    memory: int | None = None,
    reference: Framework = "torch",
) -> PairSpec:
    """Return the pair of two models. Raises ReprodError if an argument can't be what it should be.

    inputs: arrays given to both models, by keyword (a dict) or by position (a tuple).
    torch_loss, paddle_loss: from the model's output to a scalar tensor.
    torch_optimizer, paddle_optimizer: from the model to an optimizer; `steps` steps are taken.
    torch_scheduler, paddle_scheduler: from the optimizer to a scheduler, stepped after each step.
    name_map: {PyTorch name or prefix: Paddle name or prefix}, where names can't be paired without.
    copy_weights: True: the reference's converted weights are loaded into the port first;
    False: the weights that it holds are compared.
    memory: bytes that this process may take before what is kept goes to temporary files; None: what
    is free, less a reserve.
    reference: "torch"; "paddle": the Paddle model is right, and PyTorch's is its port.
    """
    torch = torch_side(torch_model, torch_loss, torch_optimizer, torch_scheduler)
    paddle = paddle_side(paddle_model, paddle_loss, paddle_optimizer, paddle_scheduler)
    return order_pair(
        torch, paddle, inputs, reference, steps=steps, name_map=name_map,
        copy_weights=copy_weights, memory=memory,
    ).check()  # fmt: skip


def order_pair(
    torch: Side,
    paddle: Side,
    inputs: Inputs,
    reference: Framework = "torch",
    *,
    name_map: Mapping[str, str] | None = None,
    **settings: Any,
) -> PairSpec:
    """Return the pair of two sides, of which one is the reference.

    name_map: from PyTorch's names to Paddle's, whichever is the reference. Raises ReprodError if
    `reference` names no framework, or a map does not tell which of PyTorch's names is meant.
    """
    check_setting("reference", reference)
    if reference == "torch":
        return PairSpec(torch, paddle, inputs, name_map=name_map, **settings)
    check_setting("name_map", name_map)
    turned = {paddle: torch for torch, paddle in (name_map or {}).items()}
    if len(turned) < len(name_map or {}):
        raise ReprodError(
            "name_map: several of PyTorch's names have one of Paddle's, which is the reference's"
        )
    return PairSpec(paddle, torch, inputs, name_map=turned, **settings)


def with_arguments_of(
    make: Callable[P, object],
) -> Callable[[Callable[..., Result]], Callable[P, Result]]:
    """Return a decorator: a function gets the arguments of `make` for its signature.

    In its documentation, {arguments} stands for what `make` says of them.
    """
    known = signature(make)
    said = cleandoc(make.__doc__ or "").partition("\n\n")[2]

    def decorate(function: Callable[..., Result]) -> Callable[P, Result]:
        @wraps(function)
        def call(*given: P.args, **named: P.kwargs) -> Result:
            known.bind(*given, **named)  # a TypeError names what is missing or too many
            return function(*given, **named)

        returned = signature(function).return_annotation
        call.__signature__ = known.replace(return_annotation=returned)  # type: ignore[attr-defined]
        call.__doc__ = cleandoc(function.__doc__ or "").replace("{arguments}", said)
        return call

    return decorate
