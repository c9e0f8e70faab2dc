"""The classifier that the pd_* scripts of Steps 1 to 5 run on, and its loss. pt_model.py is its twin."""

from models.pd_bert import BertForSequenceClassification
from pipeline.run import Run
from reprod_align.backends.paddle import load_weights, read_weights, set_precision

import paddle
import paddle.nn.functional as F

BERT_SCRIPT = "weights/torch2paddle.py"
CLASSIFIER_SCRIPT = "classifier_weights/generate_classifier_weights.py"


def load_bert(run: Run, dtype: str) -> BertForSequenceClassification:
    """Return BERT with its classifier and the exported weights, in `dtype`, in eval mode."""
    paddle.set_device("cpu")  # as torch's models unless moved; a GPU build would take the GPU
    set_precision(dtype)
    model = BertForSequenceClassification(run.config())
    bert = read_weights(run.needed(run.paddle_weight, BERT_SCRIPT))
    classifier = read_weights(run.needed(run.paddle_classifier, CLASSIFIER_SCRIPT))
    load_weights(model, {f"bert.{name}": array for name, array in bert.items()} | classifier)
    model.eval()
    return model


def criterion(logits: paddle.Tensor, labels: paddle.Tensor) -> paddle.Tensor:
    """Return what the model trains on: the mean cross entropy of logits (B, num_labels), labels (B,).

    Of one output per example, a score, it is the mean squared error.
    """
    if logits.shape[-1] == 1:
        return F.mse_loss(logits[:, 0], labels.astype(logits.dtype))
    return F.cross_entropy(logits, labels)
