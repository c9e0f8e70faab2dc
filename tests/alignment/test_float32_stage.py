"""The port in float32, held against what float32 does to PyTorch itself."""

from typing import Any

from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.float32_stage import compare_float32
from tests.alignment.restructured import BATCH, PaddleStage, make_paddle, make_torch
from tests.alignment.small import PaddleNet, TorchNet, at_work, messages

import pytest


def cancelling(x: Any) -> Any:
    return (x + 1e5) - 1e5


def overflowing(x: Any) -> Any:
    return (x * 1e30) * 1e30 / 1e30 / 1e30


@pytest.mark.parametrize(
    ("between", "remark", "finding"),
    [(lambda x: x, "", ""), (cancelling, "times as much as", ""), (overflowing, "", "overflows")],
)
def test_an_equal_formula_that_rounds_more(between: Any, remark: str, finding: str) -> None:
    with at_work(TorchNet(), PaddleNet(between)) as (runner, findings):
        done = compare_pass(runner, runner.expected, training=False)
        assert done.outputs and all(gap.relative < 1e-6 for _, gap in done.outputs)
        compare_float32(runner, findings, done)
    assert "x PyTorch's rounding" in findings.report.checks[0].what
    assert [remark in text for text in findings.report.remarks] == [True] * bool(remark)
    assert [finding in text for text in messages(findings)] == [True] * bool(finding)


def test_a_batch_norm_with_its_relu_built_in_is_not_what_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = PaddleStage.apply_step
    monkeypatch.setattr(
        PaddleStage,
        "apply_step",
        lambda self, step, x: cancelling(x) if step == "cast()" else steps(self, step, x),
    )
    models = make_torch(["conv bn relu()"]), make_paddle(["conv bn.relu"], lost=("", "cast()"))
    with at_work(*models, inputs=BATCH) as (runner, findings):
        compare_float32(runner, findings, compare_pass(runner, runner.expected, training=False))
    (said,) = findings.report.remarks
    assert said.startswith("in float32 3 rounds")
