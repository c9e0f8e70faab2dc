"""The tasks a port can be checked on, as data: files, columns, labels, metrics. Imports no framework.

What the files look like was read from transformers/data/processors/glue.py and
paddlenlp/datasets/{glue,chnsenticorp}.py, which agree on every position and on the labels' order.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Criterion = Literal["cross_entropy", "mean_squared_error"]
Floats = NDArray[np.float64]
HIGHEST_SCORE = 5.0  # of STS-B
# Step 2 ranks scores rounded to so many decimals: those of one pair in two batches differ by rounding alone
RANKED_DECIMALS = 5


@dataclass(frozen=True)
class Layout:
    """What one TSV file of a task looks like: every column of a line, and which of them are read."""

    file: str
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    label: str | None  # None in a test file
    header: bool = True

    @property
    def read(self) -> dict[str, int]:
        """The columns to read, `{name: position}` in the file's order; the label's is named "label"."""
        named = {name: self.columns.index(name) for name in self.texts}
        if self.label is not None:
            named["label"] = self.columns.index(self.label)
        return dict(sorted(named.items(), key=lambda item: item[1]))


@dataclass(frozen=True)
class Task:
    """One task. `labels` stand in the order of their numbers; without labels it has scores from 0 to 5."""

    name: str
    title: str
    train: Layout
    dev: Layout
    test: Layout
    hub: tuple[str, ...]  # what datasets.load_dataset is called with
    hub_texts: tuple[str, ...]
    labels: tuple[str, ...] = ("0", "1")
    metric_names: tuple[str, ...] = ("accuracy",)
    main_metric: str = "accuracy"  # by which the best checkpoint is chosen
    hub_dev: str = "validation"
    rough: bool = False  # the official file has lines cut in two and empty texts

    @property
    def num_labels(self) -> int:
        """How many outputs the classifier has: 1 for scores."""
        return len(self.labels) or 1

    @property
    def criterion(self) -> Criterion:
        """Which loss the task trains on; the labels of a batch are int64, or float32 scores."""
        return "cross_entropy" if self.labels else "mean_squared_error"

    def number(self, label: str) -> int | float:
        """Return what a label is in a batch; ValueError says what it must be.

        A score is rounded to float32: PyTorch makes float32 of it whatever the model's precision,
        Paddle float64 in a float64 run, and 3.8 is not the same number in both.
        """
        if self.labels:
            if label in self.labels:
                return self.labels.index(label)
        elif (score := _score(label)) is not None:
            return score
        raise ValueError(f"the label must be {self._allowed()}, not {label[:20]!r}")

    def predictions(self, logits: ArrayLike) -> NDArray[np.generic]:
        """Return what a model says: logits (N, num_labels) as classes (N,) int64, or scores (N,)."""
        scores = np.asarray(logits)
        return scores.argmax(axis=-1) if self.labels else scores[:, 0]

    def metrics(self, predictions: ArrayLike, labels: ArrayLike) -> dict[str, float]:
        """Return the task's metrics by their definitions, of predictions (N,) and labels (N,).

        An undefined metric is 0: F1 without positives, a correlation with a constant.
        """
        predicted, true = np.asarray(predictions), np.asarray(labels)
        if predicted.shape != true.shape or predicted.ndim != 1 or not len(true):
            raise ValueError(f"metrics need two equal (N,), got {predicted.shape} and {true.shape}")
        return {name: METRICS[name](predicted, true) for name in self.metric_names}

    def _allowed(self) -> str:
        if not self.labels:
            return f"a number from 0 to {HIGHEST_SCORE:g}"
        return f"{', '.join(self.labels[:-1])} or {self.labels[-1]}"


def accuracy(predicted: NDArray[np.generic], true: NDArray[np.generic]) -> float:
    """Return the share of classes (N,) that are right."""
    return float(np.mean(predicted == true))


def f1(predicted: NDArray[np.generic], true: NDArray[np.generic]) -> float:
    """Return 2 tp / (2 tp + fp + fn) of class 1; 0 without positives."""
    tp, fp, fn, _ = _counts(predicted, true)
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0


def matthews(predicted: NDArray[np.generic], true: NDArray[np.generic]) -> float:
    """Return (tp tn - fp fn) / sqrt((tp+fp)(tp+fn)(tn+fp)(tn+fn)); 0 if a margin is empty."""
    tp, fp, fn, tn = _counts(predicted, true)
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / math.sqrt(margins) if margins else 0.0


def pearson(predicted: NDArray[np.generic], true: NDArray[np.generic]) -> float:
    """Return Pearson's correlation of scores (N,); 0 if one side is constant."""
    x, y = _centred(predicted), _centred(true)
    norms = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / norms if norms else 0.0


