"""Binary classification metrics with torchmetrics. pd_metrics.py is its twin."""

import torch
from torchmetrics.classification import (
    BinaryAccuracy,
    BinaryAUROC,
    BinaryF1Score,
    BinaryPrecision,
    BinaryRecall,
    BinaryStatScores,
)


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

    def update(self, probabilities: torch.Tensor, labels: torch.Tensor) -> None:
        """Add a batch: probabilities (B, 2), labels (B,) int64."""
        for metric in (*self._metrics.values(), self._counts):
            metric.update(probabilities[:, 1], labels)

    def values(self) -> dict[str, float]:
        """Return each metric; torchmetrics divides in float32, whatever it was given."""
        return {name: float(metric.compute()) for name, metric in self._metrics.items()}

    def counts(self) -> dict[str, int]:
        """Return the whole numbers that the metrics are made of."""
        tp, fp, tn, fn, support = (int(count) for count in self._counts.compute())
        return {"true_positives": tp, "false_positives": fp, "false_negatives": fn}
