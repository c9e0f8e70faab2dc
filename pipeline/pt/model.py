"""The classifier that the pt_* scripts of Steps 1 to 5 run on, and its loss. pd_model.py is its twin."""

from models.pt_bert import BertForSequenceClassification
from pipeline.run import Run
from reprod_align.backends.torch import load_weights, read_weights, set_precision

import torch
import torch.nn.functional as F

BERT_SCRIPT = "weights/torch_bert_weight.py"
CLASSIFIER_SCRIPT = "classifier_weights/generate_classifier_weights.py"


def load_bert(run: Run, dtype: str) -> BertForSequenceClassification:
    """Return BERT with its classifier and the exported weights, in `dtype`, in eval mode."""
    set_precision(dtype)
    model = BertForSequenceClassification(run.config())
    bert = read_weights(run.needed(run.torch_weight, BERT_SCRIPT))
    classifier = read_weights(run.needed(run.torch_classifier, CLASSIFIER_SCRIPT))
    load_weights(model, {f"bert.{name}": array for name, array in bert.items()} | classifier)
    model.eval()
    return model


def criterion(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return what the model trains on: the mean cross entropy of logits (B, num_labels), labels (B,).

    Of one output per example, a score, it is the mean squared error.
    """
    if logits.shape[-1] == 1:
        return F.mse_loss(logits[:, 0], labels.to(logits.dtype))
    return F.cross_entropy(logits, labels)
