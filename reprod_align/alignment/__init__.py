"""One call on a user's own pair: is the port faithful, and if not, where and why does it diverge?

Both models are brought to float64 where they stand and given the same weights; then they are run in
eval mode, in train mode with shared random draws, and through optimizer steps. Where two numbers
differ, `locate` finds the module that makes the difference. Afterwards the models are as before.
"""

import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from reprod_align.alignment.judge import Pair, judge
from reprod_align.alignment.unjudged import contradicts_itself, note_kernels, watch_lines
from reprod_align.base.text import shorten
from reprod_align.errors import ReprodError
from reprod_align.model.inputs import check_inputs
from reprod_align.model.side import Inputs, ModelFailure, Side
from reprod_align.model.store import limit_memory
from reprod_align.report import Report

import numpy as np

_WIDENED = "judged with float64 in place of the float32 that the models ask for"
_RAISES = " raises "  # in the message on a port that raised
_NAMED = 6  # places in one remark
Function = Callable[[Any], Any]


def align(
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
    memory: int | None = None,
) -> Report:
    """Compare a PyTorch model with its Paddle port, and say where they diverge and why.

    inputs: arrays given to both models, by keyword (a dict) or by position (a tuple).
    torch_loss, paddle_loss: from the model's output to a scalar tensor.
    torch_optimizer, paddle_optimizer: from the model to an optimizer; `steps` steps are taken.
    torch_scheduler, paddle_scheduler: from the optimizer to a scheduler, stepped after each step.
    name_map: {PyTorch name or prefix: Paddle name or prefix}, where names can't be paired without.
    copy_weights: True: the converted PyTorch weights are loaded into the Paddle model first;
    False: the weights that it holds are compared.
    memory: bytes that this process may take before what is kept goes to temporary files; None: what
    is free, less a reserve.

    Both models are given back as they came. Raises ReprodError if an argument can't be what it
    should be, or if the PyTorch side itself fails.
    """
    from reprod_align.pair.sides import paddle_side, torch_side

    reference = torch_side(torch_model, torch_loss, torch_optimizer, torch_scheduler)
    port = paddle_side(paddle_model, paddle_loss, paddle_optimizer, paddle_scheduler)
    return compare_sides(reference, port, inputs, steps, name_map, copy_weights, memory)


def compare_sides(
    reference: Side,
    port: Side,
    inputs: Inputs,
    steps: int = 3,
    name_map: Mapping[str, str] | None = None,
    copy_weights: bool = True,
    memory: int | None = None,
    tries_edits: bool = True,
) -> Report:
    """Do what `align` does, for two sides that are already made.

    tries_edits: whether edits of the port's code are tried at a fault, which takes most of the time.
    """
    check_inputs(inputs)
    check_arguments(steps, name_map, copy_weights, memory, reference, port)
    pair = Pair(reference, port, inputs, steps, name_map, copy_weights, tries_edits=tries_edits)
    with limit_memory(memory), watch_lines(reference, port) as note_idle:
        report = judge_beyond_kernels(pair, judge_in_float64(pair))
        note_idle(report)
    note_rounded(report)
    return report


def judge_in_float64(pair: Pair) -> Report:
    """Judge a pair in float64 as far as it runs there, and tell float32 inside from faults."""
    try:
        report = _judge_in(pair, "float64", places_only=True)
    except ModelFailure as error:
        return _judge_otherwise(pair, error)
    if report.verdict != "faithful" and pair.asked_float32:
        report = _without_float32(pair, report)
    return _try_float32(pair, report) if report.port_raised else report


def judge_beyond_kernels(pair: Pair, report: Report) -> Report:
    """Judge a pair that differs once more, if PyTorch's own kernels contradict themselves in it.

    Then PyTorch's side takes the wider type's numbers, and what still differs is the port's fault.
    """
    found = [one for one in report.findings if one.stage == "forward"]
    further = any(one.batches for one in found)
    if not found or not contradicts_itself(pair.reference, pair.inputs, further):
        return report
    pair.reference.mend_kernels(True)
    try:
        again = judge_in_float64(pair)
    finally:
        noted = pair.reference.mend_kernels(False)
    note_kernels(again, noted)
    return again


