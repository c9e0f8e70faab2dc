"""`align_sections` says what `align` says."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reprod_align import Report, ReprodError, align_sections
from reprod_align.errors import WeightsError
from reprod_align.pair import PairSpec
from reprod_align.sections import SECTION_SIZE
from tests.sections import small
from tests.sections.small import (
    IDS,
    LIMIT,
    PaddleBlock,
    PaddleNet,
    TorchBlock,
    TorchNet,
    judge_in_memory,
    judge_in_sections,
    places,
    write_paddle_weights,
    write_weights,
)

import paddle
import pytest
import torch


def causes(report: Any) -> list[str]:
    """Return what follows the numbers in each message."""
    return sorted(finding.message.partition(". ")[2] for finding in report.findings)


@pytest.mark.parametrize("tied", [False, True])
def test_a_faithful_pair_is_faithful_in_sections(tmp_path: Path, tied: bool) -> None:
    whole, divided = judge_in_memory(tied=tied), judge_in_sections(tmp_path, tied=tied)
    assert (whole.verdict, divided.verdict) == ("faithful", "faithful"), str(divided)
    assert all(check.passed for check in divided.checks)
    assert set(divided.remarks) <= set(whole.remarks)


@pytest.mark.parametrize(
    "fault",
    ["layer", "refused", "code", "backward", "embedding", "between", "mask", "order"],
)
def test_a_fault_is_found_where_it_is_in_memory(tmp_path: Path, fault: str) -> None:
    whole, divided = judge_in_memory(fault), judge_in_sections(tmp_path, fault)
    assert whole.verdict == divided.verdict == "diverges"
    assert places(divided) == places(whole), f"{divided}\n\n{whole}"
    assert causes(divided) == causes(whole)


def test_a_tie_that_the_port_lacks_is_found(tmp_path: Path) -> None:
    whole = judge_in_memory(tied=True, split=True)
    divided = judge_in_sections(tmp_path, tied=True, split=True)
    assert places(divided) == places(whole) != []


@pytest.mark.parametrize("tied", [False, True])
def test_a_call_that_pytorch_lacks_is_found(tmp_path: Path, tied: bool) -> None:
    """PyTorch's line is then that of the call before, which in memory is another section's."""
    whole, divided = judge_in_memory("head", tied), judge_in_sections(tmp_path, "head", tied)
    for ours, theirs in zip(whole.findings, divided.findings, strict=True):
        assert (ours.stage, ours.place) == (theirs.stage, theirs.place)
        assert (ours.message, ours.paddle_line) == (theirs.message, theirs.paddle_line)


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = write_weights(tmp_path, tied=True)  # no head.weight
    with pytest.raises(WeightsError, match=r"missing head\.weight"):
        align_sections(TorchNet, PaddleNet, IDS, path, section_size=LIMIT)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    path = write_weights(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(WeightsError, match="truncated"):
        align_sections(TorchNet, PaddleNet, IDS, path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"torch_model": TorchNet()}, "a function that makes the model"),
        ({"section_size": 0}, "section_size: expected a whole number above 0"),
        ({"memory": "8G"}, "memory: expected a number of bytes, got '8G'"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    given: dict[str, Any] = {"torch_model": TorchNet, "paddle_model": PaddleNet} | options
    with pytest.raises(ReprodError, match=words):
        align_sections(inputs=IDS, torch_weights=write_weights(tmp_path), **given)


def test_a_section_is_a_layer_by_default_too() -> None:
    assert SECTION_SIZE > LIMIT


def test_paddle_s_own_weights_are_compared(tmp_path: Path) -> None:
    faithful = judge_in_sections(tmp_path, paddle_weights=write_paddle_weights(tmp_path))
    assert faithful.verdict == "faithful", str(faithful)
    wrong = write_paddle_weights(tmp_path, "layers.1.up.weight")
    report = judge_in_sections(tmp_path, paddle_weights=wrong)
    assert [(f.stage, f.torch_name) for f in report.findings] == [("weights", "layers.1.up.weight")]


def test_memory_is_limited(tmp_path: Path) -> None:
    report = judge_in_sections(tmp_path, memory=2**20)
    assert report.verdict == "faithful", str(report)


def square(output: Any) -> Any:
    return (output**2).mean()


def train(rate: float = 0.01) -> dict[str, Any]:
    """Return losses and optimizers; the port's learns at `rate`."""
    return dict(
        torch_loss=square,
        paddle_loss=square,
        torch_optimizer=lambda model: torch.optim.AdamW(model.parameters(), 0.01),
        paddle_optimizer=lambda model: paddle.optimizer.AdamW(
            rate, parameters=model.parameters(), epsilon=1e-8
        ),
        steps=2,
    )


def test_optimizers_are_compared(tmp_path: Path) -> None:
    report = judge_in_sections(tmp_path, **train())
    assert report.verdict == "faithful", str(report)
    assert {"loss", "optimizer", "schedule"} <= {check.stage for check in report.checks}
    slow = judge_in_sections(tmp_path, **train(0.001))
    assert slow.verdict == "diverges"
    assert "learning rate at step 0" in slow.findings[0].message


class TorchRounds(TorchBlock):
    """It computes in float32 inside, as the norms of most language models do."""

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.tanh(hidden.float()).to(hidden.dtype), mask)


class PaddleRounds(PaddleBlock):
    def forward(self, hidden: Any, mask: Any) -> Any:
        return super().forward(paddle.tanh(hidden.astype("float32")).astype(hidden.dtype), mask)


@pytest.mark.parametrize("fault", ["", "code"])
def test_float32_inside_is_judged_twice_in_one_section_alone(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[bool] = []
    monkeypatch.setattr(small, "TorchBlock", TorchRounds)
    monkeypatch.setattr(small, "PaddleBlock", PaddleRounds)

    def judge(pair: PairSpec, *given: Any, **named: Any) -> Report:
        judged.append(pair.reference.throughout)
        return real(pair, *given, **named)

    engine = sys.modules["reprod_align.alignment"]
    real: Callable[..., Report] = engine.judge
    monkeypatch.setattr(engine, "judge", judge)
    report = judge_in_sections(tmp_path, fault)
    assert [found.place for found in report.findings] == (["layers.1"] if fault else [])
    assert report.verdict == ("diverges" if fault else "faithful"), str(report)
    # the embedding needs one, the first layer both, each other layer one
    assert judged[:5] == [False, False, True, True, True], judged
    assert any("in the others float64 took its place" in text for text in report.remarks)
