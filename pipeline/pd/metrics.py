"""The metrics of SST-2 with paddle.metric, and of every other task."""

import math
from collections.abc import Mapping

from pipeline.tasks import RANKED_DECIMALS, SST2, Task

import numpy as np
import paddle
from paddle.metric import Accuracy, Auc, Precision, Recall
from paddlenlp.metrics import AccuracyAndF1, Mcc, MultiLabelsMetric, PearsonAndSpearman
from scipy.stats import rankdata

# Auc sorts the scores into bins and calls those in one bin equal. With its default of 4,095 bins two
# sentences that score 0.5001 and 0.5002 fall together; torchmetrics ranks every score.
AUC_BINS = 2**20 - 1


class Metrics:
    """Accuracy, precision, recall, F1 and the area under the ROC curve of class 1, over all batches."""

    def __init__(self) -> None:
        """Start with no example seen."""
        self._accuracy = Accuracy()
        self._precision = Precision()
        self._recall = Recall()
        self._auc = Auc(num_thresholds=AUC_BINS)

    def update(self, logits: paddle.Tensor, labels: paddle.Tensor) -> None:
        """Add a batch: logits (B, 2), labels (B,) int64."""
        probabilities = paddle.nn.functional.softmax(logits, axis=-1)  # (B, 2)
        self._accuracy.update(self._accuracy.compute(probabilities, labels.unsqueeze(-1)))
        self._precision.update(probabilities[:, 1], labels)
        self._recall.update(probabilities[:, 1], labels)
        self._auc.update(probabilities, labels.unsqueeze(-1))

    def values(self) -> dict[str, float]:
        """Return each metric; Paddle has no F1, it is made from precision and recall."""
        precision, recall = self._precision.accumulate(), self._recall.accumulate()
        return {
            "accuracy": float(self._accuracy.accumulate()),
            "precision": float(precision),
            "recall": float(recall),
            "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
            "auc": float(self._auc.accumulate()),
        }

    def counts(self) -> dict[str, int]:
        """Return the whole numbers that the metrics are made of."""
        tp, fp, fn = self._precision.tp, self._precision.fp, self._recall.fn
        return {"true_positives": int(tp), "false_positives": int(fp), "false_negatives": int(fn)}


class F1(AccuracyAndF1):
    """F1 of the predicted classes. PaddleNLP's rounds float32 probabilities: near ties are class 0."""

    def compute(self, pred: paddle.Tensor, label: paddle.Tensor) -> paddle.Tensor:
        """Return which predictions are right: logits (B, 2), labels (B, 1) int64."""
        correct = super().compute(pred, label)
        self.preds_pos = pred.argmax(-1).astype("float32")
        return correct


class Matthews(Mcc):
    """Matthews' correlation coefficient, 0 where a class or a prediction never occurs.

    PaddleNLP returns 0 as soon as one of the four counts is 0, also where nothing is wrong.
    """

    def accumulate(self) -> tuple[float]:
        """Return the coefficient of all batches."""
        tp, fp, fn, tn = self.tp, self.fp, self.fn, self.tn
        margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        return ((tp * tn - fp * fn) / math.sqrt(margins) if margins else 0.0,)


class Correlations(PearsonAndSpearman):
    """Pearson's and Spearman's correlation in float64, 0 where one side is constant.

    PaddleNLP ranks equal values in the order of a sort, loses digits where the mean is large, and can't
    take a batch of one example.
    """

    def update(self, preds_and_labels: tuple[paddle.Tensor, paddle.Tensor]) -> None:
        """Add a batch: scores (B, 1), labels (B, 1) float."""
        scores, labels = preds_and_labels
        self.preds.append(scores.astype("float64").flatten().tolist())
        self.labels.append(labels.astype("float64").flatten().tolist())

    def pearson(self, preds: list[float], labels: list[float]) -> float:
        """Return the correlation of two lists of N."""
        x, y = np.array(preds), np.array(labels)
        if (x == x[0]).all() or (y == y[0]).all():
            return 0.0
        return float(super().pearson(_centred(x), _centred(y)))

    def spearman(self, preds: list[float], labels: list[float]) -> float:
        """Return Pearson's correlation of the ranks, equal values sharing their mean rank."""
        scores, true = np.round(preds, RANKED_DECIMALS), np.round(labels, RANKED_DECIMALS)
        return self.pearson(rankdata(scores), rankdata(true))


METRICS = {  # and where in the result the metric stands
    "accuracy": (Accuracy, 0),
    "f1": (F1, 3),
    "matthews": (Matthews, 0),
    "pearson": (Correlations, 0),
    "spearman": (Correlations, 1),
}


class TaskMetrics:
    """The metrics of a task, over all batches."""

    def __init__(self, task: Task) -> None:
        """Start with no example seen."""
        self._regression = not task.labels
        self._metrics = {name: METRICS[name][0]() for name in task.metric_names}
        if task.labels:
            self._counts = MultiLabelsMetric(task.num_labels)

    def update(self, logits: paddle.Tensor, labels: paddle.Tensor) -> None:
        """Add a batch: logits (B, num_labels), labels (B,) int64, or float scores if num_labels is 1."""
        # PaddleNLP takes labels (B,) for a one-hot row where B is num_labels
        column = labels.unsqueeze(-1)  # (B, 1)
        for metric in self._metrics.values():
            metric.update(metric.compute(logits, column))
        if not self._regression:
            self._counts.update(self._counts.compute(logits, column))

    def values(self) -> dict[str, float]:
        """Return each metric; correlations are in float64."""
        return {
            name: float(np.ravel(metric.accumulate())[METRICS[name][1]])
            for name, metric in self._metrics.items()
        }

    def counts(self) -> Mapping[str, object]:
        """Return the counts (num_labels,) of each class, or Pearson's correlation: no ranks, no float32."""
        if self._regression:
            return {"pearson": self.values()["pearson"]}
        (tn, fp), (fn, tp) = self._counts._confusion_matrix.transpose(1, 2, 0)
        return {"true_positives": tp, "false_positives": fp, "false_negatives": fn}


def build_metrics(task: Task) -> Metrics | TaskMetrics:
    """Return what Step 2 counts for a task: for SST-2 five metrics, for others the task's own."""
    return Metrics() if task is SST2 else TaskMetrics(task)


def _centred(values: np.ndarray) -> list[float]:
    return (values - values.mean()).tolist()
