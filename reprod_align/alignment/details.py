"""What the report shows beside the findings: layers' distances, one difference as a picture, both sides."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from reprod_align.alignment.comparing import Pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.counterparts import CallPair, Counterparts
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base.blocks import Array
from reprod_align.base.difference import RELATIVE_TOLERANCE, divide, gap
from reprod_align.base.local import measure_sizes
from reprod_align.base.text import parent
from reprod_align.match import TensorPair
from reprod_align.model.side import Inputs, ModelFailure, TrainingStep
from reprod_align.model.trace import Call, LeafPair, Trace
from reprod_align.page import CurvePlot, Figures, Layer, TensorPicture
from reprod_align.report import Setting, Weight

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
        layer.forward = _choose_worse(layer.forward, _measure_call(calls, leaves))
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
            worst = _choose_worse(worst, measure_figures(pair.to_port(ours.array), theirs.array))
    return worst


def measure_figures(expected: Array, actual: Array) -> Figures:
    """Return how far two arrays are apart; infinitely if their shapes or kinds differ."""
    if expected.shape != actual.shape or expected.dtype.kind != actual.dtype.kind:
        return Figures(np.inf, np.inf, np.inf)
    found = gap(expected, actual, with_mean=True)
    if not np.isfinite(found.mean):  # infinities in the same places are equal
        return Figures(found.difference, found.difference, found.relative)
    scale = measure_sizes(expected, found.scale).ordinary
    return Figures(found.mean, found.difference, divide(found.difference, scale))


def _choose_worse(one: Figures | None, other: Figures | None) -> Figures | None:
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
            layer.backward = _choose_worse(layer.backward, found)


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
            worst = _choose_worse(worst, measure_figures(leaf.array, found.array))
    return worst


def add_float32(runner: Runner, findings: Findings, rounded: Trace, port: Trace) -> None:
    """Note how far each layer's output is apart where both sides run in float32."""
    layers = {layer.torch_name: layer for layer in findings.report.details.layers}
    for calls, leaves in _pair_calls(Counterparts(runner.pairing, rounded, port), port):
        layer = layers.get(calls.ours.path)
        if layer is not None:
            layer.rounded = _choose_worse(layer.rounded, _measure_call(calls, leaves))


_SIDE = 64  # squares along either side of the map
_BINS = 40
_IMAGES = 4  # axes: (N, C, H, W)


def add_picture(runner: Runner, findings: Findings, done: Pass) -> None:
    """Draw the output of the first module at fault; without one, of the layer that differs most."""
    at_fault = [finding.torch_name for finding in findings.at_stage("forward")]
    layers = [one for one in findings.report.details.layers if one.forward is not None]
    chosen = [one for one in layers if one.torch_name in at_fault[:1]] or layers
    if not chosen:
        return
    layer = max(chosen, key=lambda one: _order(one.forward.relative if one.forward else 0.0))
    found = _find_tensor(
        Counterparts(runner.pairing, done.reference, done.natural), done, layer.torch_name
    )
    if found is not None:
        findings.report.details.picture = draw_tensor(layer.torch_name, *found)


def _find_tensor(counterparts: Counterparts, done: Pass, name: str) -> tuple[Array, Array] | None:
    """Return both sides of the module's float output that differs most."""
    tensors = []
    for calls in filter(None, map(counterparts.of, done.natural.calls)):
        if calls.ours.path == name:
            pairs = counterparts.pair_leaves(calls, "outputs")
            tensors += [_read(calls, pair) for pair in pairs]
    fitting = [(a, b) for a, b in tensors if a.shape == b.shape and a.dtype.kind == "f" and a.size]
    return max(fitting, key=lambda both: _order(float(measure_apart(*both).max())), default=None)


def _read(calls: CallPair, pair: LeafPair) -> tuple[Array, Array]:
    ours, theirs = calls.leaves(pair, "outputs")
    return pair.to_port(ours.array), theirs.array


