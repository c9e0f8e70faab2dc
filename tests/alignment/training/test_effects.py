"""Which settings are named for updates that differ."""

from types import SimpleNamespace
from typing import Any

from reprod_align.alignment.audit import OptimizerDifference
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.training.effects import explain_updates
from reprod_align.base.difference import Gap
from tests.alignment.small import messages

WRONG, RIGHT = Gap(0.1, 1e-9, 1.0), Gap(0.0, 1e-9, 1.0)
EPS = OptimizerDifference("eps", 1e-8, 1e-6, ("a",), ("a",), "eps: too large")
DECAY = OptimizerDifference("weight_decay", 0.1, 0.2, (), (), "weight_decay: too large")


class Effects:
    optimizer = "Lamb"

    def __init__(self, **sizes: float) -> None:
        self.sizes = sizes

    def of(self, difference: Any, number: int) -> tuple[float, float]:
        return self.sizes[difference.setting], self.sizes[difference.setting]

    def as_in_port(self) -> None:
        return None


def explained(effects: Effects, gaps: Any, differences: Any) -> Findings:
    findings, nothing = Findings(), SimpleNamespace(dtype="float64")
    explain_updates(nothing, findings, gaps, [], differences, effects)  # type: ignore[arg-type]
    return findings


def test_the_setting_that_the_step_feels_is_named_and_the_other_remarked_on() -> None:
    gaps = [{"a": ("a", RIGHT), "b": ("b", RIGHT)}, {"a": ("a", WRONG), "b": ("b", RIGHT)}]
    findings = explained(Effects(eps=0.1, weight_decay=0.0), gaps, [DECAY, EPS])
    assert [text.startswith("optimizer: a: eps: too large") for text in messages(findings)] == [
        True
    ]
    assert "weight_decay: too large" in findings.report.remarks[0]


def test_the_largest_effect_comes_first() -> None:
    gaps = [{"a": ("a", WRONG), "b": ("b", WRONG)}]
    findings = explained(Effects(eps=0.1, weight_decay=0.2), gaps, [EPS, DECAY])
    assert ["weight_decay" in text for text in messages(findings)] == [True, False]


def test_updates_that_no_setting_explains() -> None:
    findings = explained(Effects(), [{"a": ("a", WRONG), "b": ("b", RIGHT)}], [])
    assert "given the same gradients, step 0 changes it differently" in messages(findings)[0]


def test_float32_inside_paddles_kernels_explains_small_differences() -> None:
    small = Gap(1e-7, 1e-9, 1.0)
    findings = explained(Effects(), [{"a": ("a", small)}], [])
    assert messages(findings) == []
    assert findings.report.imprecise == {"Paddle's Lamb (its update of a)": small.relative}
