"""Ranks that disagree are findings, also where nothing more can be run.

Mistakes that the numbers of the ranks tell.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from reprod_align.errors import ReprodError
from reprod_align.parallel import Mesh, Placement
from reprod_align.parallel.examine import RankTensor, examine, explain
from reprod_align.parallel.side import Disagreement
from reprod_align.report import Finding, Report

import numpy as np
import pytest


def _refuse(*arguments: Any, **options: Any) -> Any:
    raise ReprodError("the ranks are gone")


def test_what_the_ranks_disagree_on_is_found_once() -> None:
    parts = [np.ones(2), np.ones(2), np.ones(2), np.zeros(2)]
    apart = [Disagreement("gradient", "norm.weight", "tp", (2, 3), None, parts)] * 2
    apart += [
        Disagreement("stream shared", "drop", "tp", (0, 1)),
        Disagreement("rate", "", "", (0, 1), 1, parts),
    ]
    pair = SimpleNamespace(reference=SimpleNamespace(working=_refuse))
    report = Report()
    examine(pair, SimpleNamespace(apart=apart), report)  # type: ignore[arg-type]
    assert [(f.code, f.stage, f.paddle_name) for f in report.findings] == [
        ("rank-apart", "backward", "norm.weight"),
        ("rank-dropout", "forward", "drop"),
        ("rank-apart", "schedule", ""),
    ]
    assert "ranks 2 and 3 of tp" in report.findings[0].message


def test_one_cause_is_one_finding_and_explains_the_losses_after_it() -> None:
    """A reduction left out stands once, with its places; a rate apart says why later losses differ."""

    def make(kind: Any, stage: Any, name: str, cause: str) -> Finding:
        return Finding(stage, name, name, "it differs", 1.0, 1e-9, kind=kind, cause=cause)

    report = Report()
    report.findings = [
        make("rank-reduction", "backward", "up.bias", "it is not averaged over dp"),
        make("rank-reduction", "backward", "up.weight", "it is not averaged over dp"),
        make("rank-reduction", "backward", "norm.bias", "it is 2 times what it should be"),
        make("training-loss", "optimizer", "", ""),
    ]
    apart = [Disagreement("rate", "", "", (0, 1), 1, [np.ones(1), np.zeros(1)])]
    pair = SimpleNamespace(reference=SimpleNamespace(working=_refuse))
    examine(pair, SimpleNamespace(apart=apart), report)  # type: ignore[arg-type]
    assert [(f.kind, f.place, f.places) for f in report.findings] == [
        ("rank-reduction", "up.bias", ("up.weight",)),
        ("rank-reduction", "norm.bias", ()),
        ("rank-apart", "the model", ()),
    ]


def test_ranks_that_agree_cost_nothing() -> None:
    report = Report()
    examine(SimpleNamespace(), SimpleNamespace(apart=[]), report)  # type: ignore[arg-type]
    assert report.findings == []


RANDOM = np.random.default_rng(3)
WHOLE = RANDOM.standard_normal((8, 12))
SPLIT = RANDOM.standard_normal((4, 8, 12))
SPLIT[-1] = WHOLE - SPLIT[:-1].sum(0)
CUT, KEPT = Placement(None, 1), Placement()
Make = Callable[[list[np.ndarray]], list[np.ndarray]]

PLANTED: dict[str, tuple[Mesh, Placement, Make, str, str, bool]] = {
    "not summed": (Mesh(1, 4), KEPT, lambda e: list(SPLIT), "not summed over tp", "tp", False),
    "not averaged": (Mesh(4), KEPT, lambda e: list(SPLIT * 4), "not averaged over dp", "dp", False),
    "summed": (Mesh(3), KEPT, lambda e: [3 * x for x in e], "summed over dp", "dp", False),
    "doubled": (Mesh(1, 3), KEPT, lambda e: [2 * x for x in e], "2 times", "", False),
    "averaged": (Mesh(1, 3), KEPT, lambda e: [x / 3 for x in e], "1/3 of", "tp", False),
    "zero on one": (Mesh(1, 2), KEPT, lambda e: [e[0], 0 * e[1]], "rank 1 alone", "tp", False),
    "wrong group": (Mesh(1, 2), CUT, lambda e: [e[0] + e[1]] * 2, "summed over tp", "tp", False),
    "another rank's": (Mesh(1, 2), CUT, lambda e: e[::-1], "what rank 1 should", "tp", True),
    "blocks": (Mesh(1, 2), CUT, lambda e: [np.roll(x, 3, 1) for x in e], "another order", "tp", True),
    "interleaved": (Mesh(1, 2), CUT, lambda e: [WHOLE[:, ::2], WHOLE[:, 1::2]], "another order", "tp", True),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_is_told_by_the_numbers(name: str) -> None:
    mesh, placement, make, text, axis, is_shard = PLANTED[name]
    expected = [placement.scatter(WHOLE, mesh, rank) for rank in range(mesh.size)]
    found = explain(RankTensor(make(expected), expected, placement, mesh))
    assert found is not None and text in found.text
    assert (found.axis, found.is_shard) == (axis, is_shard)


def test_what_is_right_or_unknown_has_no_reason() -> None:
    expected = [CUT.scatter(WHOLE, Mesh(1, 2), rank) for rank in range(2)]
    assert explain(RankTensor(expected, expected, CUT, Mesh(1, 2))) is None
    other = [x + RANDOM.standard_normal(x.shape) for x in expected]
    assert explain(RankTensor(other, expected, CUT, Mesh(1, 2))) is None
