"""Which faults would the user's inputs reveal? Known porting faults are planted, one at a time.

A pass says little if the inputs cannot reveal a fault: an unpadded batch hides a forgotten mask.
Every fault is planted in the user's own Paddle model, compared as `align` compares it, and removed.

A fault may also change nothing that a model computes: a constant added to all logits before a softmax
changes no output and no gradient, on any batch. No inputs can reveal such a fault, so the report tells it
apart from faults that only these inputs hide.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any, Final, TypeVar, cast

from reprod_align.alignment import Batch, compare_pair, derive_batches, judge
from reprod_align.base.blocks import Array, magnitude
from reprod_align.base.console import track
from reprod_align.base.difference import gap
from reprod_align.base.files import as_json
from reprod_align.base.text import table
from reprod_align.errors import ReprodError, join_lines
from reprod_align.model import Inputs, LocalSide, ModelFailure, Projection, Side, Trace
from reprod_align.pair import PairSpec, make_pair, with_arguments_of
from reprod_align.randomness import KeyedDraws
from reprod_align.report import Report
from reprod_align.selftest import inputs as _of_inputs
from reprod_align.selftest import layers as _of_layers
from reprod_align.selftest import training as _of_training
from reprod_align.selftest.plant import DEAD, PlantedFault, find_faults, observe

import numpy as np

FAULTS: Final = {**_of_layers.FAULTS, **_of_inputs.FAULTS, **_of_training.FAULTS}
"""every kind of fault, in the order in which they are planted"""

_SEED = 20215
_ROUNDING = 1e-12  # relative: what rounding alone may change
NO_EFFECT = "it changes no output and no gradient, on these inputs or on others derived from them"


def may_lack_effect(fault: PlantedFault, inputs: Inputs) -> bool:
    """Tell whether a fault that was not revealed may be one that no inputs reveal.

    Not where a reason to hide is known, nor where an axis has length 1: longer inputs may reveal it.
    """
    arrays = inputs.values() if isinstance(inputs, Mapping) else inputs
    single = any(size == 1 for array in arrays for size in array.shape)
    return not (single or fault.in_steps) and fault.hint in ("", DEAD)


def lacks_effect(side: LocalSide, fault: PlantedFault, inputs: Inputs) -> bool:
    """Tell whether the fault changes nothing beyond rounding, on the inputs and on derived ones.

    Call inside `working`, the weights loaded.
    """
    if fault.plant is None:
        return False
    try:
        batches = list(_derive_further(side, inputs))
        sound = [list(_run(side, batch)) for batch in batches]
        with fault.plant(side) as broken, broken.working(side.dtype):
            changed = [list(_run(broken, batch)) for batch in batches]
    except ModelFailure:
        return False
    runs = zip(chain(*sound), chain(*changed), strict=True)
    return all(_is_same(one, other) for one, other in runs)


def _derive_further(side: LocalSide, inputs: Inputs) -> Iterator[Batch]:
    """Yield the inputs, and further batches that the model accepts."""

    def accepts(batch: Batch) -> bool:
        try:
            list(_run(side, batch))
        except ModelFailure:
            return False
        return True

    yield Batch("", inputs)
    yield from (batch for batch in derive_batches(inputs, accepts) if not batch.before)


def _run(side: LocalSide, batch: Batch) -> Iterator[Trace]:
    """Yield the model's runs in eval and in train mode, from a projection; from the loss if it fits."""
    kept, objectives = side.values(), [Projection(), None]
    if side.loss is None or batch.words:
        objectives.pop()
    for training, objective in product((False, True), objectives):
        draws = KeyedDraws(_SEED, {"": ""})
        yield side.run(
            batch.inputs, training, draws, "ends", objective, anew=True, graded=batch.graded
        )
        side.load(kept)


def _is_same(sound: Trace, changed: Trace) -> bool:
    parts = [
        (
            {at: leaf.array for at, leaf in trace.outputs.items()},
            trace.gradients,
            trace.buffers,
            {} if trace.loss is None else {"loss": np.array([trace.loss])},
        )
        for trace in (sound, changed)
    ]
    return all(_are_near(ours, theirs) for ours, theirs in zip(*parts, strict=True))


