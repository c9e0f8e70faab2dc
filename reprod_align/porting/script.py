"""A training script's own loop: two steps of it on each side, compared.

The script's call runs as it is, the port's as well. Both are watched where the frameworks are asked: what a
loss was when its backward pass began, each step's gradients, learning rate and the parameters afterwards.
The port begins with PyTorch's weights and is given PyTorch's batches, since a data pipeline shuffles and
augments by draws of its own. Checkpoints go to a temporary folder.
"""

import gc
import random
import shlex
import sys
import warnings
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Final

from reprod_align.backends import replace_attribute
from reprod_align.base.difference import gap
from reprod_align.base.text import shorten
from reprod_align.errors import describe_error
from reprod_align.randomness import SharedRandom

import numpy as np

STEPS: Final = 2
_BATCHES: Final = 16  # of one pass over the data, where no step is taken
_SEED: Final = 20213
_EXACT, _NEAR = 1e-9, 2e-5
"""the largest difference beside the largest value that float64, and that float32, explains"""
_IDLE: Final = 1e-9
"""beside the largest gradient: what is smaller is rounding, which Adam makes as large as any other step"""
_RENAMED: Final = {"running_mean": "_mean", "running_var": "_variance"}

Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Script:
    """How a training script is run: "main()", and what stands on its command line."""

    call: str
    arguments: str = ""

    def run(self, module: ModuleType) -> None:
        """Run the script in a module that defines it, until it ends or has taken its steps."""
        words = [module.__file__ or "", *shlex.split(self.arguments)]
        with (
            replace_attribute(sys, "argv", words), redirect_stdout(StringIO()), warnings.catch_warnings()
        ):  # fmt: skip
            warnings.simplefilter("ignore")
            try:
                eval(self.call, vars(module))
            except (_Enough, SystemExit) as ended:
                if isinstance(ended, SystemExit) and ended.code:
                    raise RuntimeError(f"the script ended with exit code {ended.code}") from ended


class _Enough(BaseException):
    """The steps are taken."""


@dataclass
class Step:
    """One step of an optimizer."""

    rate: float
    gradients: Arrays
    weights: Arrays


@dataclass
class Course:
    """What was seen of a script on one side."""

    losses: list[tuple[int, float]] = field(default_factory=list)
    """how many steps were taken before, and where a backward pass began"""
    steps: list[Step] = field(default_factory=list)
    start: list[Arrays] = field(default_factory=list)
    """the state of each model when an optimizer was made, as Paddle holds it"""
    linears: list[set[str]] = field(default_factory=list)
    """of each model, the names of its Linear layers"""
    batches: list[list[Any]] = field(default_factory=list)
    """of each pass over the data"""
    passes: int = 0


@dataclass(frozen=True)
class LoopRow:
    """One line of the comparison."""

    what: str
    difference: float
    words: str


@dataclass(frozen=True)
class LoopReport:
    """How the two courses compare."""

    rows: tuple[LoopRow, ...] = ()
    problem: str = ""
    """why they could not be compared"""

    @property
    def passed(self) -> bool:
        """Whether losses, gradients, rates and parameters agree, to float32 at least."""
        return (
            not self.problem
            and bool(self.rows)
            and all(one.difference <= _NEAR for one in self.rows)
        )

    @property
    def verdict(self) -> str:
        """The verdict in a few words."""
        if self.problem:
            return "not compared"
        if not self.passed:
            return "diverges"
        exact = all(one.difference <= _EXACT for one in self.rows)
        return "the same steps" if exact else "the same steps to float32"

    def lines(self) -> list[str]:
        """Return it as lines of text."""
        if self.problem:
            return [f"{self.verdict}: {self.problem}"]
        return [
            self.verdict,
            *(f"{one.what}: {one.difference:.1e}{one.words}" for one in self.rows),
        ]


class _Stream:
    """The draws of a script: anew for each step, and apart from those of the data."""

    def __init__(self) -> None:
        self.now = SharedRandom(_SEED, 0, 0)

    def restart(self, step: int) -> None:
        self.now = SharedRandom(_SEED, 0, step)
        random.seed(_SEED + step)
        np.random.seed(_SEED + step)

    @contextmanager
    def set_aside(self, count: int) -> Iterator[None]:
        """Draw what the block draws from a stream of its own."""
        kept, self.now = self.now, SharedRandom(_SEED, 1, count)
        states = np.random.get_state(), random.getstate()
        try:
            yield
        finally:
            self.now = kept
            np.random.set_state(states[0])
            random.setstate(states[1])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)


