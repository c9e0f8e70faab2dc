"""Other pairings of tensors that names and shapes allow: the one that makes outputs agree is kept."""

from dataclasses import replace
from itertools import islice

from reprod_align.alignment.comparing import compare_outputs
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.pairing import make_pairing
from reprod_align.alignment.runner import Runner
from reprod_align.alignment.trying.layouts import CLEARLY, settle_groups, settle_layouts
from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.text import shorten
from reprod_align.match import Evidence, find_alternatives
from reprod_align.model.side import ModelFailure

import numpy as np

_TRIES = 48  # other pairings that are tried before giving up
_NAMED = 4  # weights in one remark


def try_alternatives(
    runner: Runner, torch: Evidence, paddle: Evidence, findings: Findings
) -> Runner:
    """Where tensors could be paired or laid out in other ways, keep the way that makes outputs agree.

    A port that computes in float32 inside, or has a small fault elsewhere, still differs then, but
    far less than with a wrong pairing.
    """
    found = runner.pairing.match
    distance = _outputs_distance(runner) if found.doubts or found.layouts else 0.0
    if distance <= RELATIVE_TOLERANCE:
        return runner
    runner, turned = settle_layouts(runner)
    runner, dealt = settle_groups(runner)
    if turned := [*turned, *dealt]:
        named = shorten(turned, _NAMED)
        findings.remark(f"laid out by comparing outputs, since the shapes do not tell: {named}")
        distance = _outputs_distance(runner)
    return _try_pairings(runner, torch, paddle, findings, distance)


def _try_pairings(
    runner: Runner, torch: Evidence, paddle: Evidence, findings: Findings, distance: float
) -> Runner:
    """Return the runner with the first other pairing that leaves far less than `distance`."""
    if distance <= RELATIVE_TOLERANCE:
        return runner
    enough = (
        max(RELATIVE_TOLERANCE, CLEARLY * distance) if np.isfinite(distance) else RELATIVE_TOLERANCE
    )
    for words, other in islice(find_alternatives(runner.pairing.match), _TRIES):
        tried = replace(runner, pairing=make_pairing(other, torch, paddle))
        tried.load_port()
        if _outputs_distance(tried) <= enough:
            findings.remark(f"paired by comparing outputs, since the names are ambiguous: {words}")
            return tried
    runner.load_port()
    return runner


def _outputs_distance(runner: Runner) -> float:
    """Return how far the port's outputs in eval mode are from the reference's, relative."""
    try:
        port = runner.run_port(False, "ends", backward=False)
    except ModelFailure:
        return np.inf
    gaps = compare_outputs(runner.pairing, runner.expected, port)
    return max((found.exceed * RELATIVE_TOLERANCE for _, found in gaps), default=np.inf)