def _try_float32(pair: Pair, wide: Report) -> Report:
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
    pair: Pair, dtype: str, throughout: bool = False, places_only: bool = False
) -> Report:
    """Compare in `dtype`; throughout: also where the models ask for float32."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of libraries about themselves; -W makes them errors
        stack.enter_context(pair.reference.working(dtype, throughout))
        stack.enter_context(pair.port.working(dtype, throughout, at_rest=True))
        return judge(pair, dtype, places_only=places_only)


def _judge_otherwise(pair: Pair, error: ModelFailure) -> Report:
    """Judge a pair whose PyTorch side does not run in float64 as it is."""
    if pair.reference.asked_float32:
        with suppress(ModelFailure):
            report = _judge_in(pair, "float64", throughout=True)
            report.remarks.insert(0, _WIDENED)
            return report
    report = _judge_in(pair, "float32")
    report.remarks.insert(0, f"judged in float32, since float64 does not run: {error}")
    return report


def _without_float32(pair: Pair, mixed: Report) -> Report:
    """Judge a pair that asks for float32 inside once more, with float64 in its place.

    mixed: where the models as they are differ. If that run finds nothing, they differ by rounding.
    """
    try:
        wide = _judge_in(pair, "float64", throughout=True)
    except ModelFailure:
        return _judge_in(pair, "float64")
    if wide.port_raised:
        return _judge_in(pair, "float64")
    if wide.findings:
        wide.remarks.insert(0, _WIDENED)
        return wide
    wide.remarks += [text for text in mixed.remarks if text not in wide.remarks]
    wide.not_judged += [one for one in mixed.not_judged if one not in wide.not_judged]
    wide.imprecise = mixed.imprecise | wide.imprecise
    found = (place for one in mixed.findings for place in (one.place, *one.places))
    wide.rounded = list(dict.fromkeys(found))
    wide.verdict = "agrees to float32"
    return wide


def note_rounded(report: Report) -> None:
    """Remark on the places where float32 inside is all that differs, if there are any."""
    if report.imprecise:
        report.remarks.append(f"agrees to float32 only: {_describe_loss(report.imprecise)}")
    if report.rounded:
        named = shorten(report.rounded, _NAMED)
        report.remarks.append(f"agrees to float32 only: the models compute in float32 in {named}; "
                              "with float64 in its place everything agrees")  # fmt: skip


def _describe_loss(places: Mapping[str, float]) -> str:
    """Return where precision is lost, and how much: first and last place stand for many layers."""
    first, *others = places
    worst = max(places.values())
    if not others:
        return f"{first} loses precision (relative {worst:.1e})"
    return (f"{len(places)} places lose precision, from {first} to {others[-1]} "
            f"(relative {worst:.1e} at most)")  # fmt: skip


def check_arguments(
    steps: object,
    name_map: object,
    copy_weights: object,
    memory: object,
    reference: Side,
    port: Side,
) -> None:
    """Raise ReprodError for arguments that can't be meant."""
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ReprodError(f"steps: expected a whole number above 0, got {str(steps)[:50]!r}")
    if not isinstance(copy_weights, bool):
        raise ReprodError(f"copy_weights: expected True or False, got {str(copy_weights)[:50]!r}")
    if memory is not None and (
        isinstance(memory, bool) or not isinstance(memory, int) or memory < 1
    ):
        raise ReprodError(f"memory: expected a number of bytes, got {str(memory)[:50]!r}")
    named = name_map if isinstance(name_map, Mapping) else {None: None} if name_map else {}
    if not all(isinstance(name, str) for pair in named.items() for name in pair):
        raise ReprodError(
            f"name_map: expected a dict from PyTorch's names to Paddle's, got {str(name_map)[:50]!r}"
        )
    for what in ("loss", "optimizer"):
        first, second = getattr(reference, what), getattr(port, what)
        if (first is None) != (second is None):
            raise ReprodError(f"torch_{what} and paddle_{what} go together: give both or neither")
    if reference.optimizer is None and (reference.scheduler or port.scheduler):
        raise ReprodError(
            "a scheduler needs an optimizer: give torch_optimizer and paddle_optimizer"
        )
