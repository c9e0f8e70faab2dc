"""PyTorch's model and its port: `reprod-align pair pair.py` proves it again."""

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
TORCH = 'examples.segment_anything.small:Segmenter()'
PADDLE = 'small_paddle:Segmenter()'
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[2])]


def torch_model():
    """Return the PyTorch model."""
    import torch
    from reprod_align.pair.file import call_named

    torch.manual_seed(0)
    return call_named(TORCH)


def paddle_model():
    """Return the port, with the converted weights."""
    import paddle
    from reprod_align.pair.file import call_named

    model = call_named(PADDLE)
    weights = FOLDER / "weights.pdparams"
    if weights.is_file():
        model.set_state_dict(paddle.load(str(weights)))
    return model


def inputs():
    """Return the inputs of both."""
    with np.load(FOLDER / "inputs.npz") as held:
        return {name.removeprefix('input '): held[name] for name in held.files}
