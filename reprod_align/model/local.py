"""The side of a pair whose model lives in this process.

Everything that leaves it is plain data (numpy arrays, names, numbers), and every framework call comes
from its backend, so that the two sides run the very same lines.
"""

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from types import ModuleType
from typing import Any, Unpack

from reprod_align.base.blocks import Array
from reprod_align.base.tree import leaves
from reprod_align.errors import MissingNameError, describe_error
from reprod_align.model.backward import Projection, digest_graph
from reprod_align.model.functions import Makers, Reachable, UserFunction, find_reachable
from reprod_align.model.settings import OptimizerSettings
from reprod_align.model.side import (
    Inputs,
    ModelFailure,
    ModelInfo,
    RunOptions,
    TrainingStep,
    may_have_gradient,
    name_inputs,
)
from reprod_align.model.source import RunEnd, SourceLine, UserCode, list_plain_attributes, switched
from reprod_align.model.source.coverage import IdleLines, LineCoverage
from reprod_align.model.state import HeldTensors, State, choose_names
from reprod_align.model.store import OriginalValues, keep_copy, require_room, unload
from reprod_align.model.trace import Trace
from reprod_align.model.watch import NO_PINS, Keep, Watch
from reprod_align.randomness import KeyedDraws, preserve_generators, seed_generators

import numpy as np

# elements: converting fewer once more takes longer than their memory is worth
_WORTH_RESTING = 2**25
_WHOLE: tuple[Keep, ...] = ("all", "values", "outputs")


