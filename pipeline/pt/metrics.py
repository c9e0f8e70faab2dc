"""The metrics of SST-2 and of every other task with torchmetrics."""

from collections.abc import Mapping

from pipeline.tasks import RANKED_DECIMALS, SST2, Task

import numpy as np
import torch
from scipy.stats import rankdata
from torchmetrics.classification import (
    BinaryAccuracy,
    BinaryAUROC,
    BinaryF1Score,
    BinaryMatthewsCorrCoef,
    BinaryPrecision,
    BinaryRecall,
    BinaryStatScores,
    MulticlassAccuracy,
    MulticlassStatScores,
)
from torchmetrics.functional import pearson_corrcoef


class Metrics:
    """Accuracy, precision, recall, F1 and the area under the ROC curve of class 1, over all batches."""

    def __init__(self) -> None:
        """Start with no example seen."""
        self._metrics = {
            "accuracy": BinaryAccuracy(),
            "precision": BinaryPrecision(),
            "recall": BinaryRecall(),
            "f1": BinaryF1Score(),
            "auc": BinaryAUROC(),
        }
        self._counts = BinaryStatScores()

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch: logits (B, 2), labels (B,) int64."""
        probabilities = torch.softmax(logits, dim=-1)  # (B, 2)
        for metric in (*self._metrics.values(), self._counts):
            metric.update(probabilities[:, 1], labels)

    def values(self) -> dict[str, float]:
        """Return each metric; torchmetrics divides in float32, whatever it was given."""
        return {name: float(metric.compute()) for name, metric in self._metrics.items()}

    def counts(self) -> dict[str, int]:
        """Return the whole numbers that the metrics are made of."""
        tp, fp, tn, fn, support = (int(count) for count in self._counts.compute())
        return {"true_positives": tp, "false_positives": fp, "false_negatives": fn}


class Matthews(BinaryMatthewsCorrCoef):
    """Matthews' correlation coefficient, 0 where a class or a prediction never occurs.

    torchmetrics calls such a prediction 1, -1 or something small, depending on the counts.
    """

    def compute(self) -> torch.Tensor:
        """Return the coefficient of all batches."""
        confusion = self.confmat  # (2, 2), rows are labels
        defined = bool((confusion.sum(0) > 0).all() and (confusion.sum(1) > 0).all())
        return super().compute() if defined else torch.zeros(())


class Pearson:
    """Pearson's correlation in float64, 0 where one side is constant (torchmetrics: NaN)."""

    def __init__(self) -> None:
        """Start with no example seen."""
        self._scores: list[torch.Tensor] = []
        self._labels: list[torch.Tensor] = []

    def update(self, scores: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch: scores (B,), labels (B,) float."""
        self._scores.append(scores.double())
        self._labels.append(labels.double())

    def compute(self) -> torch.Tensor:
        """Return the correlation of all batches."""
        return _correlation(torch.cat(self._scores), torch.cat(self._labels))


class Spearman(Pearson):
    """Spearman's correlation: Pearson's of the ranks. torchmetrics' own adds 1e-6 to the denominator."""

    def compute(self) -> torch.Tensor:
        """Return the correlation of all batches."""
        return _correlation(_ranks(torch.cat(self._scores)), _ranks(torch.cat(self._labels)))


METRICS = {
    "f1": BinaryF1Score,
    "matthews": Matthews,
    "pearson": Pearson,
    "spearman": Spearman,
}


class TaskMetrics:
    """The metrics of a task, over all batches."""

    def __init__(self, task: Task) -> None:
        """Start with no example seen."""
        self._regression = not task.labels
        accuracy = {"accuracy": lambda: MulticlassAccuracy(task.num_labels, average="micro")}
        metrics = METRICS | accuracy
        self._metrics = {name: metrics[name]() for name in task.metric_names}
        if task.labels:
            self._counts = MulticlassStatScores(task.num_labels, average="none")

    def update(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch: logits (B, num_labels), labels (B,) int64, or float scores if num_labels is 1."""
        outputs = logits[:, 0] if self._regression else logits.argmax(-1)  # (B,)
        for metric in self._metrics.values():
            metric.update(outputs, labels)
        if not self._regression:
            self._counts.update(outputs, labels)

    def values(self) -> dict[str, float]:
        """Return each metric; correlations are in float64, torchmetrics' others in float32."""
        return {name: float(metric.compute()) for name, metric in self._metrics.items()}

    def counts(self) -> Mapping[str, object]:
        """Return the counts (num_labels,) of each class, or Pearson's correlation: no ranks, no float32."""
        if self._regression:
            return {"pearson": self.values()["pearson"]}
        tp, fp, tn, fn, support = self._counts.compute().T
        return {"true_positives": tp, "false_positives": fp, "false_negatives": fn}


def build_metrics(task: Task) -> Metrics | TaskMetrics:
    """Return what Step 2 counts for a task: for SST-2 five metrics, for others the task's own."""
    return Metrics() if task is SST2 else TaskMetrics(task)


def _ranks(values: torch.Tensor) -> torch.Tensor:
    """Return the ranks of values (N,), equal ones sharing their mean; NaN for all if one is."""
    return torch.from_numpy(rankdata(np.round(values.cpu().numpy(), RANKED_DECIMALS)))


def _correlation(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if (x == x[0]).all() or (y == y[0]).all():
        return torch.zeros(())
    return pearson_corrcoef(x, y)
