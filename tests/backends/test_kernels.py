"""Tests of Paddle's float64 interpolation with float64 weights, against PyTorch's."""

from reprod_align.backends.paddle import kernels

import numpy as np
import paddle
import pytest
import torch

_SIZES = {"linear": (37,), "bilinear": (37, 50), "bicubic": (37, 50), "trilinear": (5, 6, 7)}
_CASES = [
    (mode, {"align_corners": corners, **how})
    for mode, sizes in _SIZES.items()
    for corners in (True, False)
    for how in ({"size": [size * 2 + 1 for size in sizes]}, {"size": [size // 2 for size in sizes]},
                {"scale_factor": [1.7] * len(sizes)})
]  # fmt: skip
_CLOSE = 1e-12


def _resize(mode: str, how: dict, last: bool = False) -> list[np.ndarray]:
    """Return the absolute differences between the two frameworks: of the outputs, of the gradients."""
    sizes = _SIZES[mode]
    x = np.random.default_rng(0).standard_normal((2, 3, *sizes))
    ours = torch.tensor(x, requires_grad=True)
    expected = torch.nn.functional.interpolate(ours, mode=mode, **how)
    back = np.random.default_rng(1).standard_normal(expected.shape)
    expected.backward(torch.tensor(back))
    theirs = paddle.to_tensor(x, stop_gradient=False)
    axes = [0, *range(2, x.ndim), 1]
    layout = {3: "NCW", 4: "NCHW", 5: "NCDHW"}[x.ndim]
    if last:
        layout = layout.replace("C", "") + "C"
        made = paddle.nn.functional.interpolate(
            theirs.transpose(axes), mode=mode, data_format=layout, **how
        ).transpose(list(np.argsort(axes)))
    else:
        made = paddle.nn.functional.interpolate(theirs, mode=mode, data_format=layout, **how)
    made.backward(paddle.to_tensor(back))
    return [np.abs(expected.detach().numpy() - made.numpy()),
            np.abs(ours.grad.numpy() - theirs.grad.numpy())]  # fmt: skip


@pytest.mark.parametrize(("mode", "how"), _CASES)
def test_float64_weights_give_pytorch_s_numbers_forward_and_backward(mode: str, how: dict) -> None:
    with kernels.exact_kernels():
        differences = [*_resize(mode, how), *_resize(mode, how, last=True)]
    assert max(one.max() for one in differences) < _CLOSE


def test_the_kernel_alone_is_off_by_float32() -> None:
    differences = _resize(*_CASES[0])
    assert differences[0].max() > 1e3 * _CLOSE


def test_a_kernel_that_computes_something_else_keeps_its_numbers() -> None:
    """To one pixel, Paddle 3.3 takes the first one where PyTorch takes the middle."""
    how = {"size": [1, 1], "align_corners": False}
    with kernels.exact_kernels():
        differences = _resize("bilinear", how)
    assert differences[0].max() > 1e-3


def test_a_wrong_gradient_of_a_kernel_keeps_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    own = kernels.OPERATORS.bilinear_interp

    class Doubled(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x + 0

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    monkeypatch.setattr(
        kernels.OPERATORS, "bilinear_interp", lambda *args: Doubled.apply(own(*args))
    )
    with kernels.exact_kernels():
        outputs, gradients = _resize("bilinear", {"size": [75, 101], "align_corners": True})
    assert outputs.max() < 1e-4
    assert gradients.max() > 0.1


def test_float32_is_left_to_the_kernel() -> None:
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((1, 2, 37, 50)), "float32")
    resize = paddle.nn.functional.interpolate
    own = resize(x, size=[75, 101], mode="bilinear")
    with kernels.exact_kernels():
        assert (resize(x, size=[75, 101], mode="bilinear") == own).all()
