"""The user's functions: the optimizer and scheduler that they make, and the tensors that they reach.

A loss is often a lambda over its labels, class weights or a criterion; a layer may keep a table as
a plain attribute. In float64 these must be float64 too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ReferenceType, ref

from reprod_align.errors import ReprodError

UserFunction = Callable[[Any], Any]
Blame = Callable[[str], AbstractContextManager[None]]
"""what is called -> a block that turns what the user's code raises into a ModelFailure"""


class Makers:
    """Calls one side's functions and holds their results to what a run needs."""

    def __init__(self, framework: ModuleType, blame: Blame) -> None:
        """Take the backend's `side` and the block that stands around the user's code."""
        self.fw, self.blame = framework, blame
        self.name = str(framework.NAME)
        self.remarks: list[str] = []
        self._used: list[ReferenceType[Any]] = []

    def make_optimizer(self, make: UserFunction | None, model: Any) -> Any:
        """Return a new optimizer; ReprodError without a function, or if it isn't new."""
        if make is None:
            raise ReprodError(
                f"the {self.name} side has no optimizer: give optimizers to both or neither"
            )
        with self.blame("optimizer"):
            optimizer = make(model)
        self._require_new("optimizer", optimizer)
        self._require_new("scheduler", self.fw.own_scheduler(optimizer))
        return optimizer

    def make_scheduler(self, make: UserFunction | None, optimizer: Any) -> Any:
        """Return the optimizer's schedule, None without one; ReprodError if it can't step."""
        own = self.fw.own_scheduler(optimizer)
        if make is None:
            return own
        with self.blame("scheduler"):
            scheduler = make(optimizer)
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

    def advance(self, scheduler: Any, loss: float) -> None:
        """Take one step of the schedule, if there is one; a plateau's step is told the loss."""
        if scheduler is None:
            return
        plateau = "plateau" in type(scheduler).__name__.lower()  # it steps by the metric
        with self.blame("scheduler"):
            scheduler.step(*[loss] if plateau else [])

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


Contents = Callable[[Any], tuple[Mapping[str, Any], ...]]
_DEPTH = 4  # containers within containers
_PLAIN = (type(None), bool, int, float, str, bytes)


@dataclass
class Reachable:
    """What was found, each object once."""

    tensors: list[Any] = field(default_factory=list)
    modules: list[Any] = field(default_factory=list)


def find_reachable(
    model: Any,
    callables: Iterable[Callable[..., Any] | None],
    is_tensor: Callable[[object], bool],
    is_module: Callable[[object], bool],
    contents: Contents,
) -> Reachable:
    """Return the tensors and modules that the model and the callables can reach.

    contents: returns a module's parameters, buffers and children.
    """
    found, seen = Reachable(), set()

    def visit(value: Any, depth: int) -> None:
        if depth < 0 or isinstance(value, _PLAIN) or id(value) in seen:
            return
        seen.add(id(value))
        if is_tensor(value):
            found.tensors.append(value)
        elif is_module(value):
            found.modules.append(value)
            for part in _list_module_parts(value, contents):
                visit(part, _DEPTH)
        else:
            for part in _list_parts(value):
                visit(part, depth - 1)

    visit(model, _DEPTH)
    for function in callables:
        visit(function, _DEPTH)
    return found


def _list_module_parts(module: Any, contents: Contents) -> Iterator[Any]:
    for held in contents(module):
        yield from held.values()
    yield from (value for name, value in vars(module).items() if not name.endswith("_hooks"))


def _list_parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, (list, tuple, set)):
        yield from value
    elif isinstance(value, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        yield from _list_function_parts(value)


def _list_function_parts(function: FunctionType) -> Iterator[Any]:
    """Yield what a function closes over, its defaults, and the globals that it names."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # an empty cell: not yet assigned
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        foreign = isinstance(value, FunctionType) and value.__module__ != function.__module__
        if not foreign:  # a library's functions hold nothing of the user's
            yield value
