"""One side of a pair, as the judge sees it: what it can be asked, and the plain data of its answers.

`model.local.LocalSide` answers for a model of this process, `pair.remote.RemoteSide` for one of
another process. Both sides are given one batch: arrays by name, or by position.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypedDict, TypeVar, Unpack

from reprod_align.base.blocks import Array
from reprod_align.errors import MissingNameError, ReprodError
from reprod_align.model.backward import Projection
from reprod_align.model.settings import ModuleSettings, OptimizerSettings
from reprod_align.model.source import SourceLine, Wanted
from reprod_align.model.source.coverage import IdleLines
from reprod_align.model.trace import Trace
from reprod_align.model.watch import Keep, Pins
from reprod_align.randomness import KeyedDraws

import numpy as np

Inputs = Mapping[str, Array] | tuple[Array, ...]
T = TypeVar("T")


_LACKS_NAME = f"{MissingNameError.__name__}: "


class ModelFailure(ReprodError):
    """A user's model, loss or optimizer raised an error: says on which side and in which module."""

    def __init__(self, framework: str, path: str, what: str, text: str) -> None:
        """Keep the place, and the error as `describe_error` has it."""
        where = f" in {path}" if path else ""
        super().__init__(f"the {framework} {what} raised{where}: {text}")
        self.framework, self.path, self.what, self.text = framework, path, what, text
        self.source: SourceLine | None = None
        """the user's line that raised"""

    @property
    def lacks_kernel(self) -> bool:
        """Whether Paddle lacks a float64 kernel, as of clip_by_norm."""
        # after "is not registered" stand the dtypes that there are
        key = self.text.partition(" is not registered")[0]
        return "kernel" in key and "float64" in key and key != self.text

    @property
    def is_unshared(self) -> bool:
        """Whether the cause is a random draw that the two sides cannot share."""
        return self.lacks_name or self.text.startswith("UnsharedDrawError: ")

    @property
    def lacks_name(self) -> bool:
        """Whether the framework's version lacks what makes it draw from a shared stream."""
        return self.text.startswith(_LACKS_NAME)

    @property
    def reason(self) -> str:
        """What to tell the user; where a framework lacks a name, that alone: no code of the user's raised."""
        return self.text.removeprefix(_LACKS_NAME) if self.lacks_name else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as what it was made from, notes included."""
        return ModelFailure, (self.framework, self.path, self.what, self.text), self.__dict__


@dataclass(frozen=True)
class TensorInfo:
    """What matching needs to know of a parameter or buffer."""

    name: str
    owner: str
    """dotted name of the module that holds it"""
    role: str
    """its name within the owner"""
    shape: tuple[int, ...]
    is_float: bool
    is_parameter: bool
    is_trainable: bool
    is_persistent: bool
    tie: str
    """the name that stands for all names of the same tensor; its own name if it has no other"""


@dataclass(frozen=True)
class ModelInfo:
    """A model's modules and tensors, in definition order."""

    modules: Mapping[str, ModuleSettings]
    tensors: Mapping[str, TensorInfo]
    stock: frozenset[str]
    """the modules that are the framework's own layers, unchanged"""

    def find(self, known: Mapping[str, T], name: str) -> T | None:
        """Return what is known of a tensor, under any of its names; None if nothing is."""
        found = (known.get(other) for other in (name, *self.other_names(name)))
        return next((value for value in found if value is not None), None)

    def spread(self, known: Mapping[str, T]) -> dict[str, T]:
        """Return what is known of the tensors under every name of theirs."""
        found = ((name, self.find(known, name)) for name in self.tensors)
        return {name: value for name, value in found if value is not None}

    def other_names(self, name: str) -> Sequence[str]:
        """Return every name of a tensor."""
        return self._ties[self.tensors[name].tie]

    @cached_property
    def _ties(self) -> Mapping[str, Sequence[str]]:
        names: dict[str, list[str]] = defaultdict(list)
        for tensor in self.tensors.values():
            names[tensor.tie].append(tensor.name)
        return names


@dataclass
class TrainingStep:
    """What one training step did."""

    loss: float
    rates: list[float]
    """learning rate of each parameter group in this step"""
    gradients: dict[str, Array]
    tensors: dict[str, Array]
    """parameters and buffers after the step"""
    drawn: dict[Any, Any]
    """the random draws, by place"""


class RunOptions(TypedDict, total=False):
    """How a side runs once. Left out: no pins, nothing wanted, graded, and the others False."""

    pins: Pins
    """values that take the place of the model's own as it runs"""
    wanted: Wanted | None
    """modules whose own code is recorded call by call"""
    anew: bool
    """what the model kept of earlier calls is forgotten first"""
    graded: bool
    """False: under no_grad"""
    of_inputs: bool
    """the gradients of the float inputs are kept too"""
    defer: bool
    """without a backward pass; the graph of the trace tells what it would do"""


