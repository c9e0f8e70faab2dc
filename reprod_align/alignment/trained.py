"""Judges tensors that one side alone trains: parameters here, buffers or frozen there."""

from collections.abc import Sequence

from reprod_align.alignment.comparing import Pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.pairing import Pairing
from reprod_align.base.text import shorten
from reprod_align.report import Finding

import numpy as np

_NAMED = 6  # tensors in one sentence


def judge_one_sided(pairing: Pairing, findings: Findings, passes: Sequence[Pass]) -> None:
    """Add a finding for each tensor that one side alone trains, where nothing else was found.

    A gradient of zero counts: it need not stay zero. Without any gradient both sides leave the tensor
    as it is: that is noted as not judged.
    """
    compared = [done for done in passes if done.gradients]
    if not compared or findings.at_stage("forward", "backward"):
        return
    reached = frozenset[str]().union(*(done.reached for done in compared))
    for ours, theirs in pairing.one_sided:
        if theirs in reached:
            text = pairing.describe_frozen(ours, theirs)
            finding = Finding("backward", ours, theirs, text, np.inf, 0.0, kind="parameter-frozen")
            findings.report.findings.append(finding)
    idle = [ours for ours, theirs in pairing.one_sided if theirs not in reached]
    if idle:
        text = f"trained on one side alone, and no gradient reaches them: {shorten(idle, _NAMED)}"
        findings.leave_unjudged("gradient", text)
