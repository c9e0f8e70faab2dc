"""Loss and metric curves: what a training log holds, whatever its format, and their pairs.

Two tools name the same quantity differently: `pair_names` tells which names are meant.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reprod_align.base.blocks import Array
from reprod_align.base.text import count, shorten
from reprod_align.errors import ReprodError, one_line

import numpy as np

LARGEST_STEP: Final = 1 << 53
"""beyond it, a float no longer tells two steps apart"""

_MOST_CURVES: Final = 20_000  # a norm for each weight of a large model; hundreds of bytes each

_MOST_DIGITS: Final = 300  # a float holds no more; such a step is too large anyway


def read_count(digits: str) -> int:
    """Return a natural number; one of hundreds of digits is cut, and is too large for a step all the same."""
    return int(digits[:_MOST_DIGITS])


class CurveError(ReprodError):
    """A log cannot be read as curves, or two logs have nothing in common."""


@dataclass(frozen=True)
class Curve:
    """One quantity over the steps at which it was logged."""

    name: str
    steps: Array
    """(N,) int64, rising"""
    values: Array
    """(N,) float64; NaN and inf as logged"""

    def shift(self, by: int) -> "Curve":
        """Return the curve with `by` added to each step."""
        return replace(self, steps=self.steps + by)


@dataclass(frozen=True)
class CurveLog:
    """The curves of one training run, in the order in which they first appear."""

    source: str
    kind: str
    """the format it was read from, in words"""
    curves: Mapping[str, Curve]
    epochs: Curve | None = None
    """the epoch at each step where the log gives one; whole numbers, or fractions of an epoch"""
    remarks: tuple[str, ...] = ()

    @classmethod
    def from_values(
        cls, values: Mapping[str, Sequence[float]], source: str = "values"
    ) -> "CurveLog":
        """Return a log of {name: one value a step}; steps count from 1."""
        points = Points(source)
        for name, column in values.items():
            for step, value in enumerate(column, 1):
                points.add(step, name, value)
        return points.build_log("values in memory")


def take_common_steps(ours: Curve, theirs: Curve) -> tuple[Array, Array, Array]:
    """Return the steps that both curves have, (N,), and the values of both there, (N,) each."""
    steps, mine, others = np.intersect1d(
        ours.steps, theirs.steps, assume_unique=True, return_indices=True
    )
    return steps, ours.values[mine], theirs.values[others]


class Points:
    """Collects (step, name, value) in a log's order; of a repeated step the last value is kept."""

    def __init__(self, source: str) -> None:
        """Start empty; `source` is the log's name in messages."""
        self.source = source
        self.remarks: list[str] = []
        self._columns: dict[str, tuple[list[int], list[float]]] = {}
        self._epochs: tuple[list[int], list[float]] = ([], [])

    def add(self, step: int, name: str, value: float) -> None:
        """Add one value; raises CurveError for a step too large to be counted, or for too many names."""
        self._require_step(step)
        if name not in self._columns and len(self._columns) == _MOST_CURVES:
            raise CurveError(f"{self.source} has more than {_MOST_CURVES:,} curves")
        steps, values = self._columns.setdefault(name, ([], []))
        steps.append(step)
        values.append(float(value))

    def add_epoch(self, step: int, epoch: float) -> None:
        """Note which epoch `step` belongs to; an epoch too large to be counted is passed over."""
        self._require_step(step)
        if abs(epoch) <= LARGEST_STEP:
            self._epochs[0].append(step)
            self._epochs[1].append(epoch)

    def build_log(self, kind: str) -> CurveLog:
        """Return the log of all values added. Raises CurveError if there are none."""
        if not self._columns:
            raise CurveError(f"{self.source} ({kind}) holds no numbers")
        curves, repeats = {}, []
        for name, (steps, values) in self._columns.items():
            curves[name], repeated, changed = _build_curve(name, steps, values)
            repeats.append((name, repeated, changed))
        epochs = _build_curve("epoch", *self._epochs)[0] if self._epochs[0] else None
        remarks = (*self.remarks, *_describe_repeats(repeats))
        return CurveLog(self.source, kind, curves, epochs, remarks)

    def _require_step(self, step: int) -> None:
        if not abs(step) <= LARGEST_STEP:
            raise CurveError(f"{self.source}: step {str(step)[:24]} is too large")


