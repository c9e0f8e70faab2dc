"""Which faults would the user's inputs reveal? Known porting faults are planted, one at a time.

A pass says little if the inputs cannot reveal a fault: an unpadded batch hides a forgotten mask.
Every fault is planted in the user's own Paddle model, compared as `align` compares it, and removed.
"""

import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from reprod_align.alignment import compare_sides
from reprod_align.alignment.judge import Pair, judge
from reprod_align.base.console import track
from reprod_align.base.files import as_json
from reprod_align.base.text import table
from reprod_align.errors import ReprodError, join_lines
from reprod_align.model.local import LocalSide
from reprod_align.model.side import Inputs, ModelFailure, Side
from reprod_align.report import Report
from reprod_align.selftest.effect import NO_EFFECT, lacks_effect, may_lack_effect
from reprod_align.selftest.fault import Fault

Function = Callable[[Any], Any]
T = TypeVar("T")

NO_REASON = "not known; more varied inputs may show it, if any inputs can"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one planted fault."""

    kind: str
    module: str
    revealed: bool | None
    """None: the model has no place for this fault, or it has no effect there"""
    text: str
    """the first finding; or why it stayed invisible; or why it has no place or no effect"""
    without_effect: bool = False
    """planted, it changes nothing that the model computes: `revealed` is None"""


@dataclass(frozen=True)
class SelfTest:
    """The result: the unbroken pair's report, and every fault's outcome (none if that failed)."""

    unbroken: Report
    outcomes: Sequence[Outcome]

    @property
    def planted(self) -> list[Outcome]:
        """The faults that the model has a place for, and that have an effect there."""
        return [outcome for outcome in self.outcomes if outcome.revealed is not None]

    @property
    def invisible(self) -> list[Outcome]:
        """The faults that the inputs, losses and optimizers do not show."""
        return [outcome for outcome in self.planted if not outcome.revealed]

    @property
    def passed(self) -> bool:
        """True if the unbroken pair passes and every planted fault is revealed."""
        return self.unbroken.passed and bool(self.planted) and not self.invisible

    @property
    def count_line(self) -> str:
        """How many of how many are revealed, and which are not."""
        shown = len(self.planted) - len(self.invisible)
        line = f"{shown} of {len(self.planted)} planted faults revealed"
        hidden = "; ".join(f"{one.kind} is invisible: {one.text}" for one in self.invisible)
        return f"{line}; {hidden}" if hidden else line

    def summary(self) -> str:
        """Return the result as text: a table of the faults, and the count."""
        if not self.unbroken.passed:
            return f"the unbroken pair does not pass, so nothing was planted\n{self.unbroken}"
        unseen = [f"not judged: {one.what}" for one in self.unbroken.not_judged]
        return join_lines([*_table(self.outcomes), "", self.count_line, *unseen])

    def to_json(self) -> str:
        """Return the result as JSON."""
        plain = {
            "passed": self.passed,
            "count": self.count_line,
            "unbroken": json.loads(self.unbroken.to_json()),
            "faults": self.outcomes,
        }
        return as_json(plain)


def selftest(
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
) -> SelfTest:
    """Plant known faults in `paddle_model` one at a time; say which of them `align` would reveal.

    The arguments are `align`'s. Both models are given back as they came, bit by bit.
    Raises ReprodError as `align` does.
    """
    from reprod_align.pair.sides import paddle_side, torch_side

    reference = torch_side(torch_model, torch_loss, torch_optimizer, torch_scheduler)
    port = paddle_side(paddle_model, paddle_loss, paddle_optimizer, paddle_scheduler)
    return selftest_sides(reference, port, inputs, steps, name_map, copy_weights)


def selftest_sides(
    reference: LocalSide,
    port: LocalSide,
    inputs: Inputs,
    steps: int = 3,
    name_map: Mapping[str, str] | None = None,
    copy_weights: bool = True,
) -> SelfTest:
    """Do what `selftest` does, for two sides that are already made."""
    pair = Pair(reference, port, inputs, steps, name_map, copy_weights)
    unbroken = _compare(pair)
    if not unbroken.passed:
        return SelfTest(unbroken, [])
    faults = track(_list_faults(pair, port), "planting faults")
    return SelfTest(unbroken, [_try_fault(pair, port, fault, unbroken) for fault in faults])


def _compare(pair: Pair) -> Report:
    """Compare as `align` does, without the search for an edit: what is planted stands in no file."""
    given = pair.inputs, pair.steps, pair.name_map, pair.copy_weights
    return compare_sides(pair.reference, pair.port, *given, tries_edits=False)


def _list_faults(pair: Pair, port: LocalSide) -> list[Fault]:
    """Return the faults for this model, found while it runs on the weights of the comparison."""
    from reprod_align.selftest.faults import list_faults

    return _with_loaded(pair, port, lambda: list_faults(port, pair.inputs, pair.steps))


def _with_loaded(pair: Pair, port: LocalSide, do: Callable[[], T]) -> T:
    """Return what `do` returns while the port holds the weights of the comparison."""

    def work_in(dtype: str) -> T:
        with pair.reference.working(dtype), port.working(dtype):
            judge(replace(pair, reference=_without_training(pair.reference)), dtype, put_back=True)
            return do()

    try:
        return work_in("float64")
    except ModelFailure:
        return work_in("float32")


def _try_fault(pair: Pair, port: LocalSide, fault: Fault, unbroken: Report) -> Outcome:
    """Plant the fault, compare, and take it out again."""
    if fault.plant is None:
        return Outcome(fault.kind, fault.module, None, fault.hint)
    with fault.plant(port) as broken:
        try:
            report = _compare_in_turn(replace(pair, port=broken), fault)
        except ReprodError as error:
            return Outcome(fault.kind, fault.module, True, f"the comparison stops: {error}")
    if report.findings:
        return Outcome(fault.kind, fault.module, True, shorten(str(report.findings[0])))
    for one in report.not_judged:
        if one.kind == fault.noted and one not in unbroken.not_judged:
            return Outcome(fault.kind, fault.module, True, shorten(f"not judged: {one.what}"))
    if may_lack_effect(fault, pair.inputs) and _with_loaded(
        pair, port, lambda: lacks_effect(port, fault, pair.inputs)
    ):
        return Outcome(fault.kind, fault.module, None, NO_EFFECT, without_effect=True)
    return Outcome(fault.kind, fault.module, False, _give_reason(fault, report))


def _compare_in_turn(pair: Pair, fault: Fault) -> Report:
    """Compare without the steps first: most faults show in one pass, which is far cheaper."""
    if fault.in_steps or pair.port.optimizer is None:
        return _compare(pair)
    one_pass = _compare(
        replace(
            pair,
            reference=_without_training(pair.reference),
            port=_without_training(pair.port),
        )
    )
    return one_pass if one_pass.findings else _compare(pair)


def _without_training(side: Any) -> Side:
    bare = copy.copy(side)
    bare.optimizer = bare.scheduler = None
    return bare  # type: ignore[no-any-return]


def _give_reason(fault: Fault, report: Report) -> str:
    named = [remark for remark in report.remarks if fault.module and fault.module in remark]
    seen = next((remark for remark in named if "settings differ" in remark), "")
    reason = fault.hint or NO_REASON
    return f"{reason} (a remark names it: {seen})" if seen else reason


def shorten(text: str) -> str:
    """Return the text, cut to what a table's column holds."""
    return text if len(text) <= 200 else f"{text[:197]}..."


def _table(outcomes: Iterable[Outcome]) -> list[str]:
    words = {True: "revealed", False: "INVISIBLE", None: "no place"}
    rows = [
        (
            one.kind,
            one.module,
            "no effect" if one.without_effect else words[one.revealed],
            one.text,
        )
        for one in outcomes
    ]
    rows.insert(0, ("fault", "module", "", "first finding, or the reason"))
    return table(rows)
