"""What a report says beside its findings: float32, shares, consequences, and what shows little."""

from reprod_align import align
from reprod_align.alignment.loss_stage import describe_effects, effect_on_loss
from reprod_align.base.blocks import Array
from reprod_align.model.trace import Leaf, LeafPair
from reprod_align.report import Report

import numpy as np
import paddle
import pytest
import torch

ROWS = np.random.default_rng(3).standard_normal((6, 4))


class TorchScores(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(4, 8)
        self.out = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.out(torch.tanh(self.dense(x)))


class PaddleScores(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.dense = paddle.nn.Linear(4, 8)
        self.out = paddle.nn.Linear(8, 3)

    def forward(self, x):
        return self.out(paddle.tanh(self.dense(x)))


def paddle_scores(forward):
    """Return the port with another forward code."""
    return type("Other", (PaddleScores,), {"forward": forward})()


def float32_check(report: Report):
    return next(check for check in report.checks if check.noise is not None)


# -------------------------------------------------------------------- float32


def test_float32_is_measured_by_pytorch_s_own_rounding() -> None:
    report = align(TorchScores(), PaddleScores(), (ROWS,))
    check = float32_check(report)
    assert report.verdict == "faithful" and check.passed
    assert 1e-9 < check.relative < 1e-6 and 0 < check.noise < 1e-6
    assert report.worst is not None and report.worst.relative < 1e-12


@pytest.mark.parametrize("scale", [1e4, 1e-6])
def test_large_and_tiny_activations_raise_no_false_alarm(scale) -> None:
    ours, theirs = (
        fw.nn.Sequential(fw.nn.Linear(4, 8), fw.nn.Linear(8, 3)) for fw in (torch, paddle)
    )
    report = align(ours, theirs, (ROWS * scale,))
    assert report.verdict == "faithful" and report.remarks == []


def test_a_formula_that_overflows_in_float32_alone_is_a_finding() -> None:
    def forward(self, x):
        hidden = self.dense(x)
        shifted = paddle.exp(hidden + 100.0)  # inf in float32
        return self.out(
            (shifted - paddle.exp(100.0 - hidden)) / (shifted + paddle.exp(100.0 - hidden))
        )

    report = align(TorchScores(), paddle_scores(forward), (ROWS,))
    assert not report.passed and not float32_check(report).passed
    assert "in float32 the port overflows" in report.findings[0].message


def test_a_formula_that_is_less_exact_is_a_remark() -> None:
    def forward(self, x):
        return self.out(paddle.tanh((self.dense(x) + 3e4) - 3e4))

    report = align(TorchScores(), paddle_scores(forward), (ROWS * 1e-3,))
    assert report.passed
    assert any("times as much as PyTorch's own float32" in remark for remark in report.remarks)


# -------------------------------------------------------------------- shares


# Of the float64 outputs of TorchScores, relative to the largest. An output is the sum of n <= 8 products
# and a bias; whatever the order of its additions, it is within (n + 1) * eps * (sum |a||b| + |bias|) of
# any other order. ROWS are below 4, the inner values below 1, the weights at most 1 / sqrt(4): the sum
# is below 9, the largest output above 0.1. 9 * 2.2e-16 * 9 / 0.1 = 1.8e-13.
ROUNDING = 1.8e-13


def test_a_difference_is_split_into_introduced_and_inherited() -> None:
    port = PaddleScores()
    inner = port.dense.forward
    port.dense.forward = lambda x: inner(x) * (1 + 1e-6)
    report = align(TorchScores(), port, (ROWS,))
    shares = {share.torch_name: share for share in report.shares}
    assert shares["dense"].introduced == pytest.approx(1e-6, rel=1e-3)
    assert shares["dense"].inherited < ROUNDING and shares["dense"].received < ROUNDING
    out = shares["out"]
    assert out.introduced < ROUNDING and 1e-8 < out.inherited < 1e-4
    assert abs(out.inherited - out.total) < 2 * ROUNDING
    assert "where the difference grows" in report.summary()


def test_own_code_shows_as_what_it_hands_on() -> None:
    def forward(self, x):
        return self.out(paddle.tanh(self.dense(x)) * 1.001)

    report = align(TorchScores(), paddle_scores(forward), (ROWS,))
    (handed,) = [share for share in report.shares if share.handed_to]
    assert (handed.torch_name, handed.handed_to) == ("", "out")
    assert handed.introduced == pytest.approx(1e-3, rel=1e-6)
    assert "the model -> out" in report.summary()


def test_an_amplifier_is_shown() -> None:
    class TorchSteep(TorchScores):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(4, elementwise_affine=False, eps=0.0)

        def forward(self, x):
            return self.norm(1e3 + 1e-3 * super().forward(x).repeat(1, 2)[:, :4])

    class PaddleSteep(PaddleScores):
        def __init__(self) -> None:
            super().__init__()
            self.norm = paddle.nn.LayerNorm(4, weight_attr=False, bias_attr=False, epsilon=0.0)

        def forward(self, x):
            return self.norm(1e3 + 1e-3 * super().forward(x).tile([1, 2])[:, :4])

    port = PaddleSteep()
    inner = port.out.forward
    port.out.forward = lambda x: inner(x) + paddle.to_tensor([1e-3, 0.0, 0.0])
    report = align(TorchSteep(), port, (ROWS,))
    norm = next(share for share in report.shares if share.torch_name == "norm")
    assert norm.amplification > 1e4 and norm.introduced < 1e-6
    assert norm in report.list_telling_shares()


# -------------------------------------------------------------------- consequences


def said(ours: Array, theirs: Array, name: str = "logits") -> str:
    leaves = [{name: Leaf(array, True)} for array in (ours, theirs)]
    return "; ".join(describe_effects(*leaves, [LeafPair(name, name, None)]))


def test_flips_are_counted() -> None:
    ours = np.array([[0.0, 1.0], [0.0, 0.1], [3.0, 0.0]])
    text = said(ours, ours + [0.2, 0.0])
    assert "1 of 3 predictions flip (largest difference 0.2, smallest top-1 margin 0.1)" in text


def test_no_prediction_can_flip_below_half_the_margin() -> None:
    ours = np.array([[0.0, 1.0], [3.0, 0.0]])
    assert "no prediction can flip" in said(ours, ours + [0.4, 0.0])
    assert "some could" in said(ours, ours + [0.6, 0.0])


def test_divergence_is_that_of_the_probabilities() -> None:
    ours, theirs = np.log([[0.5, 0.5]]), np.log([[0.9, 0.1]])
    expected = 0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.5 / 0.1)
    assert f"KL divergence {expected:.2g} on average" in said(ours + 5, theirs - 2)
    assert f"KL divergence {expected:.2g} on average" in said(np.exp(ours), np.exp(theirs))


def test_masked_scores_count_as_impossible() -> None:
    ours = np.array([[0.0, 1.0, -np.inf]])
    assert "no prediction can flip" in said(ours, ours)


def test_hidden_states_are_no_scores() -> None:
    states = np.ones((2, 3, 4))
    leaves = [{"hidden": Leaf(states, True), "pooled": Leaf(states[:, 0], True)}] * 2
    assert describe_effects(*leaves, [LeafPair("hidden", "hidden", None)]) == []


def test_the_effect_on_the_loss_is_that_of_the_outputs() -> None:
    assert effect_on_loss(2.0, 2.5).endswith("2 in PyTorch, 2.5 in Paddle (+25.00%)")
    port = PaddleScores()
    inner = port.out.forward
    port.out.forward = lambda x: inner(x) + 1.0
    report = align(TorchScores(), port, (ROWS,), torch_loss=torch.mean, paddle_loss=paddle.mean)
    assert any("loss on each side's own outputs" in text for text in report.consequences)
    assert "what it means:" in report.summary()


# -------------------------------------------------------------------- what shows little


def remarks(inputs, torch_model=None, paddle_model=None) -> str:
    report = align(torch_model or TorchScores(), paddle_model or PaddleScores(), inputs)
    assert report.passed
    return "\n".join(report.remarks)


def test_a_batch_that_varies_is_not_remarked_on() -> None:
    assert remarks((ROWS,)) == ""


def test_constant_input_is_remarked_on() -> None:
    assert "every element of the input 0 is 1" in remarks((np.ones((2, 4)),))


@pytest.mark.parametrize(("value", "words"), [(1, "hides nothing"), (0, "hides everything")])
def test_a_mask_that_masks_nothing_or_all_is_remarked_on(value, words) -> None:
    class TorchMasked(TorchScores):
        def forward(self, x, mask):
            return super().forward(x) * mask

    class PaddleMasked(PaddleScores):
        def forward(self, x, mask):
            return super().forward(x) * mask

    given = {"x": ROWS, "mask": np.full((6, 1), float(value))}
    assert f"the input mask {words}" in remarks(given, TorchMasked(), PaddleMasked())


def test_constant_outputs_and_gradients_that_stay_zero_are_remarked_on() -> None:
    ours, theirs = TorchScores(), PaddleScores()
    torch.nn.init.zeros_(ours.out.weight)
    torch.nn.init.zeros_(ours.out.bias)
    text = remarks((ROWS,), ours, theirs)
    assert "is 0 everywhere" in text
    assert "zero gradient on this batch, so not tested: dense.weight, dense.bias" in text


def test_a_module_that_is_never_called_is_remarked_on() -> None:
    ours, theirs = TorchScores(), PaddleScores()
    ours.spare, theirs.spare = torch.nn.Linear(2, 2), paddle.nn.Linear(2, 2)
    assert "never called as a module (unused, or used from outside): spare" in remarks(
        (ROWS,), ours, theirs
    )


def test_nan_on_both_sides_is_no_agreement() -> None:
    report = align(TorchScores(), PaddleScores(), (np.full((2, 4), np.nan),))
    assert not report.passed
    assert "no output holds a finite number" in report.findings[0].message


def test_outputs_that_are_bit_for_bit_the_same_are_remarked_on() -> None:
    def stack(nn):
        return nn.Sequential(*[nn.Linear(4, 4) for _ in range(8)])

    class TorchConstant(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = stack(torch.nn)

        def forward(self, x):
            return x + 0.0 * self.layers(x)

    class PaddleConstant(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.layers = stack(paddle.nn)

        def forward(self, x):
            return x + 0.0 * self.layers(x)

    assert "bit for bit" in remarks((ROWS,), TorchConstant(), PaddleConstant())