def spearman(predicted: NDArray[np.generic], true: NDArray[np.generic]) -> float:
    """Return Spearman's correlation: Pearson's of the ranks, equal values sharing their mean rank."""
    return pearson(_ranks(predicted), _ranks(true))


METRICS: dict[str, Callable[[NDArray[np.generic], NDArray[np.generic]], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews": matthews,
    "pearson": pearson,
    "spearman": spearman,
}


def _counts(predicted: NDArray[np.generic], true: NDArray[np.generic]) -> tuple[int, ...]:
    """Return tp, fp, fn and tn of class 1, as Python's integers: their product overflows int64."""
    positive, actual = predicted == 1, true == 1
    pairs = (positive & actual, positive & ~actual, ~positive & actual, ~positive & ~actual)
    return tuple(int(pair.sum()) for pair in pairs)


def _centred(values: NDArray[np.generic]) -> Floats:
    """Return values (N,) less their mean, zeros where all are equal whatever the mean rounds to."""
    exact = values.astype(np.float64)
    return np.zeros_like(exact) if (exact == exact[0]).all() else exact - exact.mean()


def _ranks(values: NDArray[np.generic]) -> Floats:
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True, equal_nan=False)
    ranks: Floats = (sizes.cumsum() - (sizes - 1) / 2)[group]
    return np.where(np.isnan(values.astype(np.float64)), np.nan, ranks)


def _score(text: str) -> float | None:
    try:
        score = float(np.float32(text))
    except ValueError:
        return None
    return score if 0.0 <= score <= HIGHEST_SCORE else None  # a NaN is not


_INDEX_SENTENCE = ("index", "sentence")
_PAIR = ("sentence1", "sentence2")
_QUESTIONS = ("question1", "question2")
_QQP = ("id", "qid1", "qid2", *_QUESTIONS, "is_duplicate")
_MRPC_STRINGS = ("#1 String", "#2 String")
_MRPC = ("Quality", "#1 ID", "#2 ID", *_MRPC_STRINGS)
_QNLI_TEXTS = ("question", "sentence")
_STSB = ("index", "genre", "filename", "year", "old_index", "source1", "source2", *_PAIR)
_PARSES = tuple(f"{pair}_{kind}" for kind in ("binary_parse", "parse") for pair in _PAIR)
_MNLI = ("index", "promptID", "pairID", "genre", *_PARSES, *_PAIR)
_ENTAILMENT = ("entailment", "not_entailment")


def _cola(file: str) -> Layout:
    columns = ("source", "label", "original_label", "sentence")
    return Layout(file, columns, ("sentence",), "label", header=False)


def _plain(file: str, columns: tuple[str, ...], texts: tuple[str, ...]) -> Layout:
    """Return a layout with a column named label, if it is among `columns`."""
    return Layout(file, columns, texts, "label" if "label" in columns else None)


def _pairs(name: str, title: str, labels: tuple[str, ...], texts: tuple[str, ...]) -> Task:
    """Return a task whose files are index, two texts, label, and whose metric is the accuracy."""
    labelled = ("index", *texts, "label")
    return Task(
        name=name,
        title=title,
        train=_plain("train.tsv", labelled, texts),
        dev=_plain("dev.tsv", labelled, texts),
        test=_plain("test.tsv", ("index", *texts), texts),
        hub=("nyu-mll/glue", name),
        hub_texts=texts,
        labels=labels,
    )


