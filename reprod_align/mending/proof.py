"""Proves an edit: the pair is faithful with it, on the given batch and on batches that no search has seen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from reprod_align.alignment.batches.derive import Batch, derive_batches
from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.explain.trials import Texts
from reprod_align.mending.bench import Bench
from reprod_align.model.projection import Projection
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.report import Report

import numpy as np

Level = Literal["safe", "unproven"]
ENOUGH = 3  # further batches
_ALL = 2**31  # examples of a batch: the user's loss may hold as many labels as the given one
_SEEDS = (101, 102, 103, 104)


@dataclass(frozen=True)
class Proof:
    """What the edits were tried on."""

    report: Report
    """of the pair with them"""
    batches: tuple[str, ...] = ()
    """that no search has seen and that agree, in words"""
    refuted: str = ""
    """the batch on which the pair differs; "" if there is none"""

    @property
    def level(self) -> Level:
        """safe: the pair is faithful on the given batch and on at least three others."""
        done = self.report.passed and not self.refuted and len(self.batches) >= ENOUGH
        return "safe" if done else "unproven"


def prove(bench: Bench, texts: Texts) -> Proof:
    """Judge the pair with these texts on the given batch, then on others in both modes."""
    report = bench.judge_fully(texts)
    agreeing: list[str] = []
    if report.passed:
        for words, inputs in list_unseen(bench):
            if not bench.judge(texts, inputs).passed:
                return Proof(report, tuple(agreeing), words)
            agreeing.append(words)
    return Proof(report, tuple(agreeing))


def list_unseen(bench: Bench) -> Iterator[tuple[str, Inputs]]:
    """Yield batches that the reference accepts: of other lengths, masks and counts, and of other values."""

    def accepts(batch: Batch) -> bool:
        return (
            not batch.before
            and batch.graded
            and not batch.other_dtype
            and _runs(bench, batch.inputs)
        )

    for batch in derive_batches(bench.inputs, accepts, _ALL):
        yield batch.words, batch.inputs
    for seed in _SEEDS:
        inputs = redraw(bench.inputs, seed)
        if _runs(bench, inputs):
            yield f"with other values, drawn from seed {seed}", inputs


def redraw(inputs: Inputs, seed: int) -> Inputs:
    """Return inputs of the same shapes with values drawn from those that are given.

    Integers and masks of 0 and 1 change places among themselves along the first axis or all of them;
    floats are drawn from a normal distribution of the same mean and deviation.
    """
    source = np.random.default_rng(seed)
    if isinstance(inputs, Mapping):
        return {name: _redraw(array, source) for name, array in inputs.items()}
    return tuple(_redraw(array, source) for array in inputs)


def _redraw(given: object, source: np.random.Generator) -> np.ndarray:
    array = np.asarray(given)
    if array.ndim == 0:
        return array
    if array.dtype.kind == "f" and not np.isin(array, (0, 1)).all():
        spread = array.std() or 1.0
        return np.asarray(source.normal(array.mean(), spread, array.shape), array.dtype)
    if array.dtype.kind in "iu" and len(np.unique(array)) > 2:
        return source.permutation(array.reshape(-1)).reshape(array.shape)
    return array[source.permutation(len(array))]


def _runs(bench: Bench, inputs: Inputs) -> bool:
    """Tell whether the reference and its loss take a batch and give finite numbers."""
    reference = bench.reference
    objective = None if reference.loss is not None else Projection()
    try:
        with reference.working("float64", bench.widened):
            trace = reference.run(inputs, True, KeyedDraws(0, {}), "ends", objective, anew=True)
    except ModelFailure:
        return False
    return all(np.isfinite(leaf.array).all() for leaf in trace.outputs.values())
