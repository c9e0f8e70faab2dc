"""One call on a user's own pair: is the port faithful, and if not, where and why does it diverge?

Both models are brought to float64 where they stand and given the same weights; then they are run in
eval mode, in train mode with shared random draws, and through optimizer steps. Where two numbers
differ, `locate` finds the module that makes the difference. Afterwards the models are as before.

What is built on the engine imports from here: a report on a pair, or the parts that make one.
"""

import linecache
import warnings
from collections.abc import Container, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from reprod_align.alignment.batches.derive import Batch, derive_batches
from reprod_align.alignment.by_gradients import find_exchanged, may_be_exchanged
from reprod_align.alignment.comparing import LAYER_ROUNDING, WHOLE_ROUNDING, compare_outputs
from reprod_align.alignment.findings import OUTPUTS_IN_EVAL, Findings
from reprod_align.alignment.judge import judge, report_failure
from reprod_align.alignment.leftovers import find_cause, find_idle
from reprod_align.alignment.locating.pinning import EndPins
from reprod_align.alignment.loss_stage import describe_effects
from reprod_align.alignment.noise import Noise
from reprod_align.alignment.pair_models import pair_models, share_draws
from reprod_align.alignment.pairing import Pairing, make_pairing
from reprod_align.alignment.runner import Runner, shake
from reprod_align.alignment.tables import describe_tables, lent_tables
from reprod_align.alignment.unjudged import contradicts_itself, note_kernels, watch_lines
from reprod_align.base import PORT, REFERENCE, take_reference
from reprod_align.base.text import ancestors, shorten
from reprod_align.model.side import ModelFailure
from reprod_align.model.store import limit_memory
from reprod_align.pair import PairSpec, make_pair, with_arguments_of
from reprod_align.report import INSIDE_FLOAT32, ONLY_FLOAT32, Report

__all__ = [
    "Batch",
    "EndPins",
    "Findings",
    "LAYER_ROUNDING",
    "Noise",
    "OUTPUTS_IN_EVAL",
    "Pairing",
    "Runner",
    "WHOLE_ROUNDING",
    "align",
    "compare_outputs",
    "compare_pair",
    "derive_batches",
    "describe_effects",
    "find_cause",
    "find_idle",
    "judge",
    "judge_beyond_kernels",
    "judge_in_float64",
    "judge_widened",
    "make_pairing",
    "note_rounded",
    "pair_models",
    "report_failure",
    "shake",
    "share_draws",
]

_WIDENED = "judged with float64 in place of the float32 that the models ask for"
_RAISES = " raises "  # in the message on a port that raised
_NAMED = 6  # places in one remark


@with_arguments_of(make_pair)
def align(*given: Any, **named: Any) -> Report:
    """Compare a model with its port to the other framework, and say where they diverge and why.

    {arguments}

    Both models are given back as they came. Raises ReprodError if an argument can't be what it
    should be, or if the reference itself fails.
    """
    return compare_pair(make_pair(*given, **named))


def compare_pair(pair: PairSpec) -> Report:
    """Return the report of `align` on a pair. Raises ReprodError as `align` does."""
    pair.check()
    linecache.checkcache()  # a file may have been edited, and loaded again, since the last comparison
    with ExitStack() as stack:
        stack.enter_context(take_reference(pair.framework))
        stack.enter_context(limit_memory(pair.memory))
        note_idle = stack.enter_context(watch_lines(pair.reference, pair.port))
        lent = stack.enter_context(lent_tables(pair.reference, pair.port))
        pair, report = _judge_as_gradients_pair(pair, judge_in_float64(pair))
        report = judge_beyond_kernels(pair, report)
        report.remarks += [describe_tables(lent)] if lent else []
        note_idle(report)
    note_rounded(report)
    if pair.framework == "paddle":
        report.take_paddle_as_reference()
    return report


def judge_in_float64(pair: PairSpec) -> Report:
    """Judge a pair in float64 as far as it runs there, and tell float32 inside from faults."""
    try:
        report = _judge_in(pair, "float64", places_only=True)
    except ModelFailure as error:
        return _judge_otherwise(pair, error)
    if report.verdict != "faithful" and pair.asked_float32:
        report = _without_float32(pair, report)
    return _try_float32(pair, report) if report.port_raised else report


def _judge_as_gradients_pair(pair: PairSpec, report: Report) -> tuple[PairSpec, Report]:
    """Judge a pair once more if its gradients say that weights of equal values were exchanged."""
    found = find_exchanged(pair) if may_be_exchanged(report) else {}
    if not found:
        return pair, report
    pair = replace(pair, name_map={**found, **(pair.name_map or {})})
    report = judge_in_float64(pair)
    named = shorten([f"{name} with {other}" for name, other in found.items()], _NAMED)
    report.remarks.append(f"paired by comparing gradients, since the values are equal: {named}")
    return pair, report


