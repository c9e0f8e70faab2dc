"""A backward pass that depends on the size of the gradient shows with the user's own loss."""

from typing import Any

from reprod_align.alignment.loss_stage import compare_losses, compare_own_gradient
from tests.alignment.given import compare
from tests.alignment.small import PaddleNet, TorchNet, at_work

import paddle
import pytest
import torch


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
