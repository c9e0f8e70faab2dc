"""The side of a pair whose model lives in this process.

Everything that leaves it is plain data (numpy arrays, names, numbers), and every framework call comes
from its backend, so that the two sides run the very same lines.
"""

import math
import random as python_random
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from types import ModuleType
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.base.tree import leaves
from reprod_align.errors import ReprodError, describe_error
from reprod_align.model.projection import Projection
from reprod_align.model.reachable import Reachable, find_reachable
from reprod_align.model.settings import OptimizerSettings
from reprod_align.model.side import Inputs, ModelFailure, ModelInfo, Step, TensorInfo
from reprod_align.model.source.alteration import altered, list_plain_attributes
from reprod_align.model.source.lines import SourceLine, UserCode
from reprod_align.model.source.operation import RunEnd, Wanted
from reprod_align.model.state import State
from reprod_align.model.store import keep_copy, keep_own, unload
from reprod_align.model.store.given import Given
from reprod_align.model.trace import Array, Trace
from reprod_align.model.watch import NO_PINS, Keep, Pins, Watch

import numpy as np

Maker = Callable[[Any], Any]
_WORTH_RESTING = (
    2**25
)  # elements: converting fewer once more takes longer than their memory is worth


class _Held(NamedTuple):
    """A tensor and the module that holds it."""

    name: str
    path: str
    module: Any
    role: str
    tensor: Any
    is_parameter: bool


