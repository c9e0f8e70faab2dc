"""The two losses on the same outputs, and their gradients."""

from typing import Any

from reprod_align.alignment.loss_stage import compare_losses, compare_own_gradient
from tests.alignment.given import compare
from tests.alignment.small import PaddleNet, TorchNet, at_work, mean_square, messages

import numpy as np
import paddle
import pytest
import torch


def halved(output: Any) -> Any:
    return (output**2).mean() / 2


def cut(output: Any) -> Any:
    return (output**2).mean().detach() + 0 * output.sum()


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (mean_square, ""),
        (halved, "the loss of the same outputs is"),
        (cut, "its gradient with respect to the outputs does not"),
    ],
)
def test_losses_and_gradients_are_compared_on_the_same_outputs(theirs: Any, words: str) -> None:
    with at_work(TorchNet(), PaddleNet(lambda x: 2 * x), (mean_square, theirs)) as (
        runner,
        findings,
    ):
        compare_losses(runner, findings)
    assert [words in text for text in messages(findings)] == [True] * bool(words)


@pytest.mark.parametrize("theirs", [mean_square, halved, cut])
def test_where_an_optimizer_follows_no_gradient_goes_into_the_models(theirs: Any) -> None:
    optimizers = (
        lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
        lambda model: paddle.optimizer.SGD(0.1, parameters=model.parameters()),
    )
    with at_work(TorchNet(), PaddleNet(), (mean_square, theirs), optimizers) as (runner, findings):
        runs = compare_losses(runner, findings)
    assert [run.gradients for run in runs] == [{}, {}]
    assert runs[0].outputs[""].gradient is not None
    kinds = [finding.kind for finding in findings.report.findings]
    assert kinds == {mean_square: [], halved: ["loss"], cut: ["loss-gradient"]}[theirs]


def test_a_difference_before_the_loss_is_told_by_its_effect_on_the_loss() -> None:
    losses = mean_square, mean_square
    with at_work(TorchNet(), PaddleNet(lambda x: 2 * x), losses) as (runner, findings):
        findings.add("forward", "between", "between", "it differs", kind="module")
        compare_losses(runner, findings)
    assert findings.report.consequences[0].startswith("loss on each side's own outputs: ")


def test_the_cause_of_another_loss_follows_from_both_gradients() -> None:
    labels = np.array([0, 1, 0, 1])

    def ours(output: Any) -> Any:
        return torch.nn.functional.cross_entropy(output, torch.tensor(labels), label_smoothing=0.1)

    def theirs(output: Any) -> Any:
        return paddle.nn.functional.cross_entropy(output, paddle.to_tensor(labels))

    with at_work(TorchNet(), PaddleNet(lambda x: 2 * x), (ours, theirs)) as (runner, findings):
        compare_losses(runner, findings)
    assert "label smoothing is 0 in Paddle and 0.1 in PyTorch" in messages(findings)[0]


def clip(gradient: Any) -> Any:
    return gradient / max(float((gradient**2).sum() ** 0.5), 100.0) * 100.0


class TorchClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return clip(gradient)


class PaddleClip(paddle.autograd.PyLayer):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return clip(gradient)


def loss(output: Any) -> Any:
    return (1e5 * output**2).sum()


def by_hook(layer: Any, x: Any) -> Any:
    made = layer(x)
    if torch.is_tensor(made) and made.requires_grad or not getattr(made, "stop_gradient", True):
        made.register_hook(clip)
    return made * 1


CLIPS = {
    "a function of one's own": (
        lambda layer, x: TorchClip.apply(layer(x)),
        lambda layer, x: PaddleClip.apply(layer(x)),
    ),
    "a hook": (by_hook, by_hook),
}


@pytest.mark.parametrize("name", CLIPS)
def test_a_clip_on_one_side_alone_is_a_finding(name: str) -> None:
    ours, theirs = CLIPS[name]
    plain = lambda layer, x: layer(x) * 1  # noqa: E731
    for pair in ((ours, plain), (plain, theirs)):
        report = compare(*pair, loss, loss)
        assert report.verdict == "diverges"
        assert "depends on the size of the gradient" in report.findings[0].message, report


@pytest.mark.parametrize("name", CLIPS)
def test_a_clip_on_both_sides_is_faithful(name: str) -> None:
    report = compare(*CLIPS[name], loss, loss)
    assert report.verdict == "faithful" and not report.not_judged, report
    assert any(check.what == "gradients of the loss" for check in report.checks)


def test_where_outputs_differ_nothing_is_added() -> None:
    with at_work(TorchNet(), PaddleNet(lambda x: 2 * x), (loss, loss)) as (runner, findings):
        runs = compare_losses(runner, findings)
        findings.add("forward", "", "", "the outputs differ", kind="outputs")
        assert compare_own_gradient(runner, findings, *runs) is None