class LocalSide:
    """A `Side`: a model of this process and what trains it. It runs only inside `working()`."""

    def __init__(
        self,
        framework: ModuleType,
        settings: ModuleType,
        shared_random: Callable[[Any], Any],
        model: Any,
        loss: Callable[[Any], Any] | None = None,
        optimizer: UserFunction | None = None,
        scheduler: UserFunction | None = None,
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
        self._rounding: dict[str, None] = {}
        """the modules that asked for float32, in the order in which they ran"""
        self._code = UserCode(framework.PACKAGES, framework.MODELS)
        self._blame = partial(_blame, self.name, self._code)
        self._lines = LineCoverage(self._code, framework.Module)
        self._held = HeldTensors(framework, model)
        self._makers = Makers(framework, self._blame)
        self._mended: dict[str, None] | None = None
        """which kernels contradicted themselves and where; None: they are not held against themselves"""
        self._state: State | None = None
        self._came: Mapping[int, Any] = {}
        self._resting: dict[int, tuple[Any, Any]] = {}
        """parameters by id that stand on the memory in which they came, with what they hold there"""

    @property
    def local(self) -> "LocalSide":
        """This side itself; a stand-in that announces the work passes on the side that it stands for."""
        return self

    def with_model(self, model: Any) -> "LocalSide":
        """Return a side of another model, or of this one anew, with this side's functions."""
        functions = self.loss, self.optimizer, self.scheduler
        return LocalSide(self.fw, self.settings, self.shared_random, model, *functions)

    # ------------------------------------------------------------------ its tensors

    def describe(self) -> ModelInfo:
        """Return the model's modules with their settings, and its tensors."""
        modules = dict(self.fw.modules(self.model))
        stock = {p for p, module in modules.items() if self._is_stock(type(module))}
        settings = {p: self.settings.module_settings(module) for p, module in modules.items()}
        ties = choose_names(self._held, {p for p, known in settings.items() if known.kind})
        return ModelInfo(settings, self._held.describe(ties), frozenset(stock))

    def _is_stock(self, kind: type) -> bool:
        """Tell whether a class is a layer of the framework's own."""
        package = f"{self.fw.Module.__module__.partition('.')[0]}."
        written = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return kind.__module__.startswith(package) and not self._code.holds(written or "")

    @property
    def remarks(self) -> list[str]:
        """What the report says of this side."""
        return [*self._makers.remarks, *self.fw.list_missed()]

    def values(self) -> dict[str, Array]:
        """Return every parameter and buffer by name, in the framework's own layout."""
        self._wake()
        return self._held.copy_values()

    def saved_names(self) -> dict[str, str]:
        """Return the state dict's names, each with the name that the model gives the tensor."""
        names = {id(held.tensor): held.name for held in self._held}
        saved = self.fw.saved_tensors(self.model)
        return {name: names.get(id(tensor), "") for name, tensor in saved}

    def read_given(self) -> Mapping[str, Array]:
        """Return every parameter and buffer as it came, in the dtype of work, read when asked for."""
        came = {held.name: self._came.get(id(held.tensor), held.tensor) for held in self._held}
        return OriginalValues(self.fw.view, came, self.dtype)

    def load(self, values: Mapping[str, Array]) -> None:
        """Give the named tensors these values, in the dtype that they have now."""
        if self._state is not None:
            self._state.expect_values()
        named = {held.name: held.tensor for held in self._held}
        for name, array in values.items():
            tensor = named[name]
            _, came = self._resting.pop(id(tensor), (None, None))
            if came is not None:
                self.fw.hold(tensor, self.fw.make_empty(came, self.dtype))
            self.fw.set_values(tensor, array)

    def set_buffers(self, values: Mapping[str, Array]) -> None:
        """Give the named buffers these values; all else that the model keeps of its calls stays."""
        for held in self._held:
            if held.name in values:
                self.fw.set_values(held.tensor, values[held.name])

    def read_tables(self) -> dict[str, Array]:
        """Return a copy of the float tensors that the modules hold beside their parameters, by name."""
        return {name: self.fw.array(tensor) for name, tensor in self._list_tables()}

    def set_tables(self, values: Mapping[str, Array]) -> None:
        """Give tensors that `read_tables` names these values, in their own dtype."""
        if self._state is not None:
            self._state.expect_values()
        for name, tensor in self._list_tables():
            if name in values:
                self.fw.set_values(tensor, values[name])

    def _list_tables(self) -> Iterator[tuple[str, Any]]:
        parameters = {id(tensor) for _, tensor in self.parameters()}
        for path, module in self.fw.modules(self.model):
            _, buffers, _ = self.fw.contents(module)
            for name, value in {**vars(module), **buffers}.items():
                if not self.fw.is_tensor(value) or id(value) in parameters:
                    continue
                if _is_table(self.fw, value):
                    yield f"{path}.{name}".lstrip("."), value

    def parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield every parameter once, with its name."""
        return self._held.parameters()

    def set_gradients(self, gradients: Mapping[str, Array]) -> None:
        """Give every parameter its gradient; one that is not named loses its own."""
        self._held.set_gradients(gradients)

    def gradients(self) -> dict[str, Array]:
        """Return a copy of each parameter's gradient, where it has one."""
        return self._held.copy_gradients()

    def mend_kernels(self, mends: bool) -> list[str]:
        """Correct kernels from now on; see `Side.mend_kernels`."""
        noted, self._mended = self._mended or {}, {} if mends else None
        return list(noted)

    def _watch_kernels(self, watch: Watch) -> AbstractContextManager[None]:
        mended = self._mended
        if mended is None:
            return nullcontext()

        def note(text: str) -> None:
            mended[f"in {watch.inside() or 'the model'} {text}"] = None

        kernels: AbstractContextManager[None] = self.fw.mended_kernels(note)
        return kernels

    # ------------------------------------------------------------------ its source

    def find_classes(self, path: str, anywhere: bool = False) -> list[SourceLine]:
        """Return lines in a module's class and in its base classes; see `Side.find_classes`."""
        module = dict(self.fw.modules(self.model)).get(path)
        found = (self._code.find_class(base, anywhere) for base in type(module).__mro__)
        return [line for line in found if line is not None]

    def holds(self, file: str) -> bool:
        """Tell whether a file is the user's: no package's that the framework is made of."""
        return self._code.holds(file)

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

    def watch_lines(self) -> None:
        """Note from now on which lines of the model's own code run."""
        self._lines.begin([module for _, module in self.fw.modules(self.model)], [self.loss])

    def find_idle_lines(self) -> IdleLines:
        """Return the lines that have not run since `watch_lines`, which ends with it."""
        return self._lines.end()

    # ------------------------------------------------------------------ working state

    @contextmanager
    def working(
        self, dtype: str | None, throughout: bool = False, at_rest: bool = False
    ) -> Iterator[None]:
        """Work in `dtype`; see `Side.working`.

        Afterwards these are as before: weights, buffers, gradients, dtypes, train and eval modes, attributes,
        the frameworks', numpy's and Python's random states.
        """
        callables = (self.loss, self.optimizer, self.scheduler)
        if self._state is not None:
            self._state.expect_values()
        found = find_reachable(
            self.model, callables, self.fw.is_tensor, self.fw.is_module, self.fw.contents
        )
        with ExitStack() as stack:
            stack.enter_context(self.fw.preserve_state())
            stack.enter_context(preserve_generators())
            state = self._keep_state(found)
            stack.callback(state.restore)
            resting = {id(tensor): tensor for _, tensor in self.parameters() if at_rest}
            changed = self.fw.change_precision(found.tensors, dtype, resting.keys())
            came = stack.enter_context(changed)
            before = self.dtype, self.throughout, self._state, self._came, self._resting
            self.dtype, self.throughout, self._state, self._came = dtype, throughout, state, came
            if throughout:
                self._rounding.clear()
            self._resting = {one: (tensor, came[one]) for one, tensor in resting.items()
                             if one in came}  # fmt: skip
            try:
                yield
            finally:
                self.dtype, self.throughout, self._state, self._came, self._resting = before

    def rest(self) -> None:
        """Let go of large parameters' copies in the dtype of work until this side is asked again.

        They are as they came then: a side may rest where the next run would start from there.
        """
        tensors = {id(tensor): tensor for _, tensor in self.parameters()}
        copied = {
            one: (tensor, self._came[one])
            for one, tensor in tensors.items()
            if one in self._came and self._came[one].dtype != tensor.dtype
        }
        size = sum(math.prod(tensor.shape) for tensor, _ in copied.values())
        if self._resting or size < _WORTH_RESTING:
            return
        self._resting = copied
        for tensor, came in copied.values():
            self.fw.hold(tensor, came)

    def _wake(self) -> None:
        """Give the resting parameters copies in the dtype of work."""
        while self._resting:
            _, (tensor, came) = self._resting.popitem()
            self.fw.hold(tensor, self.fw.convert(came, self.dtype))

    def _keep_state(self, found: Reachable) -> State:
        """Return what the model keeps between calls: all but the parameters."""
        parameters = {id(held.tensor) for held in self._held if held.is_parameter}
        changing = [tensor for tensor in found.tensors if id(tensor) not in parameters]
        return State(self.fw, found.modules, changing)

    def _begin_anew(self) -> None:
        """Make the model forget its calls since the weights were loaded, or work began."""
        if self._state is not None:
            self._state.begin_anew()

    @contextmanager
    def _share(self, draws: KeyedDraws) -> Iterator[None]:
        """Share the random draws in the block. One that cannot be shared raises ModelFailure at its end."""
        try:
            with self.shared_random(draws):
                yield
        except MissingNameError as error:
            raise ModelFailure(self.name, "", "model", describe_error(error)) from error

    def _watch_float32(self, watch: Watch) -> AbstractContextManager[None]:
        if self.dtype != "float64":
            return nullcontext()
        requests: AbstractContextManager[None] = self.fw.float32_requests(
            partial(self._note_float32, watch), self.throughout
        )
        return requests

    def _note_float32(self, watch: Watch, *values: Any) -> None:
        """Note a request; in float64 throughout, also the module that makes it, but not for a mask."""
        self.asked_float32 = True
        place = watch.inside()
        if self.throughout and place not in self._rounding:
            tensors = filter(self.fw.is_tensor, values)
            if not all(_is_mask(self.fw.view(tensor)) for tensor in tensors):
                self._rounding[place] = None

    @property
    def keeps_float32(self) -> bool:
        """Whether the model asked for float32 and is given it."""
        return self.asked_float32 and not self.throughout

    @property
    def rounding_modules(self) -> list[str]:
        """The modules that ask for float32 by name, other than for masks."""
        return list(self._rounding)

    # ------------------------------------------------------------------ running

    def run(
        self,
        inputs: Inputs,
        training: bool,
        draws: KeyedDraws,
        keep: Keep = "outputs",
        objective: Projection | None = None,
        *,
        take_gradients: bool = True,
        **how: Unpack[RunOptions],
    ) -> Trace:
        """Run forward and backward once; see `Side.run`.

        take_gradients: False leaves the parameters' gradients with them, uncopied.
        """
        wanted, graded = how.get("wanted"), how.get("graded", True)
        of_inputs = how.get("of_inputs", False)
        unload()
        self._wake()
        if how.get("anew"):
            self._begin_anew()
        self.fw.set_mode(self.model, training)
        self.set_gradients({})
        watch = Watch(self.fw, keep, how.get("pins", NO_PINS), wanted, graded)
        draws.place = watch.place
        modules = dict(self.fw.modules(self.model))
        asked: dict[str, Any] = {}
        with ExitStack() as stack:
            stack.enter_context(watch.ending_if_raised())
            stack.enter_context(switched(modules, wanted.switch if wanted else None))
            stack.enter_context(watch.on(modules.items()))
            stack.enter_context(self._watch_kernels(watch))
            stack.enter_context(self._share(draws))
            read_generators = seed_generators(draws.seed)
            stack.enter_context(self._watch_float32(watch))
            stack.enter_context(watch.hear_operations())
            hooks = stack.enter_context(self.fw.note_hooks())
            scalar = None
            with suppress(RunEnd):
                with (
                    self._blame("model", watch),
                    self.fw.let_gradients(graded),
                ):
                    output = self._forward(inputs, asked if of_inputs else None)
                counts = objective is None or objective.only != frozenset()
                if graded and counts and keep != "none" and all(map(watch.has_set, hooks)):
                    made = leaves(output, self.fw.is_tensor).values()
                    watch.trace.graph = digest_graph(self.fw, made, asked.values())
                watch.trace.deferred = how.get("defer", False)
                if not watch.trace.deferred:
                    with self._blame("loss", watch):
                        scalar = self._make_objective(output, objective)
            if scalar is not None:
                watch.trace.loss = float(self.fw.array(scalar).reshape(-1)[0])
            if scalar is not None and self.fw.carries_gradient(scalar):
                with self._blame("backward pass", watch):
                    watch.include_pinned(scalar).backward()
                    if take_gradients:
                        self.reduce_gradients()
        trace = watch.end()
        trace.drawn, trace.generators = draws.drawn, read_generators()
        trace.buffers = self._held.copy_buffers()
        if of_inputs:
            found = {name: self.fw.gradient(tensor) for name, tensor in asked.items()}
            trace.input_gradients = {
                n: None if g is None else keep_copy(g) for n, g in found.items()
            }
        if keep in (("ends", *_WHOLE) if training else _WHOLE) and self._state is not None:
            trace.changed = self._state.read_changed({id(m): path for path, m in modules.items()})
        if take_gradients:
            trace.gradients = self._held.take_gradients()
        return trace

    def _forward(self, inputs: Inputs, asked: dict[str, Any] | None) -> Any:
        """Return what the model makes of the inputs; `asked`: gets the leaves of those with a gradient."""
        given = {name: self._input(array) for name, array in name_inputs(inputs).items()}
        for name, array in name_inputs(inputs).items():
            if asked is not None and may_have_gradient(array):
                asked[name] = self.fw.make_differentiable(given[name])
                given[name] = asked[name].clone()  # a leaf could not be changed in place
        call = self.entry
        return call(**given) if isinstance(inputs, Mapping) else call(*given.values())

    @property
    def entry(self) -> Any:
        """What is called with the inputs: the model, or what an engine wraps around it."""
        return self.model

    def reduce_gradients(self) -> None:
        """Make the gradients those of the whole batch, where this process saw a part of it."""

    def _input(self, values: Array) -> Any:
        array = np.asarray(values)
        if array.dtype.kind == "f" and self.dtype is not None:
            array = array.astype(self.dtype)
        return self.fw.place(self.fw.constant(array), self.model)

    def _make_objective(self, output: Any, objective: Projection | None) -> Any:
        """Return the scalar to differentiate, None if there is none."""
        if objective is not None:
            return objective(self.fw, leaves(output, self.fw.is_tensor))
        if self.loss is None:
            return None
        loss = self.loss(output)
        if loss is None:
            raise TypeError("expected a tensor of one element, got None: is a `return` missing?")
        if not self.fw.is_tensor(loss):
            raise TypeError(f"expected a tensor of one element, got a {type(loss).__name__}")
        if math.prod(loss.shape) != 1:
            raise TypeError(f"expected a tensor of one element, got shape {tuple(loss.shape)}")
        return loss

    # ------------------------------------------------------------------ training

    def optimizer_settings(self) -> OptimizerSettings:
        """Return how the optimizer treats each parameter."""
        optimizer, _ = self._make()  # a schedule like OneCycleLR sets the momentum too
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
    ) -> list[TrainingStep]:
        """Train for `steps` steps; `gradients` and `rates`, one entry a step, replace its own."""
        optimizer, scheduler = self._make()
        self._begin_anew()
        taken: list[TrainingStep] = []
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
            self._makers.advance(scheduler, loss)
            taken.append(
                TrainingStep(loss, used, dict(trace.gradients), self.values(), trace.drawn)
            )
        self.set_gradients({})
        return taken

    def rates(self, steps: int) -> list[list[float]]:
        """Return the learning rates of `steps` steps of the schedule alone, nothing trained."""
        optimizer, scheduler = self._make()
        rates: list[list[float]] = []
        with warnings.catch_warnings():  # PyTorch warns of a schedule without optimizer steps
            warnings.simplefilter("ignore")
            for _ in range(steps):
                rates.append(self.fw.learning_rates(optimizer))
                try:
                    self._makers.advance(scheduler, 1.0)
                except ModelFailure:  # a schedule may have an end
                    break
        return rates

    def _make(self) -> tuple[Any, Any]:
        """Return a new optimizer and its schedule, None without one."""
        self._wake()
        optimizer = self._makers.make_optimizer(self.optimizer, self.model)
        return optimizer, self._makers.make_scheduler(self.scheduler, optimizer)