class _Watcher:
    """Notes a run of one side."""

    def __init__(self, side: Any, fed: Course | None = None) -> None:
        self.side, self.fed = side, fed
        self.seen = Course()
        self.stream = _Stream()
        self.models: list[Any] = []
        self.open = ExitStack()
        self.goes_back = self.shares_draws = False

    def begin(self, optimizer: Any) -> None:
        """Note the models that an optimizer's parameters are of; the port's get PyTorch's weights."""
        held = {id(one) for one in self.side.list_parameters(optimizer)}
        if not self.shares_draws:
            self.open.enter_context(self.side.shared_random(self.stream))
            self.shares_draws = True
        for model in self.side.find_models(held):
            if all(model is not one for one in self.models):
                self.models.append(model)
                if self.fed is None:
                    state, linears = self.side.read_start(model)
                    self.seen.start.append(state)
                    self.seen.linears.append(linears)
                elif len(self.models) > len(self.fed.start):
                    raise RuntimeError("the port makes an optimizer of more models than the script")
                else:
                    self.side.load_start(model, self.fed.start[len(self.models) - 1],
                                         self.fed.linears[len(self.models) - 1])  # fmt: skip
        self.stream.restart(len(self.seen.steps))

    def watch_backward(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        """Return what notes the value at which a backward pass begins."""

        def go_back(value: Any, *args: Any, **kwargs: Any) -> Any:
            if self.goes_back or len(self.seen.steps) >= STEPS:
                return backward(value, *args, **kwargs)
            self.seen.losses.append((len(self.seen.steps), float(value.detach().mean())))
            self.goes_back = True  # PyTorch asks its modes, and then again
            try:
                return backward(value, *args, **kwargs)
            finally:
                self.goes_back = False

        return go_back

    def before_step(self, optimizer: Any) -> None:
        """Note the gradients; end the run where its steps are taken."""
        if len(self.seen.steps) >= STEPS:
            raise _Enough
        self.seen.steps.append(Step(self.side.read_rate(optimizer), self._read(gradients=True), {}))

    def after_step(self) -> None:
        """Note the parameters."""
        self.seen.steps[-1].weights = self._read(gradients=False)
        self.stream.restart(len(self.seen.steps))

    def _read(self, gradients: bool) -> Arrays:
        return {
            f"{at}.{name}": array
            for at, model in enumerate(self.models)
            for name, array in self.side.read_parameters(model, gradients).items()
        }

    def iterate(self, make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """Yield the first batches of a pass over the data; the port's are PyTorch's."""
        number, self.seen.passes = self.seen.passes, self.seen.passes + 1
        if self.fed is not None:
            for batch in self.fed.batches[number] if number < len(self.fed.batches) else ():
                yield self.side.make_batch(batch)
            return
        taken: list[Any] = []
        self.seen.batches.append(taken)
        started = len(self.seen.steps)
        with self.stream.set_aside(number):
            source = iter(make())
        while len(taken) < _BATCHES and len(self.seen.steps) - started < STEPS:
            if len(taken) >= STEPS and not self.side.is_training():
                return
            with self.stream.set_aside(number):
                batch = next(source, _NOTHING)
            if batch is _NOTHING:
                return
            taken.append(self.side.keep_batch(batch))
            yield self.side.make_batch(taken[-1])


_NOTHING: Final = object()


class TorchScript:
    """PyTorch, where a script asks it."""

    name = "torch"

    def shared_random(self, draws: Any) -> Any:
        """Return the context in which random draws are taken from a stream."""
        from reprod_align.backends.torch.random import shared_random

        return shared_random(draws)

    def list_parameters(self, optimizer: Any) -> list[Any]:
        """Return the parameters of an optimizer."""
        return [one for group in optimizer.param_groups for one in group["params"]]

    def find_models(self, held: set[int]) -> list[Any]:
        """Return the models that hold any of these parameters, by their ids."""
        import torch

        return _find_roots(torch.nn.Module, held, lambda one: one.modules())

    def read_start(self, model: Any) -> tuple[Arrays, set[str]]:
        """Return a model's state, and the names of its Linear layers."""
        import torch

        linear = {n for n, one in model.named_modules() if isinstance(one, torch.nn.Linear)}
        state = {n: one.detach().cpu().numpy().copy() for n, one in model.state_dict().items()}
        return state, linear

    def read_rate(self, optimizer: Any) -> float:
        """Return an optimizer's learning rate."""
        return float(optimizer.param_groups[0]["lr"])

    def read_parameters(self, model: Any, gradients: bool) -> Arrays:
        """Return a model's parameters or their gradients, laid as Paddle's."""
        import torch

        linear = {n for n, one in model.named_modules() if isinstance(one, torch.nn.Linear)}
        found = {}
        for name, one in model.named_parameters():
            value = one.grad if gradients else one
            if value is not None:
                array = value.detach().cpu().numpy().copy()
                owner, _, last = name.rpartition(".")
                found[name] = array.T if owner in linear and last == "weight" else array
        return found

    def is_training(self) -> bool:
        """Tell whether gradients are taken now."""
        import torch

        return bool(torch.is_grad_enabled())

    def keep_batch(self, batch: Any) -> Any:
        """Return a batch with arrays in place of tensors."""
        import torch

        return _map(batch, torch.Tensor, lambda one: one.detach().cpu().numpy().copy())

    def make_batch(self, batch: Any) -> Any:
        """Return a batch with tensors in place of arrays, floats in float64."""
        import torch

        return _map(batch, np.ndarray, lambda one: torch.from_numpy(_widen(one)))

    @contextmanager
    def watch(self, watcher: _Watcher) -> Iterator[None]:
        """Let losses, optimizers, batches and checkpoints go through a watcher in the block."""
        from reprod_align.backends.torch.calls import float32_requests

        import torch
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )
        from torch.utils.data import DataLoader

        backward, make, loader = (
            torch.Tensor.backward,
            torch.optim.Optimizer.__init__,
            DataLoader.__init__,
        )
        read, save, dtype = DataLoader.__iter__, torch.save, torch.get_default_dtype()

        def start_loader(self: Any, *args: Any, **kwargs: Any) -> None:
            loader(self, *args, **{**kwargs, "num_workers": 0, "persistent_workers": False,
                                   "prefetch_factor": None, "timeout": 0})  # fmt: skip

        def make_optimizer(self: Any, *args: Any, **kwargs: Any) -> None:
            make(self, *args, **kwargs)
            watcher.begin(self)

        hooks = [
            register_optimizer_step_pre_hook(lambda one, *rest: watcher.before_step(one)),
            register_optimizer_step_post_hook(lambda one, *rest: watcher.after_step()),
        ]
        try:
            torch.set_default_dtype(torch.float64)
            with (
                TemporaryDirectory() as folder, watcher.open, float32_requests(lambda *tensors: None, True),
                replace_attribute(torch.Tensor, "backward", watcher.watch_backward(backward)),
                replace_attribute(torch.optim.Optimizer, "__init__", make_optimizer),
                replace_attribute(DataLoader, "__init__", start_loader),
                replace_attribute(DataLoader, "__iter__",
                                  lambda self: watcher.iterate(lambda: read(self))),
                replace_attribute(torch, "save", _save_elsewhere(save, folder)),
            ):  # fmt: skip
                yield
        finally:
            torch.set_default_dtype(dtype)
            for hook in hooks:
                hook.remove()


class PaddleScript:
    """Paddle, where a port of a script asks it."""

    name = "paddle"

    def shared_random(self, draws: Any) -> Any:
        """Return the context in which random draws are taken from a stream."""
        from reprod_align.backends.paddle.random import shared_random

        return shared_random(draws)

    def list_parameters(self, optimizer: Any) -> list[Any]:
        """Return the parameters of an optimizer."""
        from reprod_align.backends.paddle.private import list_held

        held = list_held(optimizer)
        return [
            one for part in held for one in (part["params"] if isinstance(part, dict) else [part])
        ]

    def find_models(self, held: set[int]) -> list[Any]:
        """Return the models that hold any of these parameters, by their ids."""
        import paddle

        return _find_roots(paddle.nn.Layer, held, lambda one: one.sublayers(include_self=True))

    def load_start(self, model: Any, state: Mapping[str, Any], linears: set[str]) -> None:
        """Give a model PyTorch's weights. Raises RuntimeError where their names or shapes are others."""
        import paddle

        plain = {n for n, one in model.named_sublayers() if isinstance(one, paddle.nn.Linear)}
        own, lacking = model.state_dict(), []
        for name, array in state.items():
            owner, _, last = name.rpartition(".")
            hidden = _RENAMED.get(last, f"_{last}")  # as of a PReLU's weight
            other = f"{owner}.{hidden}" if owner else hidden
            laid = array.T if owner in linears & plain and last == "weight" else array
            held = own.get(name, own.get(other))
            if held is None and last == "num_batches_tracked":
                continue
            if held is None or list(held.shape) != list(laid.shape):
                lacking.append(name)
                continue
            held.set_value(paddle.to_tensor(np.ascontiguousarray(laid)).astype(held.dtype))
        if lacking:
            raise RuntimeError(f"the loop's model has no {shorten(lacking, 4)} as the script's has")

    def read_rate(self, optimizer: Any) -> float:
        """Return an optimizer's learning rate."""
        return float(optimizer.get_lr())

    def read_parameters(self, model: Any, gradients: bool) -> Arrays:
        """Return a model's parameters or their gradients, laid as Paddle's."""
        import paddle

        compat = {n for n, one in model.named_sublayers()
                  if type(one).__name__ == "Linear" and not isinstance(one, paddle.nn.Linear)}  # fmt: skip
        found = {}
        for name, one in model.named_parameters():
            value = one.grad if gradients else one
            owner, _, last = name.rpartition(".")
            if (
                value is not None and last not in _RENAMED.values()
            ):  # statistics are parameters here
                array, plain = value.numpy(), last.removeprefix("_")
                name = f"{owner}.{plain}" if owner else plain
                found[name] = array.T if owner in compat and last == "weight" else array
        return found

    def is_training(self) -> bool:
        """Tell whether gradients are taken now."""
        return True

    def keep_batch(self, batch: Any) -> Any:
        """Return a batch with arrays in place of tensors."""
        return batch

    def make_batch(self, batch: Any) -> Any:
        """Return a batch with tensors in place of arrays, floats in float64."""
        import paddle

        return _map(batch, np.ndarray, lambda one: paddle.to_tensor(_widen(one)))

    @contextmanager
    def watch(self, watcher: _Watcher) -> Iterator[None]:
        """Let losses, optimizers, batches and checkpoints go through a watcher in the block."""
        from reprod_align.backends.paddle.calls import float32_requests

        import paddle

        backward, save = paddle.Tensor.backward, paddle.save
        dtype = paddle.get_default_dtype()

        def watch_making(make: Callable[..., None]) -> Callable[..., None]:
            def make_optimizer(self: Any, *args: Any, **kwargs: Any) -> None:
                make(self, *args, **kwargs)
                watcher.begin(self)

            return make_optimizer

        def watch_step(step: Callable[..., Any]) -> Callable[..., Any]:
            def take(self: Any, *args: Any, **kwargs: Any) -> Any:
                watcher.before_step(self)
                made = step(self, *args, **kwargs)
                watcher.after_step()
                return made

            return take

        kinds = [one for one in vars(paddle.optimizer).values() if isinstance(one, type)]
        ways = {"__init__": watch_making, "step": watch_step}  # each class has its own of them
        try:
            paddle.set_default_dtype("float64")
            with (
                TemporaryDirectory() as folder, watcher.open, float32_requests(lambda *tensors: None, True),
                replace_attribute(paddle.Tensor, "backward", watcher.watch_backward(backward)),
                replace_attribute(paddle.io.DataLoader, "__iter__",
                                  lambda self: watcher.iterate(lambda: iter(()))),
                replace_attribute(paddle, "save", _save_elsewhere(save, folder)),
                ExitStack() as steps,
            ):  # fmt: skip
                for kind in kinds:
                    for name in ways.keys() & vars(kind).keys():
                        own = vars(kind)[name]
                        steps.enter_context(replace_attribute(kind, name, ways[name](own)))
                yield
        finally:
            paddle.set_default_dtype(dtype)


def _find_roots(kind: Any, held: set[int], list_inner: Callable[[Any], Any]) -> list[Any]:
    """Return the models that hold any of the parameters and lie in no other model, the first made first."""
    owners = [
        one for one in gc.get_objects()
        if issubclass(type(one), kind) and any(id(p) in held for p in one.parameters())
    ]  # fmt: skip
    inner = {id(part) for one in owners for part in list_inner(one) if part is not one}
    return [one for one in owners if id(one) not in inner]


def _map(value: Any, kind: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map(one, kind, change) for one in value))
    if isinstance(value, list | tuple):
        return type(value)(_map(one, kind, change) for one in value)
    if isinstance(value, Mapping):
        return {name: _map(one, kind, change) for name, one in value.items()}
    return value