def judge_beyond_kernels(pair: PairSpec, report: Report) -> Report:
    """Judge a pair that differs once more, if PyTorch's own kernels contradict themselves in it.

    Then PyTorch's side takes the wider type's numbers, and what still differs is the port's fault.
    """
    found = [one for one in report.findings if one.stage == "forward"]
    further = any(one.batches for one in found)
    torch = pair.reference if pair.framework == "torch" else pair.port
    if not found or not contradicts_itself(torch, pair.inputs, further):
        return report
    torch.mend_kernels(True)
    try:
        again = judge_in_float64(pair)
    finally:
        noted = torch.mend_kernels(False)
    note_kernels(again, noted)
    return again


def _try_float32(pair: PairSpec, wide: Report) -> Report:
    """Judge a port that raises in float64 in float32, which its users run, unless it raises there too."""
    try:
        report = _judge_in(pair, "float32")
    except ModelFailure:
        return wide
    if report.port_raised:
        return wide
    raised = next(found.message for found in wide.findings if _RAISES in found.message)
    report.remarks.insert(0, f"judged in float32, since float64 does not run: {raised}")
    return report


def _judge_in(
    pair: PairSpec, dtype: str, throughout: bool = False, places_only: bool = False
) -> Report:
    """Compare in `dtype`; throughout: also where the models ask for float32."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of libraries about themselves; -W makes them errors
        stack.enter_context(pair.reference.working(dtype, throughout))
        stack.enter_context(pair.port.working(dtype, throughout, at_rest=True))
        return judge(pair, dtype, places_only=places_only)


def _judge_otherwise(pair: PairSpec, error: ModelFailure) -> Report:
    """Judge a pair whose reference does not run in float64 as it is."""
    if pair.reference.asked_float32:
        with suppress(ModelFailure):
            report = _judge_in(pair, "float64", throughout=True)
            report.remarks.insert(0, _WIDENED)
            return report
    report = _judge_in(pair, "float32")
    report.remarks.insert(0, f"judged in float32, since float64 does not run: {error}")
    return report


def _without_float32(pair: PairSpec, mixed: Report) -> Report:
    """Judge a pair that asks for float32 inside once more, with float64 in its place.

    mixed: where the models as they are differ. If that run finds nothing, they differ by rounding.
    """
    wide = judge_widened(pair)
    if wide is None:
        return _judge_in(pair, "float64")
    if wide.findings:
        return wide
    wide.remarks += [text for text in mixed.remarks if text not in wide.remarks]
    wide.not_judged += [one for one in mixed.not_judged if one not in wide.not_judged]
    found = [place for one in mixed.findings for place in (one.place, *one.places)]
    if wide.verdict == "faithful":
        found += mixed.imprecise
    else:
        wide.imprecise = mixed.imprecise | wide.imprecise
    wide.rounded = list(dict.fromkeys(found))
    return wide


def judge_widened(pair: PairSpec) -> Report | None:
    """Judge a pair with float64 wherever a model asks for float32; None if either does not run so.

    It is faithful if all agrees so and both models ask for float32 in the same modules: one that rounds
    where the other does not differs from it in float32's precision.
    """
    try:
        report = _judge_in(pair, "float64", throughout=True)
    except ModelFailure:
        return None
    if report.findings:
        report.remarks.insert(0, _WIDENED)
    elif alone := _list_rounding_alone(pair, report.pairs):
        report.verdict = "agrees to float32"
        report.remarks += alone
    return None if report.port_raised else report


def _list_rounding_alone(pair: PairSpec, modules: Mapping[str, str]) -> list[str]:
    """Return a remark for each side that asks for float32 in modules whose counterparts do not.

    modules: the reference's paired modules -> the port's. One without a counterpart counts as part of
    the nearest around it that has one.
    """
    back = {other: name for name, other in modules.items()}
    ours = {_find_paired(place, modules): None for place in pair.reference.rounding_modules}
    theirs = {back.get(_find_paired(place, back), ""): None for place in pair.port.rounding_modules}
    sides = (ours, theirs, REFERENCE, PORT), (theirs, ours, PORT, REFERENCE)
    return [
        f"{one} rounds to float32 where {other} does not: {shorten(alone, _NAMED)}"
        for mine, its, one, other in sides
        if (alone := [place or "the model" for place in mine if place not in its])
    ]


def _find_paired(place: str, modules: Container[str]) -> str:
    """Return the module, or the nearest around it, that has a counterpart; "": the model."""
    return next((name for name in (place, *ancestors(place)) if name in modules), "")


def note_rounded(report: Report) -> None:
    """Remark on the places where float32 inside is all that differs, if there are any."""
    if report.imprecise:
        report.remarks.append(f"{ONLY_FLOAT32}{_describe_loss(report.imprecise)}")
    if report.rounded:
        named = shorten(report.rounded, _NAMED)
        only = "" if report.verdict == "faithful" else ONLY_FLOAT32
        report.remarks.append(f"{only}{INSIDE_FLOAT32}{named}; "
                              "with float64 in its place everything agrees")  # fmt: skip


def _describe_loss(places: Mapping[str, float]) -> str:
    """Return where precision is lost, and how much: first and last place stand for many layers."""
    first, *others = places
    worst = max(places.values())
    if not others:
        return f"{first} loses precision (relative {worst:.1e})"
    return (f"{len(places)} places lose precision, from {first} to {others[-1]} "
            f"(relative {worst:.1e} at most)")  # fmt: skip
