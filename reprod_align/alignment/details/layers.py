"""How far every layer's output and gradients are apart, and what rounding alone does there."""

from collections.abc import Iterator
from contextlib import suppress

from reprod_align.alignment.comparing import Pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.counterparts import CallPair, Counterparts
from reprod_align.alignment.runner import Runner
from reprod_align.base.apart import measure_sizes
from reprod_align.base.difference import RELATIVE_TOLERANCE, divide, gap
from reprod_align.base.naming import parent
from reprod_align.model.leaf import LeafPair
from reprod_align.model.side import ModelFailure
from reprod_align.model.trace import Array, Call, Trace
from reprod_align.page.content import Figures, Layer

import numpy as np

_FLOAT32 = 2.0**-29  # of what float32 does is what float64 does
Pairs = list[tuple[CallPair, list[LeafPair]]]
"""calls that stand for each other, with their outputs"""


def add_layers(runner: Runner, findings: Findings, done: Pass) -> None:
    """Note every module that was called on both sides, with the differences of a pass."""
    counterparts = Counterparts(runner.pairing, done.reference, done.natural)
    known: dict[str, Layer] = {}
    for calls, leaves in _pair_calls(counterparts, done.natural):
        ours, theirs = calls.paths
        kind = runner.pairing.torch.modules[ours].class_name
        layer = known.setdefault(ours, Layer(ours, theirs, kind.rpartition(".")[2], 0))
        layer.calls += 1
        layer.forward = _worse(layer.forward, _measure_call(calls, leaves))
    findings.report.details.layers = list(known.values())
    add_gradients(findings, done)
    if not done.outputs_ok and runner.dtype == "float64":
        _measure_floor(runner, findings, done.reference)


def _pair_calls(
    counterparts: Counterparts, port: Trace
) -> Iterator[tuple[CallPair, list[LeafPair]]]:
    """Yield the calls that have a counterpart, in PyTorch's calling order, with their outputs."""
    found = filter(None, map(counterparts.of, port.calls))
    for calls in sorted(found, key=lambda one: one.ours.began):
        yield calls, counterparts.pair_leaves(calls, "outputs")


def _measure_call(calls: CallPair, leaves: list[LeafPair]) -> Figures | None:
    worst = None
    for pair in leaves:
        ours, theirs = calls.leaves(pair, "outputs")
        if ours.array.dtype.kind == "f" and ours.array.size:
            worst = _worse(worst, measure_figures(pair.to_port(ours.array), theirs.array))
    return worst


def measure_figures(expected: Array, actual: Array) -> Figures:
    """Return how far two arrays are apart; infinitely if their shapes or kinds differ."""
    if expected.shape != actual.shape or expected.dtype.kind != actual.dtype.kind:
        return Figures(np.inf, np.inf, np.inf)
    found = gap(expected, actual, with_mean=True)
    if not np.isfinite(found.mean):  # infinities in the same places are equal
        return Figures(found.difference, found.difference, found.relative)
    scale = measure_sizes(expected, most=found.scale).ordinary
    return Figures(found.mean, found.difference, divide(found.difference, scale))


def _worse(one: Figures | None, other: Figures | None) -> Figures | None:
    if one is None or other is None:
        return one or other
    return one if not one.relative < other.relative else other


def add_gradients(findings: Findings, done: Pass) -> None:
    """Give each layer the worst difference of its own parameters' gradients in a pass."""
    known = {layer.torch_name: layer for layer in findings.report.details.layers}
    for name, _, apart in done.gradients:
        layer = known.get(parent(name))
        if layer is not None:
            allowed = apart.exceed * RELATIVE_TOLERANCE  # what noise allows is no difference
            found = Figures(apart.mean, apart.difference, min(apart.relative, allowed))
            layer.backward = _worse(layer.backward, found)


def _measure_floor(runner: Runner, findings: Findings, exact: Trace) -> None:
    """Measure what float32 does to PyTorch's own numbers; a part of it is what float64 does."""
    runner.put_back()
    with suppress(ModelFailure), runner.reference.working("float32"):
        add_floor(findings, exact, runner.run_reference(False, keep="outputs", backward=False))


def add_floor(findings: Findings, exact: Trace, rounded: Trace) -> None:
    """Note the noise floor of each layer: PyTorch's float32 run beside its float64 run."""
    floors = rounded.by_key()
    layers = {layer.torch_name: layer for layer in findings.report.details.layers}
    for call in exact.calls:
        layer, other = layers.get(call.path), floors.get(call.key)
        if layer is not None and other is not None:
            moved = _measure_same(call, other)
            if moved is not None and np.isfinite(moved.relative):
                layer.floor = max(layer.floor or 0.0, moved.relative * _FLOAT32)


def _measure_same(call: Call, other: Call) -> Figures | None:
    worst = None
    for path, leaf in call.outputs.items():
        found = other.outputs.get(path)
        if found is not None and leaf.array.dtype.kind == "f" and leaf.array.size:
            worst = _worse(worst, measure_figures(leaf.array, found.array))
    return worst


def add_float32(runner: Runner, findings: Findings, rounded: Trace, port: Trace) -> None:
    """Note how far each layer's output is apart where both sides run in float32."""
    layers = {layer.torch_name: layer for layer in findings.report.details.layers}
    for calls, leaves in _pair_calls(Counterparts(runner.pairing, rounded, port), port):
        layer = layers.get(calls.ours.path)
        if layer is not None:
            layer.rounded = _worse(layer.rounded, _measure_call(calls, leaves))