def _are_near(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> bool:
    floor = _ROUNDING * max(map(magnitude, ours.values()), default=0.0)
    same_names = ours.keys() == theirs.keys()
    return same_names and all(gap(ours[at], theirs[at], 0.0, floor).ok for at in ours)


T = TypeVar("T")

NO_REASON = "not known; more varied inputs may show it, if any inputs can"


@dataclass(frozen=True)
class FaultOutcome:
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
    outcomes: Sequence[FaultOutcome]

    @property
    def planted(self) -> list[FaultOutcome]:
        """The faults that the model has a place for, and that have an effect there."""
        return [outcome for outcome in self.outcomes if outcome.revealed is not None]

    @property
    def invisible(self) -> list[FaultOutcome]:
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
        words = {True: "revealed", False: "INVISIBLE", None: "no place"}
        rows = [("fault", "module", "", "first finding, or the reason")]
        for one in self.outcomes:
            word = "no effect" if one.without_effect else words[one.revealed]
            rows.append((one.kind, one.module, word, one.text))
        unseen = [f"not judged: {one.what}" for one in self.unbroken.not_judged]
        return join_lines([*table(rows), "", self.count_line, *unseen])

    def to_json(self) -> str:
        """Return the result as JSON."""
        plain = {
            "passed": self.passed,
            "count": self.count_line,
            "unbroken": json.loads(self.unbroken.to_json()),
            "faults": self.outcomes,
        }
        return as_json(plain)


@with_arguments_of(make_pair)
def selftest(*given: Any, **named: Any) -> SelfTest:
    """Plant known faults in `paddle_model` one at a time; say which of them `align` would reveal.

    {arguments}

    Both models are given back as they came, bit by bit. Raises ReprodError as `align` does.
    """
    return selftest_pair(make_pair(*given, **named))


def selftest_pair(pair: PairSpec) -> SelfTest:
    """Do what `selftest` does for a pair whose models are in this process."""
    pair = replace(pair, tries_edits=False)  # what is planted stands in no file
    port = cast(LocalSide, pair.port)
    unbroken = compare_pair(pair)
    if not unbroken.passed:
        return SelfTest(unbroken, [])
    faults = _with_loaded(
        pair, port, lambda: find_faults(FAULTS, observe(port, pair.inputs, pair.steps))
    )
    planted = track(faults, "planting faults")
    return SelfTest(unbroken, [_try_fault(pair, port, fault, unbroken) for fault in planted])


def _with_loaded(pair: PairSpec, port: LocalSide, do: Callable[[], T]) -> T:
    """Return what `do` returns while the port holds the weights of the comparison."""

    def work_in(dtype: str) -> T:
        with pair.reference.working(dtype), port.working(dtype):
            judge(replace(pair, reference=_drop_training(pair.reference)), dtype, put_back=True)
            return do()

    try:
        return work_in("float64")
    except ModelFailure:
        return work_in("float32")


def _try_fault(
    pair: PairSpec, port: LocalSide, fault: PlantedFault, unbroken: Report
) -> FaultOutcome:
    """Plant the fault, compare, and take it out again."""
    if fault.plant is None:
        return FaultOutcome(fault.kind, fault.module, None, fault.hint)
    with fault.plant(port) as broken:
        try:
            report = _compare_in_turn(replace(pair, port=broken), fault)
        except ReprodError as error:
            return FaultOutcome(fault.kind, fault.module, True, f"the comparison stops: {error}")
    if report.findings:
        return FaultOutcome(fault.kind, fault.module, True, shorten(str(report.findings[0])))
    for one in report.not_judged:
        if one.kind == fault.noted and one not in unbroken.not_judged:
            return FaultOutcome(fault.kind, fault.module, True, shorten(f"not judged: {one.what}"))
    if may_lack_effect(fault, pair.inputs) and _with_loaded(
        pair, port, lambda: lacks_effect(port, fault, pair.inputs)
    ):
        return FaultOutcome(fault.kind, fault.module, None, NO_EFFECT, without_effect=True)
    reason = fault.hint or NO_REASON
    named = [remark for remark in report.remarks if fault.module and fault.module in remark]
    seen = next((remark for remark in named if "settings differ" in remark), "")
    if seen:
        reason = f"{reason} (a remark names it: {seen})"
    return FaultOutcome(fault.kind, fault.module, False, reason)


def _compare_in_turn(pair: PairSpec, fault: PlantedFault) -> Report:
    """Compare without the steps first: most faults show in one pass, which is far cheaper."""
    if fault.in_steps or pair.port.optimizer is None:
        return compare_pair(pair)
    one_pass = compare_pair(
        replace(pair, reference=_drop_training(pair.reference), port=_drop_training(pair.port))
    )
    return one_pass if one_pass.findings else compare_pair(pair)


def _drop_training(side: Any) -> Side:
    bare = copy.copy(side)
    bare.optimizer = bare.scheduler = None
    return bare  # type: ignore[no-any-return]


def shorten(text: str) -> str:
    """Return the text, cut to what a table's column holds."""
    return text if len(text) <= 200 else f"{text[:197]}..."