def _widen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _save_elsewhere(save: Callable[..., Any], folder: str) -> Callable[..., Any]:
    """Return what saves to a temporary folder in place of the script's."""

    def write(value: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        inside = isinstance(path, str | Path)
        return save(value, str(Path(folder, Path(path).name)) if inside else path, *args, **kwargs)

    return write


def watch_script(
    script: Script, module: ModuleType, side: Any, fed: Course | None = None
) -> Course:
    """Run a script in a module that defines it; return what was seen. What the script raises passes."""
    watcher = _Watcher(side, fed)
    with side.watch(watcher):
        script.run(module)
    return watcher.seen


def compare_courses(expected: Course, actual: Course) -> LoopReport:
    """Compare what was seen of a script and of its port."""
    if not expected.steps:
        return LoopReport(problem="the script takes no step of an optimizer in its first batches")
    if len(expected.steps) != len(actual.steps) or len(expected.losses) != len(actual.losses):
        taken = f"{len(actual.steps)} steps and {len(actual.losses)} losses"
        wanted = f"{len(expected.steps)} and {len(expected.losses)}"
        return LoopReport(problem=f"the port's loop has {taken}, the script's {wanted}")
    rows: list[LoopRow] = []
    pairs = list(zip(expected.losses, actual.losses, strict=True))
    for at, (ours, theirs) in enumerate(zip(expected.steps, actual.steps, strict=True)):
        idle, step = _list_idle(ours.gradients), f"step {at + 1}"
        compared = [
            *((f"{step}, loss", {"": np.array(a)}, {"": np.array(b)})
              for (when, a), (_, b) in pairs if when == at),
            (f"{step}, learning rate", {"": np.array(ours.rate)}, {"": np.array(theirs.rate)}),
            (f"{step}, gradients", ours.gradients, theirs.gradients),
            (f"{step}, parameters", ours.weights, theirs.weights),
        ]  # fmt: skip
        rows += [LoopRow(what, *_compare_arrays(one, other, idle)) for what, one, other in compared]
    return LoopReport(tuple(rows))


def _list_idle(gradients: Arrays) -> set[str]:
    """Return the parameters whose gradients are rounding alone, as of a bias before a batch norm."""
    sizes = {name: float(np.abs(one).max(initial=0.0)) for name, one in gradients.items()}
    largest = max(filter(np.isfinite, sizes.values()), default=0.0)
    return {name for name, size in sizes.items() if size <= _IDLE * largest}


def _compare_arrays(
    expected: Arrays, actual: Arrays, idle: Container[str] = ()
) -> tuple[float, str]:
    """Return the largest difference beside the largest value of its tensor, and where it is, in words.

    NaN and infinities are held against each other by their places; where PyTorch has nothing finite,
    nothing is shown.
    """
    names = expected.keys() ^ actual.keys()
    if names:
        return float("inf"), f", one side alone has {shorten(sorted(names), 3)}"
    worst, place = 0.0, ""
    for name, array in expected.items():
        if name in idle:
            continue
        found = gap(array, actual[name])
        shown = array.size == 0 or bool(np.isfinite(array).any())
        apart = found.difference / max(found.scale, 1e-12) if shown else float("inf")
        if apart > worst:
            worst, place = apart, f", at {name}" if name else ""
    return worst, place if worst > _EXACT else ""


def run_loop(
    script: Script, reference: ModuleType, load_port: Callable[[], ModuleType]
) -> LoopReport:
    """Run two steps of a script on both sides and compare them; what one of them raises is the problem."""
    try:
        expected = watch_script(script, reference, TorchScript())
    except Exception as error:
        return LoopReport(problem=f"PyTorch's loop: {_locate(error, reference.__file__)}")
    port: ModuleType | None = None
    try:
        port = load_port()
        actual = watch_script(script, port, PaddleScript(), expected)
    except Exception as error:
        return LoopReport(
            problem=f"the port's loop: {_locate(error, port.__file__ if port else None)}"
        )
    return compare_courses(expected, actual)


def _locate(error: BaseException, file: str | None) -> str:
    """Return an error with the line of a file that it came through."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f"line {line}: " if line else ""
    return f"{where}{describe_error(error)}"
