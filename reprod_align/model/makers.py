"""The user's functions that make an optimizer and a scheduler, called anew for each run."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any
from weakref import ReferenceType, ref

from reprod_align.errors import ReprodError

Maker = Callable[[Any], Any]
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

    def make_optimizer(self, make: Maker | None, model: Any) -> Any:
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

    def make_scheduler(self, make: Maker | None, optimizer: Any) -> Any:
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
