"""The classifier that the pd_* scripts of Steps 1 to 5 run on, its loss, and where it runs."""

from models.pd_bert import BertForSequenceClassification
from pipeline.bert.exported import read_config, weight_files
from pipeline.run import Run
from reprod_align.backends.paddle import load_weights, read_weights, set_precision
from reprod_align.errors import ReprodError

import paddle
import paddle.nn.functional as F

BERT_SCRIPT = "weights/torch2paddle.py"
CLASSIFIER_SCRIPT = "classifier_weights/generate_classifier_weights.py"


def load_bert(run: Run, dtype: str) -> BertForSequenceClassification:
    """Return BERT with its classifier and the exported weights, in `dtype`, in eval mode."""
    paddle.set_device("cpu")  # as torch's models unless moved; a GPU build would take the GPU
    set_precision(dtype)
    model = BertForSequenceClassification(read_config(run))
    bert_file, classifier_file = weight_files(run, "paddle")
    bert = read_weights(run.require(bert_file, BERT_SCRIPT))
    classifier = read_weights(run.require(classifier_file, CLASSIFIER_SCRIPT))
    load_weights(model, {f"bert.{name}": array for name, array in bert.items()} | classifier)
    model.eval()
    return model


def criterion(logits: paddle.Tensor, labels: paddle.Tensor) -> paddle.Tensor:
    """Return the training loss: the mean cross entropy of logits (B, num_labels) and labels (B,).

    With num_labels = 1, a score, it is the mean squared error.
    """
    if logits.shape[-1] == 1:
        return F.mse_loss(logits[:, 0], labels.astype(logits.dtype))
    return F.cross_entropy(logits, labels)


def use_device(device: str) -> str:
    """Make Paddle work on "cpu" or "gpu", and return its name; ReprodError if there is no GPU."""
    if device == "gpu" and not (
        paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count()
    ):
        raise ReprodError("--device gpu: Paddle finds no GPU here")
    paddle.set_device(device)
    return device


def wait_for(device: str) -> None:
    """Return when `device` has done everything that it was given."""
    if device == "gpu":
        paddle.device.cuda.synchronize()


def peak_memory(device: str) -> int:
    """Return the most bytes that tensors held on `device`; 0 for the CPU, which does not count them."""
    return int(paddle.device.cuda.max_memory_allocated()) if device == "gpu" else 0