class LocalSide:
    """A `Side`: a model of this process and what trains it. It runs only inside `working()`."""

    def __init__(
        self,
        framework: ModuleType,
        settings: ModuleType,
        shared_random: Callable[[Any], Any],
        model: Any,
        loss: Callable[[Any], Any] | None = None,
        optimizer: Maker | None = None,
        scheduler: Maker | None = None,
    ) -> None:
        """Take the backend's `side`, `settings` and `shared_random`, a model, and what trains it.

        loss: output -> scalar tensor; optimizer: model -> optimizer; scheduler: optimizer -> schedule.
        """
        self.fw, self.settings, self.shared_random = framework, settings, shared_random
        self.model, self.loss = model, loss
        self.optimizer, self.scheduler = optimizer, scheduler
        self.name = str(framework.NAME)
        self.dtype: str | None = None
        self.throughout = False
        self.asked_float32 = False
        self.remarks: list[str] = []
        self._used: list[ReferenceType[Any]] = []
        self._code = UserCode(framework.PACKAGES, framework.MODELS)
        self._state: State | None = None
        self._came: Mapping[int, Any] = {}
        self._resting: list[tuple[Any, Any]] = []

    # ------------------------------------------------------------------ its tensors

    def describe(self) -> ModelInfo:
        """Return the model's modules with their settings, and its tensors."""
        modules = dict(self.fw.modules(self.model))
        stock = {p for p, module in modules.items() if self._is_stock(type(module))}
        settings = {p: self.settings.module_settings(module) for p, module in modules.items()}
        ties = _choose_names(self._held(), {p for p, known in settings.items() if known.kind})
        tensors = {
            held.name: TensorInfo(
                name=held.name,
                owner=held.path,
                role=held.role,
                shape=tuple(held.tensor.shape),
                is_float=bool(held.tensor.is_floating_point()),
                is_parameter=held.is_parameter,
                is_trainable=held.is_parameter and bool(self.fw.carries_gradient(held.tensor)),
                is_persistent=bool(self.fw.is_persistent(held.module, held.role)),
                tie=ties[id(held.tensor)],
            )
            for held in self._held()
        }
        return ModelInfo(settings, tensors, frozenset(stock))

    def _is_stock(self, kind: type) -> bool:
        """Tell whether a class is a layer of the framework's own."""
        package = f"{self.fw.Module.__module__.partition('.')[0]}."
        written = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return kind.__module__.startswith(package) and not self._code.holds(written or "")

    def values(self) -> dict[str, Array]:
        """Return every parameter and buffer by name, in the framework's own layout."""
        self._wake()
        return {held.name: keep_copy(self.fw.view(held.tensor)) for held in self._held()}

    def saved_names(self) -> dict[str, str]:
        """Return what the state dict calls its tensors, each with the model's own name of it."""
        names = {id(held.tensor): held.name for held in self._held()}
        saved = self.fw.saved_tensors(self.model)
        return {name: names.get(id(tensor), "") for name, tensor in saved}

    def read_given(self) -> Mapping[str, Array]:
        """Return every parameter and buffer as it came, in the dtype of work, read when asked for."""
        came = {held.name: self._came.get(id(held.tensor), held.tensor) for held in self._held()}
        return Given(self.fw.view, came, self.dtype)

    def load(self, values: Mapping[str, Array]) -> None:
        """Give the named tensors these values, in the dtype that they have now."""
        self._wake()
        if self._state is not None:
            self._state.expect_values()
        named = {held.name: held.tensor for held in self._held()}
        for name, array in values.items():
            self.fw.set_values(named[name], array)

    def _held(self) -> Iterator[_Held]:
        for path, module in self.fw.modules(self.model):
            for role, tensor, is_parameter in self.fw.own_tensors(module):
                name = f"{path}.{role}" if path else role
                yield _Held(name, path, module, role, tensor, is_parameter)

    def parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield every parameter once, with its name."""
        seen: set[int] = set()
        for held in self._held():
            if held.is_parameter and id(held.tensor) not in seen:
                seen.add(id(held.tensor))
                yield held.name, held.tensor

    def set_gradients(self, gradients: Mapping[str, Array]) -> None:
        """Give every parameter its gradient; one that is not named loses its own."""
        for name, parameter in self.parameters():
            self.fw.set_gradient(parameter, gradients.get(name))

    def gradients(self) -> dict[str, Array]:
        """Return a copy of each parameter's gradient, where it has one."""
        found = ((name, self.fw.gradient(tensor)) for name, tensor in self.parameters())
        return {name: keep_copy(gradient) for name, gradient in found if gradient is not None}

    def _take_gradients(self) -> dict[str, Array]:
        """Return each parameter's gradient, where it has one; the parameters lose them."""
        taken: dict[str, Array] = {}
        for name, parameter in self.parameters():
            gradient = self.fw.gradient(parameter)
            self.fw.set_gradient(parameter, None)
            if gradient is not None:
                taken[name] = keep_own(gradient)
        return taken

    # ------------------------------------------------------------------ its source

    def find_classes(self, path: str, anywhere: bool = False) -> list[SourceLine]:
        """Return lines in a module's class and in its base classes; see `Side.find_classes`."""
        module = dict(self.fw.modules(self.model)).get(path)
        found = (self._code.find_class(base, anywhere) for base in type(module).__mro__)
        return [line for line in found if line is not None]

    def read_attributes(self, path: str) -> dict[str, Any]:
        """Return the switches, numbers and texts that a module holds; see `Side.read_attributes`."""
        module = dict(self.fw.modules(self.model)).get(path)
        return {} if module is None else list_plain_attributes(module)

    def find_maker(self, what: str) -> SourceLine | None:
        """Return where the user's code makes the optimizer or the scheduler, or computes the loss."""
        function = getattr(self, what)
        if what == "loss" or self.optimizer is None:
            return self._code.find_function(function)
        made: dict[str, SourceLine] = {}
        with self.fw.note_makers(
            lambda kind: _note_once(made, kind, self._code.find_calling_line())
        ):
            with suppress(Exception):
                optimizer = self.optimizer(self.model)
                if self.scheduler is not None:
                    self.scheduler(optimizer)
        return made.get(what) or self._code.find_function(function or self.optimizer)

    # ------------------------------------------------------------------ working state

    @contextmanager
    def working(self, dtype: str | None, throughout: bool = False) -> Iterator[None]:
        """Work in `dtype`; see `Side.working`.

        Given back afterwards: weights, buffers, gradients, dtypes, train and eval modes, attributes,
        the frameworks', numpy's and Python's random states.
        """
        callables = (self.loss, self.optimizer, self.scheduler)
        if self._state is not None:
            self._state.expect_values()
        found = find_reachable(self.model, callables, self.fw.is_tensor, self.fw.is_module)
        with ExitStack() as stack:
            stack.enter_context(self.fw.preserve_state())
            stack.enter_context(_preserve_random_states())
            state = self._keep_state(found)
            stack.callback(state.restore)
            came = stack.enter_context(self.fw.change_precision(found.tensors, dtype))
            before = self.dtype, self.throughout, self._state, self._came, self._resting
            self.dtype, self.throughout, self._state, self._came = dtype, throughout, state, came
            self._resting = []
            try:
                yield
            finally:
                self.dtype, self.throughout, self._state, self._came, self._resting = before

    def rest(self) -> None:
        """Let go of large parameters' copies in the dtype of work until this side is asked again.

        They are as they came then: a side may rest where the next run would start from there.
        """
        tensors = {id(held.tensor): held.tensor for held in self._held() if held.is_parameter}
        copied = [
            (tensor, self._came[name])
            for name, tensor in tensors.items()
            if name in self._came and self._came[name].dtype != tensor.dtype
        ]
        if self._resting or sum(math.prod(one.shape) for one, _ in copied) < _WORTH_RESTING:
            return
        self._resting = copied
        for tensor, came in copied:
            self.fw.hold(tensor, came)

    def _wake(self) -> None:
        resting, self._resting = self._resting, []
        for tensor, came in resting:
            self.fw.hold(tensor, self.fw.convert(came, self.dtype))

    def _keep_state(self, found: Reachable) -> State:
        """Return what the model keeps between calls: all but the parameters."""
        parameters = {id(held.tensor) for held in self._held() if held.is_parameter}
        changing = [tensor for tensor in found.tensors if id(tensor) not in parameters]
        return State(self.fw, found.modules, changing)

    def _begin_anew(self) -> None:
        """Make the model forget its calls since the weights were loaded, or work began."""
        if self._state is not None:
            self._state.begin_anew()

    def _watch_float32(self) -> AbstractContextManager[None]:
        if self.dtype != "float64":
            return nullcontext()
        requests: AbstractContextManager[None] = self.fw.float32_requests(
            self._note_float32, self.throughout
        )
        return requests

    @property
    def keeps_float32(self) -> bool:
        """Whether the model asked for float32 and is given it."""
        return self.asked_float32 and not self.throughout

    def _note_float32(self) -> None:
        self.asked_float32 = True

    # ------------------------------------------------------------------ running

    def run(
        self,
        inputs: Inputs,
        training: bool,
        draws: KeyedDraws,
        keep: Keep = "outputs",
        objective: Projection | None = None,
        pins: Pins = NO_PINS,
        wanted: Wanted | None = None,
        *,
        take_gradients: bool = True,
        anew: bool = False,
        graded: bool = True,
    ) -> Trace:
        """Run forward and backward once; see `Side.run`.

        take_gradients: False leaves the parameters' gradients with them, uncopied.
        """
        unload()
        self._wake()
        if anew:
            self._begin_anew()
        self.fw.set_mode(self.model, training)
        self.set_gradients({})
        watch = Watch(self.fw, keep, pins, wanted, graded)
        draws.place = watch.place
        modules = dict(self.fw.modules(self.model))
        with ExitStack() as stack:
            stack.enter_context(altered(modules, wanted.alteration if wanted else None))
            stack.enter_context(watch.on(modules.items()))
            stack.enter_context(self.shared_random(draws))
            stack.enter_context(self._watch_float32())
            stack.enter_context(watch.hear_operations())
            scalar = None
            with suppress(RunEnd):
                with (
                    self._blame("model", watch),
                    nullcontext() if graded else self.fw.no_gradients(),
                ):
                    output = self._forward(inputs)
                with self._blame("loss", watch):
                    scalar = self._objective(output, objective)
            if scalar is not None:
                watch.trace.loss = float(self.fw.array(scalar).reshape(-1)[0])
            if scalar is not None and self.fw.carries_gradient(scalar):
                with self._blame("backward pass", watch):
                    watch.include_pinned(scalar).backward()
        trace = watch.end()
        trace.drawn = draws.drawn
        trace.buffers = {
            held.name: keep_copy(self.fw.view(held.tensor))
            for held in self._held()
            if not held.is_parameter
        }
        if take_gradients:
            trace.gradients = self._take_gradients()
        return trace

    @contextmanager
    def _blame(self, what: str, watch: Watch | None = None) -> Iterator[None]:
        """Turn what the user's code raises in the block into a ModelFailure."""
        try:
            yield
        except Exception as error:
            path = watch.inside() if watch is not None else ""
            failure = ModelFailure(self.name, path, what, describe_error(error))
            failure.source = self._code.find_raising_line(error.__traceback__)
            raise failure from error

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
        """Return the scalar to differentiate, None if there is none."""
        if objective is not None:
            return objective(self.fw, leaves(output, self.fw.is_tensor))
        if self.loss is None:
            return None
        loss = self.loss(output)
        if not self.fw.is_tensor(loss):
            raise TypeError(f"expected a tensor of one element, got a {type(loss).__name__}")
        if math.prod(loss.shape) != 1:
            raise TypeError(f"expected a tensor of one element, got shape {tuple(loss.shape)}")
        return loss

    # ------------------------------------------------------------------ training

    def optimizer_settings(self) -> OptimizerSettings:
        """Return how the optimizer treats each parameter."""
        optimizer = self._make_optimizer()
        self._make_scheduler(optimizer)  # OneCycleLR, for one, sets the momentum too
        settings: OptimizerSettings = self.settings.optimizer_settings(optimizer, self.model)
        return settings

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
        optimizer = self._make_optimizer()
        scheduler = self._make_scheduler(optimizer)
        self._begin_anew()
        taken: list[Step] = []
        for number in range(steps):
            trace = Trace()
            if gradients is None:
                trace = self.run(
                    inputs, True, draws[number], "none", objective, take_gradients=False
                )
                trace.gradients = self.gradients()
            else:
                self.set_gradients(gradients[number])
            if rates is not None and len(set(rates[number])) == 1:
                self.fw.set_rates(optimizer, rates[number][:1])
            loss, used = trace.loss or 0.0, self.fw.learning_rates(optimizer)
            with self._blame("optimizer"):
                optimizer.step()
            self._advance(scheduler, loss)
            taken.append(Step(loss, used, dict(trace.gradients), self.values(), trace.drawn))
        self.set_gradients({})
        return taken

    def rates(self, steps: int) -> list[list[float]]:
        """Return the learning rates of `steps` steps of the schedule alone, nothing trained."""
        optimizer = self._make_optimizer()
        scheduler = self._make_scheduler(optimizer)
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

    def _make_optimizer(self) -> Any:
        if self.optimizer is None:
            raise ReprodError(
                f"the {self.name} side has no optimizer: give optimizers to both or neither"
            )
        self._wake()
        with self._blame("optimizer"):
            optimizer = self.optimizer(self.model)
        self._require_new("optimizer", optimizer)
        self._require_new("scheduler", self.fw.own_scheduler(optimizer))
        return optimizer

    def _require_new(self, kind: str, made: Any) -> None:
        """Raise ReprodError if the optimizer function returned the same object before."""
        if made is None:
            return
        if any(made is known() for known in self._used):
            raise ReprodError(
                f"the {self.name} optimizer function returned the same {kind} twice, and it is no "
                f"longer new: make the {kind} inside the function"
            )
        self._used.append(ref(made))  # weak: an optimizer holds twice the weights

    def _make_scheduler(self, optimizer: Any) -> Any:
        own = self.fw.own_scheduler(optimizer)
        if self.scheduler is None:
            return own
        with self._blame("scheduler"):
            scheduler = self.scheduler(optimizer)
        if not hasattr(scheduler, "step"):
            raise ReprodError(
                f"the {self.name} scheduler function must return a scheduler with step(), "
                f"not a {type(scheduler).__name__}"
            )
        if scheduler is not own and self.fw.attach(scheduler, optimizer):
            remark = (
                f"the {self.name} scheduler was not attached to its optimizer: it was attached here"
            )
            self.remarks[:] = dict.fromkeys([*self.remarks, remark])
        return scheduler

    def _advance(self, scheduler: Any, loss: float) -> None:
        if scheduler is None:
            return
        plateau = "plateau" in type(scheduler).__name__.lower()  # it steps by the metric
        with self._blame("scheduler"):
            scheduler.step(*[loss] if plateau else [])


def _choose_names(held: Iterable[_Held], layers: Set[str]) -> dict[int, str]:
    """Return the name that stands for all names of each tensor, by id: its first, if a layer has none.

    layers: the framework's own, which tell how the tensor is used: a bare parameter doesn't.
    """
    chosen: dict[int, _Held] = {}
    for one in held:
        known = chosen.setdefault(id(one.tensor), one)
        if known.path not in layers and one.path in layers:
            chosen[id(one.tensor)] = one
    return {tensor: one.name for tensor, one in chosen.items()}


def _note_once(
    made: dict[str, SourceLine], kind: str, found: tuple[SourceLine, object] | None
) -> None:
    if found is not None:
        made.setdefault(kind, found[0])


@contextmanager
def _preserve_random_states() -> Iterator[None]:
    numpys, pythons = np.random.get_state(), python_random.getstate()
    try:
        yield
    finally:
        np.random.set_state(numpys)
        python_random.setstate(pythons)
