"""Parameters whose gradients differ although everything that meets them agrees."""

from reprod_align.alignment.findings import Findings
from reprod_align.alignment.locating.parameters import (
    add_parameter_faults,
    find_incomparable_layers,
)
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet, messages


def test_a_frozen_parameter_is_named() -> None:
    theirs = PaddleNet()
    theirs.first.bias.stop_gradient = True
    with pinned(paddle_model=theirs) as (runner, done, free, given):
        findings = Findings()
        add_parameter_faults(runner, findings, done, free, given)
        assert find_incomparable_layers(runner.pairing, free) == {}
    (text,) = messages(findings)
    assert text.startswith("backward: first.bias: frozen in Paddle (stop_gradient=True)")


def test_a_module_that_has_a_finding_gets_no_other() -> None:
    theirs = PaddleNet()
    theirs.first.bias.stop_gradient = True
    with pinned(paddle_model=theirs) as (runner, done, free, given):
        findings = Findings()
        findings.add("forward", "first", "first", "its inputs agree and its output does not")
        add_parameter_faults(runner, findings, done, free, given)
    assert len(messages(findings)) == 1
