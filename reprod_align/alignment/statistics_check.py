"""Compares running statistics after one step in train mode, with what a faithful port's are.

Paddle keeps the biased running variance where PyTorch keeps the unbiased one, and its kernel takes
the momentum as a float32: 0.9 becomes 0.899999976, in float64 too.
"""

from reprod_align.alignment.comparing import LAYER_ROUNDING
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.fault import FLOOR
from reprod_align.alignment.runner import Runner
from reprod_align.base.difference import Gap, gap
from reprod_align.base.naming import parent
from reprod_align.base.text import count
from reprod_align.model.side import ModelInfo
from reprod_align.model.tensor_pair import TensorPair
from reprod_align.model.trace import Array, Trace

import numpy as np


def compare_statistics(runner: Runner, findings: Findings, reference: Trace, port: Trace) -> None:
    """Compare the float buffers of two runs in train mode; add a finding for each that differs."""
    gaps = []
    for pair in runner.pairing.match.pairs:
        name, other = pair.torch[0], pair.paddle[0]
        known = name in reference.buffers and other in port.buffers
        if known and runner.weights[name].dtype.kind == "f":
            found = _compare(runner, findings, pair, reference, port)
            gaps.append(found)
            if not found.ok:
                limit = max(LAYER_ROUNDING, _table_rounding(runner, pair, reference, port))
                _add(runner, findings, name, other, found, limit)
    if gaps:
        findings.check_gaps(
            "forward", f"{count(len(gaps), 'running statistic')} after a step", gaps
        )


def _compare(
    runner: Runner, findings: Findings, pair: TensorPair, reference: Trace, port: Trace
) -> Gap:
    """Compare one statistic; where Paddle's layers keep another, with what a faithful port has."""
    name, actual = pair.torch[0], port.buffers[pair.paddle[0]]
    expected = reference.buffers[name]
    if expected.shape == runner.weights[name].shape:  # a call may put another one in its place
        expected = pair.to_paddle({name: expected})[pair.paddle[0]]
    found = gap(expected, actual)
    made = _faithful_value(name, runner.weights[name], reference, runner.pairing.torch)
    if found.ok or made is None:
        return found
    own, floor = made
    if gap(own, actual, floor=floor).ok and name.endswith("var"):
        findings.remark("Paddle's batch norm keeps the biased running variance where "
                        "PyTorch keeps the unbiased one: a faithful port differs there")  # fmt: skip
    return gap(own, actual, floor=floor)


def _table_rounding(runner: Runner, pair: TensorPair, reference: Trace, port: Trace) -> float:
    """Return how far two tables of constants may be apart; 0.0 for numbers that a step changes.

    In a table of n rows an angle reaches n. A last bit of its float32 rate is n * 2**-23 there, and each
    side rounds the product by n * 2**-25 or less.
    """
    name = pair.torch[0]
    before, ours, theirs = (
        runner.weights[name],
        reference.buffers[name],
        port.buffers[pair.paddle[0]],
    )
    single = all(np.array_equal(one, one.astype(np.float32)) for one in (ours, theirs))
    return max(ours.shape, default=0) * 2.0**-22 if single and np.array_equal(before, ours) else 0.0


def _add(
    runner: Runner, findings: Findings, name: str, other: str, found: Gap, limit: float
) -> None:
    owner = parent(name), parent(other)
    if found.relative <= limit and not runner.pairing.settings_differ(*owner):
        findings.note_float32(owner[0], found.relative)
    elif not findings.at(*owner):
        text = (f"running statistic {name.rpartition('.')[2]} differs "
                f"after one step in train mode: {found.words}")  # fmt: skip
        findings.add("forward", *owner, text, found, kind="running-statistics")


def _faithful_value(
    name: str, before: Array, reference: Trace, info: ModelInfo
) -> tuple[Array, float] | None:
    """Return what Paddle's layer holds after the step in which PyTorch's started from `before`, (C,).

    Beside it stands what rounding can leave of it where the values of a mean cancel. name: of PyTorch's
    buffer. None for any other buffer, or where the step is not known (a cumulative average, inputs that
    were not kept).
    """
    owner, _, role = name.rpartition(".")
    momentum = info.modules[owner].values.get("momentum")
    calls = [call for call in reference.calls if call.path == owner]
    if role not in ("running_mean", "running_var") or not momentum or not calls:
        return None
    keep = float(np.float32(1 - momentum))
    statistic, floor = before, 0.0
    for call in calls:
        if not call.inputs:
            return None
        values = next(iter(call.inputs.values())).array
        axes = tuple(axis for axis in range(values.ndim) if axis != 1)
        batch = values.mean(axes) if role == "running_mean" else values.var(axes)
        statistic = keep * statistic + (1 - keep) * batch
        if role == "running_mean":  # squares do not cancel
            floor += (1 - keep) * FLOOR * float(np.abs(values).max(initial=0.0))
    return statistic, floor
