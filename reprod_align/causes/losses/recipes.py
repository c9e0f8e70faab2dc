"""What a cross-entropy of known scores and labels would give, were one of its settings another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Final

from reprod_align.causes.losses.sides import is_near
from reprod_align.causes.numbers import Floats
from reprod_align.model.trace import Array

import numpy as np

_SMOOTHING: Final = (0.0, 0.1, 0.2, 0.05)
_INPUTS: Final = (
    "scores",
    "log-probabilities",
    "probabilities (use_softmax=False)",
    "scores to which softmax is applied twice",
)
_REDUCTIONS: Final = (
    "reduction='mean'",
    "reduction='sum'",
    "a mean over ignored rows too",
    "reduction='none'",
)
_MOST_LABELS = 32
_LARGEST = 500_000  # scores


@dataclass(frozen=True)
class Recipe:
    """How a cross-entropy is computed; the words of its settings are what a message says."""

    given: str = _INPUTS[0]
    ignored: int = -100
    smoothing: float = 0.0
    reduction: str = _REDUCTIONS[0]

    def describe(self, field: str) -> str:
        """Return one of the settings in words."""
        value = getattr(self, field)
        if field == "given":
            return f"the first argument taken as {value}"
        if field == "reduction":
            return str(value)
        return f"{'ignore_index' if field == 'ignored' else 'label_smoothing'}={value:g}"


def vary_cross_entropy(
    inputs: Sequence[Array], given: Array, numbers: Sequence[float]
) -> Iterator[tuple[str, Array]]:
    """Yield what a call would give with one setting changed, and which, in words.

    inputs: scores, the classes along the last axis, and labels. given: what the call gave. numbers:
    among its arguments. Nothing where no known settings give that.
    """
    if len(inputs) != 2 or inputs[1].dtype.kind not in "iu" or inputs[0].dtype.kind != "f":
        return
    scores, labels = inputs
    if scores.ndim < 1 or not 0 < scores.size <= _LARGEST:
        return
    if labels.size * scores.shape[-1] != scores.size:
        return
    rows = _Rows(scores.reshape(-1, scores.shape[-1]).astype(np.float64), labels.reshape(-1))
    with np.errstate(all="ignore"):
        recipes = rows.list_recipes(numbers)
        own = next((one for one in recipes if _fits(rows.work_out(one), given)), None)
        if own is None:
            return
        for changed, field in rows.list_changes(own, numbers):
            value = rows.work_out(changed)
            words = f"{changed.describe(field)} in place of {own.describe(field)}"
            yield words, value.reshape(given.shape) if value.size == given.size else value


@dataclass(frozen=True, eq=False)
class _Rows:
    scores: Floats  # (rows, C)
    labels: Any  # (rows,)

    @cached_property
    def logs(self) -> Mapping[str, Floats]:
        """The logarithms of the probabilities, by what the scores are taken for."""
        once = _log_softmax(self.scores)
        return dict(zip(_INPUTS, (once, self.scores, np.log(self.scores),
                                  _log_softmax(np.exp(once))), strict=True))  # fmt: skip

    @cached_property
    def means(self) -> Mapping[str, Floats]:
        """The mean over the classes of each of these."""
        return {given: logs.mean(axis=1) for given, logs in self.logs.items()}

    def list_recipes(self, numbers: Sequence[float]) -> Iterator[Recipe]:
        fields = _INPUTS, self._list_ignored(), _list_smoothing(numbers), _REDUCTIONS
        yield from (Recipe(*chosen) for chosen in product(*fields))

    def list_changes(self, own: Recipe, numbers: Sequence[float]) -> Iterator[tuple[Recipe, str]]:
        choices: Mapping[str, Sequence[Any]] = {
            "reduction": _REDUCTIONS, "ignored": self._list_ignored(),
            "smoothing": _list_smoothing(numbers), "given": _INPUTS,
        }  # fmt: skip
        for field, values in choices.items():
            for value in values:
                if value != getattr(own, field):
                    yield replace(own, **{field: value}), field

    def _list_ignored(self) -> list[int]:
        seen = np.unique(self.labels)[:_MOST_LABELS]
        return [*dict.fromkeys([-100, *(int(one) for one in seen)])]

    def work_out(self, recipe: Recipe) -> Floats:
        """Return the loss: of each row, or of all together."""
        logs, classes = self.logs[recipe.given], self.scores.shape[1]
        counts = (self.labels != recipe.ignored) & (self.labels >= 0) & (self.labels < classes)
        chosen = logs[np.arange(len(logs)), np.where(counts, self.labels, 0)]
        each = -(1 - recipe.smoothing) * chosen - recipe.smoothing * self.means[recipe.given]
        each = np.where(counts, each, 0.0)
        if recipe.reduction == _REDUCTIONS[3]:
            return each
        divisor = {_REDUCTIONS[0]: counts.sum(), _REDUCTIONS[2]: len(each)}
        return np.asarray(each.sum() / divisor.get(recipe.reduction, 1))


def _log_softmax(scores: Floats) -> Floats:
    moved = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(moved - np.log(np.exp(moved).sum(axis=1, keepdims=True)))


def _list_smoothing(numbers: Sequence[float]) -> list[float]:
    return [*dict.fromkeys([*_SMOOTHING, *(one for one in numbers if 0 < one < 1)])]


def _fits(made: Floats, given: Array) -> bool:
    return made.size == given.size and all(
        is_near(float(one), float(other)) or not (np.isfinite(one) or np.isfinite(other))
        for one, other in zip(made.reshape(-1), given.reshape(-1), strict=True)
    )
