"""A port's test, for `pytest examples/test_port.py`: docs/pytest.md."""

import numpy as np


def test_the_pair_in_a_file(align_pair):
    """Judge examples/pair_mlp.py, which lies beside this file."""
    report = align_pair("pair_mlp.py")
    assert not report.remarks


def test_two_models(align_pair):
    """Judge two models, with the arguments of `align`."""
    import paddle
    import torch

    x = np.random.default_rng(0).normal(size=(4, 6))
    align_pair(torch.nn.LayerNorm(6), paddle.nn.LayerNorm(6), (x,))
