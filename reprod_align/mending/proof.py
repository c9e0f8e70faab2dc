"""Proves an edit: the pair is faithful with it, on the given batch and on batches that no search has seen.

Refused is what differs on any of them, what catches an exception that the port did not catch before, and
what changes PyTorch's side or the inputs.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from reprod_align.alignment.batches.derive import Batch, derive_batches
from reprod_align.explain.code import dotted, parse_code
from reprod_align.explain.trials import Texts
from reprod_align.mending.bench import Bench
from reprod_align.model.backward import Projection
from reprod_align.model.side import Inputs, ModelFailure
from reprod_align.randomness import KeyedDraws, seed_generators
from reprod_align.report import Report

import numpy as np

Level = Literal["safe", "unproven"]
ENOUGH = 3  # further batches
_SEEN = 1  # of those derived, by the search
_SEED_SEEN = 7
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
    refused: str = ""
    """why the edits are not allowed, whatever the numbers; "" if they are"""

    @property
    def level(self) -> Level:
        """safe: the pair is faithful on the given batch and on at least three others."""
        done = (
            self.report.passed
            and not (self.refuted or self.refused)
            and len(self.batches) >= ENOUGH
        )
        return "safe" if done else "unproven"


def prove(bench: Bench, texts: Texts) -> Proof:
    """Judge the pair with these texts on the given batch, then on others in both modes."""
    report = bench.judge_fully(texts)
    refused = refuse(bench, texts)
    if refused:
        return Proof(report, refused=refused)
    agreeing: list[str] = []
    if report.passed:
        for words, inputs in list_unseen(bench):
            if not bench.judge(texts, inputs).passed:
                return Proof(report, tuple(agreeing), words)
            agreeing.append(words)
    return Proof(report, tuple(agreeing))


def refuse(bench: Bench, texts: Texts) -> str:
    """Return why edits are not allowed, whatever the numbers; "" if they are."""
    before = {file: bench.files.read(file, {}) for file in texts}
    if any(_count_catches(texts[file]) > _count_catches(before[file]) for file in texts):
        return "an edit catches an exception"
    plain = _read_given(bench, {})
    if plain == _read_given(bench, {}) and plain != _read_given(bench, texts):
        return "an edit changes PyTorch's side or the inputs"
    return ""


def _count_catches(text: str) -> int:
    """Return how many places of a text catch exceptions."""
    return sum(
        isinstance(node, ast.ExceptHandler)
        or (isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "suppress")
        for node in parse_code(text).nodes
    )


def _read_given(bench: Bench, texts: Texts) -> str:
    """Return what only the same inputs and the same reference give, made anew with these texts in force."""
    if bench.make_given is None:
        return ""
    seed_generators(0)
    with bench.reference.working("float64", bench.widened):
        weights = bench.reference.values()
    try:
        with bench.with_texts(texts):
            reference, inputs = bench.make_given()
            objective = None if reference.loss is not None else Projection()
            with reference.working("float64", bench.widened):
                reference.load(weights)  # a model may be drawn anew
                run = reference.run(inputs, True, KeyedDraws(0, {}), "ends", objective)
                steps = (
                    reference.train(inputs, 1, [KeyedDraws(0, {})], objective)
                    if reference.optimizer
                    else []
                )
    except Exception as error:  # whatever the user's code raises then
        return f"{type(error).__name__}: {error}"
    arrays = inputs.values() if isinstance(inputs, Mapping) else inputs
    given = [np.asarray(array).tobytes() for array in arrays]
    moved = [array.tobytes() for step in steps for array in step.tensors.values()]
    return repr((run.digest(), given, moved))


def list_seen(bench: Bench) -> Iterator[Inputs]:
    """Yield the batches on which the search tries what mends the given one; the proof takes others."""
    yield from islice((inputs for _, inputs in _derive(bench)), _SEEN)
    inputs = redraw(bench.pair.inputs, _SEED_SEEN)
    if _runs(bench, inputs):
        yield inputs


def find_failing(bench: Bench) -> Bench:
    """Return the pair on a batch on which it differs: a derived one, where it agrees on the given one."""
    if bench.judge({}).passed:
        for _, inputs in _derive(bench):
            if not bench.judge({}, inputs).passed:
                return replace(bench, pair=replace(bench.pair, inputs=inputs))
    return bench


def list_unseen(bench: Bench) -> Iterator[tuple[str, Inputs]]:
    """Yield batches that the reference accepts: of other lengths, masks and counts, and of other values."""
    yield from islice(_derive(bench), _SEEN, None)
    for seed in _SEEDS:
        inputs = redraw(bench.pair.inputs, seed)
        if _runs(bench, inputs):
            yield f"with other values, drawn from seed {seed}", inputs


def _derive(bench: Bench) -> Iterator[tuple[str, Inputs]]:
    """Yield the batches that `align` derives and the reference accepts, in words."""

    def accepts(batch: Batch) -> bool:
        return (
            not batch.before
            and batch.graded
            and not batch.other_dtype
            and _runs(bench, batch.inputs)
        )

    for batch in derive_batches(bench.pair.inputs, accepts, _ALL):
        yield batch.words, batch.inputs


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
