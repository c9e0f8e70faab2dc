"""Binary classification metrics with paddle.metric. pt_metrics.py is its twin."""

import paddle
from paddle.metric import Accuracy, Auc, Precision, Recall

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

    def update(self, probabilities: paddle.Tensor, labels: paddle.Tensor) -> None:
        """Add a batch: probabilities (B, 2), labels (B,) int64."""
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
