"""A loss that the model computes itself: a fault in it is named with its line and its cause."""

from pathlib import Path

import reprod_align
from tests.alignment.lines import torch_loss
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = Path(__file__).with_name("paddle_loss.py")
PLAIN = "`nn.CrossEntropyLoss()`"
# what is changed in the port, to what, and a piece of the message
FAULTS = {
    "reduction": ("CrossEntropyLoss()", "CrossEntropyLoss(reduction='sum')",
                  f"{PLAIN} in place of `nn.CrossEntropyLoss(reduction='sum')`"),
    "ignored label": ("CrossEntropyLoss()", "CrossEntropyLoss(ignore_index=3)",
                      f"{PLAIN} in place of `nn.CrossEntropyLoss(ignore_index=3)`"),
    "smoothing": ("CrossEntropyLoss()", "CrossEntropyLoss(label_smoothing=0.1)",
                  f"{PLAIN} in place of `nn.CrossEntropyLoss(label_smoothing=0.1)`"),
    "no softmax": ("CrossEntropyLoss()", "CrossEntropyLoss(use_softmax=False)",
                   f"{PLAIN} in place of `nn.CrossEntropyLoss(use_softmax=False)`"),
    "softmax twice": ("measure(scores,", "measure(nn.functional.softmax(scores),",
                      "Paddle calls `nn.functional.softmax(scores)` here, and PyTorch does not"),
    "scaled scores": ("measure(scores,", "measure(scores / 2,",
                      "Paddle calls `scores / 2` here, and PyTorch does not"),
    "label shift": ("labels[:, 1:]", "labels[:, :-1]", "`1:` in place of `:-1`"),
    "score shift": ("logits[:, :-1]", "logits[:, 1:]", "`:-1` in place of `1:`"),
    "scores turned": ("logits[:, :-1].reshape", "logits[:, :-1].transpose([1, 0, 2]).reshape", "transpose"),
    "gradient stopped": ("measure(scores,", "measure(scores.detach(),", "the gradient stops at"),
    "argument of a function": ("dropout_add(paddle.tanh(layer(x)), x, 0.1)",
                               "dropout_add(paddle.tanh(layer(x)), 0.4, 0.1)", ""),
    "a layer too few": ("range(2)", "range(2 - 1)", "has no counterpart"),
}  # fmt: skip


def judge(port: Path, ids: np.ndarray) -> reprod_align.Report:
    torch.manual_seed(0)
    inputs = {"input_ids": ids, "labels": ids[::-1].copy()}
    return reprod_align.align(torch_loss.Tagger(), load(port).Tagger(), inputs)


IDS = np.random.default_rng(0).permutation(np.arange(24) % 11).reshape(3, 8)


def test_a_faithful_port_has_no_finding() -> None:
    assert judge(PORT, IDS).verdict == "faithful"


@pytest.mark.parametrize("name", FAULTS)
def test_line_and_cause_are_named(name: str, tmp_path: Path) -> None:
    before, after, words = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = judge(port, IDS).findings[0]
    assert words in f"{finding.message}. {finding.edit}"
    assert finding.paddle_line == f"{port}:{changed}", f"{finding} {finding.paddle_code}"
