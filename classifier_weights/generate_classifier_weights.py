"""Generate the weights of the classifier that stands on top of BertModel, for both frameworks.

reads   weights/config.json
writes  classifier_weights/torch_classifier_weights.bin     classifier.weight (2, hidden), .bias (2,)
        classifier_weights/paddle_classifier_weights.bin    classifier.weight (hidden, 2), .bias (2,)
        For a --task of three labels, or one, the names end in "_3" or "_1" and so do the shapes.
"""

from pipeline import settings
from pipeline.bert.exported import read_config, weight_files
from pipeline.run import Run, start
from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend
from reprod_align.base.text import shorten_path

import numpy as np


def main(run: Run) -> None:
    """Draw weight and bias from a fixed seed; a bias of zeros would hide a port that forgets it."""
    config = read_config(run)
    generator = np.random.default_rng(settings.SEED)
    shape = (config.num_labels, config.hidden_size)
    weight = generator.normal(0.0, config.initializer_range, shape).astype(np.float32)
    bias = generator.normal(0.0, config.initializer_range, shape[0]).astype(np.float32)
    torch_weights = {"classifier.weight": weight, "classifier.bias": bias}
    (_, torch_file), (_, paddle_file) = weight_files(run, "torch"), weight_files(run, "paddle")
    pt_backend.write_weights(torch_file, torch_weights)
    pd_backend.write_weights(paddle_file, torch_weights | {"classifier.weight": weight.T})
    print(f"wrote {shorten_path(torch_file)} and {paddle_file.name}")


if __name__ == "__main__":
    start(main, __doc__)
