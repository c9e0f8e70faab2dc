"""One side of a pair: a model of either framework with its loss, optimizer and schedule.

Everything that leaves a side is plain data (numpy arrays, names, numbers), and everything framework
specific comes from its backend, so that the two sides run the very same lines.
"""

import math
import random as python_random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Protocol
from weakref import ReferenceType, ref

from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.base.tree import leaves
from reprod_align.errors import ReprodError, in_words
from reprod_align.model.projection import Projection
from reprod_align.model.reachable import reachable
from reprod_align.model.settings import ModuleSettings, OptimizerSettings
from reprod_align.model.trace import Array, Trace, kept, unload
from reprod_align.model.watch import NO_PINS, Keep, Pins, Watch

import numpy as np

Inputs = Mapping[str, Array] | tuple[Array, ...]


class ModelFailure(ReprodError):
    """A user's model, loss or optimizer raised: says which side, in which module, and what."""

    def __init__(self, framework: str, path: str, what: str, text: str) -> None:
        """Keep the place, and the error as `in_words` has it."""
        where = f" in {path}" if path else ""
        super().__init__(f"the {framework} {what} raised{where}: {text}")
        self.framework, self.path, self.what, self.text = framework, path, what, text

    @property
    def lacks_kernel(self) -> bool:
        """Whether it is Paddle that has no float64 kernel: clip_by_norm, for one."""
        return "kernel" in self.text and "float64" in self.text and "not registered" in self.text

    @property
    def is_unshared(self) -> bool:
        """Whether it is a random draw that the two sides cannot share."""
        return self.text.startswith("UnsharedDrawError: ")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as what it was made from, notes included."""
        return ModelFailure, (self.framework, self.path, self.what, self.text), self.__dict__


@dataclass(frozen=True)
class TensorInfo:
    """A parameter or buffer, by what matching needs to know of it."""

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
    """the first name of the same tensor; its own name if it has no other"""


@dataclass(frozen=True)
class ModelInfo:
    """A model's modules and tensors, in definition order."""

    modules: Mapping[str, ModuleSettings]
    tensors: Mapping[str, TensorInfo]
    stock: frozenset[str]
    """the modules that are the framework's own layers, unchanged"""


@dataclass
class Step:
    """What one training step did."""

    loss: float
    rates: list[float]
    """learning rate of each parameter group in this step"""
    gradients: dict[str, Array]
    tensors: dict[str, Array]
    """parameters and buffers after the step"""
    drawn: dict[Any, Any]
    """the random draws, by place"""


class Side(Protocol):
    """What is asked of either side, wherever it runs; `LocalSide` says what each method does."""

    @property
    def name(self) -> str:
        """The framework's name."""

    @property
    def remarks(self) -> Sequence[str]:
        """What is no fault but should be known."""

    @property
    def loss(self) -> object | None:
        """None if there is no loss; the same of the next two."""

    @property
    def optimizer(self) -> object | None:
        """None if there is no optimizer."""

    @property
    def scheduler(self) -> object | None:
        """None if there is no scheduler."""

    @property
    def schedule_known(self) -> bool:
        """Whether a scheduler was given."""

    def describe(self) -> ModelInfo:
        """Return the model's modules with their settings, and its tensors."""

    def values(self) -> dict[str, Array]:
        """Return every parameter and buffer by name."""

    def load(self, values: Mapping[str, Array]) -> None:
        """Give the named tensors these values."""

    def optimizer_settings(self) -> OptimizerSettings:
        """Return how the optimizer treats each parameter."""

    @property
    def asked_float32(self) -> bool:
        """Whether the model asked for float32 while float64 was at work."""

    def working(self, dtype: str | None, throughout: bool = False) -> AbstractContextManager[None]:
        """Work in `dtype`; afterwards everything is as it was."""

    def run(
        self,
        inputs: Inputs,
        training: bool,
        draws: KeyedDraws,
        keep: Keep = "outputs",
        objective: Projection | None = None,
        pins: Pins = NO_PINS,
    ) -> Trace:
        """Run forward and backward once."""

    def train(
        self,
        inputs: Inputs,
        steps: int,
        draws: Sequence[KeyedDraws],
        objective: Projection | None = None,
        gradients: Sequence[Mapping[str, Array]] | None = None,
        rates: Sequence[Sequence[float]] | None = None,
    ) -> list[Step]:
        """Train for `steps` steps."""

    def rates(self, steps: int) -> list[list[float]]:
        """Return the learning rates of the schedule alone."""