class Side(Protocol):
    """A model of one framework with its loss, optimizer and schedule."""

    @property
    def name(self) -> str:
        """The framework's name."""

    @property
    def remarks(self) -> Sequence[str]:
        """What the user should know although it is correct."""

    @property
    def loss(self) -> object | None:
        """None if there is no loss; the next two likewise."""

    @property
    def optimizer(self) -> object | None:
        """None if there is no optimizer."""

    @property
    def scheduler(self) -> object | None:
        """None if there is no scheduler."""

    @property
    def asked_float32(self) -> bool:
        """Whether the model asked for float32 while float64 was at work."""

    @property
    def keeps_float32(self) -> bool:
        """Whether it asked and is given float32: the work now is not in float64 throughout."""

    @property
    def rounding_modules(self) -> list[str]:
        """The modules whose own code asks for float32 by name, other than for masks; "": the model itself.

        They are seen while the side works in float64 throughout.
        """

    def describe(self) -> ModelInfo:
        """Return the model's modules with their settings, and its tensors."""

    def values(self) -> dict[str, Array]:
        """Return every parameter and buffer by name, in the framework's own layout."""

    def saved_names(self) -> dict[str, str]:
        """Return the state dict's names, each with the name that the model gives the tensor.

        That is "" where the state dict holds something that the model computes.
        """

    def read_given(self) -> Mapping[str, Array]:
        """Return every parameter and buffer as it came, in the dtype of work: read when asked for."""

    def load(self, values: Mapping[str, Array]) -> None:
        """Give the named tensors these values, in the dtype that they have now."""

    def set_buffers(self, values: Mapping[str, Array]) -> None:
        """Give the named buffers these values; all else that the model keeps of its calls stays."""

    def read_tables(self) -> Mapping[str, Array]:
        """Return the float tensors that the modules hold beside their parameters, by name."""

    def set_tables(self, values: Mapping[str, Array]) -> None:
        """Give tensors that `read_tables` names these values, in their own dtype."""

    def rest(self) -> None:
        """Let go of large parameters' copies in the dtype of work until this side is asked again.

        They are as they came then: a side may rest where the next run would start from there.
        """

    def optimizer_settings(self) -> OptimizerSettings:
        """Return how the optimizer treats each parameter."""

    def working(
        self, dtype: str | None, throughout: bool = False, at_rest: bool = False
    ) -> AbstractContextManager[None]:
        """Work in `dtype` (None: each tensor's own); afterwards everything is as it was.

        throughout: in float64 also where the model asks for float32 by name. at_rest: begin as after
        `rest`, with all parameters: those that are loaded first need no copy of what they hold. May be
        nested.
        """

    def run(
        self,
        inputs: Inputs,
        training: bool,
        draws: KeyedDraws,
        keep: Keep = "outputs",
        objective: Projection | None = None,
        **how: Unpack[RunOptions],
    ) -> Trace:
        """Run forward and backward once from the present weights.

        objective: None: the side's own loss. Raises ModelFailure if the model or the loss does.
        """

    def train(
        self,
        inputs: Inputs,
        steps: int,
        draws: Sequence[KeyedDraws],
        objective: Projection | None = None,
        gradients: Sequence[Mapping[str, Array]] | None = None,
        rates: Sequence[Sequence[float]] | None = None,
    ) -> list[TrainingStep]:
        """Train for `steps` steps; `gradients` and `rates`, one entry a step, replace its own."""

    def find_classes(self, path: str, anywhere: bool = False) -> list[SourceLine]:
        """Return a line inside a module's class and inside each base class, where they are the user's.

        anywhere: the framework's too.
        """

    def read_attributes(self, path: str) -> Mapping[str, object]:
        """Return the switches, numbers and texts that a module holds as attributes of its own."""

    def find_maker(self, what: str) -> SourceLine | None:
        """Return where the user's code makes the optimizer or the scheduler, or computes the loss."""

    def mend_kernels(self, mends: bool) -> list[str]:
        """Begin, or end, to correct kernels that contradict themselves; return those met so far, in words.

        PyTorch's side alone can: see `backends.torch.kernels`.
        """

    def watch_lines(self) -> None:
        """Note from now on which lines of the model's own code run."""

    def find_idle_lines(self) -> IdleLines:
        """Return the lines that have not run since `watch_lines`, which ends with it."""

    def rates(self, steps: int) -> list[list[float]]:
        """Return the learning rates of `steps` steps of the schedule alone, nothing trained."""


_MASK_VALUES = 3  # shown, hidden, and halfway


def check_inputs(inputs: object) -> None:
    """Raise ReprodError unless `inputs` are arrays, by name or by position."""
    if not isinstance(inputs, (Mapping, tuple, list)):
        raise ReprodError(
            "inputs must be a dict of arrays (keywords) or a tuple of arrays (by position), "
            f"not {_describe_value(inputs)}"
        )
    if not inputs:
        raise ReprodError("inputs: expected at least one array, got none")
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    for name, value in named:
        if isinstance(inputs, Mapping) and not isinstance(name, str):
            raise ReprodError(f"inputs: expected names of arguments as keys, got {name!r}")
        if not isinstance(value, np.ndarray):
            advice = ": give its .numpy()" if hasattr(value, "numpy") else ""
            got = _name_class(value)
            raise ReprodError(f"inputs[{name!r}]: expected a numpy array, got a {got}{advice}")
        if value.dtype.kind not in "biufc":
            raise ReprodError(f"inputs[{name!r}]: expected numbers, got an array of {value.dtype}")
    values = inputs.values() if isinstance(inputs, Mapping) else inputs
    if not any(value.size for value in values):
        raise ReprodError("inputs: every array is empty, so nothing would be computed")


def name_inputs(inputs: Mapping[str, Array] | tuple[Array, ...]) -> dict[str, Array]:
    """Return the arrays by name; those by position have their numbers for names."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    return {str(number): array for number, array in enumerate(inputs)}


def may_have_gradient(array: Array) -> bool:
    """Tell whether an input can have a gradient: it holds floats."""
    return array.dtype.kind == "f" and array.size > 0


def has_few_values(array: Array) -> bool:
    """Tell whether an input can be a mask, whose gradient depends on how a framework hides places."""
    return len(np.unique(array)) <= min(_MASK_VALUES, array.size - 1)


def _describe_value(value: object) -> str:
    """Return what was given in place of several arrays; of one array, what to write instead."""
    if not hasattr(value, "shape"):
        return f"a {_name_class(value)}"
    return (
        f"one {_name_class(value)} of shape {tuple(value.shape)}: return a dict, "
        "{'the name of the argument': array}, or a tuple, (array,)"
    )


def _name_class(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