def _mnli(name: str, title: str, half: str) -> Task:
    """Return MNLI, measured on one of its two halves: both train on the same sentences.

    Hugging Face's data set numbers entailment, neutral, contradiction; the files hold names.
    """
    five = tuple(f"label{number}" for number in range(1, 6))
    return Task(
        name=name,
        title=title,
        train=Layout("train.tsv", (*_MNLI, "label1", "gold_label"), _PAIR, "gold_label"),
        dev=Layout(f"dev_{half}.tsv", (*_MNLI, *five, "gold_label"), _PAIR, "gold_label"),
        test=Layout(f"test_{half}.tsv", _MNLI, _PAIR, None),
        hub=("nyu-mll/glue", "mnli"),
        hub_texts=("premise", "hypothesis"),
        labels=("contradiction", "entailment", "neutral"),
        hub_dev=f"validation_{half}",
    )


_TASKS = (
    Task(
        name="sst2",
        title="SST-2",
        train=_plain("train.tsv", ("sentence", "label"), ("sentence",)),
        dev=_plain("dev.tsv", ("sentence", "label"), ("sentence",)),
        test=_plain("test.tsv", _INDEX_SENTENCE, ("sentence",)),
        hub=("nyu-mll/glue", "sst2"),
        hub_texts=("sentence",),
    ),
    Task(
        name="cola",
        title="CoLA",
        train=_cola("train.tsv"),
        dev=_cola("dev.tsv"),
        test=_plain("test.tsv", _INDEX_SENTENCE, ("sentence",)),
        hub=("nyu-mll/glue", "cola"),
        hub_texts=("sentence",),
        metric_names=("matthews",),
        main_metric="matthews",
    ),
    Task(
        name="mrpc",
        title="MRPC",
        train=Layout("train.tsv", _MRPC, _MRPC_STRINGS, "Quality"),
        dev=Layout("dev.tsv", _MRPC, _MRPC_STRINGS, "Quality"),
        test=_plain("test.tsv", ("index", "#1 ID", "#2 ID", *_MRPC_STRINGS), _MRPC_STRINGS),
        hub=("nyu-mll/glue", "mrpc"),
        hub_texts=_PAIR,
        metric_names=("accuracy", "f1"),
        main_metric="f1",
    ),
    Task(
        name="qqp",
        title="QQP",
        train=Layout("train.tsv", _QQP, _QUESTIONS, "is_duplicate"),
        dev=Layout("dev.tsv", _QQP, _QUESTIONS, "is_duplicate"),
        test=_plain("test.tsv", ("id", *_QUESTIONS), _QUESTIONS),
        hub=("nyu-mll/glue", "qqp"),
        hub_texts=_QUESTIONS,
        metric_names=("accuracy", "f1"),
        main_metric="f1",
        rough=True,
    ),
    Task(
        name="stsb",
        title="STS-B",
        train=Layout("train.tsv", (*_STSB, "score"), _PAIR, "score"),
        dev=Layout("dev.tsv", (*_STSB, "score"), _PAIR, "score"),
        test=Layout("test.tsv", _STSB, _PAIR, None),
        hub=("nyu-mll/glue", "stsb"),
        hub_texts=_PAIR,
        labels=(),
        metric_names=("pearson", "spearman"),
        main_metric="spearman",
    ),
    _mnli("mnli", "MNLI (matched)", "matched"),
    _mnli("mnli-mm", "MNLI (mismatched)", "mismatched"),
    _pairs("qnli", "QNLI", _ENTAILMENT, _QNLI_TEXTS),
    _pairs("rte", "RTE", _ENTAILMENT, _PAIR),
    _pairs("wnli", "WNLI", ("0", "1"), _PAIR),
    Task(
        name="chnsenticorp",
        title="ChnSentiCorp",
        train=_plain("train.tsv", ("label", "text_a"), ("text_a",)),
        dev=_plain("dev.tsv", ("qid", "label", "text_a"), ("text_a",)),
        test=_plain("test.tsv", ("qid", "text_a"), ("text_a",)),
        hub=("lansinuote/ChnSentiCorp",),
        hub_texts=("text",),
    ),
)
TASKS = {task.name: task for task in _TASKS}
SST2 = TASKS["sst2"]
