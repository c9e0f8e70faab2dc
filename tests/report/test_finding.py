"""What a finding says: its code, its title, the lines that a compiler would print, and its group."""

from dataclasses import replace
from typing import Any

from reprod_align import align
from reprod_align.report.finding import Finding, Suggestion, group_findings, list_finding

import numpy as np
import paddle
import torch

PLAIN = Finding("forward", "a", "a", "its output: expected 1, got 2", 1.0, 0.0, kind="own-code")
LINED = replace(
    PLAIN, torch_line="net.py:7", torch_code="y = x * 2", paddle_line="port.py:12",
    paddle_code="y = x * 3  # three", paddle_span=(4, 9),
)  # fmt: skip


def test_without_a_cause_the_evidence_is_the_title_and_stands_once() -> None:
    assert list_finding(PLAIN) == ["error[own-code]: forward: a: its output: expected 1, got 2"]


def test_the_cause_comes_first_and_its_entry_is_the_code() -> None:
    told = replace(
        LINED, cause="3 times (see `reprod-align api rms-norm`, `reprod-align api gelu`)"
    )
    assert told.code == "rms-norm"
    assert list_finding(told) == [
        "error[rms-norm]: forward: a: 3 times",
        "  --> port.py:12",
        "12 |  y = x * 3  # three",
        "   |      ^^^^^",
        "   = PyTorch: net.py:7:  y = x * 2",
        "   = evidence: its output: expected 1, got 2",
        "   = see: reprod-align api rms-norm, reprod-align api gelu",
    ]


def test_settings_are_the_title_where_no_cause_is_known_and_a_note_beside_one() -> None:
    settings = "eps: PyTorch 1, Paddle 2 (see `reprod-align api rms-norm`)"
    alone = replace(PLAIN, settings=settings)
    assert alone.title == "settings differ: eps: PyTorch 1, Paddle 2" and alone.code == "rms-norm"
    lines = list_finding(replace(alone, cause="too small"))
    assert lines[0] == "error[rms-norm]: forward: a: too small"
    assert " = settings: eps: PyTorch 1, Paddle 2" in lines


def test_the_edit_is_the_fix_and_takes_the_place_of_what_was_tried() -> None:
    tried = replace(LINED, remedy="`4` in place of `3` gives PyTorch's numbers")
    assert "   = fix: `4` in place of `3` gives PyTorch's numbers" in list_finding(tried)
    edit = Suggestion("port.py", 12, "3", "2", "reference", "tried")
    assert "   = fix: `2` in place of `3` gives PyTorch's numbers" in list_finding(
        replace(tried, edit=edit)
    )


def test_a_line_that_is_meant_whole_has_no_mark_below_it() -> None:
    lines = list_finding(replace(LINED, paddle_span=(0, 9)))
    assert not any("^" in line for line in lines)


def test_a_derived_batch_is_named_first() -> None:
    found = replace(PLAIN, batches="with one row", cause="why")
    assert found.title == "with one row: why"
    assert found.message == "with one row: why. its output: expected 1, got 2"


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


def test_what_one_edit_mends_is_one_cause_in_whatever_stage_it_shows() -> None:
    first, other = (Suggestion("net.py", 3, before, "1e-6", "number", "tried") for before in "ab")
    found = [
        replace(find(name, name, stage), edit=edit)
        for name, stage, edit in (
            ("norm", "forward", first),
            ("head", "forward", other),
            ("cell", "backward", first),
        )
    ]
    assert group(*found) == [("norm", ("cell",)), ("head", ())]


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


def test_parameters_that_layers_of_one_kind_lack_are_one_cause() -> None:
    says = "({}, 4): the Paddle model has no counterpart of this parameter"
    lacking = [
        Finding("weights", name, "", says.format(size), 1.0, 0.0, kind="parameter-unpaired")
        for name, size in (
            ("a.0.fc.weight", 8),
            ("a.0.fc.bias", 8),
            ("a.7.fc.weight", 9),
            ("b.w", 2),
        )
    ]
    assert group(*lacking) == [
        ("a.0.fc.weight", ("a.0.fc.bias (Paddle: the model)", "a.7.fc.weight (Paddle: the model)")),
        ("b.w", ()),
    ]
    other = [replace(one, evidence=f"its shape is {one.torch_name}") for one in lacking[:2]]
    assert len(group(*other)) == 2
