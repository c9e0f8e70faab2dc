"""One cause is one finding: what differs alike in many places is said once, with the places."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reprod_align.base.naming import pattern
from reprod_align.report import Finding

_WHERE: Final = re.compile(r"at \([^)]*\) expected \S+, got \S+")  # the worst element
_NUMBER: Final = re.compile(r"(?<=[A-Za-z_])\.\d+\b")  # of a layer


def group_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those of one cause as the first of them, with the others' places.

    One cause: the same settings differ, or modules that are alike but for their numbers differ in
    the same way, made in the same line.
    """
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(_cause_of(finding), []).append(finding)
    return [_join(group) for group in groups.values()]


def _join(group: Sequence[Finding]) -> Finding:
    first = group[0]
    places = dict.fromkeys(place for one in group for place in (one.place, *one.places))
    return replace(first, places=tuple(place for place in places if place != first.place))


def _cause_of(finding: Finding) -> object:
    """Return what is the same for findings of one cause."""
    if finding.settings:
        return finding.stage, finding.settings
    names = finding.torch_name, finding.paddle_name
    kinds = tuple(map(pattern, names))
    if kinds == names:  # of no layer that is one of many
        return finding
    message = _NUMBER.sub(".#", _WHERE.sub("", finding.message))
    return finding.stage, kinds, message, finding.paddle_line
