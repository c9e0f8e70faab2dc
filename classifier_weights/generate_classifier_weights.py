"""Generate the weights of the classifier that stands on top of BertModel, for both frameworks.

reads   weights/config.json
writes  classifier_weights/torch_classifier_weights.bin     classifier.weight (2, hidden), .bias (2,)
        classifier_weights/paddle_classifier_weights.bin    classifier.weight (hidden, 2), .bias (2,)
        For a --task of three labels, or one, the names end in "_3" or "_1" and so do the shapes.
"""

from pipeline import settings
from pipeline.run import Run, start
from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend

import numpy as np


def main(run: Run) -> None:
    """Draw weight and bias from a fixed seed; a bias of zeros would hide a port that forgets it."""
    config = run.config()
    generator = np.random.default_rng(settings.SEED)
    shape = (config.num_labels, config.hidden_size)
    weight = generator.normal(0.0, config.initializer_range, shape).astype(np.float32)
    bias = generator.normal(0.0, config.initializer_range, shape[0]).astype(np.float32)
    torch_weights = {"classifier.weight": weight, "classifier.bias": bias}
    pt_backend.write_weights(run.torch_classifier, torch_weights)
    pd_backend.write_weights(run.paddle_classifier, torch_weights | {"classifier.weight": weight.T})
    print(f"wrote {run.torch_classifier} and {run.paddle_classifier.name}")


if __name__ == "__main__":
    start(main, __doc__)
