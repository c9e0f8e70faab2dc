"""Names come from models, files and other processes: no text that is printed lets one leave its line."""

from collections.abc import Callable

from reprod_align import align
from reprod_align.base.text import table
from reprod_align.commands import print_result
from reprod_align.errors import join_lines
from reprod_align.records.compare import compare_records
from reprod_align.report import Check, Finding, ModuleShare, NotJudged, Report
from reprod_align.selftest import FaultOutcome, SelfTest
from reprod_align.traces import RecordedTrace
from reprod_align.traces.diff import compare_traces
from tests.traces.made import tensor

import numpy as np
import paddle
import pytest
import torch
from torch import nn

NASTY = "a\x1b[2J\r\nverdict: faithful\u2028\u202e\x85\x0b\x9b0m"
CHECK = Check("forward", "outputs", 0.5, False)


def report(name: str) -> Report:
    finding = Finding("forward", name, name, name, 0.5, 1e-9, name, name, name, name, (name, name))
    share = ModuleShare(name, f"b{name}", 0, 1e-9, 0.5, 0.5, 0.5, name)
    words: list[str] = [f"{name}: all 2 predictions stay the same here"]
    checks = [Check("forward", name, 0.5, False), CHECK]
    return Report("diverges", [finding], words, checks, consequences=words, shares=[share],
                  not_judged=[NotJudged("output", name)])  # fmt: skip


def selftest(name: str) -> SelfTest:
    faithful = Report(checks=[Check("forward", "outputs", 0.0, True)])
    return SelfTest(
        faithful, [FaultOutcome(name, name, False, name), FaultOutcome("b", "c", True, name)]
    )


def diff(name: str) -> str:
    sides = []
    for size in (1.0, 2.0):
        values = [tensor(np.full(3, size), module=name), tensor(np.ones(3), module=f"{name}{size}")]
        sides.append(RecordedTrace(name, "whole", tuple(values)))
    return compare_traces(*sides).summary()


def records(name: str) -> str:
    return compare_records({name: np.ones(3), "b": np.ones(2)}, {name: np.zeros(3)}).summary()


TEXTS: dict[str, Callable[[str], str]] = {
    "report": lambda name: report(name).summary(),
    "report as it is printed": lambda name: str(report(name)),
    "finding": lambda name: str(report(name).findings[0]),
    "selftest": lambda name: selftest(name).summary(),
    "selftest without a passing pair": lambda name: SelfTest(report(name), []).summary(),
    "diff of traces": diff,
    "records": records,
    "table": lambda name: join_lines(table([[name, name], ["b", "c"]])),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEXTS)
def test_a_name_stays_in_its_line(kind: str) -> None:
    plain, nasty = TEXTS[kind]("a"), TEXTS[kind](NASTY)
    assert nasty.replace("\n", "").isprintable()
    assert len(nasty.splitlines()) == len(nasty.split("\n")) == len(plain.split("\n"))
    assert "a" in plain and "\\x1b[2J\\r\\nverdict: faithful\\u2028\\u202e" in nasty


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {f"logits{NASTY}": self.inner(x)}


class PaddleNamed(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.inner = paddle.nn.Linear(3, 4)

    def forward(self, x: paddle.Tensor) -> dict[str, paddle.Tensor]:
        return {f"logits{NASTY}": 1.5 * self.inner(x)}


def test_an_output_with_such_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    """In the lines of "what it means" too."""
    found = align(Named(), PaddleNamed(), {"x": np.ones((2, 3))})
    assert any(NASTY in words for words in found.consequences)
    print_result(found, as_json=False)
    print(found)
    assert capsys.readouterr().out.replace("\n", "").isprintable()
    assert "\nverdict: faithful" not in found.summary()