class LocalSide:
    """A model of this process and what trains it. Only inside `working()` may it be run."""

    def __init__(
        self,
        framework: ModuleType,
        settings: ModuleType,
        shared_random: Callable[[Any], Any],
        model: Any,
        loss: Callable[[Any], Any] | None = None,
        optimizer: Callable[[Any], Any] | None = None,
        scheduler: Callable[[Any], Any] | None = None,
    ) -> None:
        """Keep a model and the functions that go with it, of the framework of the backend."""
        self.fw, self.settings, self.shared_random = framework, settings, shared_random
        self.model, self.loss = model, loss
        self.optimizer, self.scheduler = optimizer, scheduler
        self.dtype: str | None = None
        self.throughout = False
        self.asked_float32 = False
        self.remarks: list[str] = []
        self._used: list[ReferenceType[Any]] = []

    @property
    def name(self) -> str:
        """The framework's name."""
        return str(self.fw.NAME)

    # ------------------------------------------------------------------ what it is

    def describe(self) -> ModelInfo:
        """Return the model's modules with their settings, and its tensors."""
        modules = {path: self.settings.module_settings(module) for path, module in self._modules()}
        tensors: dict[str, TensorInfo] = {}
        first: dict[int, str] = {}
        for name, owner, module, role, tensor, is_parameter in self._tensors():
            tensors[name] = TensorInfo(
                name,
                owner,
                role,
                tuple(tensor.shape),
                bool(self.fw.is_float(tensor)),
                is_parameter,
                is_parameter and bool(self.fw.is_trainable(tensor)),
                bool(self.fw.persistent(module, role)),
                first.setdefault(id(tensor), name),
            )
        package = f"{self.fw.Module.__module__.partition('.')[0]}."
        stock = [
            path for path, module in self._modules() if type(module).__module__.startswith(package)
        ]
        return ModelInfo(modules, tensors, frozenset(stock))

    def values(self) -> dict[str, Array]:
        """Return every parameter and buffer by name, in the framework's own layout."""
        return {name: kept(self.fw.view(tensor)) for name, _, _, _, tensor, _ in self._tensors()}

    def load(self, values: Mapping[str, Array]) -> None:
        """Give the named tensors these values, in the dtype that they have now."""
        named = {name: tensor for name, _, _, _, tensor, _ in self._tensors()}
        for name, array in values.items():
            self.fw.set_values(named[name], array)

    def optimizer_settings(self) -> OptimizerSettings:
        """Return how the optimizer treats each parameter."""
        optimizer = self._made("optimizer", self.optimizer, self.model)
        self._scheduler(optimizer)  # OneCycleLR, for one, sets the momentum too
        settings: OptimizerSettings = self.settings.optimizer_settings(optimizer, self.model)
        return settings

    def _modules(self) -> Iterator[tuple[str, Any]]:
        yield from self.fw.modules(self.model)

    def _tensors(self) -> Iterator[tuple[str, str, Any, str, Any, bool]]:
        for path, module in self._modules():
            for role, tensor, is_parameter in self.fw.own_tensors(module):
                name = f"{path}.{role}" if path else role
                yield name, path, module, role, tensor, is_parameter

    # ------------------------------------------------------------------ working state

    @contextmanager
    def working(self, dtype: str | None, throughout: bool = False) -> Iterator[None]:
        """Work in `dtype` (None: each tensor's own); afterwards everything is as it was. May be nested.

        throughout: in float64 also where the model asks for float32 by name.
        Everything: weights, buffers, gradients, dtypes, train and eval modes, attributes, the
        frameworks', numpy's and Python's random states.
        """
        callables = (self.loss, self.optimizer, self.scheduler)
        found = reachable(self.model, callables, self.fw.is_tensor, self.fw.is_module)
        with ExitStack() as stack:
            stack.enter_context(self.fw.preserved())
            stack.enter_context(_random_states())
            for module in found.modules:
                stack.enter_context(_attributes(module))
            stack.enter_context(self.fw.precision(found.tensors, dtype))
            before = self.dtype, self.throughout
            self.dtype, self.throughout = dtype, throughout
            try:
                yield
            finally:
                self.dtype, self.throughout = before

    # ------------------------------------------------------------------ running

    def run(
        self,
        inputs: Inputs,
        training: bool,
        draws: KeyedDraws,
        keep: Keep = "outputs",
        objective: Projection | None = None,
        pins: Pins = NO_PINS,
    ) -> Trace:
        """Run forward and backward once from the present weights, and return what happened.

        objective: None: the side's own loss. pins: values that take the place of the model's own as
        it runs. Raises ModelFailure if the model or the loss does.
        """
        trace = self._passed(inputs, training, draws, keep, objective, pins)
        trace.gradients = self._gradients()
        self._clear_gradients()
        return trace

    def passed(
        self,
        inputs: Inputs,
        draws: KeyedDraws,
        objective: Projection | None = None,
        pins: Pins = NO_PINS,
    ) -> Trace:
        """Do what `run` does in train mode; the gradients stay with the parameters, uncopied.

        The trace holds the model's own outputs alone.
        """
        return self._passed(inputs, True, draws, "ends", objective, pins)

    def _passed(
        self,
        inputs: Inputs,
        training: bool,
        draws: KeyedDraws,
        keep: Keep,
        objective: Projection | None,
        pins: Pins = NO_PINS,
    ) -> Trace:
        """Run forward and backward once; the parameters have their gradients then."""
        unload()
        self.fw.set_mode(self.model, training)
        self._clear_gradients()
        watch = Watch(self.fw, keep, pins)
        draws.place = watch.place
        with watch.on(self._modules()), self.shared_random(draws), self._float32():
            output = self._called(watch, "model", partial(self._forward, inputs))
            scalar = self._called(watch, "loss", partial(self._objective, output, objective))
            if scalar is not None:
                watch.trace.loss = float(self.fw.array(scalar).reshape(-1)[0])
            if scalar is not None and self.fw.carries_gradient(scalar):
                total = watch.kept_alive(scalar)
                self._called(watch, "backward pass", partial(self.fw.backward, total))
        watch.trace.drawn = draws.drawn
        watch.trace.buffers = self._buffers()
        return watch.trace

    def train(
        self,
        inputs: Inputs,
        steps: int,
        draws: Sequence[KeyedDraws],
        objective: Projection | None = None,
        gradients: Sequence[Mapping[str, Array]] | None = None,
        rates: Sequence[Sequence[float]] | None = None,
    ) -> list[Step]:
        """Train for `steps` steps; `gradients` and `rates`, one entry a step, replace its own."""
        optimizer = self._made("optimizer", self.optimizer, self.model)
        scheduler = self._scheduler(optimizer)
        taken: list[Step] = []
        for number in range(steps):
            trace = Trace()
            if gradients is None:
                trace = self._passed(inputs, True, draws[number], "none", objective)
                trace.gradients = self._gradients()
            else:
                self._set_gradients(gradients[number])
            if rates is not None and len(set(rates[number])) == 1:
                self.fw.set_rate(optimizer, rates[number][0])
            loss, used = trace.loss or 0.0, self.fw.learning_rates(optimizer)
            self._called(None, "optimizer", partial(self.fw.update, optimizer))
            self._advance(scheduler, loss)
            taken.append(Step(loss, used, dict(trace.gradients), self.values(), trace.drawn))
        self._clear_gradients()
        return taken

    def rates(self, steps: int) -> list[list[float]]:
        """Return the learning rates of `steps` steps of the schedule alone, nothing trained."""
        optimizer = self._made("optimizer", self.optimizer, self.model)
        scheduler = self._scheduler(optimizer)
        rates: list[list[float]] = []
        with warnings.catch_warnings():  # PyTorch warns of a schedule without optimizer steps
            warnings.simplefilter("ignore")
            for _ in range(steps):
                rates.append(self.fw.learning_rates(optimizer))
                try:
                    self._advance(scheduler, 1.0)
                except ModelFailure:  # a schedule may have an end
                    break
        return rates

    @property
    def schedule_known(self) -> bool:
        """Whether a scheduler was given."""
        return self.scheduler is not None

    def _float32(self) -> AbstractContextManager[None]:
        if self.dtype != "float64":
            return nullcontext()
        seen: AbstractContextManager[None] = self.fw.float32_requests(
            self._note_float32, self.throughout
        )
        return seen

    def _note_float32(self) -> None:
        self.asked_float32 = True

    def _forward(self, inputs: Inputs) -> Any:
        if isinstance(inputs, Mapping):
            return self.model(**{name: self._input(array) for name, array in inputs.items()})
        return self.model(*[self._input(array) for array in inputs])

    def _input(self, values: Array) -> Any:
        array = np.asarray(values)
        if array.dtype.kind == "f" and self.dtype is not None:
            array = array.astype(self.dtype)
        return self.fw.place(self.fw.constant(array), self.model)

    def _objective(self, output: Any, objective: Projection | None) -> Any:
        if objective is not None:
            return objective(self.fw, leaves(output, self.fw.is_tensor))
        return None if self.loss is None else self._scalar(self.loss(output))

    def _scalar(self, loss: Any) -> Any:
        if not self.fw.is_tensor(loss):
            raise TypeError(f"a tensor of one element expected, not a {type(loss).__name__}")
        if math.prod(loss.shape) != 1:
            raise TypeError(f"a tensor of one element expected, not of shape {tuple(loss.shape)}")
        return loss

    def _called(self, watch: Watch | None, what: str, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except Exception as error:
            path = watch.inside() if watch is not None else ""
            raise ModelFailure(self.name, path, what, in_words(error)) from error

    def _made(self, what: str, maker: Callable[[Any], Any] | None, of: Any) -> Any:
        if maker is None:
            raise ReprodError(
                f"the {self.name} side has no {what}: give {what}s to both or neither"
            )
        made = self._called(None, what, lambda: maker(of))
        own = self.fw.own_scheduler(made) if what == "optimizer" else None
        for one, called in ((made, what), (own, "scheduler")):
            if one is not None and any(one is known() for known in self._used):
                raise ReprodError(
                    f"the {self.name} {what} function returned the same {called} twice, and it is "
                    f"no longer new: make the {called} inside the function"
                )
            if one is not None:
                self._used.append(ref(one))  # weak: an optimizer holds twice the weights
        return made

    def _scheduler(self, optimizer: Any) -> Any:
        if self.scheduler is None:
            return self.fw.own_scheduler(optimizer)
        own = self.fw.own_scheduler(optimizer)
        scheduler = self._called(None, "scheduler", partial(self.scheduler, optimizer))
        if not hasattr(scheduler, "step"):
            raise ReprodError(
                f"the {self.name} scheduler function must return a scheduler with step(), "
                f"not a {type(scheduler).__name__}"
            )
        remark = (
            f"the {self.name} scheduler was not attached to its optimizer: it was attached here"
        )
        if scheduler is not own and self.fw.attach(scheduler, optimizer):
            self.remarks[:] = dict.fromkeys([*self.remarks, remark])
        return scheduler

    def _advance(self, scheduler: Any, loss: float) -> None:
        if scheduler is None:
            return
        plateau = "plateau" in type(scheduler).__name__.lower()  # it steps by the metric
        step = partial(scheduler.step, loss) if plateau else scheduler.step
        self._called(None, "scheduler", step)

    def _parameters(self) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for name, _, _, _, tensor, is_parameter in self._tensors():
            if is_parameter and id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor

    def _clear_gradients(self) -> None:
        for _, parameter in self._parameters():
            self.fw.set_gradient(parameter, None)

    def _set_gradients(self, gradients: Mapping[str, Array]) -> None:
        for name, parameter in self._parameters():
            self.fw.set_gradient(parameter, gradients.get(name))

    def _gradients(self) -> dict[str, Array]:
        found = ((name, self.fw.gradient(tensor)) for name, tensor in self._parameters())
        return {name: kept(gradient) for name, gradient in found if gradient is not None}

    def _buffers(self) -> dict[str, Array]:
        named = ((name, tensor) for name, *_, tensor, is_par in self._tensors() if not is_par)
        return {name: kept(self.fw.view(tensor)) for name, tensor in named}


@contextmanager
def _attributes(module: Any) -> Iterator[None]:
    """Give a module its attributes and buffers back as they were, the objects themselves."""
    attributes, buffers = dict(vars(module)), dict(module._buffers)
    try:
        yield
    finally:
        for name in vars(module).keys() - attributes.keys():
            vars(module).pop(name)
        vars(module).update(attributes)
        module._buffers.clear()
        module._buffers.update(buffers)


@contextmanager
def _random_states() -> Iterator[None]:
    numpys, pythons = np.random.get_state(), python_random.getstate()
    try:
        yield
    finally:
        np.random.set_state(numpys)
        python_random.setstate(pythons)
