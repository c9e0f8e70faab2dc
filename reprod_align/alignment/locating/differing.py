"""Which tensors of two calls differ where the outputs depend on them."""

from collections.abc import Iterator

from reprod_align.alignment.comparing import LAYER_ROUNDING
from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which
from reprod_align.alignment.locating.fault import ALONE, compare, rounding_of
from reprod_align.base.difference import Gap, magnitude
from reprod_align.model.leaf import HIDDEN, LeafPair, find_unpaired
from reprod_align.model.trace import Array, Leaf

import numpy as np

_FAINT = 40.0  # a score that far below another adds e**-40, which float64 does not hold


Apart = tuple[LeafPair, Gap, Array, Array]
"""two tensors that differ, by how much, and both in the port's layout"""


def find_differing(run: PinnedRun, calls: CallPair, which: Which, floor: float) -> Iterator[Apart]:
    """Yield the pairs of tensors that differ where it matters.

    floor: what rounding leaves where zero is due.
    """
    for apart in find_apart(run, calls, which, floor):
        if is_felt(run, calls, which, apart):
            yield apart


def find_apart(run: PinnedRun, calls: CallPair, which: Which, floor: float) -> Iterator[Apart]:
    """Yield the pairs of tensors that differ, whether the outputs depend on it or not."""
    for pair in run.pair_leaves(calls, which):
        ours, theirs = calls.leaves(pair, which)
        judge = run.judge_values(calls, pair, which)
        found = compare(pair, ours.array, theirs.array, floor, judge)
        if not found.ok:
            found = _compare_shown(pair.to_port(ours.array), theirs.array, floor, found)
        if not found.ok:
            yield pair, found, pair.to_port(ours.array), theirs.array


def is_felt(run: PinnedRun, calls: CallPair, which: Which, apart: Apart) -> bool:
    """Tell whether the outputs depend on a difference; yes, where no gradients tell."""
    pair, found, _, actual = apart
    ours, _ = calls.leaves(pair, which)
    no_gradients = all(leaf.gradient is None for leaf in run.reference.outputs.values())
    return (
        no_gradients
        or _matters(pair, ours, actual, found.tolerance)
        or (run.counterparts.is_spoilt and _spoils(pair, ours.array, actual))
    )


def _compare_shown(expected: Array, actual: Array, floor: float, found: Gap) -> Gap:
    """Return the gap of what a mask leaves: what both hide, by whatever number, is no scale for it."""
    if expected.shape != actual.shape or expected.dtype.kind != "f":
        return found
    both = (expected <= -HIDDEN) & (actual <= -HIDDEN)
    if not both.any() or both.all():
        return found
    return ALONE.compare(np.where(both, 0.0, expected), np.where(both, 0.0, actual), floor)


def _spoils(pair: LeafPair, expected: Array, actual: Array) -> bool:
    """Tell whether a value is not finite where the reference's is: even times 0 it is felt."""
    laid = pair.to_port(expected)
    if laid.shape != actual.shape or laid.dtype.kind != "f":
        return False
    return bool((np.isfinite(laid) & ~np.isfinite(actual)).any())


def _matters(pair: LeafPair, leaf: Leaf, actual: Array, tolerance: float) -> bool:
    """Tell whether the difference lies where the outputs depend on it: not in padding, say."""
    if not leaf.differentiable:
        return True
    gradient, expected = pair.to_port(leaf.gradient), pair.to_port(leaf.array)
    if gradient is None:
        return False
    if expected.shape != actual.shape:
        return True
    with np.errstate(all="ignore"):
        distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    apart = ~(distance <= tolerance) & (actual != expected)
    felt = np.abs(gradient) > 1e-12 * magnitude(gradient)
    return bool((apart & (felt | _is_uncovered(expected, actual, felt))).any())


def _is_uncovered(expected: Array, actual: Array, felt: Array) -> Array:
    """Return where the port shows a score that the reference hides, among scores that are felt.

    No gradient tells: what is hidden gets none.
    """
    hidden = (expected <= -HIDDEN) & np.isfinite(actual)
    if not hidden.any() or not expected.ndim:
        return np.zeros_like(hidden)
    shown = np.where(felt, actual, -np.inf).max(axis=-1, keepdims=True)
    return np.asarray(hidden & (actual > shown - _FAINT) & np.isfinite(shown))


def find_misfit(run: PinnedRun, calls: CallPair) -> tuple[str, str] | None:
    """Return the first outputs of two calls that the shapes keep from being paired, if both have one.

    What the reference makes no use of needs no counterpart; what the models return does.
    """
    ours = calls.ours.outputs
    inside = calls.theirs.parent is not None
    if inside and any(leaf.gradient is not None for leaf in run.reference.outputs.values()):
        ours = {at: leaf for at, leaf in ours.items() if leaf.gradient is not None}
    return find_unpaired(ours, calls.theirs.outputs, run.counterparts.fit_leaves(calls, "outputs"))


def outputs_agree(run: PinnedRun, calls: CallPair) -> bool:
    """Tell whether the outputs of two calls fit each other and agree but for rounding inside layers."""
    fit = bool(run.pair_leaves(calls, "outputs")) and find_misfit(run, calls) is None
    return fit and not _differ(run, calls, "outputs")


def inputs_differ(run: PinnedRun, calls: CallPair) -> bool:
    """Tell whether two calls were handed different numbers; masks and indices are left aside."""
    return _differ(run, calls, "inputs")


def _differ(run: PinnedRun, calls: CallPair, which: Which) -> bool:
    leaves = getattr(calls.ours, which)
    return any(
        leaves[pair.expected].differentiable and found.relative > LAYER_ROUNDING
        for pair, found, *_ in find_differing(run, calls, which, rounding_of(calls.ours))
    )