def draw_tensor(name: str, expected: Array, actual: Array) -> TensorPicture:
    """Return the picture of two float arrays of one shape, which are not empty."""
    edges = _find_edges(expected, actual)
    ours, theirs = (
        np.histogram(side[np.isfinite(side)], edges)[0].tolist() for side in (expected, actual)
    )
    apart = measure_apart(expected, actual)
    spatial = apart.ndim == _IMAGES
    flat = apart.max((0, 1)) if spatial else apart.reshape(-1, *expected.shape[-1:] or (1,))
    grid = shrink(flat).tolist()
    return TensorPicture(name, expected.shape, grid, edges.tolist(), ours, theirs, spatial)


def measure_apart(expected: Array, actual: Array) -> Array:
    """Return |actual - expected|; where both are the same infinity or NaN, 0; where one is, inf."""
    with np.errstate(all="ignore"):
        apart = np.abs(actual.astype(np.float64) - expected)
    alike = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    return np.where(alike, 0.0, np.where(np.isnan(apart), np.inf, apart))


def shrink(matrix: Array) -> Array:
    """Return the largest value of each block, at most _SIDE by _SIDE of them."""
    for axis in (0, 1):
        length = matrix.shape[axis]
        starts = np.unique(np.linspace(0, length, min(length, _SIDE) + 1).astype(np.int64))[:-1]
        matrix = np.maximum.reduceat(matrix, starts, axis=axis)
    return matrix


def _find_edges(expected: Array, actual: Array) -> Array:
    """Return the bins of both sides' finite values."""
    finite = [side[np.isfinite(side)] for side in (expected, actual)]
    low = min((float(side.min()) for side in finite if side.size), default=0.0)
    high = max((float(side.max()) for side in finite if side.size), default=0.0)
    if not low < high:
        low, high = low - 0.5 * max(abs(low), 1.0), high + 0.5 * max(abs(high), 1.0)
    with np.errstate(all="ignore"):
        edges = np.linspace(low, high, _BINS + 1)
    return (
        edges if np.isfinite(edges).all() and (np.diff(edges) > 0).all() else np.array([low, high])
    )


def _order(size: float) -> float:
    return math.inf if math.isnan(size) else size


_LONGEST = 60  # characters of a setting


def describe_inputs(inputs: Inputs) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return name, dtype and shape of each array."""
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    arrays = [(str(name), np.asarray(array)) for name, array in named]
    return [(name, str(array.dtype), array.shape) for name, array in arrays]


def add_weights(pairing: Pairing, findings: Findings) -> None:
    """Note every tensor of both models, with and without a counterpart."""
    ours, theirs = pairing.torch.tensors, pairing.paddle.tensors
    found = [
        Weight(
            " + ".join(pair.torch),
            " + ".join(pair.paddle),
            ours[pair.torch[0]].shape,
            _describe_pair(pair),
        )
        for pair in pairing.match.pairs
    ]
    found += [Weight(one, "", ours[one].shape, "not paired") for one in pairing.match.torch_left]
    found += [Weight("", one, theirs[one].shape, "not paired") for one in pairing.match.paddle_left]
    findings.report.details.weights = found


def _describe_pair(pair: TensorPair) -> str:
    words = "transposed" if any(pair.transposed) else ""
    if not pair.is_fused:
        return words
    parts = "in parts" if len(pair.paddle) > 1 else "joined"
    return f"{parts}, {words}" if words else parts


def add_setting_table(pairing: Pairing, findings: Findings) -> None:
    """Note every setting of paired modules that differs."""
    findings.report.details.settings = [
        Setting(
            ours,
            theirs,
            one.name,
            _shorten(one.torch_value),
            _shorten(one.paddle_value),
            one.conclusive,
        )
        for ours, theirs in pairing.modules.items()
        for one in pairing.compare_settings(ours, theirs)
    ]


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def add_curves(
    findings: Findings, taken: Sequence[TrainingStep], natural: Sequence[TrainingStep]
) -> None:
    """Note losses and learning rates of the training steps, each side on its own way."""
    steps = list(range(min(len(taken), len(natural))))
    sides = taken[: len(steps)], natural[: len(steps)]
    losses = [[float(step.loss) for step in side] for side in sides]
    curves = [CurvePlot("loss", steps, losses[0], losses[1])]
    if all(step.rates for side in sides for step in side):
        rates = [[float(step.rates[0]) for step in side] for side in sides]
        curves.append(CurvePlot("learning rate", steps, rates[0], rates[1]))
    findings.report.details.curves = curves
