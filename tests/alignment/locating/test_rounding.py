"""What may be float32 rounding inside a layer."""

from dataclasses import replace

from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.fault import (
    is_rounding,
    is_rounding_throughout,
    may_round,
    note_rounding_as_a_whole,
)
from reprod_align.alignment.locating.faults import find_forward_faults
from reprod_align.base.difference import Gap
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet


def test_small_differences_of_own_code_are_rounding_and_those_of_products_are_not() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: (1 + 1e-7) * x)) as (runner, done, free, given):
        (fault,) = find_forward_faults(free, given, masks_agree=False)
        assert is_rounding(runner, fault) and is_rounding_throughout(done)
        assert not is_rounding(runner, replace(fault, kind="cut"))
        assert not is_rounding(runner, replace(fault, gap=Gap(1e-3, 1e-9, 1.0)))
        assert may_round(runner, "", "") and not may_round(runner, "second", "second")
        findings = Findings()
        assert not note_rounding_as_a_whole(runner, findings, "the model", fault.gap, False)
        assert not findings.float32_inside
        assert note_rounding_as_a_whole(runner, findings, "the model", fault.gap, True)
    assert findings.float32_inside