def _build_curve(name: str, steps: list[int], values: list[float]) -> tuple[Curve, Array, int]:
    """Return the curve, its repeated steps (R,), and how many of them changed their value."""
    order = np.argsort(steps, kind="stable")
    column = np.array(values, dtype=np.float64)[order]
    rising, first, counts = np.unique(
        np.array(steps, dtype=np.int64)[order], return_index=True, return_counts=True
    )
    begun, kept = column[first], column[first + counts - 1]
    same = (kept == begun) | (np.isnan(kept) & np.isnan(begun))
    return Curve(name, rising, kept), rising[counts > 1], int(np.count_nonzero(~same))


def _describe_repeats(repeats: list[tuple[str, Array, int]]) -> list[str]:
    """Return one remark for all columns: a resumed run repeats its steps in each of them."""
    name, steps, _ = max(repeats, key=lambda one: len(one[1]))
    if not len(steps):
        return []
    changed = max(changed for _, _, changed in repeats)
    span = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else f"{steps[0]}"
    outcome = f"{changed} of them with another value" if changed else "with the same values"
    return [
        f"logged more than once: {count(len(steps), 'step')} of {one_line(name)} ({span}), {outcome}; "
        "the last one counts, as after a resume"
    ]


LOSS, LR, GRAD_NORM = "loss", "lr", "grad_norm"

_SYNONYMS: Final = {
    LOSS: "losses avg_loss batch_loss cost",
    LR: "learning_rate learningrate cur_lr last_lr",
    GRAD_NORM: "gradient_norm global_grad_norm gnorm",
    "accuracy": "acc acc1 top1",
    "perplexity": "ppl",
}
_QUANTITY: Final = {name: what for what, names in _SYNONYMS.items() for name in names.split()}
_SHOWN: Final = 8  # names in one message
_TRAIN: Final = ("train", "training", "tr")
_EVAL: Final = ("eval", "evaluation", "val", "valid", "validation", "dev")
_COUNTERS: Final = (
    "epoch epochs progress_or_epoch global_step globalstep max_steps total_steps current_steps step "
    "iter batch percentage total_flos n_parameters"
).split()
_MEASURED: Final = re.compile(
    r"time|timestamp|runtime|elapsed|remaining|duration|latency|eta|wall|fps|ips|speed|throughput|"
    r"memory|mem|flops|flos|gib|second|cost"
)  # words for how long or how large a step was, which no two runs share


@dataclass(frozen=True)
class NamePairs:
    """Which curves are compared."""

    pairs: Mapping[str, str]
    """name in the reference -> name in the other log"""
    remarks: tuple[str, ...]


def normalize_name(name: str) -> str:
    """Return the name of the quantity: "Train/loss", "train_loss" and "loss" are all "loss"."""
    name = re.sub(r"^.* - (?=\S+$)", "", name)  # Weights & Biases: "run - loss"
    words = [word for word in re.split(r"[\W_]+", name.lower()) if word]
    part = ""
    if len(words) > 1 and words[0] in _TRAIN:
        words = words[1:]
    elif len(words) > 1 and words[0] in _EVAL:
        part, words = "eval_", words[1:]
    rest = "_".join(words)
    return part + _QUANTITY.get(rest, rest)


def is_measured(name: str) -> bool:
    """Return True for a counter, or a measure of time or memory: two runs need not agree in it."""
    plain = normalize_name(name)
    words = plain.removeprefix("eval_").split("_")
    if plain == LOSS or plain.removeprefix("eval_") in _COUNTERS or name.lower() in _COUNTERS:
        return plain != LOSS
    return any(_MEASURED.fullmatch(word) for word in words)


