"""The port: BatchNorm2D."""

import paddle


def paddle_model():
    """Return the layer; its weights and statistics are replaced by the reference's."""
    return paddle.nn.BatchNorm2D(4)
