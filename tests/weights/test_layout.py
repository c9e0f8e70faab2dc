"""The rules by layer type, which conversion and matching share."""

from reprod_align.backends import paddle as paddle_backend
from reprod_align.backends import torch as torch_backend
from reprod_align.weights.layout import TRANSPOSED_LAYERS, matrix_axes

import paddle
import pytest
import torch


@pytest.mark.parametrize("kind", sorted(TRANSPOSED_LAYERS))
def test_a_transposed_layer_is_one_for_matching_and_converting(kind: str) -> None:
    assert (matrix_axes(kind, kind, "PyTorch"), matrix_axes(kind, kind, "Paddle")) == ("oi", "io")
    models = (
        torch.nn.Sequential(getattr(torch.nn, kind)(2, 3)),
        paddle.nn.Sequential(getattr(paddle.nn, kind)(2, 3)),
    )
    shapes = []
    for backend, model in zip((torch_backend, paddle_backend), models, strict=True):
        assert backend.linear_weights(model) == {"0.weight"}
        shapes.append(tuple(model[0].weight.shape))
    assert shapes == [(3, 2), (2, 3)]


@pytest.mark.parametrize(
    ("kind", "class_name", "convention", "axes"),
    [
        ("Conv2d", "Conv2D", "Paddle", "oi"),
        ("ConvTranspose2d", "Conv2DTranspose", "Paddle", ""),
        ("", "Conv1D", "PyTorch", "io"),  # GPT-2's
        ("", "FusedLinear", "Paddle", "io?"),
        ("", "FusedLinear", "PyTorch", "oi?"),
        ("LayerNorm", "LayerNorm", "PyTorch", ""),
    ],
)
def test_other_layers(kind: str, class_name: str, convention: str, axes: str) -> None:
    assert matrix_axes(kind, class_name, convention) == axes


def test_a_class_derived_from_a_layer_may_keep_its_weight_otherwise() -> None:
    assert matrix_axes("Linear", "CausalLMHead", "Paddle", is_stock=False) == "io?"
    assert matrix_axes("Conv2d", "MyConv", "Paddle", is_stock=False) == "oi"
