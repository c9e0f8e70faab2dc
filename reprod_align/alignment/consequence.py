"""What a difference means to a user: predictions that flip, KL divergence, the effect on the loss."""

from collections.abc import Iterator, Mapping, Sequence

from reprod_align.base.predictions import count_flips, is_named_scores, may_be_scores
from reprod_align.model.leaf import LeafPair
from reprod_align.model.trace import Array, Leaf

import numpy as np

TIE = 2e-11
"""relative: scores so near are a tie, which rounding may settle either way (docs/tolerances.md)"""


def describe_effects(
    expected: Mapping[str, Leaf], actual: Mapping[str, Leaf], pairs: Sequence[LeafPair]
) -> list[str]:
    """Return a sentence for each pair of outputs that holds a score for every class.

    Those are the outputs named so (logits, scores, probabilities), and a model's only output if it
    is (rows, classes) or (batch, positions, classes). The classes are on the last axis.
    """
    said = []
    for pair, ours, theirs in _find_scores(expected, actual, pairs):
        said.append(
            f"{pair.expected or 'output'}: {_prediction(ours, theirs)}; {_divergence(ours, theirs)}"
        )
    return said


def describe_flips(
    expected: Mapping[str, Leaf], actual: Mapping[str, Leaf], pairs: Sequence[LeafPair]
) -> Iterator[str]:
    """Yield a sentence for each pair of outputs whose predictions flip where the scores are no tie."""
    for pair, ours, theirs in _find_scores(expected, actual, pairs):
        flips = count_flips(ours, theirs, TIE)
        if flips:
            name = pair.expected or "its output"
            yield f"{name}: {flips} of {len(ours)} predictions flip, and not between equal scores"


def _find_scores(
    expected: Mapping[str, Leaf], actual: Mapping[str, Leaf], pairs: Sequence[LeafPair]
) -> Iterator[tuple[LeafPair, Array, Array]]:
    """Yield each pair of outputs that holds scores, with both as (rows, classes)."""
    lone = sum(leaf.array.dtype.kind == "f" for leaf in expected.values()) == 1
    for pair in pairs:
        ours, theirs = pair.to_port(expected[pair.expected].array), actual[pair.actual].array
        if ours.shape == theirs.shape and _holds_scores(pair, ours, lone):
            rows, others = (array.reshape(-1, array.shape[-1]) for array in (ours, theirs))
            yield pair, rows, others


def effect_on_loss(ours: float, theirs: float) -> str:
    """Return both losses, each on its own side's outputs, and how far they are apart."""
    share = (
        f" ({(theirs - ours) / abs(ours):+.2%})"
        if ours and np.isfinite([ours, theirs]).all()
        else ""
    )
    return f"loss on each side's own outputs: {ours:.6g} in PyTorch, {theirs:.6g} in Paddle{share}"


def _holds_scores(pair: LeafPair, array: Array, lone: bool) -> bool:
    named = is_named_scores(pair.expected, array)
    return named or (lone and array.ndim <= 3 and may_be_scores(array))


def _prediction(ours: Array, theirs: Array) -> str:
    """Return how many rows would choose another class. ours, theirs: (rows, classes)."""
    top = np.sort(np.where(np.isnan(ours), -np.inf, ours), axis=-1)[:, -2:]
    with np.errstate(invalid="ignore"):
        margin = float(np.nanmin(top[:, 1] - top[:, 0], initial=np.inf))
        apart = np.abs(theirs - ours)[ours != theirs]
    largest = float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0))
    flips = count_flips(ours, theirs)
    figures = f"(largest difference {largest:.2g}, smallest top-1 margin {margin:.2g})"
    if flips:
        return f"{flips} of {len(ours)} predictions flip {figures}"
    if 2 * largest < margin:
        return f"no prediction can flip {figures}"
    return f"all {len(ours)} predictions stay the same here, but some could flip {figures}"


def _divergence(ours: Array, theirs: Array) -> str:
    divergences = np.array([*_kl(*map(_log_probabilities, (ours, theirs)))])
    return f"KL divergence {divergences.mean():.2g} on average, {divergences.max():.2g} at most"


def _kl(ours: Array, theirs: Array) -> Iterator[float]:
    for first, second in zip(ours, theirs, strict=True):
        likely = first > -np.inf
        with np.errstate(all="ignore"):
            yield max(0.0, float((np.exp(first[likely]) * (first[likely] - second[likely])).sum()))


def _log_probabilities(scores: Array) -> Array:
    """Return log-probabilities of (rows, classes): of logits, or of what sums to 1 already."""
    with np.errstate(all="ignore"):
        if (scores >= 0).all() and np.allclose(scores.sum(axis=-1), 1.0, atol=1e-3):
            return np.asarray(np.log(scores))
        shifted = scores - scores.max(axis=-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
