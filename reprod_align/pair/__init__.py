"""One description of a pair: its two sides, their batch, and how they are compared.

A call from Python, a pair file, a command and two other processes all come to a `PairSpec`. `make_pair`
has the arguments of `align`; `with_arguments_of` gives them to the functions that take the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import cleandoc, signature
from typing import Any, Final, ParamSpec, Self, TypeVar

from reprod_align.errors import ReprodError
from reprod_align.model.side import Inputs, Side, check_inputs
from reprod_align.pair.sides import paddle_side, torch_side

import numpy as np

Function = Callable[[Any], Any]
Arguments = ParamSpec("Arguments")
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
    """{PyTorch name or prefix: Paddle name or prefix}"""
    copy_weights: bool = True
    """whether the converted PyTorch weights are loaded into the port first"""
    memory: int | None = None
    """bytes that may be taken before what is kept goes to temporary files; None: what is free"""
    modules: Mapping[str, str] | None = None
    """that are known to stand for each other: PyTorch's name -> Paddle's"""
    further: bool = True
    """whether further batches are derived from the inputs"""
    places_only: bool = False
    """whether it is judged up to the stage that shows a difference, without causes and lines"""
    tries_edits: bool = True
    """whether edits of the port's code are tried at a fault, which takes most of the time"""

    @property
    def asked_float32(self) -> bool:
        """Whether either model has asked for float32 while float64 was at work."""
        return self.reference.asked_float32 or self.port.asked_float32

    def check(self) -> Self:
        """Return the pair. Raises ReprodError if something in it cannot be meant."""
        check_inputs(self.inputs)
        for name in SETTINGS:
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
    torch_loss: Function | None = None,
    paddle_loss: Function | None = None,
    torch_optimizer: Function | None = None,
    paddle_optimizer: Function | None = None,
    torch_scheduler: Function | None = None,
    paddle_scheduler: Function | None = None,
    steps: int = 3,
    name_map: Mapping[str, str] | None = None,
    copy_weights: bool = True,
    memory: int | None = None,
) -> PairSpec:
    """Return the pair of two models. Raises ReprodError if an argument can't be what it should be.

    inputs: arrays given to both models, by keyword (a dict) or by position (a tuple).
    torch_loss, paddle_loss: from the model's output to a scalar tensor.
    torch_optimizer, paddle_optimizer: from the model to an optimizer; `steps` steps are taken.
    torch_scheduler, paddle_scheduler: from the optimizer to a scheduler, stepped after each step.
    name_map: {PyTorch name or prefix: Paddle name or prefix}, where names can't be paired without.
    copy_weights: True: the converted PyTorch weights are loaded into the Paddle model first;
    False: the weights that it holds are compared.
    memory: bytes that this process may take before what is kept goes to temporary files; None: what
    is free, less a reserve.
    """
    reference = torch_side(torch_model, torch_loss, torch_optimizer, torch_scheduler)
    port = paddle_side(paddle_model, paddle_loss, paddle_optimizer, paddle_scheduler)
    return PairSpec(reference, port, inputs, steps, name_map, copy_weights, memory).check()


def with_arguments_of(
    make: Callable[Arguments, object],
) -> Callable[[Callable[..., Result]], Callable[Arguments, Result]]:
    """Return a decorator: a function gets the arguments of `make` for its signature.

    In its documentation, {arguments} stands for what `make` says of them.
    """
    known = signature(make)
    said = cleandoc(make.__doc__ or "").partition("\n\n")[2]

    def decorate(function: Callable[..., Result]) -> Callable[Arguments, Result]:
        @wraps(function)
        def call(*given: Arguments.args, **named: Arguments.kwargs) -> Result:
            known.bind(*given, **named)  # a TypeError names what is missing or too many
            return function(*given, **named)

        returned = signature(function).return_annotation
        call.__signature__ = known.replace(return_annotation=returned)  # type: ignore[attr-defined]
        call.__doc__ = cleandoc(function.__doc__ or "").replace("{arguments}", said)
        return call

    return decorate