def find_local(side: object) -> LocalSide | None:
    """Return the side of this process that `side` is or stands for; None if it is in another one."""
    found = getattr(side, "local", None)
    return found if isinstance(found, LocalSide) else None


def use_one_thread(*sides: object) -> None:
    """Let the frameworks of sides in this process compute in one thread, as a copy of it must."""
    for side in filter(None, map(find_local, sides)):
        side.fw.use_one_thread()


def _is_mask(values: Array) -> bool:
    """Tell whether an array holds two whole numbers at most: float32 rounds nothing, also further on."""
    if values.dtype.kind != "f" or not values.size:
        return True
    ends = np.array([values.min(), values.max()])
    whole = np.array_equal(ends, np.rint(ends)) and np.array_equal(ends, ends.astype(np.float32))
    return whole and bool(np.isin(values, ends).all())


def _is_table(framework: ModuleType, tensor: Any) -> bool:
    """Tell whether a tensor holds several floats of its own, which may be written and have no gradient."""
    if not framework.has_values(tensor) or framework.carries_gradient(tensor):
        return False
    held = framework.view(tensor)
    return held.dtype.kind == "f" and held.size > 1 and 0 not in held.strides


def _note_once(
    made: dict[str, SourceLine], kind: str, found: tuple[SourceLine, object] | None
) -> None:
    if found is not None:
        made.setdefault(kind, found[0])


@contextmanager
def _blame(name: str, code: UserCode, what: str, watch: Watch | None = None) -> Iterator[None]:
    """Turn what the user's code raises in the block into a ModelFailure of the named side."""
    try:
        yield
    except Exception as error:
        require_room()  # what a full disk raises in a hook is not the model's fault
        path = watch.inside() if watch is not None else ""
        failure = ModelFailure(name, path, what, describe_error(error))
        failure.source = code.find_raising_line(error.__traceback__)
        raise failure from error
