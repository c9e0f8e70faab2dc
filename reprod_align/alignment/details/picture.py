"""One tensor's difference, place by place: made small, so that a report can hold it."""

import math

from reprod_align.alignment.comparing import Pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.counterparts import CallPair, Counterparts
from reprod_align.alignment.runner import Runner
from reprod_align.model.leaf import LeafPair
from reprod_align.model.trace import Array
from reprod_align.page.content import TensorPicture

import numpy as np

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
