"""The classifier that the pt_* scripts of Steps 1 to 5 run on, its loss, and where it runs."""

from models.pt_bert import BertForSequenceClassification
from pipeline.bert.exported import read_config, weight_files
from pipeline.run import Run
from reprod_align.backends.torch import load_weights, read_weights, set_precision
from reprod_align.errors import ReprodError

import torch
import torch.nn.functional as F

BERT_SCRIPT = "weights/torch_bert_weight.py"
CLASSIFIER_SCRIPT = "classifier_weights/generate_classifier_weights.py"


def load_bert(run: Run, dtype: str) -> BertForSequenceClassification:
    """Return BERT with its classifier and the exported weights, in `dtype`, in eval mode."""
    set_precision(dtype)
    model = BertForSequenceClassification(read_config(run))
    bert_file, classifier_file = weight_files(run, "torch")
    bert = read_weights(run.require(bert_file, BERT_SCRIPT))
    classifier = read_weights(run.require(classifier_file, CLASSIFIER_SCRIPT))
    load_weights(model, {f"bert.{name}": array for name, array in bert.items()} | classifier)
    model.eval()
    return model


def criterion(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the training loss: the mean cross entropy of logits (B, num_labels) and labels (B,).

    With num_labels = 1, a score, it is the mean squared error.
    """
    if logits.shape[-1] == 1:
        return F.mse_loss(logits[:, 0], labels.to(logits.dtype))
    return F.cross_entropy(logits, labels)


def use_device(device: str) -> str:
    """Return PyTorch's name of "cpu" or "gpu"; ReprodError if there is no GPU."""
    if device == "gpu" and not torch.cuda.is_available():
        raise ReprodError("--device gpu: PyTorch finds no GPU here")
    return {"cpu": "cpu", "gpu": "cuda"}[device]


def wait_for(device: str) -> None:
    """Return when `device` has done everything that it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def peak_memory(device: str) -> int:
    """Return the most bytes that tensors held on `device`; 0 for the CPU, which does not count them."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else 0