def pair_names(
    reference: Sequence[str],
    other: Sequence[str],
    name_map: Mapping[str, str] | None = None,
    only: Sequence[str] | None = None,
) -> NamePairs:
    """Pair the curves' names: by `name_map` (reference -> other), else by quantity, else by name.

    `only`: names, or names of quantities, to compare, measures of time among them too. Raises
    CurveError if nothing pairs, or if a name in `name_map` or `only` is not there.
    """
    pairs = _apply_map(reference, other, name_map or {})

    def list_free() -> tuple[list[str], list[str]]:
        """Return the names of both logs that are still to be paired."""
        sides = (reference, pairs.keys()), (other, pairs.values())
        mine, theirs = (
            [name for name in names if name not in taken and (only or not measured[name])]
            for names, taken in ((names, set(taken)) for names, taken in sides)
        )
        return mine, theirs

    measured = {name: is_measured(name) for name in (*reference, *other)}

    ours, others = _name_quantities(reference), _name_quantities(other)
    same_quantity = {name: others[what] for what, name in ours.items() if what in others}
    for rule in (same_quantity, {name: name for name in reference}):
        mine, theirs = map(set, list_free())
        pairs |= {a: b for a, b in rule.items() if a in mine and b in theirs}
    guessed = _guess(*list_free())
    pairs |= guessed
    chosen = _choose({name: pairs[name] for name in reference if name in pairs}, only)
    if not chosen:
        raise CurveError(
            f"no curve is in both logs: the first has {shorten(reference, _SHOWN)}, the second "
            f"{shorten(other, _SHOWN)}; --name-map pairs them"
        )
    remarks = [
        f"{one_line(a)} is taken for the same as {one_line(b)}; --name-map says otherwise"
        for a, b in guessed.items()
        if a in chosen
    ]
    for side, names in zip(("first", "second"), list_free(), strict=True):
        if names and not only:
            remarks.append(f"only the {side} log has {shorten(names, _SHOWN)}")
    return NamePairs(chosen, tuple(remarks))


def _apply_map(
    reference: Sequence[str], other: Sequence[str], names: Mapping[str, str]
) -> dict[str, str]:
    for side, wanted, there in (("first", names, reference), ("second", names.values(), other)):
        missing = [name for name in wanted if name not in there]
        if missing:
            raise CurveError(
                f"--name-map: the {side} log has no {missing[0]!r}: {shorten(there, _SHOWN)}"
            )
    if len(set(names.values())) < len(names):
        raise CurveError("--name-map gives two curves the same partner")
    return dict(names)


def _name_quantities(names: Sequence[str]) -> dict[str, str]:
    """Return {quantity: name}; where several names mean one, the shortest has it.

    A Trainer logs `loss` at every step and their mean as `train_loss` at the end.
    """
    shortest: dict[str, str] = {}
    for name in sorted(names, key=len):
        shortest.setdefault(normalize_name(name), name)
    return shortest


def _guess(mine: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Pair `accuracy` with `eval_accuracy`, and what is alone on both sides."""
    rivals, partners = _group_by_quantity(mine), _group_by_quantity(theirs)
    pairs = {
        names[0]: partners[plain][0]
        for plain, names in rivals.items()
        if len(names) == len(partners.get(plain, ())) == 1 and plain != LOSS
    }
    if len(mine) == len(theirs) == 1:
        pairs[mine[0]] = theirs[0]
    return pairs


def _group_by_quantity(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of each quantity, an evaluation's with a training's."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(normalize_name(name).removeprefix("eval_"), []).append(name)
    return found


def _choose(pairs: Mapping[str, str], only: Sequence[str] | None) -> dict[str, str]:
    if not only:
        return dict(pairs)
    chosen: dict[str, str] = {}
    for wanted in only:
        found = {a: b for a, b in pairs.items()
                 if wanted in (a, b) or wanted.lower() == normalize_name(a)}  # fmt: skip
        if not found:
            raise CurveError(
                f"no curve {wanted!r} in both logs; both have {shorten(list(pairs), _SHOWN)}"
            )
        chosen |= found
    return chosen
