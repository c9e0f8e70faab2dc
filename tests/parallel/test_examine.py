"""Ranks that disagree are findings, also where nothing more can be run."""

from types import SimpleNamespace
from typing import Any

from reprod_align.errors import ReprodError
from reprod_align.parallel.examine import examine
from reprod_align.parallel.side import Disagreement
from reprod_align.report import Finding, Report

import numpy as np


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
