"""A loss, an optimizer or a schedule that differs is explained by the edit with which it does not."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reprod_align import align
from tests.alignment.small import PaddleNet, TorchNet, X

import paddle
import pytest
import torch

LABELS = [0, 1, 1, 0]


def torch_loss(output: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(output, torch.tensor(LABELS), label_smoothing=0.1)


def paddle_loss(output: paddle.Tensor) -> paddle.Tensor:
    labels = paddle.to_tensor(LABELS)
    return paddle.nn.functional.cross_entropy(output, labels, label_smoothing=0.1)


def paddle_loss_without_smoothing(output: paddle.Tensor) -> paddle.Tensor:
    return paddle.nn.functional.cross_entropy(output, paddle.to_tensor(LABELS))


def torch_optimizer(model: Any) -> Any:
    return torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))


def paddle_optimizer(model: Any) -> Any:
    return paddle.optimizer.Adam(1e-3, beta2=0.98, parameters=model.parameters())


def paddle_optimizer_of_another_beta(model: Any) -> Any:
    return paddle.optimizer.Adam(1e-3, beta2=0.95, parameters=model.parameters())


def torch_scheduler(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)


def paddle_scheduler(optimizer: Any) -> Any:
    return paddle.optimizer.lr.StepDecay(1e-3, step_size=2, gamma=0.5)


def paddle_scheduler_of_other_steps(optimizer: Any) -> Any:
    return paddle.optimizer.lr.StepDecay(1e-3, step_size=3, gamma=0.5)


@dataclass(frozen=True)
class Wrong:
    """A pair in which one function of the port's differs."""

    functions: dict[str, Callable[..., Any]]
    """in the place of the right ones"""
    stage: str
    before: str
    after: str
    """part of the edit that is due"""


WRONG = [
    Wrong({"paddle_loss": paddle_loss_without_smoothing}, "loss", "LABELS))", "label_smoothing=0.1"),
    Wrong({"paddle_optimizer": paddle_optimizer_of_another_beta}, "optimizer", "0.95", "0.98"),
    Wrong({"paddle_scheduler": paddle_scheduler_of_other_steps}, "schedule", "3", "2"),
]  # fmt: skip


def judge(**functions: Callable[..., Any]) -> Any:
    given = {
        "torch_loss": torch_loss,
        "paddle_loss": paddle_loss,
        "torch_optimizer": torch_optimizer,
        "paddle_optimizer": paddle_optimizer,
        "torch_scheduler": torch_scheduler,
        "paddle_scheduler": paddle_scheduler,
    }
    torch.manual_seed(0)
    return align(TorchNet(), PaddleNet(), (X,), **(given | functions))


@pytest.mark.every_edit
@pytest.mark.parametrize("case", WRONG, ids=lambda one: one.stage)
def test_the_edit_is_found(case: Wrong) -> None:
    finding = judge(**case.functions).findings[0]
    assert finding.stage == case.stage
    assert finding.edit is not None, finding.message
    assert finding.edit.file == __file__ and finding.edit.level == "tried"
    assert case.before in finding.edit.before and case.after in finding.edit.after
    assert finding.paddle_line is not None
    assert int(finding.paddle_line.rpartition(":")[2]) == finding.edit.line


def test_none_is_tried_where_nothing_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprod_align.alignment.stage_edits.Retrial.find_edit", None)
    assert judge().passed


def test_none_is_tried_where_the_models_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they make of their outputs tells nothing then."""
    monkeypatch.setattr("reprod_align.alignment.stage_edits.Retrial.find_edit", None)
    torch.manual_seed(0)
    found = align(
        TorchNet(torch.sin), PaddleNet(paddle.cos), (X,),
        torch_loss=torch_loss, paddle_loss=paddle_loss_without_smoothing,
    )  # fmt: skip
    assert {one.stage for one in found.findings} >= {"forward", "loss"}


def test_a_loss_that_agrees_on_the_outputs_of_eval_mode_alone_is_a_finding_of_the_loss() -> None:
    """Dropout makes other outputs, among them some that the port's loss cuts off."""
    torch.manual_seed(0)
    ours = TorchNet(torch.nn.Dropout(0.5))
    most = ours.double().eval()(torch.tensor(X)).max().item() + 1e-3
    found = align(
        ours, PaddleNet(paddle.nn.Dropout(0.5)), (X,),
        torch_loss=lambda output: output.mean(),
        paddle_loss=lambda output: output.clip(max=most).mean(),
        torch_optimizer=torch_optimizer, paddle_optimizer=paddle_optimizer,
    ).findings[0]  # fmt: skip
    assert (found.stage, found.kind) == ("loss", "loss")
