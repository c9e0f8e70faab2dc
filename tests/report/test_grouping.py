"""One cause is one finding, which lists its places; what differs otherwise stays."""

from typing import Any

from reprod_align import align
from reprod_align.report import Finding
from reprod_align.report.finding import group_findings

import numpy as np
import paddle
import torch

EPSILON = "eps: PyTorch 1e-05, Paddle 0.001; set epsilon=1e-05 in Paddle"


def find(
    name: str,
    evidence: str,
    stage: Any = "forward",
    line: str | None = "net.py:3",
    settings: str = "",
) -> Finding:
    return Finding(stage, name, name, evidence, 1.0, 0.0, paddle_line=line, settings=settings)


def group(*findings: Finding) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.torch_name, one.places) for one in group_findings(findings)]


def test_the_same_settings_are_one_cause_wherever_they_differ() -> None:
    at = "its output: at (0, 1) expected 1, got {}"
    assert group(
        find("embeddings.norm", at.format(2), settings=EPSILON),
        find("head", "its inputs agree and its output does not"),
        find("layers.0.norm", at.format(3), line=None, settings=EPSILON),
        find("layers.0.norm", "its gradient", "backward", settings=EPSILON),
    ) == [("embeddings.norm", ("layers.0.norm",)), ("head", ()), ("layers.0.norm", ())]


def test_layers_of_one_kind_that_differ_in_one_way_are_one_cause() -> None:
    says = "the value it hands to layers.{}.drop: at ({}, 1) expected 1, got 2. Paddle's times {}"
    assert group(
        find("layers.0", says.format(0, 3, 1.5)),
        find("layers.1", says.format(1, 2, 1.5)),
        find("layers.2", says.format(2, 3, 2.5)),
        find("layers.3", says.format(3, 3, 1.5), line="net.py:4"),
        find("layers.0", says.format(0, 0, 1.5)),
    ) == [("layers.0", ("layers.1",)), ("layers.2", ()), ("layers.3", ())]


def test_places_without_numbers_are_apart() -> None:
    assert group(find("q", "same"), find("k", "same")) == [("q", ()), ("k", ())]


def test_one_epsilon_in_many_norms_is_one_finding() -> None:
    ours = torch.nn.Sequential(*(torch.nn.LayerNorm(6) for _ in range(9)))
    theirs = paddle.nn.Sequential(*(paddle.nn.LayerNorm(6, 9e-4) for _ in range(9)))
    batch = (np.random.default_rng(0).normal(size=(4, 6)).astype("float32"),)
    report = align(ours, theirs, batch)
    assert [finding.torch_name for finding in report.findings] == ["0"], str(report)
    assert report.findings[0].places == tuple("12345678")
    assert "= also: 8 more places: 1, 2, 3, 4, 5, 6 and 2 more" in str(report)
    assert '"places": [\n        "1",' in report.to_json()
