"""Which places get a finding."""

from reprod_align.alignment.comparing import compare_pass
from reprod_align.alignment.locating.blame import locate
from tests.alignment.restructured import BATCH, make_paddle, make_torch
from tests.alignment.small import at_work


def test_a_layer_that_cannot_be_compared_has_no_finding_beside_the_code_around_it() -> None:
    ours, theirs = ["conv bn relu()"] * 2, ["conv bn.relu", "conv bn.sigmoid"]
    models = make_torch(ours, 1), make_paddle(theirs, times=1)
    with at_work(*models, inputs=BATCH) as (runner, findings):
        locate(runner, findings, compare_pass(runner, runner.expected, training=False))
    found = [(finding.stage, finding.paddle_name) for finding in findings.report.findings]
    assert found == [("forward", "2")]
